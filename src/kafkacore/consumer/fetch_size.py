"""How many bytes to ask for where reading ends at an offset: answers in, sizes out.

A broker fills an answer up to the size that was asked for, however little of it lies before that offset. Does
not know: positions, requests, sockets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kafkacore.consumer.completed_fetch import CompletedFetch

#: Records may be a little larger than those before.
MARGIN = 1.1
#: A batch is cut by neither end: the first may begin before what is asked for, the last may end behind it.
CUT_BATCHES = 2


@dataclass(frozen=True, slots=True)
class _Density:
    """Bytes on the way, of an offset and of a batch."""

    of_offset: float
    of_batch: float


class FetchSizes:
    """What the answers were like, by topic, for topics that were read up to an offset.

    Parameters
    ----------
    most:
        ``max_partition_fetch_bytes``: asked for where nothing is known, and never exceeded.
    least:
        ``fetch_min_bytes``: a broker that may not send as many waits as if it did not have them.
    """

    def __init__(self, most: int, least: int = 1) -> None:
        self._most = most
        self._least = least
        self._known: dict[str, _Density | None] = {}

    def wanted(self, topic: str, offset: int, end_offset: int | None) -> int:
        """Bytes that probably hold what lies from ``offset`` up to ``end_offset``."""
        if end_offset is None:
            return self._most
        density = self._known.setdefault(topic, None)
        if density is None:
            return self._most
        needed = (end_offset - offset) * density.of_offset * MARGIN + CUT_BATCHES * density.of_batch
        return min(max(math.ceil(needed), self._least), self._most)

    def learn(self, completed: CompletedFetch) -> None:
        """An answer has come; it has not been read yet."""
        topic = completed.partition.topic
        if topic not in self._known:
            return
        size, offsets, batches = completed.extent()
        if not batches:
            return
        found, known = _Density(size / offsets, size / batches), self._known[topic]
        if known is not None:
            # Up at once, down by halves: what was asked for too much costs less than one more request.
            found = _Density(
                max(found.of_offset, (found.of_offset + known.of_offset) / 2),
                max(found.of_batch, (found.of_batch + known.of_batch) / 2),
            )
        self._known[topic] = found
