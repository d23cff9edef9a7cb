"""Estimates how many bytes to fetch from a partition that is read only up to an end offset.

A broker fills a response up to the requested size, even if few of the bytes are before the end offset.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from kafkacore.consumer.completed_fetch import CompletedFetch

#: Safety factor, because the next records may be larger than the previous ones.
MARGIN = 1.1
#: Number of batches to add to the estimate, one at each end: the first batch may start before the position,
#: and the last batch may end after the end offset.
CUT_BATCHES = 2


class _Density(NamedTuple):
    """Average bytes per offset and per batch in fetch responses."""

    of_offset: float
    of_batch: float


class FetchSizes:
    """Bytes per offset and per batch, for each topic that is read up to an end offset.

    Parameters
    ----------
    most:
        ``max_partition_fetch_bytes``: the maximum size, which is also requested while no average is known.
    least:
        ``fetch_min_bytes``: the minimum size. With a smaller size a broker could never collect
        ``fetch_min_bytes`` and would wait for ``fetch_max_wait_ms``.
    """

    def __init__(self, most: int, least: int = 1) -> None:
        self._most = most
        self._least = least
        self._known: dict[str, _Density | None] = {}

    def wanted(self, topic: str, offset: int, end_offset: int | None) -> int:
        """Return the number of bytes to request for the records from ``offset`` up to ``end_offset``."""
        if end_offset is None:
            return self._most
        density = self._known.setdefault(topic, None)
        if density is None:
            return self._most
        needed = (end_offset - offset) * density.of_offset * MARGIN + CUT_BATCHES * density.of_batch
        return min(max(math.ceil(needed), self._least), self._most)

    def add_response(self, completed: CompletedFetch) -> None:
        """Update the averages of a topic with a response that has not been read yet."""
        topic = completed.partition.topic
        if topic not in self._known:
            return
        size, offsets, batches = completed.extent()
        if not batches:
            return
        found, known = _Density(size / offsets, size / batches), self._known[topic]
        if known is not None:
            # Increase the averages at once but decrease them slowly: a size that is too large costs less than
            # another request.
            found = _Density(
                max(found.of_offset, (found.of_offset + known.of_offset) / 2),
                max(found.of_batch, (found.of_batch + known.of_batch) / 2),
            )
        self._known[topic] = found
