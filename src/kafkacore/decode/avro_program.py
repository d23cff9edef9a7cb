"""Compile a writer's Avro schema and the wanted columns to a program that reads values into the columns.

A field is matched by its exact name, or else by its name without regard to case. Fields of the writer's
schema without a column are skipped. A column that the writer's schema lacks gets the default value of the
reader's schema, or else null. Numbers are converted to larger types as the Avro specification allows.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import pyarrow as pa

from kafkacore.decode.avro_schema import NO_DEFAULT, AvroField, AvroType
from kafkacore.decode.decoder import ArrowField
from kafkacore.errors import KafkaConfigurationError
from kafkacore.wire import Writer

Path = tuple[int, ...]
#: Upper limit of the computed minimum size of a record. No value can be larger than this limit.
MAX_LEAST = 2**31


class Op(IntEnum):
    """Kind of a node, with the same numbers as in ``_avro.pxd``."""

    NULL = 0
    BOOLEAN = 1
    NUMBER = 2
    FLOAT = 3
    DOUBLE = 4
    BYTES = 5
    FIXED = 6
    ENUM = 7
    ARRAY = 8
    MAP = 9
    RECORD = 10
    UNION = 11
    MISSING = 12
    MEMBERS = 13
    DEFAULT = 14


class Convert(IntEnum):
    """Conversion from an encoded value to a column, with the same numbers as in ``_avro.pxd``."""

    TO_INT32 = 0
    TO_INT64 = 1
    TO_FLOAT = 2
    TO_DOUBLE = 3
    TO_MULTIPLE = 4
    TO_QUOTIENT = 5
    TO_BINARY = 6
    TO_TEXT = 7
    TO_DECIMAL = 8
    TO_UUID = 9


@dataclass
class NodeSpec:
    """One node of a program. ``_avro.pxd`` describes the fields."""

    op: Op
    convert: Convert = Convert.TO_INT32
    size: int = 0
    width: int = 0
    path: Path | None = None
    children: tuple[int, ...] = ()
    blob: bytes = b""
    ends: tuple[int, ...] = ()


def compile_program(
    writer: AvroType, wanted: pa.Schema, reader: AvroType | None = None, strict: bool = False
) -> list[NodeSpec]:
    """Return the nodes that read values of ``writer`` into the columns ``wanted``.

    Parameters
    ----------
    writer:
        The schema of the values. A schema that is not a record is treated as a record with one field,
        ``value``.
    wanted:
        The columns.
    reader:
        The reader's schema, which supplies aliases and defaults.
    strict:
        Whether a column that the writer's schema lacks is an error.

    Returns
    -------
    list of NodeSpec
        The nodes of the program. The first node reads the outermost record.

    Raises
    ------
    KafkaConfigurationError
        A column cannot be read from the writer's field of the same name. Or ``strict`` is set, and the writer
        has no field with the name of a column.
    """
    compiler = _Compiler(strict)
    try:
        compiler.root(writer, pa.struct(list(wanted)), reader)
    except RecursionError:
        raise KafkaConfigurationError("types of the Avro schema are nested too deeply") from None
    return compiler.specs


def fields_of(root: AvroType) -> AvroType:
    """Return the record of a schema. A schema of another type becomes a record with one field, ``value``."""
    if root.kind == "record":
        return root
    records = [branch for branch in root.branches if branch.kind != "null"]
    if root.kind == "union" and len(records) == 1 and records[0].kind == "record":
        return records[0]
    return AvroType("record", fields=[AvroField("value", root)])


def find(name: str, fields: Iterable[AvroField]) -> AvroField | None:
    """Find a field by its exact name, or else the only field whose name differs only in case."""
    have = list(fields)
    exact = [field for field in have if field.name == name]
    alike = exact or [field for field in have if field.name.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None


class _Compiler:
    def __init__(self, strict: bool) -> None:
        self.specs: list[NodeSpec] = []
        self._strict = strict
        self._sizes: dict[int, int] = {}  # minimum size in bytes by the identity of the type
        self._skip_nodes: dict[int, int] = {}  # node that skips a type, by the identity of the type

    def root(self, writer: AvroType, wanted: pa.StructType, reader: AvroType | None) -> None:
        record = fields_of(writer)
        reads = fields_of(reader) if reader is not None else None
        if writer.kind != "union" or record not in writer.branches:
            self._record(record, wanted, (), reads, "")
            return
        at = self._add(NodeSpec(Op.UNION))
        children = [
            self._add(NodeSpec(Op.NULL, path=()))
            if branch.kind == "null"
            else self._record(branch, wanted, (), reads, "")
            for branch in writer.branches
        ]
        self.specs[at].children = tuple(children)

    def _add(self, spec: NodeSpec) -> int:
        self.specs.append(spec)
        return len(self.specs) - 1

    # ---- Values ------------------------------------------------------------------------------------------

    def _value(
        self, writer: AvroType, wanted: pa.DataType, path: Path, reader: AvroType | None, where: str
    ) -> int:
        """Return the node that reads ``writer`` into the column at ``path``."""
        if reader is not None and reader.kind == "union" and writer.kind != "union":
            reader = next((branch for branch in reader.branches if branch.kind == writer.kind), None)
        if writer.kind == "null":
            return self._add(NodeSpec(Op.NULL, path=path))
        if writer.kind == "union":
            return self._union(writer, wanted, path, reader, where)
        if writer.kind == "record" and pa.types.is_struct(wanted):
            return self._record(writer, wanted, path, reader, where)
        held = (
            reader.branches[0]
            if reader is not None and reader.kind == writer.kind and reader.branches
            else None
        )
        if writer.kind == "array" and pa.types.is_list(wanted):
            at = self._add(NodeSpec(Op.ARRAY, path=path, size=self._least(writer.branches[0])))
            item = self._value(writer.branches[0], wanted.value_type, (*path, 0), held, f"{where}[]")
            self.specs[at].children = (item,)
            return at
        if writer.kind == "map" and pa.types.is_map(wanted) and wanted.key_type == pa.string():
            at = self._add(NodeSpec(Op.MAP, path=path, size=1))
            key = self._add(NodeSpec(Op.BYTES, Convert.TO_TEXT, path=(*path, 0, 0)))
            item = self._value(writer.branches[0], wanted.item_type, (*path, 0, 1), held, f"{where}{{}}")
            self.specs[at].children = (key, item)
            return at
        spec = _scalar(writer, wanted)
        if spec is None:
            raise KafkaConfigurationError(
                f"field {where} is {writer} in the Avro schema, which cannot be read as {wanted}: change the "
                f"type of the column"
            )
        spec.path = path
        return self._add(spec)

    def _record(
        self, writer: AvroType, wanted: pa.StructType, path: Path, reader: AvroType | None, where: str
    ) -> int:
        at = self._add(NodeSpec(Op.RECORD, path=path))
        sources: dict[int, int] = {}  # number of the writer's field -> number of the column
        missing: list[int] = []
        for place, column in enumerate(wanted):
            source = self._source(column.name, writer, reader)
            if source is None:
                missing.append(place)
                continue
            number = writer.fields.index(source)
            if number in sources:
                names = f"{wanted.field(sources[number]).name} and {column.name}"
                raise KafkaConfigurationError(
                    f"columns {names} are the same field {source.name} of the Avro schema: remove one of them"
                )
            sources[number] = place
        children = []
        for number, field in enumerate(writer.fields):
            if number not in sources:
                children.append(self._skip(field.type))
                continue
            place = sources[number]
            column = wanted.field(place)
            reads = find(column.name, reader.fields) if reader is not None else None
            inner = reads.type if reads is not None else None
            name = f"{where}.{column.name}".lstrip(".")
            children.append(self._value(field.type, column.type, (*path, place), inner, name))
        children += [
            self._missing(wanted.field(place), (*path, place), writer, reader, where) for place in missing
        ]
        self.specs[at].children = tuple(children)
        return at

    @staticmethod
    def _source(name: str, writer: AvroType, reader: AvroType | None) -> AvroField | None:
        """Return the writer's field from which a column is read."""
        reads = find(name, reader.fields) if reader is not None else None
        if reads is None:
            return find(name, writer.fields)
        candidates = (find(each, writer.fields) for each in (reads.name, *reads.aliases))
        return next((field for field in candidates if field is not None), None)

    def _missing(
        self, column: ArrowField, path: Path, writer: AvroType, reader: AvroType | None, where: str
    ) -> int:
        reads = find(column.name, reader.fields) if reader is not None else None
        name = f"{where}.{column.name}".lstrip(".")
        if reads is not None and reads.default not in (NO_DEFAULT, None):
            at = self._add(NodeSpec(Op.DEFAULT, blob=encode_default(reads.type, reads.default, name)))
            first = reads.type.branches[0] if reads.type.kind == "union" else reads.type
            self.specs[at].children = (self._value(first, column.type, path, None, name),)
            return at
        if self._strict:
            have = ", ".join(field.name for field in writer.fields[:20])
            raise KafkaConfigurationError(
                f"the Avro schema has no field {name}: it has {have or 'none'}. Correct or remove the column"
            )
        return self._add(NodeSpec(Op.MISSING, path=path))

    def _union(
        self, writer: AvroType, wanted: pa.DataType, path: Path, reader: AvroType | None, where: str
    ) -> int:
        several = [branch for branch in writer.branches if branch.kind != "null"]
        if pa.types.is_struct(wanted) and _has_members(several, wanted):
            return self._members(writer, wanted, path, where)
        at = self._add(NodeSpec(Op.UNION))
        children = []
        for branch in writer.branches:
            reads = reader
            if reader is not None and reader.kind == "union":
                same = [b for b in reader.branches if b.kind == branch.kind]
                reads = same[0] if len(same) == 1 else next((b for b in same if b.name == branch.name), None)
            children.append(self._value(branch, wanted, path, reads, where))
        self.specs[at].children = tuple(children)
        return at

    def _members(self, writer: AvroType, wanted: pa.StructType, path: Path, where: str) -> int:
        """Return the node that reads a union into a struct of ``member0``, ``member1``, ….

        For each value, one of these members is not null.
        """
        at = self._add(NodeSpec(Op.MEMBERS, path=path))
        names = {field.name: place for place, field in enumerate(wanted)}
        children = []
        number = 0
        for branch in writer.branches:
            if branch.kind == "null":
                children.append(self._add(NodeSpec(Op.NULL)))
                continue
            name = f"member{number}"
            number += 1
            place = names.pop(name, None)
            if place is None:
                children.append(self._skip(branch))
            else:
                kind = wanted.field(place).type
                children.append(self._value(branch, kind, (*path, place), None, f"{where}.{name}"))
        if names:
            raise KafkaConfigurationError(
                f"field {where} is a union of {number} types: name its columns member0 to "
                f"member{number - 1}, not {next(iter(names))}"
            )
        self.specs[at].children = tuple(children)
        return at

    def _least(self, kind: AvroType) -> int:
        """Return the minimum size of a value in bytes."""
        if kind.kind != "record":
            return {"null": 0, "float": 4, "double": 8, "fixed": kind.size}.get(kind.kind, 1)
        if id(kind) not in self._sizes:
            # Count one byte for a record inside of itself, so that the recursion ends. The minimum is
            # correct: a record can contain itself only inside of a union, an array or a map, and each of
            # these values has at least one byte.
            self._sizes[id(kind)] = 1
            least = sum(self._least(field.type) for field in kind.fields)
            self._sizes[id(kind)] = min(least, MAX_LEAST)
        return self._sizes[id(kind)]

    # ---- Skipped values ----------------------------------------------------------------------------------

    def _skip(self, writer: AvroType) -> int:
        """Return the node that skips values of a type. Even a recursive type has only one such node."""
        if id(writer) in self._skip_nodes:
            return self._skip_nodes[id(writer)]
        spec = NodeSpec(_OPS[writer.kind], Convert.TO_BINARY, width=writer.size)
        at = self._skip_nodes[id(writer)] = self._add(spec)
        if writer.kind == "enum":
            spec.size = len(writer.symbols)
        elif writer.kind == "array":
            spec.size = self._least(writer.branches[0])
            spec.children = (self._skip(writer.branches[0]),)
        elif writer.kind == "map":
            spec.size = 1
            key = self._add(NodeSpec(Op.BYTES, Convert.TO_BINARY))
            spec.children = (key, self._skip(writer.branches[0]))
        elif writer.kind in ("record", "union"):
            below = [field.type for field in writer.fields] or writer.branches
            spec.children = tuple([self._skip(each) for each in below])
        return at


