class MonotonicClock:
    """Base class of :class:`kafkacore.clock.Clock`."""

    def monotonic_ms(self) -> float:
        """Return the monotonic time in milliseconds, for durations and deadlines."""
