"""The clock, and the source of random numbers. No other module imports ``time`` or ``random``.

Code that waits, expires or uses jitter has a parameter for a :class:`Clock`. Tests and the simulation pass a
virtual clock (``kafkacore.testing.VirtualClock``). Durations are always measured with the monotonic clock.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from threading import Condition

from kafkacore._monotonic import monotonic_ms

#: Longest uninterrupted part of a wait. If a signal arrives just before a wait begins, it does not interrupt
#: the wait, and its Python handler runs only afterwards. Long waits are therefore split into parts.
SIGNAL_SLICE_S = 0.5


class Clock:
    """The clock of the machine. Times are in milliseconds."""

    def __init__(self, seed: int | None = None) -> None:
        #: Source of jitter and of other random choices. Tests set its seed.
        self.random = random.Random(seed)  # noqa: S311 - jitter, not a secret

    monotonic_ms = monotonic_ms

    def wall_ms(self) -> int:
        """Return the milliseconds since the epoch, for timestamps of records. Do not use it for durations."""
        return time.time_ns() // 1_000_000

    def sleep_ms(self, duration_ms: float) -> None:
        """Block the calling thread for ``duration_ms``."""
        if duration_ms > 0:
            time.sleep(duration_ms / 1000.0)

    def wait_for(self, condition: Condition, predicate: Callable[[], bool], timeout_ms: float | None) -> bool:
        """Wait on a held ``condition`` until ``predicate()`` is true, and return the predicate's last value.

        Parameters
        ----------
        condition:
            Condition with an ``RLock``. The lock is held again on return, even if the handler of a signal
            raises an exception.
        timeout_ms:
            Time limit; ``None`` or infinity for no limit.
        """
        deadline_s = math.inf if timeout_ms is None else time.monotonic() + timeout_ms / 1000.0
        try:
            while True:
                left_s = deadline_s - time.monotonic()
                result = condition.wait_for(predicate, min(max(left_s, 0.0), SIGNAL_SLICE_S))
                if result or left_s <= SIGNAL_SLICE_S:
                    return result
        except BaseException:
            # If a signal handler raised an exception during the wait, this thread may not hold the lock.
            # Acquire the lock again, because the caller will release it.
            while not condition._is_owned():  # type: ignore[attr-defined]
                condition.acquire()
            raise


#: The default clock.
SYSTEM_CLOCK = Clock()
