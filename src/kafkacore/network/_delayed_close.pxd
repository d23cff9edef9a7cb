"""DelayedCloses for Cython callers."""

from kafkacore.network._channel cimport KafkaChannel

cdef class DelayedCloses:
    # (when, channel, error), in the order of time.
    cdef object waiting
    # Why authentication failed on the last channel of next_due().
    cdef object error

    cdef int add(self, KafkaChannel channel, double due_ms, error) except -1
    cdef double next_due_ms(self) except? -1
    cdef KafkaChannel next_due(self, double now_ms)
