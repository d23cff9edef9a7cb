"""Declarations of messages as tables of fields, and the parser of these tables.

A line of the table is one field. The lines indented below it are the fields of its structure::

    # name             type                 versions  default, marks
    TransactionalId    string?              3+        = null
    TopicData          []TopicProduceData
      Name             string               0-12      key ignorable
      PartitionData    []PartitionProduceData
        Index          int32
        Records        records?

- The types are Kafka's: ``bool int8 int16 int32 int64 uint16 uint32 float64 string bytes uuid records``, the
  name of a structure, and ``[]`` followed by any of these types.
- ``?`` after the type: the field may be null in every version that has the field. ``?2+`` and ``?2-7``: the
  field may be null only in these versions.
- Versions: ``3``, ``3-5`` or ``3+``; ``0+`` if omitted. ``= x``: the default, if it is not 0, false or empty.
- ``tag n``: the field is in the tagged section of flexible versions.
- ``ignorable``: a version that lacks the field silently omits the value. A field without this mark must have
  its default in such a version.
- ``key``: the field identifies an element of its collection.
- ``zero-copy``: the value is not copied out of the payload.
- ``inflexible``: the field has a non-compact length in flexible versions too.
- ``struct Name`` declares a structure that several fields share.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

PRIMITIVES = frozenset(
    {
        "bool", "int8", "int16", "int32", "int64", "uint16", "uint32", "float64",
        "string", "bytes", "uuid", "records",
    }
)  # fmt: skip
_VERSIONS = re.compile(r"(\d+)(?:(\+)|-(\d+))?")
_TYPE = re.compile(r"(\[\])?(\w+)(?:(\?)([\d+-]*))?")
_FOREVER = 0x7FFF


class DeclarationError(ValueError):
    """A table is invalid; the message contains the line."""


@dataclass(frozen=True)
class Versions:
    """Versions ``low`` to ``high``, both included; empty if ``high < low``."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Parse ``3``, ``3-5``, ``3+`` or ``none``."""
        if text == "none":
            return NO_VERSIONS
        matched = _VERSIONS.fullmatch(text)
        if matched is None:
            raise DeclarationError(f"invalid range of versions: {text!r}")
        low, plus, high = matched.groups()
        return cls(int(low), _FOREVER if plus else int(high or low))

    def __and__(self, other: Versions) -> Versions:
        both = Versions(max(self.low, other.low), min(self.high, other.high))
        return both if both else NO_VERSIONS

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.low, self.high + 1))

    def __bool__(self) -> bool:
        return self.low <= self.high


NO_VERSIONS = Versions(0, -1)
ALL_VERSIONS = Versions(0, _FOREVER)


@dataclass(frozen=True)
class Field:
    """A field. Its type is a primitive, a structure, or an array of primitives or structures."""

    name: str
    type: str
    is_array: bool = False
    versions: Versions = ALL_VERSIONS
    nullable: Versions = NO_VERSIONS
    default: str | None = None
    tag: int | None = None
    key: bool = False
    ignorable: bool = False
    zero_copy: bool = False
    inflexible: bool = False

    @property
    def is_struct(self) -> bool:
        return self.type not in PRIMITIVES


@dataclass(frozen=True)
class Struct:
    """A structure; ``versions`` are the versions of the message in which the structure can occur."""

    name: str
    fields: tuple[Field, ...]
    versions: Versions
    #: Whether the structure is declared by ``struct``, so that several fields can share it.
    is_common: bool = False


@dataclass(frozen=True)
class Message:
    """A request, a response, a header, or the key or value of a record."""

    name: str
    versions: Versions
    flexible: Versions
    fields: tuple[Field, ...]
    #: Structures in the order of their first mention. Their names are unique within the message.
    structs: dict[str, Struct]
    about: str = ""


@dataclass(frozen=True)
class Api:
    """A request and its response. An API that Kafka 4 removed has no versions and no messages."""

    key: int
    name: str
    about: str
    versions: Versions
    messages: tuple[Message, ...] = ()
    latest_version_unstable: bool = False


