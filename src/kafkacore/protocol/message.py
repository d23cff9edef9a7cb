"""Base classes of the generated messages, and their tagged fields.

A tagged structure that a message omits is created when it is first read: check the error code of a
partition before the hint of its leader. A collection or structure that the constructor does not get is
created, and ``None`` means null, which versions without null refuse. Fields of ``bytes`` are copied out of
the payload. Records and other zero-copy fields are views of it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final, Generic, Self, TypeAlias, TypeVar
from uuid import UUID

from kafkacore.errors import MalformedMessageError, UnsupportedVersionError
from kafkacore.wire import Cursor, FileSlice, Writer

#: The uuid that stands for none.
ZERO_UUID: Final = UUID(int=0)
#: Default of arguments whose default value is made anew for each message: collections and structures.
UNSET: Final[Any] = object()
#: Any object with a buffer; ``memoryview`` when decoded (over the payload, nothing is copied).
Buffer: TypeAlias = "bytes | bytearray | memoryview"
#: Record batches: ``memoryview | None`` when decoded; to encode one buffer, a list of buffers, or part of
#: a file.
Records: TypeAlias = Any
#: What is shown of a field that holds a secret, in whatever message: a response of SASL, a token, what a
#: password is checked by.
HIDDEN: Final = "[hidden]"
SECRET_FIELDS: Final = frozenset(
    {"auth_bytes", "hmac", "request_data", "salt", "salted_password", "server_key", "stored_key"}
)
#: Smaller buffers are copied in between their neighbours: cheaper than a piece of their own.
MIN_PIECE_SIZE_BYTES: Final = 512


class Struct:
    """A structure of fields. Equal if the fields are; mutable, therefore without a hash.

    Type checkers take it for abstract. It has no ABCMeta, which would make every ``isinstance`` slower.
    """

    __slots__: tuple[str, ...] = ()
    __hash__ = None  # type: ignore[assignment]  # Python's way to say that instances have no hash

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        kind = type(self).__qualname__
        # What an error has left half read, which a debugger shows, has its first fields alone.
        fields = ", ".join(
            f"{name}={HIDDEN if is_secret(kind, name) else _shortened(getattr(self, name))}"
            for name in self.__slots__
            if hasattr(self, name)
        )
        return f"{kind}({fields})"

    @abstractmethod
    def encode(self, writer: Writer, version: int) -> None:
        """Write the fields that ``version`` has.

        Raises
        ------
        UnsupportedVersionError
            The version is unknown, or has no place for a field that says something.
        """

    @classmethod
    @abstractmethod
    def decode(cls, cursor: Cursor, version: int) -> Self:
        """Read the fields that ``version`` has; the others get their defaults.

        Raises
        ------
        MalformedMessageError
            The bytes are not such a message.
        UnsupportedVersionError
            The version is unknown.
        """


class Message(Struct):
    """A structure with versions of its own.

    ``NAME`` is Kafka's. Versions are from ``MIN_VERSION`` to ``MAX_VERSION``, and have compact lengths and
    tagged fields (KIP-482) from ``FLEXIBLE_FROM``, ``None`` for never.
    """

    __slots__ = ()

    NAME: ClassVar[str]
    MIN_VERSION: ClassVar[int]
    MAX_VERSION: ClassVar[int]
    FLEXIBLE_FROM: ClassVar[int | None]


class ResponseMessage(Message):
    """Answer to a request of the API ``API_KEY``."""

    __slots__ = ()

    API_KEY: ClassVar[int]


ResponseT = TypeVar("ResponseT", bound=ResponseMessage)
ResponseT_co = TypeVar("ResponseT_co", bound=ResponseMessage, covariant=True)


class RequestMessage(Message, Generic[ResponseT_co]):
    """A request of the API ``API_KEY``, which is answered by a message of the class ``RESPONSE``."""

    __slots__ = ()

    API_KEY: ClassVar[int]
    RESPONSE: ClassVar[type[ResponseMessage]]
    #: The newest version is not final; Kafka serves it only if ``unstable.api.versions.enable`` is set.
    LATEST_VERSION_UNSTABLE: ClassVar[bool] = False


class RequestBuilder(Generic[ResponseT_co]):
    """A request whose fields depend on the version that it is sent in (Kafka's ``AbstractRequest.Builder``).

    Parameters
    ----------
    request_class:
        The class of the message.
    build:
        Returns the message for a version.
    """

    __slots__ = ("build", "request_class")

    def __init__(
        self,
        request_class: type[RequestMessage[ResponseT_co]],
        build: Callable[[int], RequestMessage[ResponseT_co]],
    ) -> None:
        self.request_class = request_class
        self.build = build

    def __repr__(self) -> str:
        return f"RequestBuilder({self.request_class.NAME})"


#: A request to send. The client chooses its version.
Request: TypeAlias = RequestMessage[ResponseT_co] | RequestBuilder[ResponseT_co]


def request_class_of(request: Request[ResponseT]) -> type[RequestMessage[ResponseT]]:
    """Return the class of the message that is sent."""
    return request.request_class if isinstance(request, RequestBuilder) else type(request)


def is_secret(qualified_name: str, field: str) -> bool:
    """Whether this field of a structure is not shown (CVE-2026-33558 was a request in a debug log)."""
    # A configuration that is altered may be the password of a key store.
    return field in SECRET_FIELDS or (field == "value" and qualified_name.endswith(".AlterableConfig"))


def _shortened(value: object) -> str:
    if isinstance(value, memoryview) or (isinstance(value, bytes | bytearray) and len(value) > 64):
        return f"<{memoryview(value).nbytes} bytes>"
    return repr(value)


# ---- Refusals --------------------------------------------------------------------------------------------
def unsupported_version(message: type[Message], version: int) -> UnsupportedVersionError:
    """The error of a version that a message does not have."""
    return UnsupportedVersionError(
        f"{message.NAME} has versions {message.MIN_VERSION} to {message.MAX_VERSION}, not {version}"
    )


def field_not_in_version(name: str, version: int) -> UnsupportedVersionError:
    """The error of a field that says something which ``version`` cannot carry."""
    return UnsupportedVersionError(f"{name} is set, but version {version} has no such field")


def null_not_in_version(name: str, version: int) -> UnsupportedVersionError:
    """The error of encoding a null that ``version`` cannot carry."""
    return UnsupportedVersionError(f"{name} is None, which version {version} does not allow")


def null_refused(name: str, cursor: Cursor) -> MalformedMessageError:
    """The error of reading a null that is not allowed."""
    return MalformedMessageError(f"{name} is null before byte {cursor.position}, and must not be")


# ---- Tagged fields (KIP-482) -----------------------------------------------------------------------------
def skip_tagged_fields(cursor: Cursor, count: int) -> None:
    """Read past ``count`` tagged fields, none of which is known."""
    for _ in tagged_fields(cursor, count):
        pass


def tagged_fields(cursor: Cursor, count: int) -> Iterator[int]:
    """The tags of ``count`` fields; the caller reads the value, or leaves it to be skipped.

    Raises
    ------
    MalformedMessageError
        Tags do not ascend, or a value has not the size that it claims.
    """
    cursor.count_elements(count)
    last = -1
    for _ in range(count):
        tag = cursor.read_unsigned_varint()
        if tag <= last:
            raise MalformedMessageError(f"tag {tag} after tag {last} before byte {cursor.position}")
        last = tag
        size = cursor.read_unsigned_varint()
        if size > cursor.remaining():
            raise MalformedMessageError(f"tag {tag} of {size} bytes, {cursor.remaining()} bytes left")
        start = cursor.position
        yield tag
        if cursor.position == start:
            cursor.skip(size)
        elif cursor.position != start + size:
            raise MalformedMessageError(f"tag {tag} has {cursor.position - start} bytes, not {size}")


def write_tagged_fields(writer: Writer, fields: list[tuple[int, Writer]]) -> None:
    """Write the section of tagged fields: (tag, value), tags ascending."""
    writer.write_unsigned_varint(len(fields))
    for tag, value in fields:
        writer.write_unsigned_varint(tag)
        writer.write_unsigned_varint(value.size_in_bytes)
        for piece in value.pieces():
            writer.write_buffer(piece)


# ---- Buffers by reference --------------------------------------------------------------------------------
def write_nullable_pieces(writer: Writer, value: Records, compact: bool) -> None:
    """Write the length of a buffer or part of a file, or of a list of buffers, and then these, large ones
    by reference.
    """
    if value is None:
        writer.write_length(-1, compact)
    elif isinstance(value, list | tuple):
        writer.write_length(sum(memoryview(buffer).nbytes for buffer in value), compact)
        for buffer in value:
            _write_piece(writer, buffer, memoryview(buffer).nbytes)
    elif isinstance(value, FileSlice):
        writer.write_length(len(value), compact)
        writer.write_piece(value)
    else:
        size = memoryview(value).nbytes
        writer.write_length(size, compact)
        _write_piece(writer, value, size)


def _write_piece(writer: Writer, buffer: Buffer, size: int) -> None:
    if size < MIN_PIECE_SIZE_BYTES:
        writer.write_buffer(buffer)
    else:
        writer.write_piece(buffer)
