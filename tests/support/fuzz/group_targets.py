"""Fuzz targets for the data that group members exchange, and the records of the coordinators."""

from __future__ import annotations

import json
from dataclasses import replace

from fuzz.harness import Target
from model.offsets_topic_records import log_of, offsets_topic_records

from kafkacore.broker.coordinator.interfaces import NO_PRODUCER_ID, CoordinatorRecord
from kafkacore.broker.group import records
from kafkacore.broker.group.offset_store import PartitionOffsets
from kafkacore.broker.group.plain_commits import PlainCommits
from kafkacore.broker.group.record_json import decoded_record
from kafkacore.broker.group.replay import LoadedPartition, Replay
from kafkacore.broker.transaction import records as transaction_records
from kafkacore.broker.transaction.transaction_metadata import TransactionMetadata, TransactionState
from kafkacore.coordinator.assignors import PartitionRacks
from kafkacore.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafkacore.coordinator.assignors.range import RangePartitionAssignor
from kafkacore.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafkacore.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafkacore.coordinator.assignors.sticky.user_data import (
    MemberData,
    decode_generation,
    decode_previous_assignment,
    encode_generation,
    encode_previous_assignment,
)
from kafkacore.coordinator.protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscribed_topics,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kafkacore.errors import CorruptRecordError
from kafkacore.protocol.generated.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kafkacore.record import read_batches
from kafkacore.structs import TopicPartition

_ASSIGNORS = (
    RangePartitionAssignor,
    RoundRobinPartitionAssignor,
    StickyPartitionAssignor,
    CooperativeStickyAssignor,
)
_PARTITIONS = {"a": [PartitionRacks(n, frozenset({"r"})) for n in range(3)], "b": [PartitionRacks(0)]}
_OFFSETS_PARTITION = TopicPartition("__consumer_offsets", 0)
_OWNED = [TopicPartition("a", 0), TopicPartition("a", 2), TopicPartition("b", 0)]
_SUBSCRIPTIONS = [
    Subscription(("a", "b"), encode_previous_assignment(MemberData(_OWNED[:2], 4)), _OWNED[:2], 4, "r"),
    Subscription(("a",), encode_generation(3), _OWNED[1:], 3),
    Subscription(("a", "b")),
]


def read_subscription(data: bytes) -> None:
    """Reject an invalid subscription, or assign every partition exactly once to the members of its group."""
    if not data:
        return
    hostile = decode_subscription(data[1:])
    assert decode_subscribed_topics(data[1:]) == list(hostile.topics), "the broker parses different topics"
    members = {"x": hostile, "y": _SUBSCRIPTIONS[0], "z": _SUBSCRIPTIONS[1]}
    assignor = _ASSIGNORS[data[0] % len(_ASSIGNORS)]()
    given = assignor.assign(_PARTITIONS, members)
    assert given.keys() == members.keys(), "a member has no assignment"
    owned = [partition for assignment in given.values() for partition in assignment.partitions]
    assert len(owned) == len(set(owned)), "a partition is assigned twice"
    for member, assignment in given.items():
        assert {each.topic for each in assignment.partitions} <= set(members[member].topics), "subscribed"


def read_assignment(data: bytes) -> None:
    decode_assignment(data)


def read_member_data(data: bytes) -> None:
    """Read user data. Java's assignors treat unreadable data of these two kinds as empty."""
    decode_previous_assignment(data)
    decode_generation(data)


def read_group_record(data: bytes) -> None:
    """Read a record of a sized key and a value, and apply it as after a restart.

    The fast parser of commits agrees with the full parser, or gives up. A record of a consumer group is
    written and read again.
    """
    if not data:
        return
    key, value = data[1 : 1 + data[0]], data[1 + data[0] :]
    quick = PartitionOffsets()
    is_taken = PlainCommits(quick).take(key, value, 3)
    loaded, replay = LoadedPartition(PartitionOffsets(), {}, {}), Replay(_OFFSETS_PARTITION)
    try:
        replay._apply(loaded, key, value, 3, NO_PRODUCER_ID)
    except CorruptRecordError:
        assert not is_taken, "the fast parser accepts a record that the full parser rejects"
        raise
    if is_taken:
        assert quick.groups == loaded.offsets.groups, "the fast parser reads a different record"
    decoded = records.decode_key(key)
    if decoded is not None and not isinstance(decoded, OffsetCommitKey | GroupMetadataKey):
        read = records.decode_consumer_value(decoded, value)
        written = records.consumer_record(decoded, read)
        assert written.value is not None
        assert records.decode_key(written.key) == decoded, "key"
        assert records.decode_consumer_value(decoded, written.value) == read, "value"
        assert replay.finish().consumer_groups.keys() == {decoded.group_id}, "group"


