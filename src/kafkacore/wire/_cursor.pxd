"""Declare Cursor for Cython callers."""

from cpython.buffer cimport Py_buffer
from libc.stdint cimport int64_t, uint8_t, uint32_t

from kafkacore.wire._uuid cimport Uuid

cdef class Cursor:
    cdef const uint8_t *start
    cdef const uint8_t *pos
    cdef const uint8_t *end
    # The buffer, and a memoryview of it, which the first returned view creates. `origin` is the start of the
    # buffer.
    cdef object buffer
    cdef object memory
    cdef const uint8_t *origin
    cdef Py_buffer view
    # Maximum number of elements in all arrays together, and how many more elements may follow.
    cdef Py_ssize_t most_elements
    cdef Py_ssize_t elements_left

    cdef int need(self, Py_ssize_t size) except -1
    cdef int refuse(self, str reason) except -1

    cpdef bint read_bool(self) except *
    cpdef int read_int8(self) except? -1
    cpdef int read_int16(self) except? -1
    cpdef int read_int32(self) except? -1
    cpdef int64_t read_int64(self) except? -1
    cpdef int read_uint16(self) except? -1
    cpdef uint32_t read_uint32(self) except? 0
    cpdef double read_float64(self) except? -1
    cpdef Uuid read_uuid(self)
    cpdef uint32_t read_unsigned_varint(self) except? 0
    cpdef int read_varint(self) except? -1
    cpdef int64_t read_varlong(self) except? -1
    cpdef object read_bytes(self, Py_ssize_t size)
    cpdef str read_string(self, Py_ssize_t size)
    cpdef int skip(self, Py_ssize_t size) except -1
    cpdef Py_ssize_t read_length(self, bint compact, bint short_length=*) except? -1
    cpdef str read_nullable_string(self, bint compact)
    cpdef object read_nullable_bytes(self, bint compact)
    cpdef Py_ssize_t read_array_length(self, bint compact, Py_ssize_t min_element_size=*) except? -1
    cpdef int limit_elements(self, Py_ssize_t most) except -1
    cpdef int count_elements(self, Py_ssize_t count) except -1
    cpdef Py_ssize_t remaining(self) noexcept
