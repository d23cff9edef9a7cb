"""SetupDeadlines for Cython callers."""

from kafkacore.network._channel cimport KafkaChannel

cdef class SetupDeadlines:
    cdef double timeout_ms
    # Deque of (due time, channel), in order of time.
    cdef object waiting
    # Why the channel that next_late() returned last must be closed.
    cdef object phase
    cdef str reason

    cdef int start(self, KafkaChannel channel, double now_ms) except -1
    cdef double next_due_ms(self) except? -1
    cdef KafkaChannel next_late(self, double now_ms)
    cdef bint is_late(self, KafkaChannel channel, double now_ms) except -1
