"""Open-loop sending: each record has a moment at which it should leave, whatever became of those before.

Latency is measured from that moment. A client that falls behind so pays for every record that had to wait;
measured from the actual send, the wait would be left out (the coordinated omission). Does not know: clients.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Sequence

from kafkacore.clock import SYSTEM_CLOCK

#: In thousandths, so that a rank is whole arithmetic.
PERCENTILES = {"p50": 500, "p99": 990, "p99.9": 999, "max": 1000}


class Pacer:
    """A schedule of ``count`` records at ``rate`` a second, and when each was done.

    Times are milliseconds of the monotonic clock, which all processes of a machine share.
    """

    def __init__(self, rate: float, count: int) -> None:
        self.count = count
        self.failed = 0
        self.start_ms = 0.0
        self._interval_ms = 1000.0 / rate
        self.done_ms = array("d", [math.nan]) * count

    def begin(self) -> None:
        """The first record is due now."""
        self.start_ms = SYSTEM_CLOCK.monotonic_ms()

    def wait_ms(self, index: int) -> float:
        """How long until record ``index`` is due; 0 or less when it is."""
        return self.start_ms + index * self._interval_ms - SYSTEM_CLOCK.monotonic_ms()

    def done(self, index: int) -> None:
        """Record ``index`` is acknowledged. Any thread."""
        self.done_ms[index] = SYSTEM_CLOCK.monotonic_ms()

    def fail(self) -> None:
        self.failed += 1

    def send_all(self, send: Callable[[int], None], wait: Callable[[float], None]) -> None:
        """Call ``send`` with each index when it is due; ``wait`` may take up to so many milliseconds."""
        for index in range(self.count):
            while (left_ms := self.wait_ms(index)) > 0:
                wait(left_ms)
            send(index)

    def latencies_ms(self) -> list[float]:
        """Of the acknowledged records, from their due moments."""
        return latencies_ms(self.start_ms, self._interval_ms, enumerate(self.done_ms))


def latencies_ms(start_ms: float, interval_ms: float, done: Iterable[tuple[int, float]]) -> list[float]:
    """``(index, when it was done)`` → how long after its due moment, in milliseconds."""
    return [at - (start_ms + index * interval_ms) for index, at in done if not math.isnan(at)]


def percentiles(latencies: Sequence[float]) -> dict[str, float]:
    """The percentiles by nearest rank; empty of nothing."""
    ordered = sorted(latencies)
    if not ordered:
        return {}
    return {name: ordered[-(-len(ordered) * share // 1000) - 1] for name, share in PERCENTILES.items()}