def _has_members(several: list[AvroType], wanted: pa.StructType) -> bool:
    """Return whether a union is read into ``member0``, ``member1``, … instead of a record's fields."""
    if any(branch.kind != "record" for branch in several):
        return True
    return len(several) > 1 and all(re.fullmatch(r"member\d+", field.name) for field in wanted)


_OPS = {
    "null": Op.NULL,
    "boolean": Op.BOOLEAN,
    "int": Op.NUMBER,
    "long": Op.NUMBER,
    "float": Op.FLOAT,
    "double": Op.DOUBLE,
    "bytes": Op.BYTES,
    "string": Op.BYTES,
    "fixed": Op.FIXED,
    "enum": Op.ENUM,
    "array": Op.ARRAY,
    "map": Op.MAP,
    "record": Op.RECORD,
    "union": Op.UNION,
}


# ---- Scalars ---------------------------------------------------------------------------------------------


def _scalar(writer: AvroType, wanted: pa.DataType) -> NodeSpec | None:
    """Return the node of a scalar type, or ``None`` if the type cannot be read as ``wanted``."""
    kind = writer.kind
    if kind == "boolean" and wanted == pa.bool_():
        return NodeSpec(Op.BOOLEAN)
    if kind in ("int", "long"):
        return _number(writer, wanted)
    if kind == "float" and wanted in (pa.float32(), pa.float64()):
        return NodeSpec(Op.FLOAT, Convert.TO_FLOAT if wanted == pa.float32() else Convert.TO_DOUBLE)
    if kind == "double" and wanted == pa.float64():
        return NodeSpec(Op.DOUBLE)
    if kind == "enum" and wanted == pa.string():
        encoded = [symbol.encode() for symbol in writer.symbols]
        ends = tuple(sum(map(len, encoded[: at + 1])) for at in range(len(encoded)))
        return NodeSpec(Op.ENUM, size=len(encoded), blob=b"".join(encoded), ends=ends)
    if kind in ("bytes", "string", "fixed"):
        return _bytes(writer, wanted)
    return None


