"""Applies the records of a consumer group to the group.

The behaviour is that of ``replay`` in Kafka's ``GroupMetadataManager``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from kafkacore.broker.group.consumer.consumer_group import (
    NO_EPOCH,
    ConsumerGroup,
    ResolvedRegularExpression,
)
from kafkacore.broker.group.consumer.consumer_member import ConsumerGroupMember
from kafkacore.broker.group.consumer.member_records import with_partitions, with_subscription
from kafkacore.broker.group.records import ConsumerKey
from kafkacore.protocol.generated.group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)


def apply_record(group: ConsumerGroup, key: ConsumerKey, value: Any) -> None:
    """Apply a record to its group; ``None`` as the value is a tombstone.

    The tombstone of the group itself is not applied here, because it removes the group.
    """
    _APPLY[type(key)](group, key, value)


def apply_records(group: ConsumerGroup, records: Sequence[tuple[ConsumerKey, Any]]) -> None:
    """Apply the last record of each key, in an order in which no record depends on a later record."""
    for key, value in sorted(records, key=lambda record: _ORDER[type(record[0])]):
        apply_record(group, key, value)


def _apply_epoch(
    group: ConsumerGroup, key: ConsumerGroupMetadataKey, value: ConsumerGroupMetadataValue
) -> None:
    group.apply_epoch(value.epoch, value.metadata_hash)


def _apply_partition_metadata(
    group: ConsumerGroup,
    key: ConsumerGroupPartitionMetadataKey,
    value: ConsumerGroupPartitionMetadataValue | None,
) -> None:
    group.has_partition_metadata = value is not None


def _apply_subscription(
    group: ConsumerGroup,
    key: ConsumerGroupMemberMetadataKey,
    value: ConsumerGroupMemberMetadataValue | None,
) -> None:
    if value is None:
        group.apply_removal(key.member_id)
    else:
        member = group.get(key.member_id) or ConsumerGroupMember(member_id=key.member_id)
        group.apply_member(with_subscription(member, value))


def _apply_target_epoch(
    group: ConsumerGroup,
    key: ConsumerGroupTargetAssignmentMetadataKey,
    value: ConsumerGroupTargetAssignmentMetadataValue | None,
) -> None:
    if value is None:
        group.apply_target_epoch(NO_EPOCH, 0)
    else:
        group.apply_target_epoch(value.assignment_epoch, value.assignment_timestamp)


def _apply_target(
    group: ConsumerGroup,
    key: ConsumerGroupTargetAssignmentMemberKey,
    value: ConsumerGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        group.apply_target(key.member_id, None)
    else:
        group.apply_target(
            key.member_id, {one.topic_id: tuple(sorted(one.partitions)) for one in value.topic_partitions}
        )


def _apply_partitions(
    group: ConsumerGroup,
    key: ConsumerGroupCurrentMemberAssignmentKey,
    value: ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    member = group.get(key.member_id)
    if member is None:
        if value is None:
            return
        member = ConsumerGroupMember(member_id=key.member_id)
    group.apply_member(with_partitions(member, value))


def _apply_resolved(
    group: ConsumerGroup,
    key: ConsumerGroupRegularExpressionKey,
    value: ConsumerGroupRegularExpressionValue | None,
) -> None:
    resolved = (
        None
        if value is None
        else ResolvedRegularExpression(frozenset(value.topics), value.version, value.timestamp)
    )
    group.apply_resolved(key.regular_expression, resolved)


_APPLY: Final[dict[type, Callable[[ConsumerGroup, Any, Any], None]]] = {
    ConsumerGroupMetadataKey: _apply_epoch,
    ConsumerGroupPartitionMetadataKey: _apply_partition_metadata,
    ConsumerGroupMemberMetadataKey: _apply_subscription,
    ConsumerGroupCurrentMemberAssignmentKey: _apply_partitions,
    ConsumerGroupTargetAssignmentMemberKey: _apply_target,
    ConsumerGroupTargetAssignmentMetadataKey: _apply_target_epoch,
    ConsumerGroupRegularExpressionKey: _apply_resolved,
}
_ORDER: Final = {key: place for place, key in enumerate(_APPLY)}
