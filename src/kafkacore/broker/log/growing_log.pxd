"""GrowingLog for Cython callers."""

from libc.stdint cimport int64_t

from kafkacore.broker.log.growing_segment cimport GrowingSegment
from kafkacore.record._batch cimport RecordBatch

cdef class GrowingLog:
    cdef public object topic_partition
    cdef public object config
    cdef public int64_t log_start_offset
    cdef public int64_t log_end_offset
    cdef public int64_t high_watermark
    cdef public int64_t appended_bytes
    cdef public object _lock
    cdef public list _segments
    cdef public object _producers
    cdef public object _epochs
    cdef public object _work
    # Where the high watermark is.
    cdef public object high_watermark_metadata
    cdef public bint _flushes_acks
    cdef public bint _has_identity

    cpdef object append_validated(self, tuple batch, int64_t now_ms)
    cdef object _append(self, RecordBatch batch, int64_t max_timestamp, int64_t now_ms, bint is_append_time)
    cdef GrowingSegment active(self)
    cdef int _write(self, RecordBatch batch, int64_t first_offset, bint is_append_time,
                    int64_t max_timestamp) except -1
