"""Which partitions have moved from whom to whom in one rebalance.

In: movements. Out: which partition to move instead, so that no two members exchange partitions of a topic.
Does not know: balance. (Kafka's ``AbstractStickyAssignor.PartitionMovements``.)
"""

from __future__ import annotations

from kafkacore.coordinator.assignors.java_order import PartitionHashSet
from kafkacore.structs import TopicPartition

#: (topic, from whom, to whom); members are numbers.
_Way = tuple[str, int, int]


class PartitionMovements:
    """Movements so far; a partition that came back has not moved."""

    def __init__(self) -> None:
        self._way_of: dict[TopicPartition, _Way] = {}
        self._on_way: dict[_Way, PartitionHashSet] = {}

    def move(self, partition: TopicPartition, old: int, new: int) -> None:
        """Note that ``partition`` goes from ``old`` to ``new``."""
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
        """A partition that went the other way round, if there is one: taking it back serves as well."""
        if (way := self._way_of.get(partition)) is not None:
            old = way[1]
        came = self._on_way.get((partition.topic, new, old))
        return came.first() if came else partition
