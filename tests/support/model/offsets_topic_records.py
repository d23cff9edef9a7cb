"""Records of every kind and version in ``__consumer_offsets``, for tests of programs that print them."""

from __future__ import annotations

import struct
from uuid import UUID

from model.golden_group_records import golden_group_records

from kafkacore.broker.coordinator.interfaces import CoordinatorRecord
from kafkacore.broker.group import records
from kafkacore.coordinator.protocol import (
    Assignment,
    Subscription,
    encode_assignment,
    encode_subscription,
)
from kafkacore.protocol import Message
from kafkacore.protocol.generated.group_records import GroupMetadataValue, OffsetCommitValue
from kafkacore.record import RecordBatchBuilder
from kafkacore.structs import TopicPartition
from kafkacore.wire import Writer

TOPIC_ID = UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")
_OWNED = [TopicPartition("t", 0), TopicPartition("ü", 2)]
_SUBSCRIPTION = Subscription(("t", "ü"), b"data", _OWNED, 4, "rack")


def in_version(value: Message, version: int) -> bytes:
    """Return the bytes of a value in a version that may be older than the one that is written today."""
    writer = Writer()
    writer.write_int16(version)
    value.encode(writer, version)
    return b"".join(writer.pieces())


def _commits() -> list[CoordinatorRecord]:
    value = OffsetCommitValue(
        offset=42, leader_epoch=3, metadata='a "note"', commit_timestamp=1_700_000_000_000, topic_id=TOPIC_ID
    )
    key = records.offset_commit_key("group", "topic", 5)
    made = [CoordinatorRecord(key, in_version(value, version)) for version in (0, 2, 3, 4)]
    made.append(records.offset_commit("group", "topic", 5, OffsetCommitValue(expire_timestamp=9)))
    made.append(records.offset_commit("group", "topic", 5, OffsetCommitValue()))
    made.append(CoordinatorRecord(struct.pack(">h", records.LEGACY_OFFSET_COMMIT) + key[2:], made[0].value))
    return [*made, records.offset_commit_tombstone("group", "topic", 5)]


def _classic_groups() -> list[CoordinatorRecord]:
    members = [
        GroupMetadataValue.MemberMetadata(
            member_id=f"m-{version}",
            group_instance_id="static" if version == 3 else None,
            client_id="client",
            client_host="/127.0.0.1",
            rebalance_timeout=9,
            session_timeout=8,
            subscription=encode_subscription(_SUBSCRIPTION, version),
            assignment=encode_assignment(Assignment(_OWNED), version),
        )
        for version in range(4)
    ]
    members.append(GroupMetadataValue.MemberMetadata(member_id="odd", subscription=b"\x00\x01sub"))
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=7,
        protocol="range",
        leader="m-0",
        current_state_timestamp=1_700_000_000_000,
        members=members,
    )
    key = records.group_metadata_key("group")
    made = [CoordinatorRecord(key, in_version(value, version)) for version in range(5)]
    value.protocol_type, value.protocol, value.leader = "connect", None, None
    return [*made, records.group_metadata("group", value), records.group_metadata_tombstone("group")]


def offsets_topic_records() -> list[CoordinatorRecord]:
    """Return valid records and tombstones of all kinds that the broker writes or reads."""
    return [*_commits(), *_classic_groups(), *golden_group_records().values()]


def broken_records() -> list[CoordinatorRecord]:
    """Return a record of an unknown kind, and records that cannot be decoded."""
    commit = records.offset_commit("group", "topic", 5, OffsetCommitValue())
    assert commit.value is not None
    return [
        CoordinatorRecord(struct.pack(">h", 100) + b"key", b"value"),
        CoordinatorRecord(commit.key, commit.value[:7]),
        CoordinatorRecord(commit.key[:-1], commit.value),
    ]


def log_of(written: list[CoordinatorRecord]) -> bytes:
    """Return the content of a log segment with one batch of these records, from offset 0."""
    builder = RecordBatchBuilder(1 << 20)
    for record in written:
        builder.append(1_700_000_000_000, record.key, record.value)
    return bytes(builder.close())
