"""Records of consumer groups: equal to those of Kafka's coordinator, byte for byte, and hostile bytes."""

from __future__ import annotations

import contextlib
import struct
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.golden_group_records import golden_group_records

from kafkacore.broker.coordinator.interfaces import CoordinatorRecord
from kafkacore.broker.group import records
from kafkacore.broker.group.consumer.consumer_member import ClassicMember, ConsumerGroupMember, MemberState
from kafkacore.broker.group.consumer.member_records import (
    partitions_record,
    subscription_record,
    with_partitions,
    with_subscription,
)
from kafkacore.broker.group.member import MemberProtocol
from kafkacore.errors import MalformedMessageError
from kafkacore.protocol import Message
from kafkacore.protocol.generated.group_records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionValue,
)
from kafkacore.wire import Writer

GOLDEN = golden_group_records()
VALUES = {name: record for name, record in GOLDEN.items() if record.value is not None}
TOMBSTONES = {name: record.key for name, record in GOLDEN.items() if record.value is None}
GROUP, MEMBER = "grüppe", "member-1"
FIRST = UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")
SECOND = UUID("10111213-1415-1617-1819-1a1b1c1d1e1f")
KINDS = sorted(kind for kind, _ in records.CONSUMER_RECORDS.values())

SUBSCRIPTIONS = {
    "subscription": ConsumerGroupMember(
        member_id=MEMBER,
        instance_id="instance",
        rack_id="rack",
        client_id="client",
        client_host="/127.0.0.1",
        subscribed_topic_names=frozenset({"topic-b", "Topic", "topic-a"}),
        subscribed_topic_regex="topic.*",
        server_assignor="uniform",
        rebalance_timeout_ms=300_000,
    ),
    "subscription-of-nulls": ConsumerGroupMember(member_id=MEMBER, subscribed_topic_regex=None),
    "subscription-of-a-classic-member": ConsumerGroupMember(
        member_id=MEMBER,
        client_id="client",
        client_host="/127.0.0.1",
        subscribed_topic_names=frozenset({"topic"}),
        rebalance_timeout_ms=60_000,
        classic=ClassicMember(
            45_000, (MemberProtocol("range", b"\x00\x01\xff"), MemberProtocol("sticky", b""))
        ),
    ),
    "subscription-of-a-classic-member-without-protocols": ConsumerGroupMember(
        member_id=MEMBER, classic=ClassicMember(0, ())
    ),
}
PARTITIONS = {
    "partitions": ConsumerGroupMember(
        member_id=MEMBER,
        member_epoch=9,
        previous_member_epoch=8,
        state=MemberState.UNREVOKED_PARTITIONS,
        assigned={SECOND: {0: 7, 2: 9}, FIRST: {1: 8}},
        pending_revocation={FIRST: {4: 3}},
    ),
    "partitions-of-a-new-member": ConsumerGroupMember(member_id=MEMBER, member_epoch=1),
    "partitions-of-a-static-member-that-left": ConsumerGroupMember(
        member_id=MEMBER,
        member_epoch=-2,
        previous_member_epoch=9,
        state=MemberState.UNRELEASED_PARTITIONS,
        assigned={FIRST: {1: 8}},
    ),
}
PARTITION_METADATA = ConsumerGroupPartitionMetadataValue(
    topics=[
        ConsumerGroupPartitionMetadataValue.TopicMetadata(
            topic_id=FIRST,
            topic_name="a",
            num_partitions=2,
            partition_metadata=[
                ConsumerGroupPartitionMetadataValue.PartitionMetadata(partition=1, racks=["r1", "r2"])
            ],
        ),
        ConsumerGroupPartitionMetadataValue.TopicMetadata(topic_id=SECOND, topic_name="b", num_partitions=1),
    ]
)


def value_of(record: CoordinatorRecord) -> Any:
    key = records.decode_key(record.key)
    assert key is not None
    assert record.value is not None
    return records.decode_consumer_value(key, record.value)  # type: ignore[arg-type]


def encoded(message: Message) -> bytes:
    writer = Writer()
    writer.write_int16(0)
    message.encode(writer, 0)
    return b"".join(writer.pieces())


