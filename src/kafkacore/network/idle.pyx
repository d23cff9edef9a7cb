"""Which connection has been idle for too long: activity in, the oldest id out.

Does not know: channels, clocks. Source of the behaviour: Kafka's ``Selector.IdleExpiryManager``.
"""

cimport cython


@cython.final
cdef class IdleExpiry:
    """Ids in the order of their last activity.

    Parameters
    ----------
    max_idle_ms:
        An id without activity for longer has expired.
    """

    def __cinit__(self, double max_idle_ms):
        self.max_idle_ms = max_idle_ms
        self.last_active = {}

    cdef int touch(self, str connection_id, double now_ms) except -1:
        """Make it the last to expire; a dict keeps the order of insertion."""
        self.last_active.pop(connection_id, None)
        self.last_active[connection_id] = now_ms
        return 0

    cdef int forget(self, str connection_id) except -1:
        self.last_active.pop(connection_id, None)
        return 0

    cdef str oldest_expired(self, double now_ms):
        """The id to close first, or ``None``."""
        if not self.last_active:
            return None
        oldest = next(iter(self.last_active))
        return oldest if self.idle_ms(oldest, now_ms) > self.max_idle_ms else None

    cdef double idle_ms(self, str connection_id, double now_ms) except *:
        return now_ms - <double> self.last_active[connection_id]
