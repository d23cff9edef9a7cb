"""Which connection has been idle for too long: activity in, the oldest channel out.

A list through the channels themselves, so that activity costs a few pointers and no search. Does not know:
clocks, polls. Source of the behaviour: Kafka's ``Selector.IdleExpiryManager``.
"""

cimport cython

from kafkacore.network._channel cimport KafkaChannel


@cython.final
cdef class IdleExpiry:
    """Channels in the order of their last activity.

    Parameters
    ----------
    max_idle_ms:
        A channel without activity for longer has expired.
    """

    def __cinit__(self, double max_idle_ms):
        self.max_idle_ms = max_idle_ms

    cdef int touch(self, KafkaChannel channel, double now_ms) except -1:
        """Make it the last to expire."""
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
        """Take it out; one that is not in changes nothing."""
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
        """The channel to close first, or ``None``."""
        if self.oldest is None or now_ms - self.oldest.last_active_ms <= self.max_idle_ms:
            return None
        return self.oldest