def test_record_of_a_group_equals_javas() -> None:
    assert records.consumer_group_metadata(GROUP, 7, -123_456_789_012) == GOLDEN["group"]
    assert records.consumer_group_metadata("", 1, 0) == GOLDEN["group-without-hash"]


@pytest.mark.parametrize("name", SUBSCRIPTIONS)
def test_record_of_a_subscription_equals_javas(name: str) -> None:
    member = SUBSCRIPTIONS[name]
    assert subscription_record(GROUP, member) == GOLDEN[name]
    assert with_subscription(ConsumerGroupMember(member_id=MEMBER), value_of(GOLDEN[name])) == member


@pytest.mark.parametrize("name", PARTITIONS)
def test_record_of_owned_partitions_equals_javas(name: str) -> None:
    member = PARTITIONS[name]
    assert partitions_record(GROUP, member) == GOLDEN[name]
    assert with_partitions(ConsumerGroupMember(member_id=MEMBER), value_of(GOLDEN[name])) == member


def test_record_of_a_target_assignment_equals_javas() -> None:
    """Kafka writes the topics in the order of its map, and so do we."""
    target = {SECOND: (0, 2, 300), FIRST: (5,)}
    assert records.target_assignment(GROUP, MEMBER, target) == GOLDEN["target"]
    assert records.target_assignment(GROUP, MEMBER, {}) == GOLDEN["target-of-nothing"]
    read = value_of(GOLDEN["target"])
    assert {one.topic_id: tuple(one.partitions) for one in read.topic_partitions} == target


def test_record_of_a_target_epoch_equals_javas() -> None:
    assert records.target_assignment_metadata(GROUP, 8, 1_700_000_000_000) == GOLDEN["target-epoch"]
    assert records.target_assignment_metadata(GROUP, 8, 0) == GOLDEN["target-epoch-without-time"]


def test_record_of_a_regular_expression_equals_javas() -> None:
    resolved = ConsumerGroupRegularExpressionValue(
        topics=["Topic", "topic-a", "topic-b"], version=12, timestamp=1_700_000_000_000
    )
    nothing = ConsumerGroupRegularExpressionValue(topics=[], version=-1, timestamp=-1)
    assert records.regular_expression(GROUP, "topic.*", resolved) == GOLDEN["regex"]
    assert records.regular_expression(GROUP, "x", nothing) == GOLDEN["regex-without-topics"]


def test_topics_that_kafka_4_0_stored_are_read() -> None:
    record = GOLDEN["partition-metadata"]
    assert records.decode_key(record.key) == ConsumerGroupPartitionMetadataKey(group_id=GROUP)
    assert value_of(record) == PARTITION_METADATA


def test_tombstones_equal_javas() -> None:
    made = {
        "group-tombstone": records.consumer_group_metadata_tombstone(GROUP),
        "partition-metadata-tombstone": records.partition_metadata_tombstone(GROUP),
        "subscription-tombstone": records.member_metadata_tombstone(GROUP, MEMBER),
        "target-epoch-tombstone": records.target_assignment_metadata_tombstone(GROUP),
        "target-tombstone": records.target_assignment_tombstone(GROUP, MEMBER),
        "partitions-tombstone": records.current_assignment_tombstone(GROUP, MEMBER),
        "regex-tombstone": records.regular_expression_tombstone(GROUP, "topic.*"),
    }
    assert {name: record.key for name, record in made.items()} == TOMBSTONES
    assert {record.value for record in made.values()} == {None}


def test_golden_file_has_every_kind() -> None:
    assert sorted({struct.unpack_from(">h", record.key)[0] for record in VALUES.values()}) == KINDS
    assert sorted({struct.unpack_from(">h", key)[0] for key in TOMBSTONES.values()}) == KINDS


@pytest.mark.parametrize("name", VALUES)
def test_value_is_written_again_as_it_was_read(name: str) -> None:
    assert encoded(value_of(VALUES[name])) == VALUES[name].value


