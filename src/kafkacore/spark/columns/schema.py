"""The columns of the source, which are those of Spark's built-in ``kafka`` source.

Spark cannot push a projection down to a Python source, but it passes the schema that the user has set. With
``.schema("value binary, offset bigint")`` only these columns are built, in a third of the time that all
columns take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from kafkacore.decode.kafka_columns import Column
from kafkacore.errors import KafkaConfigurationError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

#: Spark type of each column, in the column order of the built-in source.
SPARK_TYPES: dict[Column, str] = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    "headers": "array<struct<key:string,value:binary>>",
}


def all_columns(include_headers: bool) -> tuple[Column, ...]:
    """Return the columns of a read without a schema."""
    return tuple(name for name in SPARK_TYPES if include_headers or name != "headers")


def chosen_columns(schema: StructType) -> tuple[Column, ...]:
    """Check the schema of the user and return its columns.

    Raises
    ------
    KafkaConfigurationError
        A column does not exist in the source, has the wrong type or is ``NOT NULL``.
    """
    for field in schema.fields:
        kind = field.dataType.simpleString()
        wanted = SPARK_TYPES.get(cast(Column, field.name))
        if wanted is None:
            raise KafkaConfigurationError(
                f"the source has no column {field.name!r}: choose among {', '.join(SPARK_TYPES)}"
            )
        if kind != wanted:
            raise KafkaConfigurationError(
                f"column {field.name} must be of type {wanted}, not {kind}: change the schema"
            )
        if not field.nullable:
            raise KafkaConfigurationError(
                f"column {field.name} cannot be NOT NULL: remove NOT NULL from the schema"
            )
    return tuple(cast(Column, name) for name in schema.names)


def arrow_schema(columns: tuple[Column, ...]) -> pa.Schema:
    """Return the schema that Spark requires: 32-bit offsets, nullable fields, UTC timestamps in us."""
    import pyarrow as pa

    header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    types: dict[Column, pa.DataType] = {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestampType": pa.int32(),
        "headers": pa.list_(pa.field("element", header)),
    }
    return pa.schema([pa.field(column, types[column]) for column in columns])