def print_group_record(data: bytes) -> None:
    """Convert a record of a sized key and a value to JSON, even if it is malformed."""
    if not data:
        return
    record = CoordinatorRecord(data[1 : 1 + data[0]], data[1 + data[0] :])
    ((one,),) = read_batches(log_of([record]))
    assert json.dumps(decoded_record(one)).startswith('{"key": '), "no key"


def group_records() -> list[bytes]:
    made = []
    for expire in (-1, 5):
        value = OffsetCommitValue(
            offset=7, leader_epoch=2, metadata="meta", commit_timestamp=9, expire_timestamp=expire
        )
        made.append(records.offset_commit("group", "topic", 3, value))
    member = GroupMetadataValue.MemberMetadata(
        member_id="m",
        client_id="c",
        client_host="/127.0.0.1",
        rebalance_timeout=9,
        session_timeout=8,
        subscription=encode_subscription(_SUBSCRIPTIONS[0]),
        assignment=encode_assignment(Assignment(_OWNED)),
    )
    value = GroupMetadataValue(
        protocol_type="consumer", generation=3, protocol="range", leader="m", members=[member]
    )
    made.append(records.group_metadata("group", value))
    made += [record for record in offsets_topic_records() if record.value is not None]
    return [bytes([len(each.key)]) + each.key + (each.value or b"") for each in made]


def read_transaction_record(data: bytes) -> None:
    """Read a record of a sized key and a value, and write the state and read it again."""
    if not data:
        return
    transactional_id = transaction_records.decode_key(data[1 : 1 + data[0]])
    if transactional_id is None:
        return
    metadata = transaction_records.decode_value(transactional_id, data[1 + data[0] :])
    if metadata.state is TransactionState.EMPTY:
        # A state without a transaction is written without partitions.
        metadata = replace(metadata, partitions=frozenset())
    written = transaction_records.transaction_record(metadata, 2)
    assert written.value is not None
    assert transaction_records.decode_key(written.key) == transactional_id, "key"
    assert transaction_records.decode_value(transactional_id, written.value) == metadata, "state"


def coordinated_transactions() -> list[bytes]:
    partitions = frozenset({TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 2)})
    made = [
        transaction_records.transaction_record(
            TransactionMetadata(
                transactional_id="tx",
                producer_id=7,
                producer_epoch=1,
                timeout_ms=60_000,
                state=state,
                partitions=frozenset() if state is TransactionState.EMPTY else partitions,
                start_ms=5,
                update_ms=9,
                client_version=2 * version,
            ),
            version,
        )
        for state in TransactionState
        for version in (0, 1)
    ]
    return [bytes([len(each.key)]) + each.key + (each.value or b"") for each in made]


def targets() -> list[Target]:
    subscriptions = [
        bytes([assignor]) + encode_subscription(subscription, version)
        for assignor in range(len(_ASSIGNORS))
        for subscription in _SUBSCRIPTIONS
        for version in range(4)
    ]
    assignments = [
        encode_assignment(Assignment(_OWNED, user_data), version)
        for user_data in (None, b"data")
        for version in range(4)
    ]
    member_data = [each.user_data for each in _SUBSCRIPTIONS if each.user_data]
    return [
        Target("subscription", read_subscription, subscriptions, head=1),
        Target("assignment", read_assignment, assignments),
        Target("member-data", read_member_data, member_data),
        Target("group-record", read_group_record, group_records(), head=1),
        Target("group-record-json", print_group_record, group_records(), head=1),
        Target("transaction-record", read_transaction_record, coordinated_transactions(), head=1),
    ]
