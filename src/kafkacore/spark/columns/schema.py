"""The columns of the source: Spark's built-in ``kafka`` schema, and what of it a user's schema asks for.

Spark cannot push a projection down to a Python source, but it hands over the schema that the user gave:
``.schema("value binary, offset bigint")`` reads these columns alone, and costs a third. Does not know:
offsets, connections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from kafkacore.errors import KafkaConfigurationError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

Column = Literal["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]

#: Spark's type of each column, in the built-in source's order.
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
#: The record package's column behind each; topic and partition are constant within a batch.
COLUMN_OF: dict[Column, str] = {
    "key": "key",
    "value": "value",
    "offset": "offset",
    "timestamp": "timestamp",
    "timestampType": "timestamp_type",
    "headers": "headers",
}


def all_columns(include_headers: bool) -> tuple[Column, ...]:
    """What a read gives for which the user has chosen nothing."""
    return tuple(name for name in SPARK_TYPES if include_headers or name != "headers")


def chosen_columns(schema: StructType) -> tuple[Column, ...]:
    """The columns of the user's schema, checked.

    Raises
    ------
    KafkaConfigurationError
        A column that the source does not have, of another type, or declared ``NOT NULL``.
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
                f"column {field.name} is of type {wanted}, not {kind}: change the schema"
            )
        if not field.nullable:
            raise KafkaConfigurationError(
                f"column {field.name} cannot be NOT NULL: leave that out of the schema"
            )
    return tuple(cast(Column, name) for name in schema.names)


def arrow_schema(columns: tuple[Column, ...]) -> pa.Schema:
    """Exactly what Spark compares a batch with: 32-bit offsets, every field nullable, microseconds in UTC."""
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
