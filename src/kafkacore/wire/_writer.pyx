"""A growing buffer to which Kafka's primitive types are written.

Small values are copied to the writer's own memory. A large buffer, such as record batches, is added to the
output by reference, so that it is never copied on its way to the socket.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, Py_buffer, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy

cimport kafkacore.wire.primitives as primitives
from kafkacore.wire._file_slice cimport FileSlice
from kafkacore.wire._uuid cimport Uuid, as_uuid

cdef enum:
    MAX_INT16 = 0x7FFF
    MAX_INT32 = 0x7FFFFFFF


@cython.final
cdef class Writer:
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

    def __cinit__(self, Py_ssize_t capacity=256):
        self.capacity = max(capacity, 16)
        self.data = <uint8_t *> PyMem_Malloc(self.capacity)
        if self.data == NULL:
            raise MemoryError()
        self.sealed = []

    def __dealloc__(self):
        PyMem_Free(self.data)

    cdef uint8_t *reserve(self, Py_ssize_t size) except NULL:
        """Return a pointer to ``size`` more bytes at the end, which already count as written."""
        cdef Py_ssize_t capacity
        cdef void *grown
        if size > self.capacity - self.size:
            capacity = max(2 * self.capacity, self.size + size)
            grown = PyMem_Realloc(self.data, capacity)
            if grown == NULL:
                raise MemoryError()
            self.data = <uint8_t *> grown
            self.capacity = capacity
        self.size += size
        return self.data + self.size - size

    cdef int copy_in(self, const void *source, Py_ssize_t size) except -1:
        memcpy(self.reserve(size), source, size)
        return 0

    cdef int seal(self) except -1:
        if self.size > 0:
            self.sealed.append(PyBytes_FromStringAndSize(<char *> self.data, self.size))
            self.sealed_size += self.size
            self.size = 0
        return 0

    @property
    def size_in_bytes(self) -> int:
        """Number of bytes written so far, including buffers that were added by reference."""
        return self.sealed_size + self.size

    def pieces(self) -> list:
        """Return the written bytes as a list of buffers for ``writev``. More can be written afterwards."""
        self.seal()
        return list(self.sealed)

    cpdef int write_bool(self, bint value) except -1:
        self.reserve(1)[0] = value
        return 0

    cpdef int write_int8(self, int8_t value) except -1:
        self.reserve(1)[0] = <uint8_t> value
        return 0

    cpdef int write_int16(self, int16_t value) except -1:
        primitives.store_int16(self.reserve(2), value)
        return 0

    cpdef int write_int32(self, int32_t value) except -1:
        primitives.store_int32(self.reserve(4), value)
        return 0

    cpdef int write_int64(self, int64_t value) except -1:
        primitives.store_int64(self.reserve(8), value)
        return 0

    cpdef int write_uint16(self, uint16_t value) except -1:
        return self.write_int16(<int16_t> value)

    cpdef int write_uint32(self, uint32_t value) except -1:
        return self.write_int32(<int32_t> value)

    cpdef int write_float64(self, double value) except -1:
        cdef int64_t bits
        memcpy(&bits, &value, 8)
        return self.write_int64(bits)

    cpdef int write_uuid(self, value) except -1:
        """Write a :class:`Uuid` (a :class:`uuid.UUID` is accepted too) as 16 bytes."""
        cdef Uuid uuid = as_uuid(value)
        cdef uint8_t *at
        if uuid is None:
            raise TypeError(f"a Uuid is required, not {type(value).__name__}")
        at = self.reserve(16)
        primitives.store_int64(at, <int64_t> uuid.high)
        primitives.store_int64(at + 8, <int64_t> uuid.low)
        return 0

    cpdef int write_unsigned_varint(self, uint32_t value) except -1:
        cdef uint8_t *at = self.reserve(primitives.MAX_VARINT_SIZE)
        self.size -= primitives.MAX_VARINT_SIZE - (primitives.store_unsigned_varlong(at, value) - at)
        return 0

    cpdef int write_varint(self, int32_t value) except -1:
        """Write a zigzag-encoded integer of up to 32 bits."""
        return self.write_unsigned_varint(<uint32_t> primitives.zigzag(value))

    cpdef int write_varlong(self, int64_t value) except -1:
        """Write a zigzag-encoded integer of up to 64 bits."""
        cdef uint8_t *at = self.reserve(primitives.MAX_VARLONG_SIZE)
        self.size -= primitives.MAX_VARLONG_SIZE - (primitives.store_varlong(at, value) - at)
        return 0

    cpdef int write_buffer(self, buffer) except -1:
        """Copy the bytes of ``buffer`` to the output, without a length prefix."""
        cdef Py_buffer view
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
        try:
            return self.copy_in(view.buf, view.len)
        finally:
            PyBuffer_Release(&view)

    cpdef int write_piece(self, buffer) except -1:
        """Add a buffer or a :class:`FileSlice` to the output by reference, without a length.

        The buffer must not change afterwards.
        """
        cdef Py_ssize_t size
        if isinstance(buffer, FileSlice):
            size = (<FileSlice> buffer).size
        else:
            size = memoryview(buffer).nbytes
        self.seal()
        if size > 0:
            self.sealed.append(buffer)
            self.sealed_size += size
        return 0

    cpdef int write_string(self, str value) except -1:
        """Write the UTF-8 bytes of ``value``, without a length."""
        cdef Py_ssize_t size
        cdef const char *text = PyUnicode_AsUTF8AndSize(value, &size)
        return self.copy_in(text, size)

    # ---- Values with a length in front ------------------------------------------------------------------
    cpdef int write_length(self, Py_ssize_t size, bint compact, bint short_length=False) except -1:
        """Write a length in the form that ``Cursor.read_length`` reads; -1 means null.

        Set ``short_length`` for a string, which has at most 32,767 bytes.
        """
        if size < -1 or size > (MAX_INT16 if short_length else MAX_INT32):
            most = MAX_INT16 if short_length else MAX_INT32
            raise OverflowError(f"length {size} does not fit its field; the maximum is {most}")
        if compact:
            return self.write_unsigned_varint(<uint32_t> (size + 1))
        if short_length:
            return self.write_int16(<int16_t> size)
        return self.write_int32(<int32_t> size)

    cpdef int write_nullable_string(self, str value, bint compact) except -1:
        """Write the length of a string and its UTF-8 bytes; None is written as null."""
        cdef Py_ssize_t size
        cdef const char *text
        if value is None:
            return self.write_length(-1, compact, True)
        text = PyUnicode_AsUTF8AndSize(value, &size)
        self.write_length(size, compact, True)
        return self.copy_in(text, size)

    cpdef int write_nullable_bytes(self, value, bint compact) except -1:
        """Write the length of ``value`` and a copy of its bytes; None is written as null."""
        cdef Py_buffer view
        if value is None:
            return self.write_length(-1, compact, False)
        PyObject_GetBuffer(value, &view, PyBUF_SIMPLE)
        try:
            self.write_length(view.len, compact, False)
            return self.copy_in(view.buf, view.len)
        finally:
            PyBuffer_Release(&view)

    cpdef int write_array_length(self, Py_ssize_t count, bint compact) except -1:
        """Write the number of elements of an array; -1 means null."""
        return self.write_length(count, compact, False)
