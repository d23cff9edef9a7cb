"""Generate the lines of code that encode and decode one field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kafkacore.protocol.schema.declaration import Field, Message, Versions

ANNOTATIONS = {"bool": "bool", "float64": "float", "string": "str", "bytes": "bytes", "uuid": "Uuid"}
DEFAULTS = {"bool": "False", "float64": "0.0", "string": '""', "bytes": 'b""', "uuid": "ZERO_UUID"}
SIZES = {
    "bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "float64": 8,
    "uuid": 16,
}  # fmt: skip
#: Names of local variables in the generated methods. A field with such a name is read into ``name_``.
RESERVED = {
    "self",
    "cls",
    "cursor",
    "writer",
    "version",
    "compact",
    "tag",
    "tagged",
    "tag_count",
    "value",
    "count",
}


def indented(lines: Iterable[str], depth: int = 1) -> list[str]:
    """Indent the lines."""
    return [" " * (4 * depth) + line if line else "" for line in lines]


def snake_case(name: str) -> str:
    """Convert ``TimeoutMs`` to ``timeout_ms``.

    As in Kafka's own generator, only the first of consecutive capitals has an underscore before it.
    """
    pairs = zip(" " + name, name, strict=False)
    words = (
        "_" + c if c.isupper() and before.isalnum() and not before.isupper() else c for before, c in pairs
    )
    return "".join(words).lower()


def condition(versions: Versions, within: Versions) -> str:
    """Return an expression that is true if the version is in ``versions``.

    ``within`` are the versions that can occur. The expression may be ``"True"`` or ``"False"``.
    """
    both = versions & within
    if not both:
        return "False"
    low = f"version >= {both.low}" if both.low > within.low else ""
    high = f"version <= {both.high}" if both.high < within.high else ""
    if low and high:
        return f"{both.low} <= version <= {both.high}" if both.low < both.high else f"version == {both.low}"
    return low or high or "True"


def parenthesized(expression: str) -> str:
    """Parenthesize an expression with ``or``, so that it can be an operand of ``and``."""
    return f"({expression})" if " or " in expression else expression


def negated(expression: str) -> str:
    """Return the negation of an expression that :func:`condition` has returned."""
    opposite = {">=": "<", "<=": ">", "==": "!="}
    left, operator, right = words if len(words := expression.split()) == 3 else ("", "", "")
    return f"{left} {opposite[operator]} {right}" if left else f"not ({expression})"


@dataclass(frozen=True)
class Scope:
    """The message of a field, and the versions in which the field can occur.

    ``path`` is the dotted name of the structure that has the field, such as ``FetchResponse.PartitionData``.
    """

    message: Message
    versions: Versions
    path: str

    @property
    def flexible(self) -> Versions:
        return self.message.flexible


def compact_expression(scope: Scope) -> str:
    """Return the expression that is true if lengths are compact."""
    return condition(scope.flexible, scope.versions)


def _min_size_bytes(message: Message, type_name: str, version: int) -> int:
    """Return the minimum size of a value that is not null, in bytes."""
    if type_name in SIZES:
        return SIZES[type_name]
    is_flexible = version in message.flexible
    if type_name in ("string", "bytes", "records"):
        return 1 if is_flexible else (2 if type_name == "string" else 4)
    size = 1 if is_flexible else 0
    for field in message.structs[type_name].fields:
        if field.tag is not None or version not in field.versions:
            continue
        if field.is_array:
            size += 1 if is_flexible else 4
        elif field.is_struct and version in field.nullable:
            size += 1
        else:
            size += _min_size_bytes(message, field.type, version)
    return size


class FieldCode:
    """Generate the code of one field; ``name`` is the field's name in Python."""

    def __init__(self, field: Field, name: str, scope: Scope) -> None:
        self.field = field
        self.name = name
        self.scope = scope
        self.versions = field.versions & scope.versions
        self.nullable = field.nullable & self.versions
        self.label = f'"{scope.path}.{name}"'
        self.local = f"{name}_" if name in RESERVED else name
        self.compact = "False" if field.inflexible else self._compact()
        self.struct = f"{scope.message.name}.{field.type}" if field.is_struct else ""

    def _compact(self) -> str:
        expression = compact_expression(self.scope)
        return expression if expression in ("True", "False") else "compact"

    # ---- Types and defaults ------------------------------------------------------------------------------
    @property
    def _element_annotation(self) -> str:
        if self.field.is_struct:
            return self.struct
        if self.field.type == "records":
            return "Records"
        if self.field.zero_copy:
            return "Buffer"
        return ANNOTATIONS.get(self.field.type, "int")

    @property
    def annotation(self) -> str:
        base = f"list[{self._element_annotation}]" if self.field.is_array else self._element_annotation
        return f"{base} | None" if self.field.nullable and self.field.type != "records" else base

    @property
    def default(self) -> str:
        """Expression that creates the default value."""
        declared, field = self.field.default, self.field
        if declared == "null" or field.type == "records":
            return "None"
        if field.is_array:
            return "[]"
        if field.is_struct:
            return f"{self.struct}()"
        if declared is None:
            return DEFAULTS.get(field.type, "0")
        if field.type == "string":
            return f'"{declared}"'
        return declared.capitalize() if field.type == "bool" else str(int(declared, 0))

    @property
    def argument_default(self) -> str:
        return "UNSET" if self.default == "[]" or self.default.endswith("()") else self.default

    @property
    def is_tagged_nullable_struct(self) -> bool:
        """Whether the field is a tagged structure that may be null.

        Kafka writes a varint instead of an int8 to show whether such a structure is null. If the field is
        missing, Kafka reads a structure with default values, even if the default in the JSON definition is
        null. Therefore null must be written explicitly.
        """
        field = self.field
        return field.tag is not None and field.is_struct and not field.is_array and bool(self.nullable)

    def not_default(self) -> str:
        """Return an expression that is true if the field differs from its default."""
        value, default = f"self.{self.name}", self.default
        if default == "None":
            return f"{value} is not None"
        if default in ("[]", 'b""'):
            return f"{value} is None or len({value})" if self.field.nullable else f"{value}"
        if default == "False":
            return value
        if default == "True":
            return f"not {value}"
        if self.field.is_struct:
            return self._struct_not_default(value)
        return f"{value} != {default}"

    def _struct_not_default(self, value: str) -> str:
        """Return the expression of ``not_default`` for a structure.

        If all fields of the structure are scalar, the expression compares the fields and does not create a
        structure.
        """
        fields = self.scope.message.structs[self.field.type].fields
        is_scalar = not any(field.is_array or field.is_struct or field.nullable for field in fields)
        if not is_scalar or self.is_tagged_nullable_struct:
            return f"{value} != {self.default}"
        inner = [FieldCode(field, snake_case(field.name), self.scope) for field in fields]
        return " or ".join(f"{value}.{one.name} != {one.default}" for one in inner)

    # ---- Encoding ----------------------------------------------------------------------------------------
    def refuse(self, guard: str = "") -> Iterator[str]:
        """Generate the code that raises an error if the field is set in a version that lacks it.

        An ignorable field needs no such code.

        ``guard`` is an expression that is true in the versions that lack the field. It is empty if the
        generated code has already tested the version.
        """
        if not self.field.ignorable:
            test = self.not_default()
            yield f"if {guard} and {parenthesized(test)}:" if guard else f"if {test}:"
            yield f"    raise field_not_in_version({self.label}, version)"

    def _refuse_null(self, value: str) -> Iterator[str]:
        """Generate the check that rejects a null if the version does not allow null."""
        allowed = condition(self.nullable, self.versions)
        if allowed == "True":
            return
        test = f"{value} is None" if allowed == "False" else f"{value} is None and {negated(allowed)}"
        yield from (f"if {test}:", f"    raise null_not_in_version({self.label}, version)")

    def encode(self, writer: str) -> Iterator[str]:
        field, value = self.field, f"self.{self.name}"
        if field.is_array:
            yield from self._encode_array(writer, value)
        elif field.is_struct:
            yield from self._encode_struct(writer, value)
        elif field.type in ("string", "bytes", "records"):
            yield from self._refuse_null(value)
            yield self._write_sized(writer, value)
        else:
            yield f"{writer}.write_{field.type}({value})"

    def _write_sized(self, writer: str, value: str) -> str:
        if self.field.type == "records" or self.field.zero_copy:
            return f"write_nullable_pieces({writer}, {value}, {self.compact})"
        return f"{writer}.write_nullable_{self.field.type}({value}, {self.compact})"

    def _encode_struct(self, writer: str, value: str) -> Iterator[str]:
        if not self.nullable:
            yield f"{value}.encode({writer}, version)"
            return
        if self.is_tagged_nullable_struct:
            yield f"{writer}.write_unsigned_varint({value} is not None)"
            yield f"if {value} is not None:"
            yield f"    {value}.encode({writer}, version)"
            return
        yield from self._refuse_null(value)
        yield f"if {value} is None:"
        yield f"    {writer}.write_int8(-1)"
        yield "else:"
        if condition(self.nullable, self.versions) == "True":
            yield f"    {writer}.write_int8(1)"
        else:
            yield f"    if {condition(self.nullable, self.versions)}:"
            yield f"        {writer}.write_int8(1)"
        yield f"    {value}.encode({writer}, version)"

    def _encode_array(self, writer: str, value: str) -> Iterator[str]:
        yield from self._refuse_null(value)
        item = f"{self.name}_item"
        if self.field.is_struct:
            write = [f"{item}.encode({writer}, version)"]
        elif self.field.type in ("string", "bytes"):
            write = [f"if {item} is None:", f"    raise null_not_in_version({self.label}, version)"]
            write += [self._write_sized(writer, item)]
        else:
            write = [f"{writer}.write_{self.field.type}({item})"]
        present = [f"{writer}.write_array_length(len({value}), {self.compact})", f"for {item} in {value}:"]
        present += indented(write)
        if not self.nullable:
            yield from present
            return
        yield f"if {value} is None:"
        yield f"    {writer}.write_array_length(-1, {self.compact})"
        yield from ("else:", *indented(present))

    # ---- Decoding ----------------------------------------------------------------------------------------
    def decode(self) -> Iterator[str]:
        field = self.field
        if field.is_array:
            yield from self._decode_array()
        elif field.is_struct:
            yield from self._decode_struct()
        elif field.type in ("string", "bytes", "records"):
            yield from self._decode_sized()
        else:
            yield f"self.{self.name} = cursor.read_{field.type}()"

    def _refuse_read_null(self, is_null: str) -> Iterator[str]:
        allowed = condition(self.nullable, self.versions)
        test = is_null if allowed == "False" else f"{is_null} and {negated(allowed)}"
        yield from (f"if {test}:", f"    raise null_refused({self.label}, cursor)")

    def _decode_sized(self) -> Iterator[str]:
        kind = "string" if self.field.type == "string" else "bytes"
        read = f"cursor.read_nullable_{kind}({self.compact})"
        copies = self.field.type == "bytes" and not self.field.zero_copy
        always = condition(self.nullable, self.versions) == "True"
        if always and not copies:
            yield f"self.{self.name} = {read}"
            return
        yield f"{self.local} = {read}"
        if not always:
            yield from self._refuse_read_null(f"{self.local} is None")
        if not copies:
            yield f"self.{self.name} = {self.local}"
        elif self.nullable:
            yield f"self.{self.name} = None if {self.local} is None else bytes({self.local})"
        else:
            yield f"self.{self.name} = bytes({self.local})"

    def _decode_struct(self) -> Iterator[str]:
        read = f"self.{self.name} = {self.struct}.decode(cursor, version)"
        if not self.nullable:
            yield read
            return
        marker = (
            "not cursor.read_unsigned_varint()"
            if self.is_tagged_nullable_struct
            else "cursor.read_int8() < 0"
        )
        allowed = condition(self.nullable, self.versions)
        if allowed != "True":
            marker = f"{allowed} and {marker}"
        yield from (f"if {marker}:", f"    self.{self.name} = None", "else:", f"    {read}")

    def _decode_array(self) -> Iterator[str]:
        versions = list(self.versions if self.field.tag is None else self.versions & self.scope.flexible)
        size = max(1, min(_min_size_bytes(self.scope.message, self.field.type, v) for v in versions))
        yield f"count = cursor.read_array_length({self.compact}, {size})"
        if condition(self.nullable, self.versions) != "True":
            yield from self._refuse_read_null("count < 0")
        filled = list(self._decode_elements())
        if not self.nullable:
            yield from filled
        else:
            yield from ("if count < 0:", f"    self.{self.name} = None", "else:", *indented(filled))

    def _decode_elements(self) -> Iterator[str]:
        field = self.field
        if field.is_struct:
            yield f"decode_{self.name} = {self.struct}.decode"
            yield f"self.{self.name} = [decode_{self.name}(cursor, version) for _ in range(count)]"
        elif field.type == "string":
            yield f"{self.local} = []"
            yield "for _ in range(count):"
            yield f"    element_of_{self.name} = cursor.read_nullable_string({self.compact})"
            yield f"    if element_of_{self.name} is None:"
            yield f"        raise null_refused({self.label}, cursor)"
            yield f"    {self.local}.append(element_of_{self.name})"
            yield f"self.{self.name} = {self.local}"
        else:
            yield f"read_{self.name} = cursor.read_{field.type}"
            yield f"self.{self.name} = [read_{self.name}() for _ in range(count)]"
