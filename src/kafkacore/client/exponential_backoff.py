"""Exponential back-off with jitter (Kafka's ``ExponentialBackoff``, KIP-580)."""

from __future__ import annotations

from kafkacore.clock import Clock


class ExponentialBackoff:
    """Pauses that grow exponentially with the number of failures.

    A pause is ``initial_ms * multiplier ** attempts``, limited to ``max_ms``. The jitter prevents clients
    from retrying at the same time.

    Parameters
    ----------
    clock:
        Source of random numbers.
    initial_ms, max_ms:
        First and longest pause, in milliseconds.
    multiplier:
        Factor by which each failure lengthens the pause.
    jitter:
        Largest relative deviation: 0.2 gives 80 % to 120 % of the pause.
    """

    def __init__(
        self, clock: Clock, initial_ms: float, max_ms: float, multiplier: float = 2.0, jitter: float = 0.2
    ) -> None:
        self._clock = clock
        self._initial_ms = min(initial_ms, max_ms)
        self._max_ms = max_ms
        self._multiplier = multiplier
        self._jitter = jitter

    def backoff_ms(self, attempts: int) -> float:
        """Return the next pause, in milliseconds. ``attempts`` is 0 after the first failure."""
        # Limit the exponent to prevent an overflow. After 64 doublings any pause has reached the maximum.
        term = min(self._initial_ms * self._multiplier ** min(attempts, 64), self._max_ms)
        spread = 1.0 + self._clock.random.uniform(-self._jitter, self._jitter)
        return min(term * spread, self._max_ms)
