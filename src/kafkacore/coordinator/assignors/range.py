"""The range assignor: assigns a range of consecutive partitions of each topic to each member."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kafkacore.coordinator.assignors.abstract import (
    PartitionAssignor,
    PartitionRacks,
    Partitions,
    members_in_order,
)
from kafkacore.coordinator.protocol import Assignment, Subscription
from kafkacore.structs import TopicPartition


class RangePartitionAssignor(PartitionAssignor):
    """Assigns each topic separately, in ranges of equal size; the first members may get one more partition.

    If members and replicas have racks, and not every rack has a replica of every partition, partitions are
    first assigned to members in the same rack (KIP-881). Topics with the same members and the same number of
    partitions stay co-partitioned: one member gets the partitions with the same number. For every group, the
    result is the same as that of Java's ``RangeAssignor``.
    """

    name = "range"
    java_name = "RangeAssignor"

    def assign(
        self, partitions: Partitions, subscriptions: Mapping[str, Subscription]
    ) -> dict[str, Assignment]:
        """Assign the partitions; see :meth:`PartitionAssignor.assign`. All leaders get the same result."""
        racks = {member: sub.rack_id for member, sub in subscriptions.items() if sub.rack_id}
        subscribers: dict[str, list[str]] = {}
        for member in members_in_order(subscriptions):
            for topic in dict.fromkeys(subscriptions[member].topics):
                subscribers.setdefault(topic, []).append(member)
        shares = [
            _TopicShares(topic, found, subscribers[topic], racks)
            for topic in sorted(subscribers)
            if (found := partitions.get(topic))
        ]
        given: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
        if any(share.needs_racks for share in shares):
            _assign_by_racks(shares, given)
            for share in shares:
                share.give_ranges(given, by_rack=False)
            return {member: Assignment(sorted(mine)) for member, mine in given.items()}
        for share in shares:
            share.give_ranges(given, by_rack=False)
        return {member: Assignment(mine) for member, mine in given.items()}


class _TopicShares:
    """The unassigned partitions of one topic, and how many of them each member may still get."""

    def __init__(
        self, topic: str, partitions: Sequence[PartitionRacks], members: list[str], racks: Mapping[str, str]
    ) -> None:
        self.topic = topic
        self.members = members
        self.left = dict.fromkeys(sorted(entry.partition for entry in partitions))
        self.each, self._with_extra = divmod(len(self.left), len(members))
        self._had = dict.fromkeys(members, 0)
        self.member_racks = {member: racks.get(member) for member in members}
        said = {rack for rack in self.member_racks.values() if rack}
        self.partition_racks = {entry.partition: entry.racks for entry in partitions} if said else {}
        everywhere = frozenset().union(*self.partition_racks.values())
        self.needs_racks = not said.isdisjoint(everywhere) and any(
            found != everywhere for found in self.partition_racks.values()
        )

    def racks_match(self, member: str, partition: int) -> bool:
        rack = self.member_racks[member]
        return rack is None or rack in self.partition_racks.get(partition, ())

    def remaining(self, member: str) -> int:
        """Return how many more partitions of this topic the member may get."""
        return max(0, self.each + (self._with_extra > 0) - self._had[member])

    def give(self, member: str, numbers: Iterable[int], given: dict[str, list[TopicPartition]]) -> None:
        for number in numbers:
            del self.left[number]
            given[member].append(TopicPartition(self.topic, number))
            self._had[member] += 1
        if self._had[member] > self.each:
            self._with_extra -= 1

    def give_ranges(self, given: dict[str, list[TopicPartition]], by_rack: bool) -> None:
        for member in self.members:
            limit = self.remaining(member)
            taken: list[int] = []
            for number in self.left:
                if len(taken) == limit:
                    break
                if not by_rack or self.racks_match(member, number):
                    taken.append(number)
            if taken:
                self.give(member, taken, given)


def _assign_by_racks(shares: list[_TopicShares], given: dict[str, list[TopicPartition]]) -> None:
    alike: dict[tuple[tuple[tuple[str, str | None], ...], int], list[_TopicShares]] = {}
    for share in shares:
        key = (tuple(share.member_racks.items()), len(share.partition_racks))
        alike.setdefault(key, []).append(share)
    for (_, partition_count), topics in alike.items():
        if len(topics) > 1:
            _assign_copartitioned(topics, partition_count, given)
        elif topics[0].needs_racks:
            topics[0].give_ranges(given, by_rack=True)


def _assign_copartitioned(
    topics: list[_TopicShares], partition_count: int, given: dict[str, list[TopicPartition]]
) -> None:
    """Assign the partitions with the same number to one member whose rack has all of them, if one exists."""
    members = dict.fromkeys(topics[0].members)
    for number in range(partition_count):
        # Partition numbers may have gaps while the metadata change. Skip a number that a topic does not have.
        if not members or any(number not in topic.left for topic in topics):
            continue
        for member in members:
            if all(topic.racks_match(member, number) and topic.remaining(member) for topic in topics):
                for topic in topics:
                    topic.give(member, (number,), given)
                if not any(topic.remaining(member) for topic in topics):
                    del members[member]
                break
