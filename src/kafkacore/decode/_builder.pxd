"""Growing Arrow columns: values appended one by one, buffers out. Nested columns are trees of builders."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy

cdef enum Kind:
    BITS = 0      # one bit a value
    FIXED = 1     # ``width`` bytes a value
    BYTES = 2     # bytes or text, by 32-bit offsets
    LIST = 3      # lists and maps, by 32-bit offsets into one child
    STRUCT = 4    # one child a field

cdef enum Problem:
    NO_MEMORY = -1
    TOO_LARGE = -2

cdef struct Budget:
    int64_t left  # bytes that may still be allocated

cdef struct Builder:
    Kind kind
    int width
    bint has_nulls
    int64_t count
    int64_t capacity
    uint8_t *validity
    uint8_t *data
    int32_t *offsets
    int64_t data_size      # of BYTES
    int64_t data_capacity  # of BYTES
    Builder *children
    int child_count
    Budget *budget

cdef int grow(Builder *builder, int64_t capacity) noexcept nogil
cdef int grow_data(Builder *builder, int64_t size) noexcept nogil
cdef int append_null(Builder *builder) noexcept nogil
cdef void truncate(Builder *builder, int64_t count) noexcept nogil
cdef void clear(Builder *builder) noexcept nogil


cdef inline int room(Builder *builder) noexcept nogil:
    """Make room for one more value."""
    if builder.count < builder.capacity:
        return 0
    return grow(builder, builder.count + 1)


cdef inline void mark_valid(Builder *builder) noexcept nogil:
    builder.validity[builder.count >> 3] |= <uint8_t> (1 << (builder.count & 7))
    builder.count += 1


cdef inline int append_fixed(Builder *builder, const void *value, int width) noexcept nogil:
    """``width`` is the builder's: a constant here, it makes the copy one instruction."""
    cdef int problem = room(builder)
    if problem:
        return problem
    memcpy(builder.data + builder.count * width, value, width)
    mark_valid(builder)
    return 0


cdef inline int append_bit(Builder *builder, bint value) noexcept nogil:
    cdef int problem = room(builder)
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
    cdef int problem = room(builder)
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
    """A list of what has been appended to the child since the last one."""
    cdef int problem = room(builder)
    if problem:
        return problem
    builder.offsets[builder.count + 1] = <int32_t> builder.children.count
    mark_valid(builder)
    return 0


cdef inline int end_struct(Builder *builder) noexcept nogil:
    """A struct of what has been appended to each child."""
    cdef int problem = room(builder)
    if problem:
        return problem
    mark_valid(builder)
    return 0


cdef class Columns:
    """The builders of a schema, and what they hold until :meth:`take`."""

    cdef readonly object schema
    cdef list fields  # of the schema, as they were when the builders were made
    cdef bint in_use  # by a reader, which may have released the GIL
    cdef Builder root  # a struct of the columns
    cdef Budget budget
    cdef int64_t batch_bytes

    cdef int prepare(self, int64_t rows) except -1
    cdef Builder *of_path(self, tuple path) except NULL
