"""Time and chance, handed in. The only module that imports ``time`` or ``random``.

Whatever waits, expires or jitters takes a :class:`Clock`, so that tests and the simulation drive the same
code by a virtual one (``kafkacore.testing.VirtualClock``). Durations are measured on the monotonic clock,
never on the wall's.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from threading import Condition

#: A signal that comes in the moment before a wait begins does not end it, and its handler runs only when the
#: wait is over: so long waits are made of several.
SIGNAL_SLICE_S = 0.5


class Clock:
    """The machine's clock. Milliseconds throughout."""

    def __init__(self, seed: int | None = None) -> None:
        #: Source of jitter and random starts; seeded in tests.
        self.random = random.Random(seed)  # noqa: S311 - jitter, not a secret

    def monotonic_ms(self) -> float:
        """Milliseconds that only ever grow; for durations and deadlines."""
        return time.monotonic() * 1000.0

    def wall_ms(self) -> int:
        """Milliseconds since the epoch; for record timestamps, never for durations."""
        return time.time_ns() // 1_000_000

    def sleep_ms(self, duration_ms: float) -> None:
        """Block this thread for ``duration_ms``."""
        if duration_ms > 0:
            time.sleep(duration_ms / 1000.0)

    def wait_for(self, condition: Condition, predicate: Callable[[], bool], timeout_ms: float | None) -> bool:
        """Wait on a held ``condition`` until ``predicate()``, at most ``timeout_ms``; what it last gave.

        ``None`` and infinity wait as long as it takes.

        The condition is one of an ``RLock``, which is held again whatever a handler of a signal raises.
        """
        deadline_s = math.inf if timeout_ms is None else time.monotonic() + timeout_ms / 1000.0
        try:
            while True:
                left_s = deadline_s - time.monotonic()
                result = condition.wait_for(predicate, min(max(left_s, 0.0), SIGNAL_SLICE_S))
                if result or left_s <= SIGNAL_SLICE_S:
                    return result
        except BaseException:
            # A signal's handler may have raised when the lock was given up and nothing yet there to take it
            # again: then the caller would end by giving up what another thread holds.
            while not condition._is_owned():  # type: ignore[attr-defined]
                condition.acquire()
            raise


#: The clock used where none is handed in.
SYSTEM_CLOCK = Clock()
