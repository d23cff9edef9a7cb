"""Find accepted connections that did not authenticate in time, or did not complete their first frame in time.

On a listener without authentication only the first frame has a deadline. A connection on which no byte has
arrived stays open, because clients open connections in advance.
"""

cimport cython
from libc.math cimport INFINITY

from kafkacore.network._channel cimport KafkaChannel

from collections import deque

from kafkacore.network.channel_state import ConnectionPhase


@cython.final
cdef class SetupDeadlines:
    """The setup deadlines of one Selector's channels.

    Parameters
    ----------
    timeout_ms:
        Maximum milliseconds for the authentication, and separately for the first frame. Infinity means no
        limit.
    """

    def __cinit__(self, double timeout_ms):
        self.timeout_ms = timeout_ms
        self.waiting = deque()

    def __len__(self):
        return len(self.waiting)

    cdef int start(self, KafkaChannel channel, double now_ms) except -1:
        """Start a deadline for the authentication of a channel or for its first frame."""
        if self.timeout_ms < INFINITY:
            channel.setup_due_ms = now_ms + self.timeout_ms
            self.waiting.append((channel.setup_due_ms, channel))
        return 0

    cdef double next_due_ms(self) except? -1:
        """Return the next deadline; infinity if no channel has a deadline."""
        return <double> self.waiting[0][0] if self.waiting else INFINITY

    cdef KafkaChannel next_late(self, double now_ms):
        """Return a channel that has missed its deadline and must be closed, or ``None``.

        The attributes ``phase`` and ``reason`` then describe what was late. A channel stays in the list until
        it is closed, so that a Ctrl-C in the meantime does not lose the channel.
        """
        cdef KafkaChannel channel
        while self.waiting and <double> self.waiting[0][0] <= now_ms:
            _, channel = self.waiting[0]
            if self.is_late(channel, now_ms):
                return channel
            self.waiting.popleft()
        return None

    cdef bint is_late(self, KafkaChannel channel, double now_ms) except -1:
        # The deadline may have been restarted, for the first frame or for a reauthentication. The channel
        # then has a later entry in the list, and this entry is ignored.
        if channel.is_closed or channel.is_close_delayed or channel.setup_due_ms > now_ms:
            return False
        if not channel.is_ready:
            self.phase = ConnectionPhase.AUTHENTICATE
            self.reason = f"the connection was not authenticated within {self.timeout_ms:.0f} ms"
            return True
        if channel.has_begun and not channel.reader.has_frames:
            self.phase = ConnectionPhase.READY
            self.reason = f"the first request was not complete within {self.timeout_ms:.0f} ms"
            return True
        return False
