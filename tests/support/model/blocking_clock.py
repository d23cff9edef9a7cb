"""A virtual clock for tests in which one thread waits for another."""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition

from kafkacore.clock import Clock
from kafkacore.testing import VirtualClock


class BlockingClock(VirtualClock):
    """Readings are virtual, but a wait blocks its thread, as with the system clock.

    A wait that times out advances the readings by its timeout.
    """

    def wait_for(self, condition: Condition, predicate: Callable[[], bool], timeout_ms: float | None) -> bool:
        if Clock.wait_for(self, condition, predicate, timeout_ms):
            return True
        assert timeout_ms is not None
        self.advance(max(timeout_ms, 0.0))
        return False
