"""Offsets in, ranges to read out: the arithmetic of a micro-batch. No I/O, no clock.

Offsets are always of the *next* record to read. The text form ``{"topic":{"0":n}}`` is the built-in
``kafka`` source's, so that a checkpoint of one is a checkpoint of the other.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

from kafkacore.structs import TopicPartition

Offsets = dict[TopicPartition, int]


@dataclass(frozen=True)
class OffsetRange:
    """Records of one partition from ``start`` up to, not including, ``end``."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def size(self) -> int:
        """Upper bound of the records in it: compaction and transaction markers leave gaps."""
        return self.end - self.start


def to_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Spark stores and compares the *text* of this, so the order of keys is fixed: topic, then partition
    number.
    """
    result: dict[str, dict[str, int]] = {}
    for topic_partition in sorted(offsets):
        result.setdefault(topic_partition.topic, {})[str(topic_partition.partition)] = offsets[
            topic_partition
        ]
    return result


def from_json(parsed: Mapping[str, Mapping[str, int]]) -> Offsets:
    """The inverse of :func:`to_json`."""
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partitions in parsed.items()
        for partition, offset in partitions.items()
    }


def backlog(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> int:
    """Offsets between two positions, partitions without a start counted from 0."""
    return sum(max(offset - start.get(tp, 0), 0) for tp, offset in end.items())


def limit_to(
    start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int], max_offsets: int
) -> Offsets:
    """The end of a batch of about ``max_offsets``, shared over the partitions in proportion to their
    backlog.

    Each partition's share is rounded down, but up where it would be less than one, so that none starves
    (``KafkaOffsetReader.rateLimit`` in Spark).
    """
    total = backlog(start, latest)
    if total <= max_offsets:
        return dict(latest)
    ends: Offsets = {}
    for tp, end in latest.items():
        begin = min(start.get(tp, 0), end)
        share = max_offsets * ((end - begin) / total)
        ends[tp] = min(begin + (math.ceil(share) if share < 1 else math.floor(share)), end)
    return ends


def split(
    ranges: list[OffsetRange], min_partitions: int | None, max_records: int | None
) -> list[OffsetRange]:
    """Cut large ranges so that there are at least ``min_partitions`` (a hint) and none above
    ``max_records``.

    Without either, one Spark partition reads one topic partition.
    """
    pieces = [r for r in ranges if r.size > 0]
    if max_records is not None:
        pieces = [p for r in pieces for p in _cut(r, math.ceil(r.size / max_records))]
    if min_partitions is None or len(pieces) >= min_partitions or not pieces:
        return pieces
    total = sum(r.size for r in pieces)
    return [p for r in pieces for p in _cut(r, min(max(round(r.size / total * min_partitions), 1), r.size))]


def _cut(whole: OffsetRange, parts: int) -> list[OffsetRange]:
    edges = [whole.start + whole.size * i // parts for i in range(parts + 1)]
    return [OffsetRange(whole.topic, whole.partition, a, b) for a, b in itertools.pairwise(edges) if b > a]
