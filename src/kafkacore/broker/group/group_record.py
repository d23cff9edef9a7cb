"""Converts a group to its record in ``__consumer_offsets`` and back.

The behaviour is that of Kafka's ``GroupCoordinatorRecordHelpers.newGroupMetadataRecord`` and
``GroupMetadataManager.replay``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafkacore.broker.coordinator.interfaces import CoordinatorRecord
from kafkacore.broker.group.classic_group import ClassicGroup, GroupState
from kafkacore.broker.group.member import ClassicGroupMember, MemberProtocol
from kafkacore.broker.group.records import group_metadata
from kafkacore.errors import MalformedMessageError
from kafkacore.protocol.generated.group_records import GroupMetadataValue
from kafkacore.structs import printable

_Member = GroupMetadataValue.MemberMetadata


def record_of(group: ClassicGroup, assignments: Mapping[str, bytes]) -> CoordinatorRecord:
    """Return the record of the group's current state, with ``assignments`` by member id."""
    name = group.protocol_name
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=name,
        leader=group.leader_id,
        current_state_timestamp=group.state_timestamp_ms,
        members=[
            _Member(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(name),
                assignment=assignments[member.member_id],
            )
            for member in group
            if name is not None
        ],
    )
    return group_metadata(group.group_id, value)


def born_record(group: ClassicGroup) -> CoordinatorRecord:
    """Return the record of a new group without members."""
    value = GroupMetadataValue(
        protocol_type="",
        generation=0,
        protocol=None,
        leader=None,
        current_state_timestamp=group.state_timestamp_ms,
        members=[],
    )
    return group_metadata(group.group_id, value)


def group_of(group_id: str, value: GroupMetadataValue, wall_ms: Callable[[], int]) -> ClassicGroup:
    """Return the group of a record, in the stable or the empty state and without running sessions.

    Raises
    ------
    MalformedMessageError
        The record has two members with the same member id or group instance id.
    """
    group = ClassicGroup(group_id, wall_ms)
    names = [one for entry in value.members for one in (entry.member_id, entry.group_instance_id) if one]
    if len(set(names)) != len(names):
        raise MalformedMessageError(f"group {printable(group_id)} has a duplicate member")
    protocol_type = value.protocol_type or None
    for entry in value.members:
        group.add(
            ClassicGroupMember(
                entry.member_id,
                entry.group_instance_id,
                entry.client_id,
                entry.client_host,
                entry.session_timeout if entry.rebalance_timeout == -1 else entry.rebalance_timeout,
                entry.session_timeout,
                value.protocol_type,
                (MemberProtocol(value.protocol or "", bytes(entry.subscription)),),
                bytes(entry.assignment),
            )
        )
    group.state = GroupState.STABLE if len(group) else GroupState.EMPTY
    group.state_timestamp_ms = value.current_state_timestamp
    group.generation_id = value.generation
    group.protocol_type, group.protocol_name = protocol_type, value.protocol
    group.leader_id = value.leader
    group.subscribed_topics = group.topics_of_members()
    return group
