"""Declare RecordBatchBuilder for Cython callers, which append records without Python calls."""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t

from kafkacore.record._source cimport RecordSource

cdef class RecordBatchBuilder:
    # Memory of the batch. It starts with space for the header; the records follow.
    cdef uint8_t *data
    cdef readonly Py_ssize_t size_in_bytes
    # Size of the largest record in bytes.
    cdef readonly Py_ssize_t max_record_size
    # While the size stays within `capacity`, an append needs no further checks. `capacity` is 0 once the
    # batch is closed.
    cdef Py_ssize_t capacity
    # Uncompressed size in bytes at which the batch is full. With compression, it can exceed `batch_size`.
    cdef Py_ssize_t limit
    cdef readonly Py_ssize_t batch_size
    cdef readonly int64_t base_timestamp
    cdef readonly int64_t max_timestamp
    cdef readonly int32_t record_count
    # A closed batch accepts no appends. The memory of a sealed batch does not move.
    cdef readonly bint is_closed
    cdef bint is_sealed
    cdef int codec
    cdef int timestamp_type
    cdef object compression_level

    cdef int append_bytes(self, int64_t timestamp_ms, const uint8_t *key, Py_ssize_t key_size,
                          const uint8_t *value, Py_ssize_t value_size, const uint8_t *headers,
                          Py_ssize_t headers_size, int32_t header_count) except -2 nogil
    cdef int append_buffers(self, int64_t timestamp_ms, key, value, headers) except -2
    cdef Py_ssize_t append_rows(self, RecordSource source, const int32_t *indices, Py_ssize_t start,
                                Py_ssize_t count, int64_t default_timestamp) except -2 nogil
    cdef int count_record(self, const uint8_t *end, int64_t timestamp_ms) noexcept nogil
    cdef bint full(self) noexcept nogil
    cdef int _compress(self) except -1
    cdef int ensure_capacity(self, int64_t delta, Py_ssize_t key_size, Py_ssize_t value_size,
                             Py_ssize_t headers_size, int32_t header_count,
                             Py_ssize_t rows_left) except -2 nogil
    cdef int write_header(self, uint8_t *batch, Py_ssize_t size, int64_t base_offset, int32_t leader_epoch,
                          int attributes, int64_t producer_id, int16_t producer_epoch,
                          int32_t base_sequence) noexcept nogil
    cdef int restamp(self, int64_t producer_id, int16_t producer_epoch, int32_t base_sequence) except -1
