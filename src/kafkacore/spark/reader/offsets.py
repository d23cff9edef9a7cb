"""Compute the offset ranges of a micro-batch and its tasks.

An offset in this module is always the offset of the *next* record to read. The text form
``{"topic":{"0":n}}`` is the same as in Spark's built-in ``kafka`` source, so that either source can read the
checkpoint of the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafkacore.errors import KafkaConfigurationError
from kafkacore.structs import TopicPartition

Offsets = dict[TopicPartition, int]
#: Offsets as Spark stores them: topic → partition number as text → offset.
JsonOffsets = dict[str, dict[str, int]]


@dataclass(frozen=True)
class OffsetRange:
    """Range of offsets of one partition. ``end`` is exclusive."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def size(self) -> int:
        """Number of offsets. It may exceed the number of records: compaction and markers leave gaps."""
        return self.end - self.start


def to_json(offsets: Mapping[TopicPartition, int]) -> JsonOffsets:
    """Return offsets in the form that Spark stores.

    Spark compares the *text*, so the keys are always sorted by topic and partition number.
    """
    result: JsonOffsets = {}
    for topic_partition in sorted(offsets):
        result.setdefault(topic_partition.topic, {})[str(topic_partition.partition)] = offsets[
            topic_partition
        ]
    return result


def from_json(parsed: Any) -> Offsets:
    """Parse offsets in the form of :func:`to_json`.

    Raises
    ------
    KafkaConfigurationError
        The value has another form, so the checkpoint belongs to another source.
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
        'the checkpoint does not contain Kafka offsets such as {"topic":{"0":23}}, so it belongs to another '
        "source: give this query a checkpointLocation of its own"
    )


def backlog(start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]) -> int:
    """Return the number of offsets between two positions.

    For a partition without a start, the start is 0. A partition whose end is before its start adds a negative
    number, as in ``KafkaMicroBatchStream.delayBatch`` of Spark.
    """
    return sum(offset - start.get(tp, 0) for tp, offset in latest.items())


def limit_to(
    start: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int], max_offsets: int
) -> Offsets:
    """Return the end offsets of a batch of about ``max_offsets`` offsets.

    The partitions share ``max_offsets`` in proportion to their backlog. Each share is rounded down, but a
    share below 1 is rounded up so that no partition starves (``KafkaMicroBatchStream.rateLimit`` in Spark).
    A partition that is not in ``start``, or that ends before its start, gets its latest offset.
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
    """Split ranges into about ``min_partitions`` ranges of at most ``max_records`` offsets.

    With neither limit, one Spark partition reads one topic partition. The algorithm is that of
    ``KafkaOffsetRangeCalculator`` in Spark 4.2. Ranges are first split by ``max_records``. If there are still
    too few ranges, each range that is larger than its share is split in proportion to its size.
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
    # Java rounds .5 up, whereas Python's round() rounds .5 to the nearest even number.
    return max(math.floor(size / total * parts + 0.5), 1)


def _cut(whole: OffsetRange, parts: int) -> list[OffsetRange]:
    """Split a range into parts of nearly equal size. As in Spark, the last parts are the larger ones."""
    pieces = []
    start = whole.start
    for left in range(min(parts, whole.size), 0, -1):
        end = start + (whole.end - start) // left
        pieces.append(OffsetRange(whole.topic, whole.partition, start, end))
        start = end
    return pieces
