"""A timer that uses a given clock. This is Kafka's ``Timer``."""

from __future__ import annotations

import math

from kafkacore.clock import Clock


class Timer:
    """Timer that expires ``timeout_ms`` after its creation, or never if ``timeout_ms`` is ``None``."""

    __slots__ = ("_clock", "_deadline_ms", "timeout_ms")

    def __init__(self, clock: Clock, timeout_ms: float | None) -> None:
        self._clock = clock
        self.timeout_ms = math.inf if timeout_ms is None else timeout_ms
        self._deadline_ms = clock.monotonic_ms() + self.timeout_ms

    @property
    def remaining_ms(self) -> float:
        return max(self._deadline_ms - self._clock.monotonic_ms(), 0.0)

    @property
    def expired(self) -> bool:
        return self.remaining_ms <= 0
