"""A clock that a test advances, so that minutes of back-off take no time."""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition

from kafkacore.clock import Clock


class VirtualClock(Clock):
    """A :class:`~kafkacore.clock.Clock` that :meth:`advance` moves.

    Sleeping and waiting advance the clock at once.

    Parameters
    ----------
    start_ms:
        First value of the monotonic and the wall clock, in milliseconds.
    seed:
        Seed of :attr:`random`, so that jitter is the same in every run.
    """

    def __init__(self, start_ms: float = 1_000_000.0, seed: int = 0) -> None:
        super().__init__(seed)
        self._now_ms = start_ms
        #: Milliseconds by which the wall clock is ahead of the monotonic clock. Change it to make the wall
        #: clock jump.
        self.wall_offset_ms = 0

    def __repr__(self) -> str:
        return f"<VirtualClock {self._now_ms:.0f} ms>"

    def advance(self, duration_ms: float) -> None:
        """Advance the clock by ``duration_ms`` milliseconds."""
        assert duration_ms >= 0, "a monotonic clock never goes back"
        self._now_ms += duration_ms

    def monotonic_ms(self) -> float:
        return self._now_ms

    def wall_ms(self) -> int:
        return int(self._now_ms) + self.wall_offset_ms

    def sleep_ms(self, duration_ms: float) -> None:
        self.advance(max(duration_ms, 0.0))

    def wait_for(self, condition: Condition, predicate: Callable[[], bool], timeout_ms: float | None) -> bool:
        """Advance by the time-out, unless the predicate is true. No other thread can change the predicate."""
        if not predicate() and timeout_ms is not None:
            self.advance(max(timeout_ms, 0.0))
        return predicate()
