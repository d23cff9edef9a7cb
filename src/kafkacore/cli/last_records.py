"""The last records of partitions, for ``kafkacore consume --last``."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafkacore.structs import TopicPartition

if TYPE_CHECKING:
    from kafkacore import ConsumerRecord, KafkaConsumer

#: Factor by which the function increases the range of offsets if the range contains too few records.
STEP_FACTOR = 4


def last_records(
    consumer: KafkaConsumer, partitions: Iterable[TopicPartition], count: int, poll_ms: float
) -> list[ConsumerRecord]:
    """Return the last records of all partitions together, and leave the consumer at the end offsets.

    Records of one partition keep their order; records of several partitions are merged by timestamp. In
    compacted topics and after transactions, some offsets have no record. In that case the function also reads
    earlier offsets.

    Parameters
    ----------
    consumer:
        Consumer to which the partitions are assigned.
    count:
        Maximum number of records, at least 1.
    poll_ms:
        Maximum wait of each poll in milliseconds.
    """
    assigned = list(partitions)
    first, ends = consumer.beginning_offsets(assigned), consumer.end_offsets(assigned)
    kept: dict[TopicPartition, deque[ConsumerRecord]] = {}
    distance, left = count, [tp for tp in assigned if first[tp] < ends[tp]]
    consumer.pause(*assigned)
    while left:
        starts = {tp: max(first[tp], ends[tp] - distance) for tp in left}
        for tp, start in starts.items():
            kept[tp] = deque(maxlen=count)
            consumer.seek(tp, start)
        _read(consumer, {tp: ends[tp] for tp in left}, kept, poll_ms)
        left = [tp for tp in left if len(kept[tp]) < count and starts[tp] > first[tp]]
        distance *= STEP_FACTOR
    for tp in assigned:
        consumer.seek(tp, ends[tp])
    consumer.resume(*assigned)
    return list(heapq.merge(*kept.values(), key=lambda record: record.timestamp))[-count:]


def _read(
    consumer: KafkaConsumer,
    ends: dict[TopicPartition, int],
    kept: dict[TopicPartition, deque[ConsumerRecord]],
    poll_ms: float,
) -> None:
    """Read each partition up to its end offset, and pause it there."""
    consumer.resume(*ends)
    left = set(ends)
    while left:
        for tp, records in consumer.poll(timeout_ms=poll_ms).items():
            kept[tp].extend(record for record in records if record.offset < ends[tp])
        reached = {tp for tp in left if consumer.position(tp) >= ends[tp]}
        consumer.pause(*reached)
        left -= reached
