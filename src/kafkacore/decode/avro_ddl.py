"""Convert an Avro schema to Spark columns, as Spark's ``from_avro`` and ``SchemaConverters`` do."""

from __future__ import annotations

import pyarrow as pa

from kafkacore.decode.avro_columns import columns_of
from kafkacore.decode.avro_schema import AvroType

_PLAIN: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.binary(): "binary",
    pa.string(): "string",
    pa.date32(): "date",
    pa.timestamp("us", tz="UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
}


def ddl_of(root: AvroType) -> str:
    """Return the columns of a value in Spark's DDL.

    Raises
    ------
    KafkaConfigurationError
        The schema is recursive or too large, or a field has only the type null.
    """
    return ", ".join(f"{_quoted(field.name)} {_type(field.type)}" for field in columns_of(root))


def _type(kind: pa.DataType) -> str:
    if pa.types.is_struct(kind):
        fields = (kind.field(at) for at in range(kind.num_fields))
        return f"struct<{', '.join(f'{_quoted(field.name)} {_type(field.type)}' for field in fields)}>"
    if pa.types.is_list(kind):
        return f"array<{_type(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<string, {_type(kind.item_type)}>"
    if pa.types.is_decimal128(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _PLAIN[kind]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
