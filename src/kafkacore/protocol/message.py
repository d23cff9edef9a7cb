"""Base classes of the generated messages, and the encoding of tagged fields.

A tagged structure that a message omits is created when it is first read. Check the error code of a partition
before you read its leader hint, so that the structure is not created needlessly. The constructor creates
collections and structures that the caller does not pass. ``None`` means null; encoding raises an error if the
version does not allow null.

Fields of type ``bytes`` are copied out of the payload. Records and other zero-copy fields are views of the
payload.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final, Generic, Self, TypeAlias, TypeVar

from kafkacore.errors import MalformedMessageError, UnsupportedVersionError
from kafkacore.wire import Cursor, FileSlice, Uuid, Writer

#: The id that means "no id".
ZERO_UUID: Final = Uuid(bytes(16))
#: Default of constructor arguments whose default value is created for each message: collections and
#: structures.
UNSET: Final[Any] = object()
#: Any object with a buffer. Decoding returns a ``memoryview`` of the payload.
Buffer: TypeAlias = "bytes | bytearray | memoryview"
#: Record batches. Decoding returns ``memoryview | None``. Encoding accepts a buffer, a list of buffers, or a
#: :class:`~kafkacore.wire.FileSlice`.
Records: TypeAlias = Any
#: Placeholder in ``repr()`` for the value of a field that holds a secret.
HIDDEN: Final = "[hidden]"
#: Fields that hold a secret in any message: SASL responses, delegation tokens and SCRAM credentials.
SECRET_FIELDS: Final = frozenset(
    {"auth_bytes", "hmac", "request_data", "salt", "salted_password", "server_key", "stored_key"}
)
#: Minimum size of a buffer that is written by reference. Copying a smaller buffer is cheaper than writing it
#: separately.
MIN_PIECE_SIZE_BYTES: Final = 512


class Struct:
    """A structure of fields. Structures are equal if their fields are equal.

    Structures are mutable and therefore unhashable. Type checkers treat this class as abstract. The class
    does not use ABCMeta, because ABCMeta would make every ``isinstance`` slower.
    """

    __slots__: tuple[str, ...] = ()
    __hash__ = None  # type: ignore[assignment]  # makes instances unhashable

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        kind = type(self).__qualname__
        # After a failed decoding, a structure has only its first fields. A debugger may call repr() for such
        # a structure.
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
            The version is unknown, or lacks a field that is set.
        """

    @classmethod
    @abstractmethod
    def decode(cls, cursor: Cursor, version: int) -> Self:
        """Read the fields that ``version`` has; all other fields get their defaults.

        Raises
        ------
        MalformedMessageError
            The bytes are not a valid message.
        UnsupportedVersionError
            The version is unknown.
        """


class Message(Struct):
    """A message of a protocol, with its range of versions.

    ``NAME`` is Kafka's name. Versions ``MIN_VERSION`` to ``MAX_VERSION`` are supported. Versions from
    ``FLEXIBLE_FROM`` on have compact lengths and tagged fields (KIP-482). ``FLEXIBLE_FROM`` is ``None`` if no
    version has compact lengths and tagged fields.
    """

    __slots__ = ()

    NAME: ClassVar[str]
    MIN_VERSION: ClassVar[int]
    MAX_VERSION: ClassVar[int]
    FLEXIBLE_FROM: ClassVar[int | None]


class ResponseMessage(Message):
    """A response to a request of the API ``API_KEY``."""

    __slots__ = ()

    API_KEY: ClassVar[int]


ResponseT = TypeVar("ResponseT", bound=ResponseMessage)
ResponseT_co = TypeVar("ResponseT_co", bound=ResponseMessage, covariant=True)


class RequestMessage(Message, Generic[ResponseT_co]):
    """A request of the API ``API_KEY``. The response has the class ``RESPONSE``."""

    __slots__ = ()

    API_KEY: ClassVar[int]
    RESPONSE: ClassVar[type[ResponseMessage]]
    #: Whether the newest version is not final. Kafka serves this version only if
    #: ``unstable.api.versions.enable`` is set.
    LATEST_VERSION_UNSTABLE: ClassVar[bool] = False


