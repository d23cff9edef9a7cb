"""The uniform assignment of a group whose members all subscribe to the same topics.

The behaviour is that of Kafka's ``UniformHomogeneousAssignmentBuilder``. Where Kafka follows the order of a
hash table, members come in the order of the group, and topics in the order of their ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from kafkacore.broker.group.assignor.interfaces import Assignment, MemberSubscription


def assign_homogeneous(
    members: Mapping[str, MemberSubscription], partition_counts: Mapping[UUID, int]
) -> dict[str, Assignment]:
    """Return the new target assignment of each member.

    A member first keeps up to its quota of the partitions that it has. Then the others are distributed.
    """
    quota, extra = divmod(sum(partition_counts.values()), len(members))
    kept: dict[str, Assignment] = {}
    unfilled: list[tuple[str, int]] = []
    unassigned = _unassigned(members, partition_counts)
    for left, (member_id, member) in zip(range(len(members), 0, -1), members.items(), strict=True):
        room = quota + (extra > 0)
        kept[member_id], room = _kept(member.assigned, partition_counts, room, unassigned)
        has_extra = extra > 0
        if room and has_extra and left > extra:
            # Later members that have more partitions can keep the extra one.
            room -= 1
            has_extra = False
        extra -= has_extra
        if room:
            unfilled.append((member_id, room))
    start = 0
    for member_id, room in unfilled:
        given = unassigned[start : start + room]
        start += room
        if given:
            kept[member_id] = _with(kept[member_id], given)
    return kept


def _unassigned(
    members: Mapping[str, MemberSubscription], partition_counts: Mapping[UUID, int]
) -> list[tuple[UUID, int]]:
    """Return the partitions that no member has."""
    assigned: dict[UUID, set[int]] = {topic_id: set() for topic_id in partition_counts}
    for member in members.values():
        for topic_id, partitions in member.assigned.items():
            if topic_id in assigned:
                assigned[topic_id].update(partitions)
    return [
        (topic_id, partition)
        for topic_id in sorted(partition_counts)
        for partition in range(partition_counts[topic_id])
        if partition not in assigned[topic_id]
    ]


def _kept(
    assigned: Assignment,
    partition_counts: Mapping[UUID, int],
    room: int,
    unassigned: list[tuple[UUID, int]],
) -> tuple[Assignment, int]:
    """Return what a member keeps, and how many partitions it can take besides.

    The partitions that it gives up are added to ``unassigned``.
    """
    kept: dict[UUID, tuple[int, ...]] = {}
    has_changed = False
    for topic_id, partitions in assigned.items():
        if topic_id not in partition_counts:
            has_changed = True
            continue
        if len(partitions) <= room:
            kept[topic_id] = partitions
            room -= len(partitions)
            continue
        has_changed = True
        if room:
            kept[topic_id] = partitions[:room]
        unassigned.extend((topic_id, partition) for partition in partitions[room:])
        room = 0
    return kept if has_changed else assigned, room


def _with(assigned: Assignment, given: list[tuple[UUID, int]]) -> Assignment:
    both: dict[UUID, list[int]] = {topic_id: list(partitions) for topic_id, partitions in assigned.items()}
    for topic_id, partition in given:
        both.setdefault(topic_id, []).append(partition)
    return {topic_id: tuple(sorted(partitions)) for topic_id, partitions in both.items()}
