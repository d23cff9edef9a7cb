from typing import Self, final
from uuid import UUID

from typing_extensions import Buffer

from kafkacore.wire._file_slice import FileSlice

@final
class Writer:
    """Writes primitive types, growing as needed.

    Parameters
    ----------
    capacity:
        Bytes to begin with.

    Raises
    ------
    OverflowError
        By a write whose value does not fit its type.
    """
    def __new__(cls, capacity: int = 256) -> Self: ...
    @property
    def size_in_bytes(self) -> int:
        """Bytes written so far, pieces included."""
    def pieces(self) -> list[bytes | memoryview]:
        """What was written, in order, as buffers for ``writev``. Writing may go on afterwards."""
    def write_bool(self, value: bool) -> int: ...
    def write_int8(self, value: int) -> int: ...
    def write_int16(self, value: int) -> int: ...
    def write_int32(self, value: int) -> int: ...
    def write_int64(self, value: int) -> int: ...
    def write_uint16(self, value: int) -> int: ...
    def write_uint32(self, value: int) -> int: ...
    def write_float64(self, value: float) -> int: ...
    def write_uuid(self, value: UUID) -> int:
        """A :class:`uuid.UUID` as 16 bytes."""
    def write_unsigned_varint(self, value: int) -> int: ...
    def write_varint(self, value: int) -> int:
        """Zigzag, 32 bits."""
    def write_varlong(self, value: int) -> int:
        """Zigzag, 64 bits."""
    def write_buffer(self, buffer: Buffer) -> int:
        """A copy of the bytes of ``buffer``; no length."""
    def write_piece(self, buffer: Buffer | FileSlice) -> int:
        """``buffer``, or part of a file, itself, by reference, as the next piece; no length. It must not
        change.
        """
    def write_string(self, value: str) -> int:
        """The UTF-8 bytes of ``value``; no length."""
    def write_length(self, size: int, compact: bool, short_length: bool = False) -> int:
        """A length, -1 for null; as ``Cursor.read_length`` reads it. A string has at most 32,767 bytes."""
    def write_nullable_string(self, value: str | None, compact: bool) -> int:
        """A string after its length, or null."""
    def write_nullable_bytes(self, value: Buffer | None, compact: bool) -> int:
        """A copy of the bytes of ``value`` after their length, or null."""
    def write_array_length(self, count: int, compact: bool) -> int:
        """The count of an array's elements, -1 for null."""