class RequestBuilder(Generic[ResponseT_co]):
    """A request whose fields depend on the request's version (Kafka's ``AbstractRequest.Builder``).

    Parameters
    ----------
    request_class:
        The class of the message.
    build:
        A function that returns the message for a version.
    max_version:
        The newest version that ``build`` supports; by default the newest version of the message.
    """

    __slots__ = ("build", "max_version", "request_class")

    def __init__(
        self,
        request_class: type[RequestMessage[ResponseT_co]],
        build: Callable[[int], RequestMessage[ResponseT_co]],
        max_version: int | None = None,
    ) -> None:
        self.request_class = request_class
        self.build = build
        self.max_version = max_version

    def __repr__(self) -> str:
        return f"RequestBuilder({self.request_class.NAME})"


#: A request to send. The client chooses its version.
Request: TypeAlias = RequestMessage[ResponseT_co] | RequestBuilder[ResponseT_co]


def request_class_of(request: Request[ResponseT]) -> type[RequestMessage[ResponseT]]:
    """Return the class of the message that is sent."""
    return request.request_class if isinstance(request, RequestBuilder) else type(request)


def is_secret(qualified_name: str, field: str) -> bool:
    """Return whether ``repr()`` hides the value of a field.

    CVE-2026-33558: the debug log of a request showed a secret.
    """
    # The value of an altered configuration entry may be the password of a key store.
    return field in SECRET_FIELDS or (field == "value" and qualified_name.endswith(".AlterableConfig"))


def _shortened(value: object) -> str:
    if isinstance(value, memoryview) or (isinstance(value, bytes | bytearray) and len(value) > 64):
        return f"<{memoryview(value).nbytes} bytes>"
    return repr(value)


# ---- Errors ----------------------------------------------------------------------------------------------
def unsupported_version(message: type[Message], version: int) -> UnsupportedVersionError:
    """Return the error for a version that a message does not have."""
    return UnsupportedVersionError(
        f"{message.NAME} has versions {message.MIN_VERSION} to {message.MAX_VERSION}, not {version}"
    )


def field_not_in_version(name: str, version: int) -> UnsupportedVersionError:
    """Return the error for encoding a field that is set and that ``version`` lacks."""
    return UnsupportedVersionError(f"{name} is set, but version {version} does not have this field")


def null_not_in_version(name: str, version: int) -> UnsupportedVersionError:
    """Return the error for encoding a null that ``version`` does not allow."""
    return UnsupportedVersionError(f"{name} must not be None in version {version}")


def null_refused(name: str, cursor: Cursor) -> MalformedMessageError:
    """Return the error for decoding a null that is not allowed."""
    return MalformedMessageError(f"{name} must not be null (before byte {cursor.position})")


# ---- Tagged fields (KIP-482) -----------------------------------------------------------------------------
def skip_tagged_fields(cursor: Cursor, count: int) -> None:
    """Skip ``count`` unknown tagged fields."""
    for _ in tagged_fields(cursor, count):
        pass


def tagged_fields(cursor: Cursor, count: int) -> Iterator[int]:
    """Yield the tags of ``count`` fields. A value that the caller does not read is skipped.

    Raises
    ------
    MalformedMessageError
        The tags are not ascending, or a value does not have the size given for it.
    """
    cursor.count_elements(count)
    last = -1
    for _ in range(count):
        tag = cursor.read_unsigned_varint()
        if tag <= last:
            raise MalformedMessageError(
                f"tagged fields are not in ascending order: tag {tag} after tag {last} "
                f"(before byte {cursor.position})"
            )
        last = tag
        size = cursor.read_unsigned_varint()
        if size > cursor.remaining():
            raise MalformedMessageError(
                f"tagged field {tag} has size {size}, but {cursor.remaining()} bytes are left"
            )
        start = cursor.position
        yield tag
        if cursor.position == start:
            cursor.skip(size)
        elif cursor.position != start + size:
            raise MalformedMessageError(
                f"tagged field {tag} has size {size}, but its value has {cursor.position - start} bytes"
            )


def write_tagged_fields(writer: Writer, fields: list[tuple[int, Writer]]) -> None:
    """Write the section of tagged fields from (tag, value) pairs with ascending tags."""
    writer.write_unsigned_varint(len(fields))
    for tag, value in fields:
        writer.write_unsigned_varint(tag)
        writer.write_unsigned_varint(value.size_in_bytes)
        for piece in value.pieces():
            writer.write_buffer(piece)


# ---- Buffers by reference --------------------------------------------------------------------------------
def write_nullable_pieces(writer: Writer, value: Records, compact: bool) -> None:
    """Write the length of the records and then the records; large buffers are written by reference."""
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
