"""Movements of partitions between members in one rebalance.

If another partition of the topic has already moved in the opposite direction, that partition is moved back
instead. Otherwise two members would exchange partitions of a topic. This is Kafka's
``AbstractStickyAssignor.PartitionMovements``.
"""

from __future__ import annotations

from kafkacore.coordinator.assignors.java_order import PartitionHashSet
from kafkacore.structs import TopicPartition

#: Topic, number of the old owner, and number of the new owner.
_Way = tuple[str, int, int]


class PartitionMovements:
    """All movements so far. A partition that has moved back to its first owner counts as not moved."""

    def __init__(self) -> None:
        self._way_of: dict[TopicPartition, _Way] = {}
        self._on_way: dict[_Way, PartitionHashSet] = {}

    def move(self, partition: TopicPartition, old: int, new: int) -> None:
        """Record that ``partition`` moves from ``old`` to ``new``."""
        source = old
        if (way := self._way_of.pop(partition, None)) is not None:
            source = way[1]
            self._on_way[way].remove(partition)
            if not self._on_way[way]:
                del self._on_way[way]
        if source != new:
            way = (partition.topic, source, new)
            self._way_of[partition] = way
            self._on_way.setdefault(way, PartitionHashSet()).add(partition)

    def instead_of(self, partition: TopicPartition, old: int, new: int) -> TopicPartition:
        """Return the partition to move: one that has moved from ``new`` to ``old``, or else ``partition``."""
        if (way := self._way_of.get(partition)) is not None:
            old = way[1]
        came = self._on_way.get((partition.topic, new, old))
        return came.first() if came else partition
