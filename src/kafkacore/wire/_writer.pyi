from typing import Self, final

from typing_extensions import Buffer

from kafkacore.wire._file_slice import FileSlice
from kafkacore.wire._uuid import Uuid

@final
class Writer:
    """A writer to a buffer that grows as needed.

    Parameters
    ----------
    capacity:
        Initial capacity in bytes.

    Raises
    ------
    OverflowError
        A write method got a value that does not fit its type.
    """

    def __new__(cls, capacity: int = 256) -> Self: ...
    @property
    def size_in_bytes(self) -> int:
        """Number of bytes written so far, including buffers that were added by reference."""
    def pieces(self) -> list[bytes | memoryview]:
        """Return the written bytes as a list of buffers for ``writev``. More can be written afterwards."""
    def write_bool(self, value: bool) -> int: ...
    def write_int8(self, value: int) -> int: ...
    def write_int16(self, value: int) -> int: ...
    def write_int32(self, value: int) -> int: ...
    def write_int64(self, value: int) -> int: ...
    def write_uint16(self, value: int) -> int: ...
    def write_uint32(self, value: int) -> int: ...
    def write_float64(self, value: float) -> int: ...
    def write_uuid(self, value: Uuid) -> int:
        """Write a :class:`Uuid` (a :class:`uuid.UUID` is accepted too) as 16 bytes."""
    def write_unsigned_varint(self, value: int) -> int: ...
    def write_varint(self, value: int) -> int:
        """Write a zigzag-encoded integer of up to 32 bits."""
    def write_varlong(self, value: int) -> int:
        """Write a zigzag-encoded integer of up to 64 bits."""
    def write_buffer(self, buffer: Buffer) -> int:
        """Copy the bytes of ``buffer`` to the output, without a length prefix."""
    def write_piece(self, buffer: Buffer | FileSlice) -> int:
        """Add a buffer or a :class:`FileSlice` to the output by reference, without a length.

        The buffer must not change afterwards.
        """
    def write_string(self, value: str) -> int:
        """Write the UTF-8 bytes of ``value``, without a length."""
    def write_length(self, size: int, compact: bool, short_length: bool = False) -> int:
        """Write a length in the form that ``Cursor.read_length`` reads; -1 means null.

        Set ``short_length`` for a string, which has at most 32,767 bytes.
        """
    def write_nullable_string(self, value: str | None, compact: bool) -> int:
        """Write the length of a string and its UTF-8 bytes; None is written as null."""
    def write_nullable_bytes(self, value: Buffer | None, compact: bool) -> int:
        """Write the length of ``value`` and a copy of its bytes; None is written as null."""
    def write_array_length(self, count: int, compact: bool) -> int:
        """Write the number of elements of an array; -1 means null."""
