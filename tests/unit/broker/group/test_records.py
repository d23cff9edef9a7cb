"""The records of ``__consumer_offsets``: hand-written bytes of Kafka, round trips and malformed records."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkacore.broker.group import records
from kafkacore.errors import MalformedMessageError
from kafkacore.protocol.generated.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kafkacore.wire import Writer

TOPIC_ID = UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")
NAMES = st.sampled_from(["", "g", "grüppe", "x" * 300])
LONGS = st.integers(-1, 2**63 - 1)
MEMBER = GroupMetadataValue.MemberMetadata(
    member_id="consumer-1",
    group_instance_id="static",
    client_id="client",
    client_host="/127.0.0.1",
    rebalance_timeout=300_000,
    session_timeout=45_000,
    subscription=b"\x00\x01sub",
    assignment=b"ass",
)
GENERATION = GroupMetadataValue(
    protocol_type="consumer",
    generation=7,
    protocol="range",
    leader="consumer-1",
    current_state_timestamp=1_700_000_000_000,
    members=[MEMBER],
)


def string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def in_version(value: Any, version: int) -> bytes:
    writer = Writer()
    writer.write_int16(version)
    value.encode(writer, version)
    return b"".join(writer.pieces())


def test_commit_is_written_as_kafka_lays_it_out() -> None:
    value = OffsetCommitValue(
        offset=42, leader_epoch=3, metadata="note", commit_timestamp=1_000, topic_id=TOPIC_ID
    )
    key, written = records.offset_commit("group", "topic", 5, value)
    assert key == struct.pack(">h", 1) + string("group") + string("topic") + struct.pack(">i", 5)
    # Flexible: compact string, one tagged field (tag 0, 16 bytes).
    assert written == struct.pack(">hqi", 4, 42, 3) + b"\x05note" + struct.pack(">q", 1_000) + (
        b"\x01\x00\x10" + TOPIC_ID.bytes
    )


def test_commit_with_an_expiry_of_its_own_is_version_1_which_alone_can_say_so() -> None:
    value = OffsetCommitValue(offset=42, leader_epoch=3, metadata="m", commit_timestamp=7, expire_timestamp=9)
    _, written = records.offset_commit("g", "t", 0, value)
    assert written == struct.pack(">hq", 1, 42) + string("m") + struct.pack(">qq", 7, 9)


def test_generation_is_written_in_version_3() -> None:
    key, written = records.group_metadata("group", GENERATION)
    assert key == struct.pack(">h", 2) + string("group")
    assert written == (
        struct.pack(">h", 3) + string("consumer") + struct.pack(">i", 7) + string("range")
        + string("consumer-1") + struct.pack(">qi", 1_700_000_000_000, 1)
        + string("consumer-1") + string("static") + string("client") + string("/127.0.0.1")
        + struct.pack(">iii", 300_000, 45_000, 5) + b"\x00\x01sub" + struct.pack(">i", 3) + b"ass"
    )  # fmt: skip


def test_tombstone_has_the_key_and_nothing_else() -> None:
    commit = records.offset_commit("g", "t", 1, OffsetCommitValue())
    assert records.offset_commit_tombstone("g", "t", 1) == (commit.key, None)
    assert records.group_metadata_tombstone("g") == (records.group_metadata("g", GENERATION).key, None)


@given(group=NAMES, topic=NAMES, partition=st.integers(0, 2**31 - 1))
def test_key_comes_back(group: str, topic: str, partition: int) -> None:
    key = OffsetCommitKey(group=group, topic=topic, partition=partition)
    assert records.decode_key(records.offset_commit_key(group, topic, partition)) == key
    assert records.decode_key(records.group_metadata_key(group)) == GroupMetadataKey(group=group)


def test_key_of_the_first_brokers_is_read_as_an_offsets() -> None:
    legacy = struct.pack(">h", 0) + string("g") + string("t") + struct.pack(">i", 3)
    assert records.decode_key(legacy) == OffsetCommitKey(group="g", topic="t", partition=3)


@pytest.mark.parametrize("kind", [9, 15, 22, 32767, -1])
def test_record_of_another_kind_is_none_of_ours(kind: int) -> None:
    assert records.decode_key(struct.pack(">h", kind) + string("group")) is None


@pytest.mark.parametrize("version", range(5))
@given(offset=LONGS, epoch=st.integers(-1, 2**31 - 1), text=NAMES, time=LONGS, expiry=LONGS)
def test_commit_of_every_version_is_read_with_what_it_can_say(
    version: int, offset: int, epoch: int, text: str, time: int, expiry: int
) -> None:
    value = OffsetCommitValue(
        offset=offset,
        leader_epoch=epoch,
        metadata=text,
        commit_timestamp=time,
        expire_timestamp=expiry,
        topic_id=TOPIC_ID,
    )
    read = records.decode_offset_commit(in_version(value, version))
    assert (read.offset, read.metadata, read.commit_timestamp) == (offset, text, time)
    assert read.leader_epoch == (epoch if version >= 3 else -1)
    assert read.expire_timestamp == (expiry if version == 1 else -1)
    assert (read.topic_id == TOPIC_ID) == (version >= 4)


@pytest.mark.parametrize("version", range(5))
def test_generation_of_every_version_is_read_with_what_it_can_say(version: int) -> None:
    read = records.decode_group_metadata(in_version(GENERATION, version))
    (member,) = read.members
    assert (read.protocol_type, read.generation, read.protocol) == ("consumer", 7, "range")
    assert read.current_state_timestamp == (1_700_000_000_000 if version >= 2 else -1)
    assert member.rebalance_timeout == (300_000 if version >= 1 else -1)
    assert member.group_instance_id == ("static" if version >= 3 else None)
    assert (bytes(member.subscription), bytes(member.assignment)) == (b"\x00\x01sub", b"ass")


@pytest.mark.parametrize("version", [5, 32767, -1])
def test_version_of_the_future_is_refused_by_name(version: int) -> None:
    data = struct.pack(">h", version) + bytes(64)
    with pytest.raises(MalformedMessageError, match=f"version {version} of OffsetCommitValue:.* 0 to 4"):
        records.decode_offset_commit(data)
    with pytest.raises(MalformedMessageError, match=f"version {version} of GroupMetadataValue"):
        records.decode_group_metadata(data)


@pytest.mark.parametrize("version", range(5))
def test_value_cut_anywhere_is_malformed(version: int) -> None:
    commit = in_version(OffsetCommitValue(metadata="note", topic_id=TOPIC_ID), version)
    generation = in_version(GENERATION, version)
    for size in range(len(commit)):
        with pytest.raises(MalformedMessageError):
            records.decode_offset_commit(commit[:size])
    for size in range(len(generation)):
        with pytest.raises(MalformedMessageError):
            records.decode_group_metadata(generation[:size])


def test_key_cut_anywhere_is_malformed() -> None:
    for key in (records.offset_commit_key("group", "topic", 5), records.group_metadata_key("group")):
        for size in range(len(key)):
            with pytest.raises(MalformedMessageError):
                records.decode_key(key[:size])


@given(data=st.binary(max_size=80), kind=st.integers(0, 2), version=st.integers(0, 4))
def test_any_bytes_are_read_or_malformed(data: bytes, kind: int, version: int) -> None:
    for decode, first in (
        (records.decode_key, kind),
        (records.decode_offset_commit, version),
        (records.decode_group_metadata, version),
    ):
        try:
            decode(struct.pack(">h", first) + data)
        except MalformedMessageError:
            continue
