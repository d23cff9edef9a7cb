"""Channels that failed authentication and are closed after a delay, which slows down password guessing.

Source of the behaviour: ``delayedClosingChannels`` of Kafka's ``Selector``.
"""

cimport cython
from libc.math cimport INFINITY

from kafkacore.network._channel cimport KafkaChannel

from collections import deque


@cython.final
cdef class DelayedCloses:
    """Owned by one Selector."""

    def __cinit__(self):
        self.waiting = deque()

    def __len__(self):
        return len(self.waiting)

    cdef int add(self, KafkaChannel channel, double due_ms, error) except -1:
        """Keep a channel, from which nothing is read any more, until ``due_ms``."""
        channel.is_close_delayed = True
        channel.is_ready = False
        self.waiting.append((due_ms, channel, error))
        return 0

    cdef double next_due_ms(self) except? -1:
        """When the first is to be closed; infinity if there is none."""
        return <double> self.waiting[0][0] if self.waiting else INFINITY

    cdef KafkaChannel next_due(self, double now_ms):
        """A channel to be closed now, for ``error``; ``None`` if there is none.

        The channel leaves the list once it is closed, so that an interrupt before that loses none.
        """
        cdef KafkaChannel channel
        while self.waiting and <double> self.waiting[0][0] <= now_ms:
            _, channel, self.error = self.waiting[0]
            if not channel.is_closed:
                return channel
            self.waiting.popleft()
        return None
