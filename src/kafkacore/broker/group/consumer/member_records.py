"""Converts a member of a consumer group to its records and back.

A member has two records: one for its subscription and one for the partitions that it owns. The behaviour is
that of Kafka's ``GroupCoordinatorRecordHelpers`` and ``ConsumerGroupMember.Builder``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kafkacore.broker.coordinator.interfaces import CoordinatorRecord
from kafkacore.broker.group import records
from kafkacore.broker.group.consumer.consumer_member import (
    LEAVE_EPOCH,
    NO_PARTITIONS,
    ClassicMember,
    ConsumerGroupMember,
    MemberState,
    OwnedPartitions,
)
from kafkacore.broker.group.member import MemberProtocol
from kafkacore.protocol.generated.group_records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
)
from kafkacore.wire import Uuid

_Classic = ConsumerGroupMemberMetadataValue.ClassicMemberMetadata
_Protocol = ConsumerGroupMemberMetadataValue.ClassicProtocol
_Partitions = ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions


def subscription_record(group_id: str, member: ConsumerGroupMember) -> CoordinatorRecord:
    """Return the record of a member's subscription."""
    classic = member.classic
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=None
        if classic is None
        else _Classic(
            session_timeout_ms=classic.session_timeout_ms,
            supported_protocols=[
                _Protocol(name=one.name, metadata=one.metadata) for one in classic.protocols
            ],
        ),
    )
    return records.member_metadata(group_id, member.member_id, value)


def partitions_record(group_id: str, member: ConsumerGroupMember) -> CoordinatorRecord:
    """Return the record of the partitions that a member owns."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state.value,
        assigned_partitions=_stored(member.assigned),
        partitions_pending_revocation=_stored(member.pending_revocation),
    )
    return records.current_assignment(group_id, member.member_id, value)


def with_subscription(
    member: ConsumerGroupMember, value: ConsumerGroupMemberMetadataValue
) -> ConsumerGroupMember:
    """Return a member with the subscription of a record."""
    classic = value.classic_member_metadata
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topic_names=frozenset(value.subscribed_topic_names),
        subscribed_topic_regex=value.subscribed_topic_regex,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        classic=None
        if classic is None
        else ClassicMember(
            classic.session_timeout_ms,
            tuple(MemberProtocol(one.name, bytes(one.metadata)) for one in classic.supported_protocols),
        ),
    )


def with_partitions(
    member: ConsumerGroupMember, value: ConsumerGroupCurrentMemberAssignmentValue | None
) -> ConsumerGroupMember:
    """Return a member with the partitions of a record. A tombstone (``None``) removes the partitions."""
    if value is None:
        return replace(
            member,
            member_epoch=LEAVE_EPOCH,
            previous_member_epoch=LEAVE_EPOCH,
            assigned=NO_PARTITIONS,
            pending_revocation=NO_PARTITIONS,
        )
    known = {state.value for state in MemberState}
    return replace(
        member,
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=MemberState(value.state) if value.state in known else MemberState.UNKNOWN,
        assigned=_owned(value.assigned_partitions, value.member_epoch),
        pending_revocation=_owned(value.partitions_pending_revocation, value.member_epoch),
    )


def _stored(partitions: OwnedPartitions) -> list[_Partitions]:
    return [
        _Partitions(topic_id=topic_id, partitions=list(epochs), assignment_epochs=list(epochs.values()))
        for topic_id, epochs in partitions.items()
    ]


def _owned(stored: Sequence[_Partitions], member_epoch: int) -> OwnedPartitions:
    """Return the partitions of a record. Kafka before 4.3 does not write the epochs of the partitions."""
    owned: dict[Uuid, dict[int, int]] = {}
    default = max(member_epoch, 0)
    for one in stored:
        epochs = one.assignment_epochs or ()
        if len(epochs) != len(one.partitions):
            epochs = [default] * len(one.partitions)
        owned[one.topic_id] = dict(zip(one.partitions, epochs, strict=True))
    return owned
