"""Determines which member owned each partition before the assignment; a partition has at most one owner."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from kafkacore.coordinator.assignors.java_order import hash_map_order
from kafkacore.coordinator.assignors.sticky.user_data import MemberData
from kafkacore.coordinator.protocol import Subscription
from kafkacore.structs import TopicPartition


class Claims:
    """Partitions that the members owned, after contradicting claims have been resolved.

    If two members claim a partition, the member with the later generation owns it. If both claims have the
    same generation, neither member owns the partition, which is then ``contested``. Members are in the order
    of a Java ``HashMap``. This order matters if several members own too many partitions: the first members
    keep more. This is ``AbstractStickyAssignor.allSubscriptionsEqual``.
    """

    def __init__(
        self,
        subscriptions: Mapping[str, Subscription],
        existing: Collection[TopicPartition],
        member_data: Callable[[Subscription], MemberData],
    ) -> None:
        self.said = {member: member_data(sub) for member, sub in subscriptions.items()}
        if any(data.partitions for data in self.said.values()):
            self.said = {member: self.said[member] for member in hash_map_order(subscriptions)}
        self.latest_generation = max((data.generation for data in self.said.values()), default=-1)
        self.owned: dict[str, list[TopicPartition]] = {}
        self.contested: set[TopicPartition] = set()
        owners: dict[TopicPartition, str] = {}
        for member, (partitions, generation) in self.said.items():
            mine = self.owned[member] = []
            for partition in partitions:
                # Java checks only whether the topic exists, not the partition.
                if partition not in existing:
                    continue
                other = owners.get(partition)
                if other is None:
                    mine.append(partition)
                    owners[partition] = member
                else:
                    # Java takes the generation from the subscription here, not from the user data.
                    theirs = subscriptions[other].generation_id
                    self._contradiction(partition, member, generation, other, theirs)
                    if generation >= theirs:
                        owners[partition] = member

    def _contradiction(
        self, partition: TopicPartition, member: str, generation: int, other: str, other_generation: int
    ) -> None:
        if generation < other_generation:
            return
        if partition in self.owned[other]:
            self.owned[other].remove(partition)
        if generation == other_generation:
            self.contested.add(partition)
        else:
            self.owned[member].append(partition)

    def previous_owners(self) -> dict[TopicPartition, str]:
        """Return the last owner of each partition that was owned before the latest generation."""
        found: dict[TopicPartition, tuple[str, int]] = {}
        for member, (partitions, generation) in self.said.items():
            if generation >= self.latest_generation:
                continue
            for partition in partitions:
                if partition not in found or generation > found[partition][1]:
                    found[partition] = (member, generation)
        return {partition: member for partition, (member, _) in found.items()}
