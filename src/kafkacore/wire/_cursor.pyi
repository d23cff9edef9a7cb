from typing import Self, final
from uuid import UUID

from typing_extensions import Buffer

@final
class Cursor:
    """Reads primitive types from ``buffer[start:end]``, moving forward.

    Parameters
    ----------
    buffer:
        Any object with a contiguous buffer. It is kept alive, and must not change while it is read.
    start, end:
        Positions in bytes; ``end=None`` is the end of the buffer.

    Raises
    ------
    kafkacore.errors.MalformedMessageError
        By every read that the bytes left cannot satisfy, or whose bytes break the encoding.
    ValueError
        ``start`` and ``end`` do not lie in the buffer.
    """

    position: int
    def __new__(cls, buffer: Buffer, start: int = 0, end: int | None = None) -> Self: ...
    def limit_elements(self, most: int) -> int:
        """Refuse arrays and tagged fields that from here on have more than ``most`` elements together.

        What takes two bytes here may become an object of a hundred.
        """
    def count_elements(self, count: int) -> int:
        """Count so many more, of what else takes a while to be read, against :meth:`limit_elements`."""
    def remaining(self) -> int:
        """Bytes left."""
    def read_bool(self) -> bool:
        """One byte; anything but 0 is true."""
    def read_int8(self) -> int: ...
    def read_int16(self) -> int: ...
    def read_int32(self) -> int: ...
    def read_int64(self) -> int: ...
    def read_uint16(self) -> int: ...
    def read_uint32(self) -> int: ...
    def read_float64(self) -> float: ...
    def read_uuid(self) -> UUID:
        """16 bytes as a :class:`uuid.UUID`."""
    def read_unsigned_varint(self) -> int: ...
    def read_varint(self) -> int:
        """Zigzag, 32 bits."""
    def read_varlong(self) -> int:
        """Zigzag, 64 bits."""
    def read_bytes(self, size: int) -> memoryview:
        """The next ``size`` bytes as a read-only memoryview of the buffer; no copy."""
    def read_string(self, size: int) -> str:
        """The next ``size`` bytes, decoded as UTF-8."""
    def skip(self, size: int) -> int:
        """Move on by ``size`` bytes."""
    def read_length(self, compact: bool, short_length: bool = False) -> int:
        """A length that the bytes left can hold, or -1 for null.

        ``compact``: an unsigned varint of length + 1 (flexible versions); else an int16 if ``short_length``
        (strings), else an int32 (bytes). A string has at most 32,767 bytes in either form, as in Kafka.
        """
    def read_nullable_string(self, compact: bool) -> str | None:
        """A string after its length (see `read_length`), or None."""
    def read_nullable_bytes(self, compact: bool) -> memoryview | None:
        """A memoryview of bytes after their length (see `read_length`), or None."""
    def read_array_length(self, compact: bool, min_element_size: int = 1) -> int:
        """The count of an array's elements, or -1 for null.

        A count is refused if the bytes left cannot hold that many elements of ``min_element_size`` bytes (at
        least 1), so that memory may be taken from what this returns.
        """
