"""The checks of an append for Cython callers."""

from libc.stdint cimport int64_t

cpdef tuple validate_append(records, config, int64_t now_ms, topic_partition)
