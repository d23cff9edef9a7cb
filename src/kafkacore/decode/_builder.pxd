"""Builders of Arrow columns. Values are appended one by one. A nested column is a tree of builders."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy

cdef enum Kind:
    BITS = 0      # one bit per value
    FIXED = 1     # ``width`` bytes per value
    BYTES = 2     # bytes or strings with 32-bit offsets
    LIST = 3      # lists and maps with 32-bit offsets into one child
    STRUCT = 4    # one child per field

cdef enum Problem:
    NO_MEMORY = -1
    TOO_LARGE = -2

cdef struct Budget:
    int64_t left  # number of bytes that may still be allocated

cdef struct Builder:
    Kind kind
    int width
    bint has_nulls
    int64_t count
    int64_t capacity
    uint8_t *validity
    uint8_t *data
    int32_t *offsets
    int64_t data_size      # used by BYTES
    int64_t data_capacity  # used by BYTES
    Builder *children
    int child_count
    Budget *budget

cdef int grow(Builder *builder, int64_t capacity) noexcept nogil
cdef int grow_data(Builder *builder, int64_t size) noexcept nogil
cdef int append_null(Builder *builder) noexcept nogil
cdef void truncate(Builder *builder, int64_t count) noexcept nogil
cdef void clear(Builder *builder) noexcept nogil


cdef inline int reserve(Builder *builder) noexcept nogil:
    """Reserve space for one more value."""
    if builder.count < builder.capacity:
        return 0
    return grow(builder, builder.count + 1)


cdef inline void mark_valid(Builder *builder) noexcept nogil:
    builder.validity[builder.count >> 3] |= <uint8_t> (1 << (builder.count & 7))
    builder.count += 1


cdef inline int append_fixed(Builder *builder, const void *value, int width) noexcept nogil:
    """Append a value of ``builder.width`` bytes. With a constant ``width`` the copy is one instruction."""
    cdef int problem = reserve(builder)
    if problem:
        return problem
    memcpy(builder.data + builder.count * width, value, width)
    mark_valid(builder)
    return 0


cdef inline int append_bit(Builder *builder, bint value) noexcept nogil:
    cdef int problem = reserve(builder)
    cdef uint8_t bit = <uint8_t> (1 << (builder.count & 7))
    if problem:
        return problem
    if value:
        builder.data[builder.count >> 3] |= bit
    else:
        builder.data[builder.count >> 3] &= ~bit
    mark_valid(builder)
    return 0


cdef inline int append_bytes(Builder *builder, const uint8_t *value, int64_t size) noexcept nogil:
    cdef int problem = reserve(builder)
    if problem:
        return problem
    if size > builder.data_capacity - builder.data_size:
        problem = grow_data(builder, size)
        if problem:
            return problem
    if size:
        memcpy(builder.data + builder.data_size, value, size)
    builder.data_size += size
    builder.offsets[builder.count + 1] = <int32_t> builder.data_size
    mark_valid(builder)
    return 0


cdef inline int end_list(Builder *builder) noexcept nogil:
    """Append a list of the values that were appended to the child since the previous list."""
    cdef int problem = reserve(builder)
    if problem:
        return problem
    builder.offsets[builder.count + 1] = <int32_t> builder.children.count
    mark_valid(builder)
    return 0


cdef inline int end_struct(Builder *builder) noexcept nogil:
    """Append a struct of the values that were appended to the children."""
    cdef int problem = reserve(builder)
    if problem:
        return problem
    mark_valid(builder)
    return 0


cdef class Columns:
    """The builders of a schema, which keep their values until :meth:`take`."""

    cdef readonly object schema
    cdef list fields  # fields of the schema from which the builders were created
    cdef bint in_use  # whether a reader, which may have released the GIL, fills the columns
    cdef Builder root  # a struct of the columns
    cdef Budget budget
    cdef int64_t batch_bytes

    cdef int prepare(self, int64_t rows) except -1
    cdef Builder *of_path(self, tuple path) except NULL
