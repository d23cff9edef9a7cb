"""Track which connections have been idle for too long, as Kafka's ``Selector.IdleExpiryManager`` does.

The channel objects form a doubly linked list, so that recording activity takes constant time.
"""

cimport cython

from kafkacore.network._channel cimport KafkaChannel


@cython.final
cdef class IdleExpiry:
    """Channels in the order of their last activity.

    Parameters
    ----------
    max_idle_ms:
        Milliseconds without activity after which a channel expires.
    """

    def __cinit__(self, double max_idle_ms):
        self.max_idle_ms = max_idle_ms

    cdef int touch(self, KafkaChannel channel, double now_ms) except -1:
        """Record activity on a channel, and move the channel to the end of the expiry order."""
        channel.last_active_ms = now_ms
        if self.newest is channel:
            return 0
        self.forget(channel)
        channel.idle_before = self.newest
        if self.newest is None:
            self.oldest = channel
        else:
            self.newest.idle_after = channel
        self.newest = channel
        return 0

    cdef int forget(self, KafkaChannel channel) except -1:
        """Remove a channel. A channel that is not in the list is ignored."""
        if channel.idle_before is not None:
            channel.idle_before.idle_after = channel.idle_after
        elif self.oldest is channel:
            self.oldest = channel.idle_after
        if channel.idle_after is not None:
            channel.idle_after.idle_before = channel.idle_before
        elif self.newest is channel:
            self.newest = channel.idle_before
        channel.idle_before = channel.idle_after = None
        return 0

    cdef KafkaChannel oldest_expired(self, double now_ms):
        """Return the channel that has been idle for longest if it has expired, otherwise ``None``."""
        if self.oldest is None or now_ms - self.oldest.last_active_ms <= self.max_idle_ms:
            return None
        return self.oldest
