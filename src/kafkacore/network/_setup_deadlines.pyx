"""Find accepted connections that have not authenticated, or not sent their first frame, in time.

On a listener without authentication the limit is for the first frame. A connection that has sent nothing
may stay, because clients open connections that they need later.
"""

cimport cython
from libc.math cimport INFINITY

from kafkacore.network._channel cimport KafkaChannel

from collections import deque

from kafkacore.network.channel_state import ConnectionPhase


@cython.final
cdef class SetupDeadlines:
    """Owned by one Selector.

    Parameters
    ----------
    timeout_ms:
        Time for each of the two; infinity for no limit.
    """

    def __cinit__(self, double timeout_ms):
        self.timeout_ms = timeout_ms
        self.waiting = deque()

    def __len__(self):
        return len(self.waiting)

    cdef int start(self, KafkaChannel channel, double now_ms) except -1:
        """Begin to count: a channel has been accepted, is reauthenticated, or has begun its first frame."""
        if self.timeout_ms < INFINITY:
            channel.setup_due_ms = now_ms + self.timeout_ms
            self.waiting.append((channel.setup_due_ms, channel))
        return 0

    cdef double next_due_ms(self) except? -1:
        """When the first deadline is; infinity if there is none."""
        return <double> self.waiting[0][0] if self.waiting else INFINITY

    cdef KafkaChannel next_late(self, double now_ms):
        """A channel to be closed now, for ``phase`` and ``reason``; ``None`` if there is none.

        The channel leaves the list once it is closed, so that an interrupt before that loses none.
        """
        cdef KafkaChannel channel
        while self.waiting and <double> self.waiting[0][0] <= now_ms:
            _, channel = self.waiting[0]
            if self.is_late(channel, now_ms):
                return channel
            self.waiting.popleft()
        return None

    cdef bint is_late(self, KafkaChannel channel, double now_ms) except -1:
        # A later deadline has an entry of its own: of the first frame, or of a reauthentication.
        if channel.is_closed or channel.is_close_delayed or channel.setup_due_ms > now_ms:
            return False
        if not channel.is_ready:
            self.phase = ConnectionPhase.AUTHENTICATE
            self.reason = f"it was not authenticated within {self.timeout_ms:.0f} ms"
            return True
        if channel.has_begun and not channel.reader.has_frames:
            self.phase = ConnectionPhase.READY
            self.reason = f"its first request was not complete within {self.timeout_ms:.0f} ms"
            return True
        return False
