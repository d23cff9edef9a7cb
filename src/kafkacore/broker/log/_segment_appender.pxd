"""The appender of a segment, for Cython callers."""

from libc.stdint cimport int64_t

from kafkacore.broker.log._indexes cimport OffsetIndex, TimeIndex

cdef class SegmentAppender:
    cdef readonly int64_t base_offset
    cdef public int64_t size
    cdef readonly OffsetIndex offset_index
    cdef readonly TimeIndex time_index
    cdef object _config
    cdef readonly object file
    # Wall-clock time of creation in milliseconds. If records have no timestamps, the age of the segment is
    # measured from this time.
    cdef int64_t _created_ms
    cdef int64_t _max_timestamp
    cdef int64_t _offset_of_max
    cdef int64_t _first_timestamp
    cdef bint _knows_first_timestamp
    cdef int64_t _bytes_since_last_index_entry
    # The next three fields are copied from the configuration.
    cdef int64_t _max_size
    cdef int64_t _max_age_ms
    cdef int64_t _index_interval

    cpdef bint should_roll(self, int64_t size, int64_t max_timestamp, int64_t last_offset,
                           int64_t now_ms) except -1
    cdef bint fits(self, int64_t offset) noexcept
    cdef int64_t _age_ms(self, int64_t timestamp, int64_t now_ms) except? -1
    cdef int64_t find_first_timestamp(self) except? -1
    cdef int append(self, list pieces, int64_t size, int64_t last_offset, int64_t max_timestamp,
                    int64_t shallow_offset) except -1
    cdef int added(self, int64_t position, int64_t size, int64_t last_offset, int64_t max_timestamp,
                   int64_t shallow_offset) except -1
