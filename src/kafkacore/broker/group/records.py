"""Encodes and decodes the keys and values of the records of ``__consumer_offsets``.

A key begins with an int16 that is the record's type, and a value begins with an int16 that is its version.
Offset commits and classic groups are read in the versions 0 to 4, and written in the versions of Apache
Kafka 4.3. The records of consumer groups have version 0.
Malformed bytes raise :class:`~kafkacore.errors.MalformedMessageError`. The formats are those of Kafka's
``GroupCoordinatorRecordHelpers`` and ``GroupCoordinatorRecordSerde``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, TypeVar

from kafkacore.broker.coordinator.interfaces import CoordinatorRecord
from kafkacore.errors import MalformedMessageError
from kafkacore.protocol import Message
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
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kafkacore.wire import Cursor, Uuid, Writer

#: Record types, which are the first two bytes of a key. Only the key shows the type of a tombstone.
LEGACY_OFFSET_COMMIT: Final = 0
OFFSET_COMMIT: Final = 1
GROUP_METADATA: Final = 2

#: Versions in which values are written. Only version 1 of an offset commit has a field for the expiry time.
OFFSET_COMMIT_VALUE_VERSION: Final = 4
EXPIRING_OFFSET_COMMIT_VALUE_VERSION: Final = 1
GROUP_METADATA_VALUE_VERSION: Final = 3

NO_TIMESTAMP: Final = -1

Buffer = bytes | bytearray | memoryview
MessageT = TypeVar("MessageT", bound=Message)
#: Key of a record of a consumer group.
ConsumerKey: TypeAlias = (
    ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
)
Key: TypeAlias = OffsetCommitKey | GroupMetadataKey | ConsumerKey

#: Class of keys of consumer groups → type of the record, and class of the values.
CONSUMER_RECORDS: Final[dict[type[Message], tuple[int, type[Message]]]] = {
    ConsumerGroupMetadataKey: (3, ConsumerGroupMetadataValue),
    ConsumerGroupPartitionMetadataKey: (4, ConsumerGroupPartitionMetadataValue),
    ConsumerGroupMemberMetadataKey: (5, ConsumerGroupMemberMetadataValue),
    ConsumerGroupTargetAssignmentMetadataKey: (6, ConsumerGroupTargetAssignmentMetadataValue),
    ConsumerGroupTargetAssignmentMemberKey: (7, ConsumerGroupTargetAssignmentMemberValue),
    ConsumerGroupCurrentMemberAssignmentKey: (8, ConsumerGroupCurrentMemberAssignmentValue),
    ConsumerGroupRegularExpressionKey: (16, ConsumerGroupRegularExpressionValue),
}
_KEYS: Final[dict[int, type[Message]]] = {
    LEGACY_OFFSET_COMMIT: OffsetCommitKey,
    OFFSET_COMMIT: OffsetCommitKey,
    GROUP_METADATA: GroupMetadataKey,
    **{kind: key for key, (kind, _) in CONSUMER_RECORDS.items()},
}
_CONSUMER_VALUE_VERSION: Final = 0


def offset_commit(group_id: str, topic: str, partition: int, value: OffsetCommitValue) -> CoordinatorRecord:
    """Return the record of a committed offset."""
    has_expiry = value.expire_timestamp != NO_TIMESTAMP
    version = EXPIRING_OFFSET_COMMIT_VALUE_VERSION if has_expiry else OFFSET_COMMIT_VALUE_VERSION
    return CoordinatorRecord(offset_commit_key(group_id, topic, partition), _encoded(value, version, version))


def offset_commit_tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    """Return the record that removes a committed offset."""
    return CoordinatorRecord(offset_commit_key(group_id, topic, partition), None)


def offset_commit_key(group_id: str, topic: str, partition: int) -> bytes:
    """Return the record key for a group's committed offset of a partition."""
    key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
    return _encoded(key, 0, OFFSET_COMMIT)


def group_metadata(group_id: str, value: GroupMetadataValue) -> CoordinatorRecord:
    """Return the record of a group's generation."""
    encoded = _encoded(value, GROUP_METADATA_VALUE_VERSION, GROUP_METADATA_VALUE_VERSION)
    return CoordinatorRecord(group_metadata_key(group_id), encoded)


def group_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """Return the record that removes a group."""
    return CoordinatorRecord(group_metadata_key(group_id), None)


def group_metadata_key(group_id: str) -> bytes:
    """Return the key of a group's record."""
    return _encoded(GroupMetadataKey(group=group_id), 0, GROUP_METADATA)


# ---- Consumer groups -----------------------------------------------------------------------------------


