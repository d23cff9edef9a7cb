"""Encodes and decodes the keys and values of the records of ``__consumer_offsets``.

A key begins with an int16 that is the record's type, and a value begins with an int16 that is its version.
Offset commits and groups are read in the versions 0 to 4, and written in the versions of Apache Kafka 4.3.
Malformed bytes raise :class:`~kafkacore.errors.MalformedMessageError`. The formats are those of Kafka's
``GroupCoordinatorRecordHelpers`` and ``GroupCoordinatorRecordSerde``.
"""

from __future__ import annotations

from typing import Final, TypeVar

from kafkacore.broker.coordinator.interfaces import CoordinatorRecord
from kafkacore.errors import MalformedMessageError
from kafkacore.protocol import Message
from kafkacore.protocol.generated.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kafkacore.wire import Cursor, Writer

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
Key = OffsetCommitKey | GroupMetadataKey


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


def decode_key(data: Buffer) -> Key | None:
    """Decode the key of a record; return ``None`` for an unknown type of record.

    Raises
    ------
    MalformedMessageError
        The bytes are not a valid key.
    """
    cursor = Cursor(data)
    kind = cursor.read_int16()
    if kind in (OFFSET_COMMIT, LEGACY_OFFSET_COMMIT):
        return OffsetCommitKey.decode(cursor, 0)
    return GroupMetadataKey.decode(cursor, 0) if kind == GROUP_METADATA else None


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
