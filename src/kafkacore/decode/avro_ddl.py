"""An Avro schema in, the columns that it has in Spark out, as ``from_avro`` would have them.

Source: Spark's ``SchemaConverters``. Does not know: encoded values.
"""

from __future__ import annotations

from kafkacore.decode.avro_program import fields_of
from kafkacore.decode.avro_schema import AvroType
from kafkacore.errors import KafkaConfigurationError

#: Columns, with those in columns, that a schema may have which nobody has chosen from.
MAX_FIELDS = 20_000
_PLAIN = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
    "fixed": "binary",
    "enum": "string",
}
_LOGICAL = {
    "date": "date",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
    "uuid": "string",
}


def ddl_of(root: AvroType) -> str:
    """The columns of a value, in Spark's DDL.

    Raises
    ------
    KafkaConfigurationError
        A type lies within itself, or has no counterpart in Spark.
    """
    try:
        return _Columns().fields(fields_of(root), ())
    except RecursionError:
        raise KafkaConfigurationError("types of the Avro schema lie too deep in each other") from None


class _Columns:
    def __init__(self) -> None:
        self._count = 0

    def fields(self, record: AvroType, within: tuple[AvroType, ...]) -> str:
        if record in within:
            raise KafkaConfigurationError(
                f"{record} lies within itself, which columns cannot: give .schema(...), as deep as is needed"
            )
        # Types that are used twice in types that are used twice: a short schema of very many columns.
        self._count += len(record.fields)
        if self._count > MAX_FIELDS:
            raise KafkaConfigurationError(
                f"the Avro schema has more than {MAX_FIELDS} fields: give those wanted by .schema(...)"
            )
        inside = (*within, record)
        return ", ".join(f"{_quoted(field.name)} {self._type(field.type, inside)}" for field in record.fields)

    def _type(self, kind: AvroType, within: tuple[AvroType, ...]) -> str:
        if kind.kind == "record":
            return f"struct<{self.fields(kind, within)}>"
        if kind.kind == "array":
            return f"array<{self._type(kind.branches[0], within)}>"
        if kind.kind == "map":
            return f"map<string, {self._type(kind.branches[0], within)}>"
        if kind.kind == "union":
            return self._union(kind, within)
        if kind.logical == "decimal":
            return f"decimal({kind.precision},{kind.scale})"
        if kind.kind == "null":
            raise KafkaConfigurationError("a field that is always null has no column: give .schema(...)")
        return _LOGICAL.get(kind.logical or "", _PLAIN[kind.kind])

    def _union(self, kind: AvroType, within: tuple[AvroType, ...]) -> str:
        branches = [branch for branch in kind.branches if branch.kind != "null"]
        kinds = {branch.kind for branch in branches}
        if len(branches) == 1:
            return self._type(branches[0], within)
        if kinds == {"int", "long"}:
            return "bigint"
        if kinds == {"float", "double"}:
            return "double"
        if not branches:
            raise KafkaConfigurationError("a field that is always null has no column: give .schema(...)")
        members = (f"member{number} {self._type(branch, within)}" for number, branch in enumerate(branches))
        return f"struct<{', '.join(members)}>"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
