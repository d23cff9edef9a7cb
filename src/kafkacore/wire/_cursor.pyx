"""A bounds-checked reader of Kafka's primitive types.

Bytes are returned as views of the buffer and keep it alive; they are not copied. The buffer is untrusted
input: every read checks that enough bytes are left, and otherwise raises `MalformedMessageError` with the
position. A size or count larger than the bytes left is rejected before memory is allocated for it.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

cimport kafkacore.wire.primitives as primitives
from kafkacore.wire._uuid cimport Uuid, new_uuid

from kafkacore.errors import MalformedMessageError

cdef enum:
    MAX_INT16 = 0x7FFF

cdef extern from *:
    Py_ssize_t PY_SSIZE_T_MAX


# Without no_gc, the garbage collector would clear the Py_buffer without releasing it.
@cython.no_gc
@cython.final
cdef class Cursor:
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

    def __cinit__(self, buffer, Py_ssize_t start=0, end=None):
        cdef Py_ssize_t stop
        PyObject_GetBuffer(buffer, &self.view, PyBUF_SIMPLE)
        stop = self.view.len if end is None else <Py_ssize_t> end
        if start < 0 or stop < start or stop > self.view.len:
            raise ValueError(f"range {start}:{stop} is outside a buffer of {self.view.len} bytes")
        self.buffer = buffer
        self.origin = <const uint8_t *> self.view.buf
        self.start = self.origin + start
        self.pos = self.start
        self.end = self.origin + stop
        self.most_elements = self.elements_left = PY_SSIZE_T_MAX

    def __dealloc__(self):
        PyBuffer_Release(&self.view)

    cdef int refuse(self, str reason) except -1:
        raise MalformedMessageError(f"{reason} at byte {self.pos - self.origin} of {self.end - self.origin}")

    cdef int need(self, Py_ssize_t size) except -1:
        if size < 0:
            self.refuse(f"negative size {size}")
        if size > self.end - self.pos:
            self.refuse(f"{size} bytes needed, {self.end - self.pos} left")
        return 0

    @property
    def position(self) -> int:
        """Current position, in bytes from the start of the buffer, not of the range."""
        return self.pos - self.origin

    @position.setter
    def position(self, Py_ssize_t value):
        if value < self.start - self.origin or value > self.end - self.origin:
            raise ValueError(
                f"position {value} is outside {self.start - self.origin}..{self.end - self.origin}"
            )
        self.pos = self.origin + value

    cpdef int limit_elements(self, Py_ssize_t most) except -1:
        """Limit the arrays and tagged fields read from here on to ``most`` elements in total.

        The limit bounds the memory: an element of two bytes may become an object of a hundred bytes.
        """
        self.most_elements = self.elements_left = most
        return 0

    cpdef Py_ssize_t remaining(self) noexcept:
        """Return the number of bytes left."""
        return self.end - self.pos

    cpdef bint read_bool(self) except *:
        """Read one byte; any value but 0 is true."""
        return self.read_int8() != 0

    cpdef int read_int8(self) except? -1:
        cdef int8_t value = 0
        if primitives.read_int8(&self.pos, self.end, &value) < 0:
            self.need(1)
        return value

    cpdef int read_int16(self) except? -1:
        cdef int16_t value = 0
        if primitives.read_int16(&self.pos, self.end, &value) < 0:
            self.need(2)
        return value

    cpdef int read_int32(self) except? -1:
        cdef int32_t value = 0
        if primitives.read_int32(&self.pos, self.end, &value) < 0:
            self.need(4)
        return value

    cpdef int64_t read_int64(self) except? -1:
        cdef int64_t value = 0
        if primitives.read_int64(&self.pos, self.end, &value) < 0:
            self.need(8)
        return value

    cpdef int read_uint16(self) except? -1:
        return <uint16_t> self.read_int16()

    cpdef uint32_t read_uint32(self) except? 0:
        return <uint32_t> self.read_int32()

    cpdef double read_float64(self) except? -1:
        cdef int64_t bits = self.read_int64()
        cdef double value
        memcpy(&value, &bits, 8)
        return value

    cpdef Uuid read_uuid(self):
        """Read 16 bytes as a :class:`Uuid`."""
        self.need(16)
        cdef int64_t high = primitives.load_int64(self.pos)
        cdef int64_t low = primitives.load_int64(self.pos + 8)
        self.pos += 16
        return new_uuid(<uint64_t> high, <uint64_t> low)

    cpdef uint32_t read_unsigned_varint(self) except? 0:
        cdef uint32_t value = 0
        if primitives.read_unsigned_varint(&self.pos, self.end, &value) < 0:
            self.refuse("varint is incomplete or longer than 32 bits")
        return value

    cpdef int read_varint(self) except? -1:
        """Read a zigzag-encoded integer of up to 32 bits."""
        cdef int32_t value = 0
        if primitives.read_varint(&self.pos, self.end, &value) < 0:
            self.refuse("varint is incomplete or longer than 32 bits")
        return value

    cpdef int64_t read_varlong(self) except? -1:
        """Read a zigzag-encoded integer of up to 64 bits."""
        cdef int64_t value = 0
        if primitives.read_varlong(&self.pos, self.end, &value) < 0:
            self.refuse("varlong is incomplete or longer than 64 bits")
        return value

    cpdef object read_bytes(self, Py_ssize_t size):
        """Return the next ``size`` bytes as a read-only memoryview of the buffer, without a copy."""
        self.need(size)
        cdef Py_ssize_t at = self.pos - self.origin
        self.pos += size
        if self.memory is None:
            memory = memoryview(self.buffer)
            if memory.ndim != 1 or memory.itemsize != 1 or memory.format != "B":
                memory = memory.cast("B")
            self.memory = memory.toreadonly()
        return self.memory[at:at + size]

    cpdef str read_string(self, Py_ssize_t size):
        """Decode the next ``size`` bytes as UTF-8."""
        self.need(size)
        try:
            text = PyUnicode_DecodeUTF8(<const char *> self.pos, size, NULL)
        except UnicodeDecodeError as error:
            self.refuse(f"string is not UTF-8 ({error.reason})")
        self.pos += size
        return text

    cpdef int skip(self, Py_ssize_t size) except -1:
        """Skip ``size`` bytes."""
        self.need(size)
        self.pos += size
        return 0

    # ---- Values with a length in front ------------------------------------------------------------------
    cpdef Py_ssize_t read_length(self, bint compact, bint short_length=False) except? -1:
        """Read a length and check that as many bytes are left; -1 means null.

        If ``compact``, the length is an unsigned varint of length + 1, as in flexible versions. Otherwise it
        is an int16 if ``short_length`` (strings) and an int32 if not (bytes). As in Kafka, a string has at
        most 32,767 bytes in both encodings.
        """
        cdef Py_ssize_t size
        cdef const uint8_t *before = self.pos
        if compact:
            size = <Py_ssize_t> self.read_unsigned_varint() - 1
        elif short_length:
            size = self.read_int16()
        else:
            size = self.read_int32()
        if size < -1 or size > self.end - self.pos or (short_length and size > MAX_INT16):
            left = self.end - self.pos
            self.pos = before
            self.refuse(f"invalid length {size}, {left} bytes left")
        return size

    cpdef str read_nullable_string(self, bint compact):
        """Read a length (see `read_length`) and a string; None for null."""
        cdef Py_ssize_t size = self.read_length(compact, True)
        if size < 0:
            return None
        return self.read_string(size)

    cpdef object read_nullable_bytes(self, bint compact):
        """Read a length (see `read_length`) and bytes, as a memoryview; None for null."""
        cdef Py_ssize_t size = self.read_length(compact, False)
        if size < 0:
            return None
        return self.read_bytes(size)

    cpdef Py_ssize_t read_array_length(self, bint compact, Py_ssize_t min_element_size=1) except? -1:
        """Read the number of elements of an array; -1 means null.

        Raises MalformedMessageError if the bytes left cannot hold that many elements of ``min_element_size``
        bytes (at least 1). A caller may therefore allocate memory for the returned number of elements.
        """
        cdef Py_ssize_t count
        cdef const uint8_t *before = self.pos
        if compact:
            count = <Py_ssize_t> self.read_unsigned_varint() - 1
        else:
            count = self.read_int32()
        if count < -1 or count > (self.end - self.pos) // max(min_element_size, 1):
            left = self.end - self.pos
            self.pos = before
            self.refuse(
                f"invalid array of {count} elements of at least {min_element_size} bytes, {left} bytes left"
            )
        self.count_elements(count)
        return count

    cpdef int count_elements(self, Py_ssize_t count) except -1:
        """Count ``count`` more elements against the limit that :meth:`limit_elements` has set.

        Code that reads other repeated data, such as tagged fields, calls this too.
        """
        if count > self.elements_left:
            elements = self.most_elements - self.elements_left + count
            self.refuse(
                f"arrays and tagged fields have at least {elements} elements, the limit is "
                f"{self.most_elements} (use smaller requests)"
            )
        if count > 0:
            self.elements_left -= count
        return 0
