"""Declare Writer for Cython callers."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef class Writer:
    # The piece being written is `data[:size]`, with `capacity` bytes allocated. `sealed` contains the earlier
    # pieces.
    cdef uint8_t *data
    cdef Py_ssize_t size
    cdef Py_ssize_t capacity
    cdef list sealed
    cdef Py_ssize_t sealed_size

    cdef uint8_t *reserve(self, Py_ssize_t size) except NULL
    cdef int copy_in(self, const void *source, Py_ssize_t size) except -1
    cdef int seal(self) except -1

    cpdef int write_bool(self, bint value) except -1
    cpdef int write_int8(self, int8_t value) except -1
    cpdef int write_int16(self, int16_t value) except -1
    cpdef int write_int32(self, int32_t value) except -1
    cpdef int write_int64(self, int64_t value) except -1
    cpdef int write_uint16(self, uint16_t value) except -1
    cpdef int write_uint32(self, uint32_t value) except -1
    cpdef int write_float64(self, double value) except -1
    cpdef int write_uuid(self, value) except -1
    cpdef int write_unsigned_varint(self, uint32_t value) except -1
    cpdef int write_varint(self, int32_t value) except -1
    cpdef int write_varlong(self, int64_t value) except -1
    cpdef int write_buffer(self, buffer) except -1
    cpdef int write_piece(self, buffer) except -1
    cpdef int write_string(self, str value) except -1
    cpdef int write_length(self, Py_ssize_t size, bint compact, bint short_length=*) except -1
    cpdef int write_nullable_string(self, str value, bint compact) except -1
    cpdef int write_nullable_bytes(self, value, bint compact) except -1
    cpdef int write_array_length(self, Py_ssize_t count, bint compact) except -1