@dataclass
class _Table:
    """State of the parser; ``found`` collects the structures of the table."""

    message: str
    versions: Versions
    lines: list[tuple[int, str]]
    at: int = 0
    found: dict[str, Struct] = field(default_factory=dict)

    def fields(self, indent: int, versions: Versions) -> tuple[Field, ...]:
        """Parse the fields at ``indent``, up to a line that is indented less."""
        parsed: list[Field] = []
        while self.at < len(self.lines) and self.lines[self.at][0] == indent:
            words = self.lines[self.at][1].split()
            self.at += 1
            if words[0] == "struct":
                self.define(words[1], self.versions, is_common=True)
                continue
            one = self.parse(words)
            parsed.append(one)
            if self.at < len(self.lines) and self.lines[self.at][0] > indent:
                self.define(one.type, versions & one.versions)
        if self.at < len(self.lines) and self.lines[self.at][0] > indent:
            raise DeclarationError(f"{self.message}: unexpected indent: {self.lines[self.at][1]}")
        return tuple(parsed)

    def define(self, name: str, versions: Versions, *, is_common: bool = False) -> None:
        if name in self.found or name in PRIMITIVES:
            raise DeclarationError(
                f"{self.message}: structure {name} is declared twice or has the name of a primitive type"
            )
        self.found[name] = Struct(name, (), versions, is_common)  # keeps the order of first mention
        fields = self.fields(self.lines[self.at][0], versions)
        self.found[name] = replace(self.found[name], fields=fields)

    def parse(self, words: list[str]) -> Field:
        typed = _TYPE.fullmatch(words[1]) if len(words) > 1 else None
        if typed is None:
            raise DeclarationError(f"{self.message}: invalid field: {' '.join(words)}")
        one = Field(words[0], typed[2], is_array=bool(typed[1]))
        rest = iter(words[2:])
        for word in rest:
            if word[0].isdigit():
                one = replace(one, versions=Versions.parse(word))
            elif word == "=":
                one = replace(one, default=next(rest).strip('"'))
            elif word == "tag":
                one = replace(one, tag=int(next(rest)))
            elif word == "key":
                one = replace(one, key=True)
            elif word == "ignorable":
                one = replace(one, ignorable=True)
            elif word == "zero-copy":
                one = replace(one, zero_copy=True)
            elif word == "inflexible":
                one = replace(one, inflexible=True)
            else:
                raise DeclarationError(f"{self.message}: unknown mark {word!r} in: {' '.join(words)}")
        if typed[3]:
            one = replace(one, nullable=Versions.parse(typed[4]) if typed[4] else one.versions)
        return one


def message(name: str, table: str, *, versions: str, flexible: str, about: str = "") -> Message:
    """Parse the table of a message.

    Parameters
    ----------
    name:
        Kafka's name of the message, for example ``ProduceRequest``.
    table:
        The fields; the docstring of this module describes the grammar.
    versions, flexible:
        Supported versions, and the versions with compact lengths and tagged fields (KIP-482); ``none`` if
        there are no such versions.
    about:
        Docstring of the generated class.
    """
    valid = Versions.parse(versions)
    lines = [line.split("#")[0].rstrip() for line in table.splitlines()]
    indented = [(len(line) - len(line.lstrip()), line.strip()) for line in lines if line]
    reader = _Table(name, valid, indented)
    fields = reader.fields(indented[0][0], valid) if indented else ()
    if reader.at < len(indented):
        raise DeclarationError(f"{name}: unexpected indent: {indented[reader.at][1]}")
    structs = reader.found
    for one in (*fields, *(one for struct in structs.values() for one in struct.fields)):
        if one.is_struct and one.type not in structs:
            raise DeclarationError(f"{name}: {one.name} has the undeclared type {one.type}")
    return Message(name, valid, Versions.parse(flexible), fields, structs, about)


def api(
    key: int,
    name: str,
    about: str,
    *,
    versions: str,
    flexible: str = "none",
    request: str = "",
    response: str = "",
    latest_version_unstable: bool = False,
) -> Api:
    """Declare an API: its key, name and purpose, and the tables of its request and its response."""
    if versions == "none":
        return Api(key, name, about, NO_VERSIONS)
    messages = (
        message(f"{name}Request", request, versions=versions, flexible=flexible, about=about),
        message(
            f"{name}Response",
            response,
            versions=versions,
            flexible=flexible,
            about=f"Response to {name}Request.",
        ),
    )
    return Api(key, name, about, Versions.parse(versions), messages, latest_version_unstable)
