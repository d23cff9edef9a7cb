"""Convert an Avro schema to Arrow columns, as Spark's ``from_avro`` and ``SchemaConverters`` do."""

from __future__ import annotations

import pyarrow as pa

from kafkacore.decode.avro_program import fields_of
from kafkacore.decode.avro_schema import AvroType
from kafkacore.decode.decoder import ArrowField
from kafkacore.errors import KafkaConfigurationError

#: Maximum number of columns, including nested columns, if the user has not given a schema.
MAX_FIELDS = 20_000
_PLAIN: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "fixed": pa.binary(),
    "enum": pa.string(),
}
_LOGICAL: dict[str, pa.DataType] = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("us", tz="UTC"),
    "timestamp-micros": pa.timestamp("us", tz="UTC"),
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
    "uuid": pa.string(),
}


def columns_of(root: AvroType) -> pa.Schema:
    """Return the columns of a value.

    Raises
    ------
    KafkaConfigurationError
        The schema is recursive or too large, or a field has only the type null.
    """
    try:
        return pa.schema(_Columns().fields(fields_of(root), ()))
    except RecursionError:
        raise KafkaConfigurationError("types of the Avro schema are nested too deeply") from None


class _Columns:
    def __init__(self) -> None:
        self._count = 0

    def fields(self, record: AvroType, within: tuple[AvroType, ...]) -> list[ArrowField]:
        if record in within:
            raise KafkaConfigurationError(
                f"{record} contains itself, but columns cannot contain themselves: "
                "choose the columns with a schema"
            )
        # A short schema can have very many columns if it uses named types repeatedly at each level.
        self._count += len(record.fields)
        if self._count > MAX_FIELDS:
            raise KafkaConfigurationError(
                f"the Avro schema has more than {MAX_FIELDS} fields: choose the columns with a schema"
            )
        inside = (*within, record)
        return [pa.field(field.name, self._type(field.type, inside)) for field in record.fields]

    def _type(self, kind: AvroType, within: tuple[AvroType, ...]) -> pa.DataType:
        if kind.kind == "record":
            return pa.struct(self.fields(kind, within))
        if kind.kind == "array":
            return pa.list_(pa.field("element", self._type(kind.branches[0], within)))
        if kind.kind == "map":
            return pa.map_(pa.string(), self._type(kind.branches[0], within))
        if kind.kind == "union":
            return self._union(kind, within)
        if kind.logical == "decimal":
            return pa.decimal128(kind.precision, kind.scale)
        if kind.kind == "null":
            raise _only_null()
        return _LOGICAL.get(kind.logical or "", _PLAIN[kind.kind])

    def _union(self, kind: AvroType, within: tuple[AvroType, ...]) -> pa.DataType:
        branches = [branch for branch in kind.branches if branch.kind != "null"]
        kinds = {branch.kind for branch in branches}
        if len(branches) == 1:
            return self._type(branches[0], within)
        if kinds == {"int", "long"}:
            return pa.int64()
        if kinds == {"float", "double"}:
            return pa.float64()
        if not branches:
            raise _only_null()
        return pa.struct(
            [
                pa.field(f"member{number}", self._type(branch, within))
                for number, branch in enumerate(branches)
            ]
        )


def _only_null() -> KafkaConfigurationError:
    return KafkaConfigurationError("a field of type null has no values: choose the columns with a schema")
