"""How a message is declared: a table of fields in, :class:`Message` out.

A line of the table is one field; what is indented below it are the fields of its structure::

    # name             type                 versions  default, marks
    TransactionalId    string?              3+        = null
    TopicData          []TopicProduceData
      Name             string               0-12      key ignorable
      PartitionData    []PartitionProduceData
        Index          int32
        Records        records?

- Types are Kafka's: ``bool int8 int16 int32 int64 uint16 uint32 float64 string bytes uuid records``, a
  structure's name, and ``[]`` of those.
- ``?`` after the type: may be null, in every version that has the field; ``?2+``, ``?2-7``: in those only.
- Versions (``0+`` if not said): ``3``, ``3-5``, ``3+``. ``= x``: the default, if not 0, false, empty.
- ``tag n``: travels in the tagged section of flexible versions. ``ignorable``: silently left out where the
  version lacks it; others must then be at their default. ``key``: identifies an element of its collection.
  ``zero-copy``: not copied out of the payload. ``inflexible``: has the old length in flexible versions too.
- ``struct Name`` declares a structure that several fields share.

Does not know: code generation, Python types.
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
    """A table that cannot be read; the message names the line."""


@dataclass(frozen=True)
class Versions:
    """Versions ``low`` to ``high``, both included; nothing if ``high < low``."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        """``3``, ``3-5``, ``3+`` or ``none``."""
        if text == "none":
            return NO_VERSIONS
        matched = _VERSIONS.fullmatch(text)
        if matched is None:
            raise DeclarationError(f"not a range of versions: {text!r}")
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
    """One field, of a primitive type or of a structure's name, or an array of these."""

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
    """Fields of a structure; ``versions`` are those of the message that can hold it."""

    name: str
    fields: tuple[Field, ...]
    versions: Versions
    #: Declared by ``struct``, for several fields to share.
    is_common: bool = False


@dataclass(frozen=True)
class Message:
    """A request, a response, a header, or data kept inside of records."""

    name: str
    versions: Versions
    flexible: Versions
    fields: tuple[Field, ...]
    #: Structures in the order of their first mention; names are unique within the message.
    structs: dict[str, Struct]
    about: str = ""


@dataclass(frozen=True)
class Api:
    """A request and its response. An API that Kafka 4 no longer speaks has no versions and no messages."""

    key: int
    name: str
    about: str
    versions: Versions
    messages: tuple[Message, ...] = ()
    latest_version_unstable: bool = False


@dataclass
class _Table:
    """A table being read; ``found`` gathers its structures."""

    message: str
    versions: Versions
    lines: list[tuple[int, str]]
    at: int = 0
    found: dict[str, Struct] = field(default_factory=dict)

    def fields(self, indent: int, versions: Versions) -> tuple[Field, ...]:
        """The fields at ``indent``; stops at a lesser one."""
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
            raise DeclarationError(f"{self.message}: structure {name} is declared twice or is a primitive")
        self.found[name] = Struct(name, (), versions, is_common)  # keeps the order of first mention
        fields = self.fields(self.lines[self.at][0], versions)
        self.found[name] = replace(self.found[name], fields=fields)

    def parse(self, words: list[str]) -> Field:
        typed = _TYPE.fullmatch(words[1]) if len(words) > 1 else None
        if typed is None:
            raise DeclarationError(f"{self.message}: not a field: {' '.join(words)}")
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
                raise DeclarationError(f"{self.message}: {word!r} in: {' '.join(words)}")
        if typed[3]:
            one = replace(one, nullable=Versions.parse(typed[4]) if typed[4] else one.versions)
        return one


def message(name: str, table: str, *, versions: str, flexible: str, about: str = "") -> Message:
    """Read a message's table.

    Parameters
    ----------
    name:
        Kafka's name of it, ``ProduceRequest``.
    table:
        Its fields; the grammar is this module's docstring.
    versions, flexible:
        Valid versions, and which of them have compact lengths and tagged fields (KIP-482); ``none`` for none.
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
    """Declare an API: its key, its name, what it is for, and the tables of its request and its response."""
    if versions == "none":
        return Api(key, name, about, NO_VERSIONS)
    messages = (
        message(f"{name}Request", request, versions=versions, flexible=flexible, about=about),
        message(
            f"{name}Response",
            response,
            versions=versions,
            flexible=flexible,
            about=f"Answer to {name}Request.",
        ),
    )
    return Api(key, name, about, Versions.parse(versions), messages, latest_version_unstable)
