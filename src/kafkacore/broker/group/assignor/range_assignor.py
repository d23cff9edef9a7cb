"""The assignor ``range``: each member gets consecutive partitions of each topic.

Topics with the same number of partitions and the same members are assigned alike, so that the records of a
key in these topics come to the same member. The behaviour is that of Kafka's ``RangeAssignor``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from uuid import UUID

from kafkacore.broker.group.assignor.interfaces import Assignment, MemberSubscription, PartitionAssignorError


class RangeAssignor:
    """Implements :class:`~kafkacore.broker.group.assignor.interfaces.Assignor`."""

    name = "range"

    def assign(
        self,
        members: Mapping[str, MemberSubscription],
        partition_counts: Mapping[UUID, int],
        *,
        is_homogeneous: bool,
    ) -> dict[str, Assignment]:
        subscriber_counts = Counter(topic_id for one in members.values() for topic_id in one.topic_ids)
        if not subscriber_counts.keys() <= partition_counts.keys():
            raise PartitionAssignorError("Member is subscribed to a non-existent topic")
        ranges = {
            topic_id: _Ranges(partition_counts[topic_id], count)
            for topic_id, count in subscriber_counts.items()
        }
        assigned: dict[str, Assignment] = {}
        for member_id in sorted(members, key=lambda one: _order(one, members[one])):
            member = members[member_id]
            new: dict[UUID, tuple[int, ...]] = {}
            for topic_id in member.topic_ids:
                partitions = ranges[topic_id].next()
                if partitions:
                    new[topic_id] = tuple(partitions)
            assigned[member_id] = member.assigned if new == member.assigned else new
        return assigned


class _Ranges:
    """The ranges of one topic, from the first to the last. The first ones have one partition more."""

    __slots__ = ("_count", "_extra", "_quota", "_start")

    def __init__(self, partition_count: int, member_count: int) -> None:
        self._count = partition_count
        self._quota, self._extra = divmod(partition_count, member_count)
        self._start = 0

    def next(self) -> range:
        start, size = self._start, self._quota
        if self._extra:
            self._extra -= 1
            size += 1
        self._start = start + size
        return range(start, start + size)


def _order(member_id: str, member: MemberSubscription) -> tuple[bool, bytes]:
    """Return the sort key of a member: static members by instance id, then the others by member id."""
    name = member_id if member.instance_id is None else member.instance_id
    # Java compares strings by UTF-16 code units.
    return member.instance_id is None, name.encode("utf-16-be", "surrogatepass")
