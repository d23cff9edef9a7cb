"""Builds the index entries of a segment in memory, while compaction writes the segment."""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from kafkacore.broker.log._key_walk cimport NO_MEMORY, TOO_LARGE
from kafkacore.wire.memory cimport realloc
from kafkacore.wire.primitives cimport store_int32, store_int64


cdef struct Buffer:
    uint8_t *data
    int64_t size
    int64_t capacity


cdef inline int reserve(Buffer *buffer, int64_t size) noexcept nogil:
    """Make space for `size` more bytes. Return 0 or NO_MEMORY."""
    cdef uint8_t *moved
    cdef int64_t capacity = buffer.capacity
    if buffer.size + size <= capacity:
        return 0
    capacity = max(buffer.size + size, 2 * capacity, 4096)
    moved = <uint8_t *> realloc(buffer.data, <size_t> capacity)
    if moved == NULL:
        return NO_MEMORY
    buffer.data, buffer.capacity = moved, capacity
    return 0


cdef inline void put_bytes(Buffer *buffer, const uint8_t *data, int64_t size) noexcept nogil:
    memcpy(buffer.data + buffer.size, data, <size_t> size)
    buffer.size += size


cdef struct Index:
    # The state of the new segment, and the entries of its indexes.
    int64_t base_offset
    int64_t interval
    int64_t bytes_since_entry
    int64_t max_timestamp
    int64_t offset_of_max
    int64_t last_timestamp
    int64_t position
    int64_t offset_count
    int64_t time_count
    int64_t max_offset_count
    int64_t max_time_count
    Buffer offsets
    Buffer times


cdef inline int add_time(Index *index) noexcept nogil:
    cdef uint8_t *at
    if index.max_timestamp <= index.last_timestamp or index.time_count >= index.max_time_count:
        return 0
    if reserve(&index.times, 12) != 0:
        return NO_MEMORY
    at = index.times.data + index.times.size
    store_int64(at, index.max_timestamp)
    store_int32(at + 8, <int32_t> (index.offset_of_max - index.base_offset))
    index.times.size += 12
    index.time_count += 1
    index.last_timestamp = index.max_timestamp
    return 0


cdef inline int add_batch(Index *index, int64_t size, int64_t last_offset,
                          int64_t max_timestamp) noexcept nogil:
    """Index the next batch of the file as an append does. Return 0, TOO_LARGE or NO_MEMORY."""
    cdef uint8_t *at
    # Positions and relative offsets in an index have 31 bits.
    if index.position > INT32_MAX - size or last_offset - index.base_offset > INT32_MAX:
        return TOO_LARGE
    if max_timestamp > index.max_timestamp:
        index.max_timestamp, index.offset_of_max = max_timestamp, last_offset
    if index.bytes_since_entry > index.interval:
        if index.offset_count < index.max_offset_count:
            if reserve(&index.offsets, 8) != 0:
                return NO_MEMORY
            at = index.offsets.data + index.offsets.size
            store_int32(at, <int32_t> (last_offset - index.base_offset))
            store_int32(at + 4, <int32_t> index.position)
            index.offsets.size += 8
            index.offset_count += 1
        if add_time(index) != 0:
            return NO_MEMORY
        index.bytes_since_entry = 0
    index.bytes_since_entry += size
    index.position += size
    return 0
