"""Offsets in, ranges to read out: the arithmetic of a micro-batch. No I/O, no clock.

Offsets are always of the *next* record to read. The text form ``{"topic":{"0":n}}`` is the built-in
``kafka`` source's, so that a checkpoint of one is a checkpoint of the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafkacore.errors import KafkaConfigurationError
from kafkacore.structs import TopicPartition

Offsets = dict[TopicPartition, int]
#: As Spark stores them: topic → partition number as text → offset.
JsonOffsets = dict[str, dict[str, int]]


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


def to_json(offsets: Mapping[TopicPartition, int]) -> JsonOffsets:
    """Spark stores and compares the *text* of this, so the order of keys is fixed: topic, then partition
    number.
    """
    result: JsonOffsets = {}
    for topic_partition in sorted(offsets):
        result.setdefault(topic_partition.topic, {})[str(topic_partition.partition)] = offsets[
            topic_partition
        ]
    return result


def from_json(parsed: Any) -> Offsets:
    """The inverse of :func:`to_json`.

    Raises
    ------
    KafkaConfigurationError
        It is something else: the checkpoint is another source's.
    """
    try:
        offsets = {
            TopicPartition(topic, int(partition)): offset
            for topic, partitions in parsed.items()
            for partition, offset in partitions.items()
        }
        if all(type(offset) is int for offset in offsets.values()):
            return offsets
    except (AttributeError, TypeError, ValueError):
        pass
    raise KafkaConfigurationError(
        'the checkpoint has no Kafka offsets such as {"topic":{"0":23}}: it belongs to another source; give '
        "this query a checkpointLocation of its own"
    )


def backlog(start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]) -> int:
    """Offsets between two positions, partitions without a start counted from 0; what ran backwards counts
    against it (``KafkaMicroBatchStream.delayBatch`` in Spark).
    """
    return sum(offset - start.get(tp, 0) for tp, offset in latest.items())


def limit_to(
    start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int], max_offsets: int
) -> Offsets:
    """The end of a batch of about ``max_offsets``, shared over the partitions in proportion to their
    backlog. A partition that ``start`` does not have, or that has run backwards, ends where it is.

    Each partition's share is rounded down, but up where it would be less than one, so that none starves
    (``KafkaMicroBatchStream.rateLimit`` in Spark).
    """
    sizes = {tp: end - start[tp] for tp, end in latest.items() if end > start.get(tp, end)}
    total = sum(sizes.values())
    ends: Offsets = dict(latest)
    for tp, size in sizes.items():
        share = max_offsets * (size / total)
        ends[tp] = min(start[tp] + (math.ceil(share) if share < 1 else math.floor(share)), latest[tp])
    return ends


def split(
    ranges: list[OffsetRange], min_partitions: int | None, max_records: int | None
) -> list[OffsetRange]:
    """Cut large ranges so that none is above ``max_records`` and there are about ``min_partitions``.

    Without either, one Spark partition reads one topic partition. As ``KafkaOffsetRangeCalculator`` of Spark
    4.2: first by ``max_records``; then, if these are too few, those with more than their share, by their
    share of what the others leave.
    """
    pieces = [r for r in ranges if r.size > 0]
    if max_records is not None:
        pieces = [p for r in pieces for p in _cut(r, -(-r.size // max_records))]
    if min_partitions is None or min_partitions <= len(pieces):
        return pieces
    total = sum(p.size for p in pieces)
    small = [p for p in pieces if _share(p.size, total, min_partitions) == 1]
    unsplit = {p.topic_partition for p in small}
    left = total - sum(p.size for p in small)
    parts = max(min_partitions - len(small), 1)
    return [
        cut
        for piece in pieces
        for cut in _cut(piece, 1 if piece.topic_partition in unsplit else _share(piece.size, left, parts))
    ]


def _share(size: int, total: int, parts: int) -> int:
    # Java rounds halves up, Python to the even.
    return max(math.floor(size / total * parts + 0.5), 1)


def _cut(whole: OffsetRange, parts: int) -> list[OffsetRange]:
    """Each part gets what is left divided by the parts that are left: the last ones are the larger."""
    pieces = []
    start = whole.start
    for left in range(min(parts, whole.size), 0, -1):
        end = start + (whole.end - start) // left
        pieces.append(OffsetRange(whole.topic, whole.partition, start, end))
        start = end
    return pieces
