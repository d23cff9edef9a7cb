"""The records of ``__consumer_offsets``: keys and values as bytes in, messages out, and back.

Key and value each begin with an int16: which record it is, and the version of the value. Versions 0 to 4 of
both values are read; written are those that Apache Kafka 4.3 writes. Bytes come from a disk: hostile ones
raise :class:`~kafkacore.errors.MalformedMessageError`. Does not know: batches, logs, what a group is.
Source: Kafka's ``GroupCoordinatorRecordHelpers`` and ``GroupCoordinatorRecordSerde``.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeVar

from kafkacore.errors import MalformedMessageError
from kafkacore.protocol import Message
from kafkacore.protocol.generated.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kafkacore.wire import Cursor, Writer

#: What the first two bytes of a key say; a tombstone is known by them alone.
LEGACY_OFFSET_COMMIT: Final = 0
OFFSET_COMMIT: Final = 1
GROUP_METADATA: Final = 2

#: Written for a commit, and for one with an expiry of its own, which no later version can say.
OFFSET_COMMIT_VALUE_VERSION: Final = 4
EXPIRING_OFFSET_COMMIT_VALUE_VERSION: Final = 1
GROUP_METADATA_VALUE_VERSION: Final = 3

NO_TIMESTAMP: Final = -1

Buffer = bytes | bytearray | memoryview
MessageT = TypeVar("MessageT", bound=Message)
Key = OffsetCommitKey | GroupMetadataKey


class CoordinatorRecord(NamedTuple):
    """One record of ``__consumer_offsets``; ``value`` is ``None`` in a tombstone."""

    key: bytes
    value: bytes | None


def offset_commit(group_id: str, topic: str, partition: int, value: OffsetCommitValue) -> CoordinatorRecord:
    """The record of a committed offset."""
    has_expiry = value.expire_timestamp != NO_TIMESTAMP
    version = EXPIRING_OFFSET_COMMIT_VALUE_VERSION if has_expiry else OFFSET_COMMIT_VALUE_VERSION
    return CoordinatorRecord(offset_commit_key(group_id, topic, partition), _encoded(value, version, version))


def offset_commit_tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    """The record that removes a committed offset."""
    return CoordinatorRecord(offset_commit_key(group_id, topic, partition), None)


def offset_commit_key(group_id: str, topic: str, partition: int) -> bytes:
    """The key of a group's offset of a partition."""
    key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
    return _encoded(key, 0, OFFSET_COMMIT)


def group_metadata(group_id: str, value: GroupMetadataValue) -> CoordinatorRecord:
    """The record of a group's generation."""
    encoded = _encoded(value, GROUP_METADATA_VALUE_VERSION, GROUP_METADATA_VALUE_VERSION)
    return CoordinatorRecord(group_metadata_key(group_id), encoded)


def group_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """The record that removes a group."""
    return CoordinatorRecord(group_metadata_key(group_id), None)


def group_metadata_key(group_id: str) -> bytes:
    """The key of a group's generation."""
    return _encoded(GroupMetadataKey(group=group_id), 0, GROUP_METADATA)


def decode_key(data: Buffer) -> Key | None:
    """Which offset or group a record is about; ``None`` for a kind of record that is not ours to know.

    Raises
    ------
    MalformedMessageError
        These bytes are no key.
    """
    cursor = Cursor(data)
    kind = cursor.read_int16()
    if kind in (OFFSET_COMMIT, LEGACY_OFFSET_COMMIT):
        return OffsetCommitKey.decode(cursor, 0)
    return GroupMetadataKey.decode(cursor, 0) if kind == GROUP_METADATA else None


def decode_offset_commit(data: Buffer) -> OffsetCommitValue:
    """The value of a committed offset.

    Raises
    ------
    MalformedMessageError
        These bytes are no such value, or of a version that is not known.
    """
    # What a legacy key's value is in its only version is what a newer key's is in version 0.
    return _decoded(OffsetCommitValue, data)


def decode_group_metadata(data: Buffer) -> GroupMetadataValue:
    """The value of a group's generation; as :func:`decode_offset_commit`."""
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
            f"{kind.NAME} of version {version}, this broker reads {kind.MIN_VERSION} to {kind.MAX_VERSION}"
        )
    return kind.decode(cursor, version)
