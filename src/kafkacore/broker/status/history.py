"""Samples of a broker's totals over the last ten minutes, and current rates.

Samples are also taken while no status page is open, so that a newly opened page shows ten minutes at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kafkacore.broker.status.snapshot import Rates
from kafkacore.wire import Uuid

#: Minimum interval between two samples.
INTERVAL_MS: Final = 2_000.0
#: The interval is at least this multiple of the time that a sample takes.
COST: Final = 500.0
#: Maximum number of stored samples. At the minimum interval, they cover ten minutes.
MAX_SAMPLES: Final = 300
#: Minimum time span over which a rate is computed. Otherwise, one request within a millisecond would be shown
#: as a thousand per second.
MIN_SPAN_MS: Final = 1_000.0

#: Names of the totals, in the order of :attr:`Counts.totals`.
TOTALS: Final = ("bytes_in", "messages_in", "bytes_out", "requests")


class Counts(NamedTuple):
    """Counts of a broker since its start.

    Attributes
    ----------
    totals:
        The values of :data:`TOTALS`, which never decrease.
    topics:
        Bytes in, records in and bytes out, by topic id.
    apis:
        Number of requests by API name.
    """

    at_ms: float
    totals: Sequence[int]
    topics: Mapping[Uuid, Sequence[int]]
    apis: Mapping[str, int]


class History:
    """Ring buffer of samples. The lock of the object that owns the history protects it.

    Parameters
    ----------
    first:
        The counts at the broker's start.
    """

    def __init__(self, first: Counts) -> None:
        self._samples: deque[tuple[float, Sequence[int]]] = deque(maxlen=MAX_SAMPLES + 1)
        #: The last two samples with their counts by topic and API, from which rates are computed.
        self._details: deque[Counts] = deque(maxlen=2)
        self.due_ms = 0.0
        self.add(first, 0.0)

    def add(self, counts: Counts, took_ms: float) -> None:
        """Add a sample that took ``took_ms`` milliseconds."""
        self._samples.append((counts.at_ms, counts.totals))
        self._details.append(counts)
        self.due_ms = counts.at_ms + max(INTERVAL_MS, COST * took_ms)

    def base(self, now_ms: float) -> Counts:
        """Return the earlier counts from which rates at ``now_ms`` are computed."""
        newest = self._details[-1]
        return newest if now_ms - newest.at_ms >= MIN_SPAN_MS else self._details[0]

    def shown(self) -> dict[str, list[float]]:
        """Return the end of each interval, and the rate of each total in it."""
        pairs = list(zip(self._samples, list(self._samples)[1:], strict=False))
        shown: dict[str, list[float]] = {"at_ms": [end for _, (end, _) in pairs]}
        for place, name in enumerate(TOTALS):
            shown[name] = [
                rate(after[place], before[place], end - begin) for (begin, before), (end, after) in pairs
            ]
        return shown


def rate(now: int, before: int, span_ms: float) -> float:
    """Return the increase per second, rounded to tenths."""
    return round(max(now - before, 0) * 1000 / span_ms, 1) if span_ms > 0 else 0.0


def rates(names: Sequence[str], now: Sequence[int], before: Sequence[int], span_ms: float) -> Rates:
    """Return the increase per second of several counts by name."""
    return {name: rate(a, b, span_ms) for name, a, b in zip(names, now, before, strict=True)}
