"""IdleExpiry for Cython callers."""

from kafkacore.network._channel cimport KafkaChannel

cdef class IdleExpiry:
    cdef readonly double max_idle_ms
    cdef KafkaChannel oldest
    cdef KafkaChannel newest

    cdef int touch(self, KafkaChannel channel, double now_ms) except -1
    cdef int forget(self, KafkaChannel channel) except -1
    cdef KafkaChannel oldest_expired(self, double now_ms)
