"""Validation of new batches, for Cython callers."""

from libc.stdint cimport int64_t

cdef class ValidationBudget:
    cdef int64_t compressed_bytes
    cdef int64_t plain_bytes

cpdef tuple validate_append(
    records, config, int64_t now_ms, topic_partition, ValidationBudget budget=*
)
