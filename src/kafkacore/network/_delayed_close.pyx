"""Delay the close of channels whose authentication has failed, to slow down password guessing.

See ``delayedClosingChannels`` in Kafka's ``Selector``.
"""

cimport cython
from libc.math cimport INFINITY

from kafkacore.network._channel cimport KafkaChannel

from collections import deque


@cython.final
cdef class DelayedCloses:
    """The channels of one Selector that will be closed after a delay."""

    def __cinit__(self):
        self.waiting = deque()

    def __len__(self):
        return len(self.waiting)

    cdef int add(self, KafkaChannel channel, double due_ms, error) except -1:
        """Schedule a channel to be closed at ``due_ms``. No more bytes are read from the channel."""
        channel.is_close_delayed = True
        channel.is_ready = False
        self.waiting.append((due_ms, channel, error))
        return 0

    cdef double next_due_ms(self) except? -1:
        """Return when the next channel must be closed; infinity if no channel waits."""
        return <double> self.waiting[0][0] if self.waiting else INFINITY

    cdef KafkaChannel next_due(self, double now_ms):
        """Return a channel to close now because of ``error``, or ``None``.

        A channel stays in the list until it is closed, so that a Ctrl-C in the meantime does not lose the
        channel.
        """
        cdef KafkaChannel channel
        while self.waiting and <double> self.waiting[0][0] <= now_ms:
            _, channel, self.error = self.waiting[0]
            if not channel.is_closed:
                return channel
            self.waiting.popleft()
        return None
