"""The reference for the generated codecs: encodes a declaration field by field with ``struct``.

It reads only the attributes of a message object. It can also create random messages from a declaration. It
shares no code with ``wire`` or the generated modules.
"""

from __future__ import annotations

import random
import struct
from typing import Any

from kafkacore.protocol.schema.declaration import Field, Message
from kafkacore.wire import Uuid

FORMATS = {
    "bool": ">?", "int8": ">b", "int16": ">h", "int32": ">i", "int64": ">q", "uint16": ">H", "uint32": ">I",
    "float64": ">d",
}  # fmt: skip
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def python_name(name: str) -> str:
    """Return Kafka's field name in snake case. An underscore precedes a capital that follows no capital."""
    out = ""
    for at, letter in enumerate(name):
        if letter.isupper() and at and not name[at - 1].isupper():
            out += "_"
        out += letter.lower()
    return out


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


class SlowEncoder:
    """Encodes messages of one declaration in one version."""

    def __init__(self, message: Message, version: int) -> None:
        self.message = message
        self.version = version
        self.flexible = version in message.flexible

    def encode(self, value: Any) -> bytes:
        return self._fields(self.message.fields, value)

    def _fields(self, fields: tuple[Field, ...], value: Any) -> bytes:
        present = [field for field in fields if self.version in field.versions]
        out = b"".join(
            self._field(field, getattr(value, python_name(field.name)))
            for field in present
            if field.tag is None
        )
        if not self.flexible:
            return out
        tagged = b""
        count = 0
        for field in sorted((f for f in present if f.tag is not None), key=lambda f: f.tag or 0):
            one = getattr(value, python_name(field.name))
            if not self._is_default(field, one):
                content = self._field(field, one)
                tagged += varint(field.tag or 0) + varint(len(content)) + content
                count += 1
        return out + varint(count) + tagged

    def _is_default(self, field: Field, value: Any) -> bool:
        if field.default == "null" or value is None:
            return value is None and field.default == "null"
        if field.is_array or field.type in ("string", "bytes"):
            return len(value) == 0
        if field.is_struct:
            inner = self.message.structs[field.type].fields
            return all(self._is_default(one, getattr(value, python_name(one.name))) for one in inner)
        if field.type == "uuid":
            return bool(value.int == 0)
        if field.type == "bool":
            return bool(value == (field.default == "true"))
        return bool(value == int(field.default or "0", 0))

    def _length(self, size: int, form: str, compact: bool) -> bytes:
        return varint(size + 1) if compact else struct.pack(form, size)

    def _field(self, field: Field, value: Any) -> bytes:
        compact = self.flexible and not field.inflexible
        if not field.is_array:
            return self._value(field, value, compact)
        if value is None:
            return self._length(-1, ">i", compact)
        return self._length(len(value), ">i", compact) + b"".join(
            self._element(field, one, compact) for one in value
        )

    def _element(self, field: Field, value: Any, compact: bool) -> bytes:
        if field.is_struct:
            return self._fields(self.message.structs[field.type].fields, value)
        return self._value(field, value, compact)

    def _value(self, field: Field, value: Any, compact: bool) -> bytes:
        if field.type in FORMATS:
            return struct.pack(FORMATS[field.type], value)
        if field.type == "uuid":
            return bytes(value.bytes)
        if field.is_struct:
            if value is None:
                # A varint in the tagged section, otherwise an int8.
                return b"\xff" if field.tag is None else b"\x00"
            marker = b"\x01" if self.version in field.nullable else b""
            return marker + self._fields(self.message.structs[field.type].fields, value)
        form = ">h" if field.type == "string" else ">i"
        if value is None:
            return self._length(-1, form, compact)
        raw = value.encode() if field.type == "string" else bytes(value)
        return self._length(len(raw), form, compact) + raw


class RandomMessages:
    """Creates messages of ``message_class`` with a value in every field that ``version`` has."""

    def __init__(self, message: Message, message_class: type, version: int, source: random.Random) -> None:
        self.message = message
        self.message_class = message_class
        self.version = version
        self.random = source

    def make(self) -> Any:
        return self._fill(self.message.fields, self.message_class)

    def _fill(self, fields: tuple[Field, ...], made_of: type) -> Any:
        values = {
            python_name(field.name): self._field(field) for field in fields if self.version in field.versions
        }
        return made_of(**values)

    def _field(self, field: Field) -> Any:
        if self.version in field.nullable and self.random.random() < 0.25:
            return None
        if field.is_array:
            return [self._value(field) for _ in range(self.random.choice((0, 1, 1, 2)))]
        return self._value(field)

    def _value(self, field: Field) -> Any:
        chance = self.random
        if field.is_struct:
            return self._fill(
                self.message.structs[field.type].fields, getattr(self.message_class, field.type)
            )
        if field.type in BITS:
            bits = chance.choice((1, 7, BITS[field.type] - 1))
            return chance.choice(
                (-1, 0, 1, chance.getrandbits(min(bits, BITS[field.type] - 1)), -(1 << bits))
            )
        if field.type in ("uint16", "uint32"):
            return chance.getrandbits(int(field.type[4:]))
        if field.type == "bool":
            return chance.random() < 0.5
        if field.type == "float64":
            return chance.uniform(-1e9, 1e9)
        if field.type == "uuid":
            return Uuid(chance.choice((0, chance.getrandbits(128))).to_bytes(16))
        if field.type == "string":
            return "".join(chance.choices("ab.-_é€😀", k=chance.choice((0, 1, 5))))
        return chance.randbytes(chance.choice((0, 1, 9)))
