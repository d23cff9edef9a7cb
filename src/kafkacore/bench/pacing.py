"""Send records on a fixed schedule, and measure latency from the scheduled times.

The schedule does not depend on the progress of the client. So the latency includes the time that a record
waits because the client is behind. If latency were measured from the actual send, this wait would be missing
(coordinated omission).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Sequence

from kafkacore.clock import SYSTEM_CLOCK

#: Percentiles in thousandths, so that ranks can be computed with integers.
PERCENTILES = {"p50": 500, "p99": 990, "p99.9": 999, "max": 1000}


class Pacer:
    """Schedule of ``count`` records at ``rate`` records per second, and the time when each was acknowledged.

    Times are in ms of the monotonic clock, which all processes of a machine share.
    """

    def __init__(self, rate: float, count: int) -> None:
        self.count = count
        self.failed = 0
        self.start_ms = 0.0
        self._interval_ms = 1000.0 / rate
        self.done_ms = array("d", [math.nan]) * count

    def begin(self) -> None:
        """Start the schedule: the first record is due now."""
        self.start_ms = SYSTEM_CLOCK.monotonic_ms()

    def wait_ms(self, index: int) -> float:
        """Return the time in ms until record ``index`` is due; 0 or less if it is due."""
        return self.start_ms + index * self._interval_ms - SYSTEM_CLOCK.monotonic_ms()

    def done(self, index: int) -> None:
        """Record that record ``index`` was acknowledged. Any thread may call this."""
        self.done_ms[index] = SYSTEM_CLOCK.monotonic_ms()

    def fail(self) -> None:
        self.failed += 1

    def send_all(self, send: Callable[[int], None], wait: Callable[[float], None]) -> None:
        """Call ``send`` with each index when it is due.

        ``wait`` is called with the remaining time in ms and may return earlier.
        """
        for index in range(self.count):
            while (left_ms := self.wait_ms(index)) > 0:
                wait(left_ms)
            send(index)

    def latencies_ms(self) -> list[float]:
        """Return the latencies of the acknowledged records, measured from their scheduled times."""
        return latencies_ms(self.start_ms, self._interval_ms, enumerate(self.done_ms))


def latencies_ms(start_ms: float, interval_ms: float, done: Iterable[tuple[int, float]]) -> list[float]:
    """Return the latencies in ms. ``done`` has the index of each record and the time it was acknowledged."""
    return [at - (start_ms + index * interval_ms) for index, at in done if not math.isnan(at)]


def percentiles(latencies: Sequence[float]) -> dict[str, float]:
    """Return the percentiles by the nearest-rank method; an empty dict without latencies."""
    ordered = sorted(latencies)
    if not ordered:
        return {}
    return {name: ordered[-(-len(ordered) * share // 1000) - 1] for name, share in PERCENTILES.items()}
