"""Convert an Avro schema to Spark columns, as Spark's ``from_avro`` and ``SchemaConverters`` do."""

from __future__ import annotations

from kafkacore.decode.avro_program import fields_of
from kafkacore.decode.avro_schema import AvroType
from kafkacore.errors import KafkaConfigurationError

#: Maximum number of columns, including nested columns, if the user has not given a schema.
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
    """Return the columns of a value in Spark's DDL.

    Raises
    ------
    KafkaConfigurationError
        The schema is recursive or too large, or a type has no counterpart in Spark.
    """
    try:
        return _Columns().fields(fields_of(root), ())
    except RecursionError:
        raise KafkaConfigurationError("types of the Avro schema are nested too deeply") from None


class _Columns:
    def __init__(self) -> None:
        self._count = 0

    def fields(self, record: AvroType, within: tuple[AvroType, ...]) -> str:
        if record in within:
            raise KafkaConfigurationError(
                f"{record} contains itself, but Spark columns cannot contain themselves: "
                "give the columns with .schema(...)"
            )
        # A short schema can have very many columns if it uses named types repeatedly at each level.
        self._count += len(record.fields)
        if self._count > MAX_FIELDS:
            raise KafkaConfigurationError(
                f"the Avro schema has more than {MAX_FIELDS} fields: select columns with .schema(...)"
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
            raise KafkaConfigurationError(
                "a field of type null has no Spark type: select columns with .schema(...)"
            )
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
            raise KafkaConfigurationError(
                "a field of type null has no Spark type: select columns with .schema(...)"
            )
        members = (f"member{number} {self._type(branch, within)}" for number, branch in enumerate(branches))
        return f"struct<{', '.join(members)}>"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