def consumer_group_metadata(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """Return the record of a group's epoch and of the hash of its topics."""
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return consumer_record(ConsumerGroupMetadataKey(group_id=group_id), value)


def consumer_group_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """Return the record that removes a group."""
    return consumer_record(ConsumerGroupMetadataKey(group_id=group_id), None)


def partition_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """Return the record that removes the topics of a group, which Kafka 4.0 stored."""
    return consumer_record(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def member_metadata(
    group_id: str, member_id: str, value: ConsumerGroupMemberMetadataValue
) -> CoordinatorRecord:
    """Return the record of a member's subscription."""
    return consumer_record(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), value)


def member_metadata_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    """Return the record that removes a member."""
    return consumer_record(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def target_assignment_metadata(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    """Return the record that completes a target assignment, with its epoch and time of computation."""
    value = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=timestamp_ms
    )
    return consumer_record(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def target_assignment_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """Return the record that removes the epoch of a target assignment."""
    return consumer_record(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None)


def target_assignment(
    group_id: str, member_id: str, assignment: Mapping[Uuid, tuple[int, ...]]
) -> CoordinatorRecord:
    """Return the record of a member's target assignment: partitions by topic id."""
    partitions = [
        ConsumerGroupTargetAssignmentMemberValue.TopicPartition(topic_id=topic_id, partitions=list(numbers))
        for topic_id, numbers in assignment.items()
    ]
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return consumer_record(key, ConsumerGroupTargetAssignmentMemberValue(topic_partitions=partitions))


def target_assignment_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    """Return the record that removes a member's target assignment."""
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return consumer_record(key, None)


def current_assignment(
    group_id: str, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue
) -> CoordinatorRecord:
    """Return the record of a member's epoch and of the partitions that it owns."""
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
    return consumer_record(key, value)


def current_assignment_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    """Return the record that removes a member's partitions."""
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
    return consumer_record(key, None)


def regular_expression(
    group_id: str, regex: str, value: ConsumerGroupRegularExpressionValue
) -> CoordinatorRecord:
    """Return the record of the topics that match a regular expression."""
    return consumer_record(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), value
    )


def regular_expression_tombstone(group_id: str, regex: str) -> CoordinatorRecord:
    """Return the record that removes a regular expression."""
    key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
    return consumer_record(key, None)


def consumer_record(key: ConsumerKey, value: Message | None) -> CoordinatorRecord:
    """Return the record of a key; a value of ``None`` makes a tombstone."""
    kind, _ = CONSUMER_RECORDS[type(key)]
    version = _CONSUMER_VALUE_VERSION
    return CoordinatorRecord(
        _encoded(key, 0, kind), None if value is None else _encoded(value, version, version)
    )


# ---- Decoding ------------------------------------------------------------------------------------------


def decode_key(data: Buffer) -> Key | None:
    """Decode the key of a record; return ``None`` for an unknown type of record.

    Raises
    ------
    MalformedMessageError
        The bytes are not a valid key.
    """
    cursor = Cursor(data)
    kind: Any = _KEYS.get(cursor.read_int16())
    return None if kind is None else kind.decode(cursor, 0)


def decode_consumer_value(key: ConsumerKey, data: Buffer) -> Message:
    """Decode the value of a record of a consumer group, like :func:`decode_offset_commit`."""
    _, value_class = CONSUMER_RECORDS[type(key)]
    return _decoded(value_class, data)


def decode_offset_commit(data: Buffer) -> OffsetCommitValue:
    """Decode the value of a committed offset.

    Raises
    ------
    MalformedMessageError
        The bytes are not a valid value, or have an unknown version.
    """
    # The value of a legacy key has the format of version 0.
    return _decoded(OffsetCommitValue, data)


def decode_group_metadata(data: Buffer) -> GroupMetadataValue:
    """Decode the value of a group's generation, like :func:`decode_offset_commit`."""
    return _decoded(GroupMetadataValue, data)


def _encoded(message: Message, version: int, prefix: int) -> bytes:
    writer = Writer()
    writer.write_int16(prefix)
    message.encode(writer, version)
    return b"".join(writer.pieces())


def _decoded(kind: type[MessageT], data: Buffer) -> MessageT:
    cursor = Cursor(data)
    version = cursor.read_int16()
    if not kind.MIN_VERSION <= version <= kind.MAX_VERSION:
        raise MalformedMessageError(
            f"unsupported version {version} of {kind.NAME}: this broker reads versions "
            f"{kind.MIN_VERSION} to {kind.MAX_VERSION}"
        )
    return kind.decode(cursor, version)
