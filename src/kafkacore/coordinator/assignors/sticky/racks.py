"""Finds members that are in the same rack as a replica of a partition (KIP-881)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from kafkacore.coordinator.assignors.abstract import Partitions
from kafkacore.coordinator.protocol import Subscription
from kafkacore.structs import TopicPartition


class RackInfo:
    """Racks of members and partitions.

    The object is empty, and therefore false, if racks make no difference. This is the case if no member's
    rack has a replica, or if every rack has replicas of all partitions.
    """

    def __init__(self, partitions: Partitions, subscriptions: Mapping[str, Subscription]) -> None:
        self.member_racks: dict[str, str] = {}
        self._partition_racks: dict[TopicPartition, frozenset[str]] = {}
        self._near: dict[TopicPartition, int] = {}
        said = {member: sub.rack_id for member, sub in subscriptions.items() if sub.rack_id}
        if not said:
            return
        racks = {
            TopicPartition(topic, entry.partition): entry.racks
            for topic, entries in partitions.items()
            for entry in entries
        }
        everywhere = frozenset().union(*racks.values())
        if everywhere.isdisjoint(said.values()) or all(found == everywhere for found in racks.values()):
            return
        self.member_racks = said
        self._partition_racks = racks
        members_in = Counter(said.values())
        self._near = {
            partition: sum(members_in[rack] for rack in found) for partition, found in racks.items()
        }

    def __bool__(self) -> bool:
        return bool(self.member_racks)

    def mismatch(self, member: str, partition: TopicPartition) -> bool:
        """Return whether the member is in a rack that has no replica of the partition."""
        rack = self.member_racks.get(member)
        return rack is not None and rack not in self._partition_racks[partition]

    def fewest_near_first(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions sorted by the number of members in the racks of their replicas.

        Partitions with few such members come first, because few members can read them from their own rack.
        """
        return sorted(partitions, key=self._near.__getitem__) if self else partitions

    def next_near(self, partition: TopicPartition, members: Sequence[str], start: int) -> int:
        """Return the index of the first member, from ``start`` on, in a rack of the partition; or -1."""
        racks = self._partition_racks[partition]
        for step in range(len(members)):
            index = (start + step) % len(members)
            if self.member_racks.get(members[index]) in racks:
                return index
        return -1
