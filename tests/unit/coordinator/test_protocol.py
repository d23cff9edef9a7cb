"""Subscriptions and assignments that group members exchange: round trips, Java's bytes, and hostile bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkacore.coordinator.protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscribed_topics,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kafkacore.errors import KafkaProtocolError, UnsupportedVersionError
from kafkacore.structs import TopicPartition

TOPICS = st.sampled_from(["a", "b.c", "tööls", "z" * 249])
PARTITIONS = st.lists(st.builds(TopicPartition, TOPICS, st.integers(0, 2**31 - 1)), unique=True, max_size=9)
USER_DATA = st.none() | st.binary(max_size=20)
FULL = Subscription(("a", "b"), b"mine", (TopicPartition("a", 1), TopicPartition("b", 0)), 7, "rack", None)


@given(
    topics=st.lists(TOPICS, unique=True),
    user_data=USER_DATA,
    owned=PARTITIONS,
    generation=st.integers(-1, 2**31 - 1),
    rack=st.none() | st.sampled_from(["r1", "ü"]),
)
def test_subscription_comes_back_in_order(
    topics: list[str], user_data: bytes | None, owned: list[TopicPartition], generation: int, rack: str | None
) -> None:
    sent = Subscription(topics, user_data, owned, generation, rack)
    read = decode_subscription(encode_subscription(sent), "instance")
    assert read == Subscription(
        tuple(sorted(topics)), user_data, tuple(sorted(owned)), generation, rack, "instance"
    )


@given(partitions=PARTITIONS, user_data=USER_DATA, version=st.integers(0, 3))
def test_assignment_comes_back(
    partitions: list[TopicPartition], user_data: bytes | None, version: int
) -> None:
    read = decode_assignment(encode_assignment(Assignment(partitions, user_data), version))
    assert (sorted(read.partitions), read.user_data) == (sorted(partitions), user_data)


@pytest.mark.parametrize(
    ("version", "owned", "generation", "rack"),
    [(0, (), -1, None), (1, FULL.owned_partitions, -1, None), (2, FULL.owned_partitions, 7, None)],
)
def test_older_version_leaves_out_what_it_has_no_place_for(
    version: int, owned: tuple[TopicPartition, ...], generation: int, rack: str | None
) -> None:
    read = decode_subscription(encode_subscription(FULL, version))
    assert read == Subscription(("a", "b"), b"mine", owned, generation, rack)


def test_subscription_of_a_newer_version_is_read_as_the_newest_known() -> None:
    newer = b"\x00\x09" + encode_subscription(FULL)[2:] + b"what we do not know"
    assert decode_subscription(newer) == FULL


def test_empty_rack_is_none() -> None:
    assert decode_subscription(encode_subscription(Subscription(("a",), rack_id=""))).rack_id is None


def test_version_nobody_has_is_not_written() -> None:
    with pytest.raises(UnsupportedVersionError):
        encode_subscription(FULL, 4)


def test_assignment_of_no_bytes_is_empty() -> None:
    assert decode_assignment(b"") == Assignment(())


@pytest.mark.parametrize("data", [b"\xff\xff\x00\x00\x00\x00\xff\xff\xff\xff", b"\x00"])
def test_version_below_zero_or_cut_short_is_malformed(data: bytes) -> None:
    with pytest.raises(KafkaProtocolError):
        decode_subscription(data)
    with pytest.raises(KafkaProtocolError):
        decode_assignment(data)


def test_assigned_partition_below_zero_is_malformed() -> None:
    with pytest.raises(KafkaProtocolError, match=r"a--1"):
        decode_assignment(encode_assignment(Assignment((TopicPartition("a", -1),))))


@pytest.mark.parametrize("version", range(4))
def test_topics_of_every_version_are_those_of_version_0(version: int) -> None:
    assert decode_subscribed_topics(encode_subscription(FULL, version)) == list(FULL.topics)


@pytest.mark.parametrize("data", [b"", b"\x00\x01", b"\x00\x00\x00\x00\x00\x01\x00\x05t"])
def test_topics_cut_short_are_malformed(data: bytes) -> None:
    with pytest.raises(KafkaProtocolError):
        decode_subscribed_topics(data)


@pytest.mark.parametrize("size", range(len(encode_subscription(FULL))))
def test_subscription_cut_at_any_length_is_malformed(size: int) -> None:
    with pytest.raises(KafkaProtocolError):
        decode_subscription(encode_subscription(FULL)[:size])


@given(place=st.integers(0, len(encode_subscription(FULL)) - 1), value=st.integers(0, 255))
def test_subscription_with_a_changed_byte_is_read_or_malformed(place: int, value: int) -> None:
    data = bytearray(encode_subscription(FULL))
    data[place] = value
    try:
        read = decode_subscription(data)
    except KafkaProtocolError:
        return
    assert isinstance(read, Subscription)


def test_what_is_read_holds_no_part_of_the_answer() -> None:
    payload = bytearray(encode_subscription(FULL))
    read = decode_subscription(memoryview(payload))
    payload.clear()  # fails if a view of the bytearray still exists
    assert read.user_data == b"mine"
