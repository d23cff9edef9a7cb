"""How long to wait before the next try: attempts in, milliseconds out.

Does not know: what is tried. (Kafka's ``ExponentialBackoff``, KIP-580.)
"""

from __future__ import annotations

from kafkacore.clock import Clock


class ExponentialBackoff:
    """``initial_ms * multiplier ** attempts``, capped, then spread by ``jitter`` so that clients do not come
    as one.

    Parameters
    ----------
    initial_ms, max_ms:
        Milliseconds; above its maximum an initial value is the maximum itself.
    jitter:
        0.2 gives 80 % to 120 %.
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
        """Wait after ``attempts`` failures before the last; never above the maximum."""
        # Beyond this many doublings every initial value has met its maximum, and the power would overflow.
        term = min(self._initial_ms * self._multiplier ** min(attempts, 64), self._max_ms)
        spread = 1.0 + self._clock.random.uniform(-self._jitter, self._jitter)
        return min(term * spread, self._max_ms)