def test_absent_epochs_of_partitions_are_the_members() -> None:
    """Releases before Kafka 4.3 write no epochs. A static member that has left has a negative epoch."""
    stored = ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions(topic_id=FIRST, partitions=[1, 2])
    member = ConsumerGroupMember(member_id=MEMBER)
    for member_epoch, expected in ((5, 5), (-2, 0)):
        for epochs in ([], None, [7]):
            stored.assignment_epochs = epochs
            value = ConsumerGroupCurrentMemberAssignmentValue(
                member_epoch=member_epoch, assigned_partitions=[stored]
            )
            read = value_of(records.current_assignment(GROUP, MEMBER, value))
            assert with_partitions(member, read).assigned == {FIRST: {1: expected, 2: expected}}


@pytest.mark.parametrize("name", VALUES)
def test_record_cut_anywhere_is_malformed(name: str) -> None:
    key, value = VALUES[name]
    assert value is not None
    decoded: Any = records.decode_key(key)
    for size in range(len(key)):
        with pytest.raises(MalformedMessageError):
            records.decode_key(key[:size])
    for size in range(len(value)):
        with pytest.raises(MalformedMessageError):
            records.decode_consumer_value(decoded, value[:size])


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("version", [1, 32767, -1])
def test_value_of_another_version_is_malformed(name: str, version: int) -> None:
    key, value = VALUES[name]
    assert value is not None
    decoded: Any = records.decode_key(key)
    with pytest.raises(MalformedMessageError, match=f"version {version} of ConsumerGroup"):
        records.decode_consumer_value(decoded, struct.pack(">h", version) + value[2:])


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("partition-metadata", b""),
        ("target", b""),
        ("partitions", b"\x00" * 9),
        ("regex", b""),
        # Instance id, rack, client id and host come before the topics.
        ("subscription", b"\x00\x00\x01\x01"),
        # A tagged field that is longer than the record.
        ("group", b"\x00\x00\x00\x01\x01\x00"),
        ("target-epoch", b"\x00\x00\x00\x01\x01\x00"),
    ],
)
def test_length_beyond_the_record_is_malformed(name: str, prefix: bytes) -> None:
    """The length claims 4 billion elements: no memory is reserved for them."""
    decoded: Any = records.decode_key(GOLDEN[name].key)
    with pytest.raises(MalformedMessageError):
        records.decode_consumer_value(decoded, b"\x00\x00" + prefix + b"\xff\xff\xff\xff\x0f" + b"\x01" * 20)


@pytest.mark.parametrize("field", range(2))
def test_null_of_a_string_that_must_be_set_is_malformed(field: int) -> None:
    decoded: Any = records.decode_key(GOLDEN["subscription"].key)
    text = b"\x00\x00" + (b"\x00" if field == 0 else b"\x01\x00") + b"\x01\x01\xff\xff\xff\xff\x00\x00"
    with pytest.raises(MalformedMessageError, match="client_id" if field == 0 else "client_host"):
        records.decode_consumer_value(decoded, b"\x00\x00" + text)


@given(data=st.binary(max_size=80), kind=st.sampled_from(KINDS))
def test_any_bytes_are_read_or_malformed(data: bytes, kind: int) -> None:
    with contextlib.suppress(MalformedMessageError):
        records.decode_key(struct.pack(">h", kind) + data)
    (key_class,) = (key for key, (number, _) in records.CONSUMER_RECORDS.items() if number == kind)
    key: Any = key_class()
    with contextlib.suppress(MalformedMessageError):
        records.decode_consumer_value(key, b"\x00\x00" + data)


@given(
    instance=st.none() | st.text(max_size=5),
    topics=st.lists(st.text(max_size=5), max_size=3),
    protocols=st.none() | st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=5)), max_size=3),
)
def test_subscription_comes_back(
    instance: str | None, topics: list[str], protocols: list[tuple[str, bytes]] | None
) -> None:
    value = ConsumerGroupMemberMetadataValue(
        instance_id=instance,
        subscribed_topic_names=topics,
        classic_member_metadata=None
        if protocols is None
        else ConsumerGroupMemberMetadataValue.ClassicMemberMetadata(
            supported_protocols=[
                ConsumerGroupMemberMetadataValue.ClassicProtocol(name=name, metadata=metadata)
                for name, metadata in protocols
            ]
        ),
    )
    assert value_of(records.member_metadata(GROUP, MEMBER, value)) == value
