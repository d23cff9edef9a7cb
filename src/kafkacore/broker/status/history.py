"""The last minutes of a broker: its totals at regular times, and rates since a moment ago.

Samples are taken even while no page is open, so that a page shows ten minutes as soon as it is opened.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from kafkacore.broker.status.snapshot import Rates

#: Time between two samples; more where a sample takes long.
INTERVAL_MS: Final = 2_000.0
#: The longest part of the time that sampling takes: one in so many.
COST: Final = 200.0
#: Ten minutes.
MAX_SAMPLES: Final = 300
#: Rates are of at least this time, so that one request is not shown as a thousand in a second.
MIN_SPAN_MS: Final = 1_000.0

#: What is counted of the broker as a whole, in the order of :attr:`Counts.totals`.
TOTALS: Final = ("bytes_in", "messages_in", "bytes_out", "requests")


class Counts(NamedTuple):
    """What a broker has counted since its start.

    Attributes
    ----------
    totals:
        Of :data:`TOTALS`; they never shrink.
    topics:
        Topic's id → its bytes in, records in and bytes out.
    apis:
        Name → its requests.
    """

    at_ms: float
    totals: Sequence[int]
    topics: Mapping[UUID, Sequence[int]]
    apis: Mapping[str, int]


class History:
    """A ring of samples. Used under the lock of its owner.

    Parameters
    ----------
    first:
        The counts at the broker's start.
    """

    def __init__(self, first: Counts) -> None:
        self._samples: deque[tuple[float, Sequence[int]]] = deque(maxlen=MAX_SAMPLES + 1)
        #: The last samples with their topics and APIs, as far back as rates need them.
        self._details: deque[Counts] = deque(maxlen=2)
        self.due_ms = 0.0
        self.add(first, 0.0)

    def add(self, counts: Counts, took_ms: float) -> None:
        """Keep a sample; ``took_ms`` is what it cost to take."""
        self._samples.append((counts.at_ms, counts.totals))
        self._details.append(counts)
        self.due_ms = counts.at_ms + max(INTERVAL_MS, COST * took_ms)

    def base(self, now_ms: float) -> Counts:
        """Return the counts that the rates of a look at ``now_ms`` are relative to."""
        newest = self._details[-1]
        return newest if now_ms - newest.at_ms >= MIN_SPAN_MS else self._details[0]

    def shown(self) -> dict[str, list[float]]:
        """Return when each interval ended, and each total's rate per second in it."""
        pairs = list(zip(self._samples, list(self._samples)[1:], strict=False))
        shown: dict[str, list[float]] = {"at_ms": [end for _, (end, _) in pairs]}
        for place, name in enumerate(TOTALS):
            shown[name] = [
                rate(after[place], before[place], end - begin) for (begin, before), (end, after) in pairs
            ]
        return shown


def rate(now: int, before: int, span_ms: float) -> float:
    """Return the growth per second, in tenths."""
    return round(max(now - before, 0) * 1000 / span_ms, 1) if span_ms > 0 else 0.0


def rates(names: Sequence[str], now: Sequence[int], before: Sequence[int], span_ms: float) -> Rates:
    """Return the growth per second of several counts by name."""
    return {name: rate(a, b, span_ms) for name, a, b in zip(names, now, before, strict=True)}
