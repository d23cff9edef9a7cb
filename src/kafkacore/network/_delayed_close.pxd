"""DelayedCloses for Cython callers."""

from kafkacore.network._channel cimport KafkaChannel

cdef class DelayedCloses:
    # Deque of (due time, channel, error), in order of time.
    cdef object waiting
    # Authentication error of the channel that next_due() returned last.
    cdef object error

    cdef int add(self, KafkaChannel channel, double due_ms, error) except -1
    cdef double next_due_ms(self) except? -1
    cdef KafkaChannel next_due(self, double now_ms)
