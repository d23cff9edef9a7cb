"""Removes members from consumer groups when they leave or miss a deadline.

The behaviour is that of ``consumerGroupFenceMembers`` in Kafka's ``GroupMetadataManager``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafkacore.broker.coordinator.interfaces import CoordinatorRecord
from kafkacore.broker.group import records
from kafkacore.broker.group.consumer.consumer_group import ConsumerGroup, GroupChange
from kafkacore.broker.group.consumer.consumer_member import ConsumerGroupMember

if TYPE_CHECKING:
    from kafkacore.broker.group.consumer.target_assignments import TargetAssignments


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Return the records that remove a member, in the order that Kafka requires."""
    return [
        records.current_assignment_tombstone(group_id, member_id),
        records.target_assignment_tombstone(group_id, member_id),
        records.member_metadata_tombstone(group_id, member_id),
    ]


def removal_of_members(
    group: ConsumerGroup, members: Sequence[ConsumerGroupMember], assignments: TargetAssignments
) -> list[CoordinatorRecord]:
    """Return the records that remove members and raise the group epoch.

    The new assignment is computed during the next heartbeat of another member.
    """
    batch = [one for member in members for one in member_tombstones(group.group_id, member.member_id)]
    leaving = Counter(member.subscribed_topic_regex for member in members if member.subscribed_topic_regex)
    for regex, count in leaving.items():
        if group.regexes[regex] == count and regex in group.resolved:
            batch.append(records.regular_expression_tombstone(group.group_id, regex))
    assignments.raise_epoch(group, GroupChange(removed=members), batch, must_rise=True)
    return batch


def removal_of_group(
    group: ConsumerGroup, joining: ConsumerGroupMember | None = None
) -> list[CoordinatorRecord]:
    """Return the records that remove a group with all its members, in the order that Kafka requires.

    ``joining`` is a static member that replaces another member in earlier records of the same batch.
    """
    group_id = group.group_id
    replaced = None if joining is None else group.static_member(joining.instance_id)
    member_ids = [
        joining.member_id if joining is not None and member is replaced else member.member_id
        for member in group
    ]
    return [
        *(records.current_assignment_tombstone(group_id, one) for one in member_ids),
        *(records.target_assignment_tombstone(group_id, one) for one in member_ids),
        records.target_assignment_metadata_tombstone(group_id),
        *(records.member_metadata_tombstone(group_id, one) for one in member_ids),
        *(records.regular_expression_tombstone(group_id, regex) for regex in group.resolved),
        records.partition_metadata_tombstone(group_id),
        records.consumer_group_metadata_tombstone(group_id),
    ]
