"""BatchFuture for Cython callers."""

from libc.stdint cimport int32_t, int64_t

from kafkacore.producer._future cimport FutureRecordMetadata, ProduceResult
from kafkacore.record._source cimport RecordSource


cdef class BatchFuture:
    cdef RecordSource _source
    cdef int64_t _default_timestamp_ms
    cdef object _clock
    # Position → row, and row → position. NULL if both are the same.
    cdef int32_t* _rows
    cdef int32_t* _positions
    # List of _Segment, sorted by position.
    cdef list _segments
    cdef Py_ssize_t _placed

    cdef int32_t* order(self) except NULL
    cdef int place(self, ProduceResult result, int first_index, Py_ssize_t count) except -1
    cdef Py_ssize_t _row_at(self, Py_ssize_t position) noexcept
    cdef Py_ssize_t _position_of(self, Py_ssize_t row) except -1
    cdef object _pending(self)
    cdef int watch(self, object function) except -1


# Return a future for the rows of `source`. No row is in a batch yet.
cdef BatchFuture new_batch_future(RecordSource source, int64_t default_timestamp_ms, clock)