def _number(writer: AvroType, wanted: pa.DataType) -> NodeSpec | None:
    logical = writer.logical or ""
    if pa.types.is_timestamp(wanted):
        local = logical.startswith("local-")
        # As in Spark, a long without a logical type is in milliseconds.
        if writer.kind != "long" or (wanted.tz is None) is not local or "time-" in logical:
            return None
        if logical.endswith("nanos"):
            return NodeSpec(Op.NUMBER, Convert.TO_QUOTIENT, 1000)
        if logical.endswith("micros"):
            return NodeSpec(Op.NUMBER, Convert.TO_INT64)
        return NodeSpec(Op.NUMBER, Convert.TO_MULTIPLE, 1000)
    if pa.types.is_time64(wanted):
        factor = {"time-millis": 1_000_000, "time-micros": 1_000}.get(logical)
        return NodeSpec(Op.NUMBER, Convert.TO_MULTIPLE, factor) if factor else None
    if wanted == pa.date32():
        return NodeSpec(Op.NUMBER, Convert.TO_INT32) if writer.kind == "int" else None
    if wanted == pa.int32() and writer.kind == "int":
        return NodeSpec(Op.NUMBER, Convert.TO_INT32)
    convert = {
        pa.int64(): Convert.TO_INT64,
        pa.float32(): Convert.TO_FLOAT,
        pa.float64(): Convert.TO_DOUBLE,
    }.get(wanted)
    return NodeSpec(Op.NUMBER, convert) if convert is not None else None


