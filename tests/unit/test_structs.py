"""The shared named tuples equal kafka-python's, so that a program can change only its imports."""

from __future__ import annotations

import pickle

import kafka.structs
import pytest

from kafkacore import structs
from kafkacore.structs import (
    IsolationLevel,
    Node,
    OffsetAndMetadata,
    OffsetSpec,
    TimestampType,
    TopicPartition,
    is_topic_name,
)


@pytest.mark.parametrize(
    "name",
    [
        "TopicPartition",
        "TopicPartitionReplica",
        "OffsetAndMetadata",
        "OffsetAndTimestamp",
        "ConsumerGroupMetadata",
    ],
)
def test_fields_are_those_of_kafka_python_in_its_order(name: str) -> None:
    assert getattr(structs, name)._fields == getattr(kafka.structs, name)._fields


def test_states_of_a_member_are_those_of_kafka_python() -> None:
    names = ("UNJOINED", "REBALANCING", "STABLE")
    assert [getattr(structs.MemberState, name) for name in names] == [
        getattr(kafka.structs.MemberState, name) for name in names
    ]
    assert structs.ConsumerGroupMetadata() == kafka.structs.ConsumerGroupMetadata()


def test_topic_partition_is_a_pair_that_can_be_a_key_and_travel() -> None:
    tp = TopicPartition("t", 3)
    topic, partition = tp
    assert (topic, partition) == ("t", 3) == tp
    assert {tp: 1}[TopicPartition("t", 3)] == 1
    assert sorted([TopicPartition("b", 0), TopicPartition("a", 2), TopicPartition("a", 1)]) == [
        ("a", 1),
        ("a", 2),
        ("b", 0),
    ]
    assert pickle.loads(pickle.dumps(tp)) == tp


def test_what_is_not_given_is_unknown() -> None:
    assert Node(1, "host", 9092).rack is None
    assert OffsetAndMetadata(7) == (7, "", -1)


def test_numbers_are_those_on_the_wire() -> None:
    assert [(level.name, level.value) for level in IsolationLevel] == [
        ("READ_UNCOMMITTED", 0),
        ("READ_COMMITTED", 1),
    ]
    assert (TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME) == (0, 1)
    assert (OffsetSpec.LATEST, OffsetSpec.EARLIEST, OffsetSpec.MAX_TIMESTAMP) == (-1, -2, -3)
    assert OffsetSpec(-4) is OffsetSpec.EARLIEST_LOCAL


@pytest.mark.parametrize(
    ("name", "is_legal"),
    [("a", True), ("a.B_c-9", True), ("x" * 249, True), ("x" * 250, False), ("", False), (".", False),
     ("..", False), ("a/b", False), ("a\n", False), ("é", False)],
)  # fmt: skip
def test_topic_names_follow_kafkas_rule(name: str, is_legal: bool) -> None:
    assert is_topic_name(name) is is_legal
