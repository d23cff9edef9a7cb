"""Parse Avro schemas as defined by the Avro 1.12 specification.

Schemas, which come from a registry or a user, are not trusted: size, nesting depth and names are checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from kafkacore.decode.decoder import quoted
from kafkacore.errors import KafkaError
from kafkacore.structs import INT32_MAX

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
#: Maximum length of a schema in characters.
MAX_CHARACTERS = 4 * 1024 * 1024
#: Maximum nesting depth of types.
MAX_DEPTH = 64
#: Maximum precision of a decimal in Spark. A decimal of higher precision is read as bytes.
MAX_PRECISION = 38
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

#: Marks a field without a default. ``None`` means that the default is null.
NO_DEFAULT = object()


class AvroSchemaError(KafkaError):
    """A string is not a valid Avro schema. The message gives the reason."""


@dataclass(eq=False)
class AvroField:
    """A field of a record."""

    name: str
    type: AvroType
    default: object = NO_DEFAULT
    aliases: tuple[str, ...] = ()


@dataclass(eq=False)
class AvroType:
    """An Avro type. A named type may contain itself.

    Parameters
    ----------
    kind:
        Name of a primitive type such as ``int``, or ``record``, ``enum``, ``array``, ``map``, ``fixed`` or
        ``union``.
    logical:
        The logical type, if it is supported and valid for ``kind``.
    branches:
        The branches of a union. The only branch of an array or a map is its item type.
    """

    kind: str
    logical: str | None = None
    name: str = ""
    fields: list[AvroField] = field(default_factory=list)
    branches: list[AvroType] = field(default_factory=list)
    symbols: tuple[str, ...] = ()
    size: int = 0
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        named = f"{self.kind} {self.name}" if self.name else self.kind
        return f"{named} ({self.logical})" if self.logical else named


def parse_schema(text: str, names: dict[str, AvroType] | None = None) -> AvroType:
    """Parse a schema.

    Parameters
    ----------
    text:
        A schema in JSON, or the name of a primitive type without quotes.
    names:
        Full name → type to which the schema may refer. The types that the schema defines are added.

    Raises
    ------
    AvroSchemaError
        The text is not a valid schema.
    """
    if len(text) > MAX_CHARACTERS:
        raise AvroSchemaError(f"the schema has {len(text)} characters, and the maximum is {MAX_CHARACTERS}")
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        parsed = text.strip()
        if parsed not in PRIMITIVES:
            raise AvroSchemaError(f"not an Avro schema in JSON: {quoted(text)!r}") from None
    return _Parser({} if names is None else names).type_of(parsed, "", 0)


class _Parser:
    def __init__(self, names: dict[str, AvroType]) -> None:
        self._names = names

    def type_of(self, given: object, namespace: str, depth: int) -> AvroType:
        if depth > MAX_DEPTH:
            raise AvroSchemaError(f"types are nested deeper than {MAX_DEPTH} levels")
        if isinstance(given, str):
            return self._by_name(given, namespace)
        if isinstance(given, list):
            return self._union(given, namespace, depth)
        if not isinstance(given, dict):
            raise AvroSchemaError(f"{quoted(given)!r} is not a type")
        kind = given.get("type")
        if isinstance(kind, dict | list):
            return self.type_of(kind, namespace, depth + 1)
        if kind in ("record", "error"):
            return self._record(given, namespace, depth)
        if kind == "enum":
            return self._enum(given, namespace)
        if kind == "fixed":
            return self._fixed(given, namespace)
        if kind in ("array", "map"):
            held = self.type_of(given.get("items" if kind == "array" else "values"), namespace, depth + 1)
            return AvroType(str(kind), branches=[held])
        if not isinstance(kind, str):
            raise AvroSchemaError(f"{quoted(given)!r} has no attribute 'type'")
        found = self._by_name(kind, namespace)
        return _with_logical(AvroType(kind), given) if kind in PRIMITIVES else found

    def _by_name(self, name: str, namespace: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        found = self._names.get(full) or self._names.get(name)
        if found is None:
            raise AvroSchemaError(f"type {quoted(name)!r} is not defined")
        return found

    def _union(self, given: list[object], namespace: str, depth: int) -> AvroType:
        branches = [self.type_of(branch, namespace, depth + 1) for branch in given]
        if not branches or any(branch.kind == "union" for branch in branches):
            raise AvroSchemaError("a union must have at least one branch, and a branch must not be a union")
        return AvroType("union", branches=branches)

    def _define(self, kind: str, given: Mapping[str, object], namespace: str) -> tuple[AvroType, str]:
        """Define a named type. Return the type, and the namespace of the names inside it."""
        name, own = given.get("name"), given.get("namespace", namespace)
        if not isinstance(name, str) or not isinstance(own, str):
            raise AvroSchemaError(f"a type of kind {kind} has no name")
        full = name if "." in name or not own else f"{own}.{name}"
        if not all(NAME.fullmatch(part) for part in full.split(".")):
            raise AvroSchemaError(f"{quoted(full)!r} is not a valid name")
        if full in self._names:
            raise AvroSchemaError(f"{quoted(full)!r} is defined twice")
        self._names[full] = defined = AvroType(kind, name=full)
        return defined, full.rpartition(".")[0]

    def _record(self, given: Mapping[str, object], namespace: str, depth: int) -> AvroType:
        record, within = self._define("record", given, namespace)
        fields = given.get("fields")
        if not isinstance(fields, list):
            raise AvroSchemaError(f"record {record.name} has no fields")
        for each in fields:
            name = each.get("name") if isinstance(each, dict) else None
            if not isinstance(name, str) or "type" not in each:
                raise AvroSchemaError(f"a field of record {record.name} has no name or no type")
            if not name.isprintable():
                raise AvroSchemaError(f"{quoted(name)!a} is not a valid name")
            given_aliases = each.get("aliases")
            aliases = given_aliases if isinstance(given_aliases, list) else []
            record.fields.append(
                AvroField(
                    name,
                    self.type_of(each["type"], within, depth + 1),
                    each.get("default", NO_DEFAULT),
                    tuple(alias for alias in aliases if isinstance(alias, str)),
                )
            )
        if len({each.name for each in record.fields}) < len(record.fields):
            raise AvroSchemaError(f"record {record.name} has two fields with the same name")
        return record

    def _enum(self, given: Mapping[str, object], namespace: str) -> AvroType:
        enum, _ = self._define("enum", given, namespace)
        symbols = given.get("symbols")
        if not isinstance(symbols, list) or not all(
            isinstance(s, str) and NAME.fullmatch(s) for s in symbols
        ):
            raise AvroSchemaError(f"enum {enum.name} has no symbols, or a symbol that is not a valid name")
        enum.symbols = tuple(symbols)
        return enum

    def _fixed(self, given: Mapping[str, object], namespace: str) -> AvroType:
        fixed, _ = self._define("fixed", given, namespace)
        size = given.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= INT32_MAX:
            raise AvroSchemaError(f"fixed {fixed.name} has no valid size")
        fixed.size = size
        return _with_logical(fixed, given)


#: Logical type → kinds of Avro types that may have it. Only supported logical types are listed.
LOGICAL = {
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "timestamp-nanos": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-nanos": ("long",),
    "decimal": ("bytes", "fixed"),
    "uuid": ("string", "fixed"),
}


def _with_logical(plain: AvroType, given: Mapping[str, object]) -> AvroType:
    """Set the logical type of ``plain``. As Avro specifies, an unknown or invalid logical type is ignored."""
    logical = given.get("logicalType")
    if not isinstance(logical, str) or plain.kind not in LOGICAL.get(logical, ()):
        return plain
    if logical == "decimal":
        precision, scale = given.get("precision"), given.get("scale", 0)
        sound = isinstance(precision, int) and isinstance(scale, int) and 0 <= scale <= precision
        if not sound or not 0 < precision <= MAX_PRECISION:  # type: ignore[operator]  # an int where sound
            return plain
        plain.precision, plain.scale = precision, scale  # type: ignore[assignment]  # ints where sound
    if logical == "uuid" and plain.kind == "fixed" and plain.size != 16:
        return plain
    plain.logical = logical
    return plain