def _bytes(writer: AvroType, wanted: pa.DataType) -> NodeSpec | None:
    op = Op.FIXED if writer.kind == "fixed" else Op.BYTES
    if pa.types.is_decimal128(wanted):
        if writer.logical != "decimal" or wanted.scale != writer.scale:
            return None
        return NodeSpec(op, Convert.TO_DECIMAL, size=wanted.precision, width=writer.size)
    if wanted == pa.binary():
        return NodeSpec(op, Convert.TO_BINARY, width=writer.size)
    if wanted != pa.string():
        return None
    if writer.kind == "fixed":
        return NodeSpec(op, Convert.TO_UUID, width=writer.size) if writer.logical == "uuid" else None
    return NodeSpec(op, Convert.TO_TEXT)


# ---- Defaults --------------------------------------------------------------------------------------------


def encode_default(kind: AvroType, default: object, where: str) -> bytes:
    """Encode a default value given in JSON. The default of a union is a value of the first branch."""
    try:
        return _encoded(kind.branches[0] if kind.kind == "union" else kind, default)
    except (
        TypeError,
        ValueError,
        KeyError,
        AttributeError,
        IndexError,
        OverflowError,
        struct.error,
    ) as error:
        raise KafkaConfigurationError(f"the default of field {where} is not a valid {kind}") from error


def _encoded(kind: AvroType, value: Any) -> bytes:
    if kind.kind == "null":
        return b""
    if kind.kind == "boolean":
        return b"\1" if value else b"\0"
    if kind.kind in ("int", "long"):
        return _long(int(value))
    if kind.kind in ("float", "double"):
        return struct.pack("<f" if kind.kind == "float" else "<d", float(value))
    if kind.kind == "string":
        text = value.encode()
        return _long(len(text)) + bytes(text)
    if kind.kind == "bytes":
        raw = value.encode("latin-1")
        return _long(len(raw)) + bytes(raw)
    if kind.kind == "fixed":
        return bytes(value.encode("latin-1"))
    if kind.kind == "enum":
        return _long(kind.symbols.index(value))
    if kind.kind == "union":
        return _long(0) + _encoded(kind.branches[0], value)
    if kind.kind == "array":
        items = b"".join(_encoded(kind.branches[0], item) for item in value)
        return (_long(len(value)) + items if value else b"") + b"\0"
    if kind.kind == "map":
        string = AvroType("string")
        items = b"".join(_encoded(string, k) + _encoded(kind.branches[0], v) for k, v in value.items())
        return (_long(len(value)) + items if value else b"") + b"\0"
    return b"".join(_encoded(field.type, value.get(field.name, field.default)) for field in kind.fields)


def _long(number: int) -> bytes:
    writer = Writer()
    writer.write_varlong(number)
    return b"".join(writer.pieces())
