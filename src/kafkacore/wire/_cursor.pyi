from typing import Self, final

from typing_extensions import Buffer

from kafkacore.wire._uuid import Uuid

@final
class Cursor:
    """A reader that moves forward through ``buffer[start:end]``.

    Parameters
    ----------
    buffer:
        Any object with a contiguous buffer. It is kept alive, and must not change while it is read.
    start, end:
        Positions in bytes; ``end=None`` is the end of the buffer.

    Raises
    ------
    kafkacore.errors.MalformedMessageError
        A read method found too few bytes or an invalid encoding.
    ValueError
        ``start`` or ``end`` is outside the buffer.
    """

    position: int
    def __new__(cls, buffer: Buffer, start: int = 0, end: int | None = None) -> Self: ...
    def limit_elements(self, most: int) -> int:
        """Limit the arrays and tagged fields read from here on to ``most`` elements in total.

        The limit bounds the memory: an element of two bytes may become an object of a hundred bytes.
        """
    def count_elements(self, count: int) -> int:
        """Count ``count`` more elements against the limit that :meth:`limit_elements` has set.

        Code that reads other repeated data, such as tagged fields, calls this too.
        """
    def remaining(self) -> int:
        """Return the number of bytes left."""
    def read_bool(self) -> bool:
        """Read one byte; any value but 0 is true."""
    def read_int8(self) -> int: ...
    def read_int16(self) -> int: ...
    def read_int32(self) -> int: ...
    def read_int64(self) -> int: ...
    def read_uint16(self) -> int: ...
    def read_uint32(self) -> int: ...
    def read_float64(self) -> float: ...
    def read_uuid(self) -> Uuid:
        """Read 16 bytes as a :class:`Uuid`."""
    def read_unsigned_varint(self) -> int: ...
    def read_varint(self) -> int:
        """Read a zigzag-encoded integer of up to 32 bits."""
    def read_varlong(self) -> int:
        """Read a zigzag-encoded integer of up to 64 bits."""
    def read_bytes(self, size: int) -> memoryview:
        """Return the next ``size`` bytes as a read-only memoryview of the buffer, without a copy."""
    def read_string(self, size: int) -> str:
        """Decode the next ``size`` bytes as UTF-8."""
    def skip(self, size: int) -> int:
        """Skip ``size`` bytes."""
    def read_length(self, compact: bool, short_length: bool = False) -> int:
        """Read a length and check that as many bytes are left; -1 means null.

        If ``compact``, the length is an unsigned varint of length + 1, as in flexible versions. Otherwise it
        is an int16 if ``short_length`` (strings) and an int32 if not (bytes). As in Kafka, a string has at
        most 32,767 bytes in both encodings.
        """
    def read_nullable_string(self, compact: bool) -> str | None:
        """Read a length (see `read_length`) and a string; None for null."""
    def read_nullable_bytes(self, compact: bool) -> memoryview | None:
        """Read a length (see `read_length`) and bytes, as a memoryview; None for null."""
    def read_array_length(self, compact: bool, min_element_size: int = 1) -> int:
        """Read the number of elements of an array; -1 means null.

        Raises MalformedMessageError if the bytes left cannot hold that many elements of ``min_element_size``
        bytes (at least 1). A caller may therefore allocate memory for the returned number of elements.
        """
