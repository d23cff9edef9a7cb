"""Declare LegacyBatchBuilder for Cython callers."""

from libc.stdint cimport int64_t, uint8_t

cdef class LegacyBatchBuilder:
    cdef uint8_t *data
    cdef Py_ssize_t size
    cdef Py_ssize_t capacity
    cdef readonly int magic
    cdef readonly int64_t record_count
    cdef int codec
    cdef int attributes
    cdef object compression_level
    cdef bint is_log_append_time
    cdef bint is_closed
    cdef bint in_use
    cdef int64_t log_append_time_ms
    cdef int64_t base_offset
    cdef int64_t last_offset
    cdef int64_t max_timestamp

    cdef int put(self, int64_t offset, int64_t timestamp_ms, const uint8_t *key, Py_ssize_t key_size,
                 const uint8_t *value, Py_ssize_t value_size, int codec) except -1
    cdef int put_record(self, int64_t offset, int64_t timestamp_ms, const uint8_t *key, Py_ssize_t key_size,
                        const uint8_t *value, Py_ssize_t value_size) except -1
    cdef int put_next(self, int64_t offset, int64_t timestamp_ms, const uint8_t *key, Py_ssize_t key_size,
                      const uint8_t *value, Py_ssize_t value_size) except -1
    cdef int _wrap(self) except -1
