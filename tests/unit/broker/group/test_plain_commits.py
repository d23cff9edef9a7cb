"""Offset commits that are loaded without the message codecs, compared with those codecs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkacore.broker.group import records
from kafkacore.broker.group.offset_store import PartitionOffsets
from kafkacore.broker.group.plain_commits import PlainCommits
from kafkacore.broker.group.replay import Replay
from kafkacore.errors import MalformedMessageError
from kafkacore.protocol.generated.group_records import OffsetCommitKey, OffsetCommitValue
from kafkacore.record import RecordBatchBuilder, read_batches
from kafkacore.structs import TopicPartition

LONGS = st.integers(-(2**63), 2**63 - 1)
NAMES = st.text(max_size=200)
VALUES = st.builds(
    OffsetCommitValue,
    offset=LONGS,
    leader_epoch=st.integers(-1, 2**31 - 1),
    metadata=NAMES,
    commit_timestamp=LONGS,
    expire_timestamp=st.sampled_from([-1, -1, -1, 5]),
    topic_id=st.uuids(),
)


def decode_by_codec(key: bytes, value: bytes) -> PartitionOffsets | None:
    """Decode a record with the generated codecs. Return ``None`` if it is invalid or is not a commit."""
    offsets = PartitionOffsets()
    try:
        decoded = records.decode_key(key)
        if not isinstance(decoded, OffsetCommitKey):
            return None
        offsets.apply(decoded, records.decode_offset_commit(value), 7)
    except MalformedMessageError:
        return None
    return offsets


def taken(key: bytes, value: bytes) -> PartitionOffsets | None:
    offsets = PartitionOffsets()
    return offsets if PlainCommits(offsets).take(key, value, 7) else None


@given(group=NAMES, topic=NAMES, partition=st.integers(0, 2**31 - 1), value=VALUES)
def test_plain_commit_is_what_the_codecs_say(
    group: str, topic: str, partition: int, value: OffsetCommitValue
) -> None:
    record = records.offset_commit(group, topic, partition, value)
    assert record.value is not None
    found = taken(*record)
    is_plain = value.expire_timestamp == -1 and len(value.metadata.encode()) < 127
    assert (found is not None) == is_plain
    expected = decode_by_codec(*record)
    assert expected is not None
    if found is not None:
        assert found.groups == expected.groups


@given(
    value=VALUES,
    change=st.tuples(st.booleans(), st.integers(0, 60), st.integers(0, 255)),
    cut=st.integers(0, 80),
)
def test_whatever_is_taken_of_damaged_bytes_is_what_the_codecs_say(
    value: OffsetCommitValue, change: tuple[bool, int, int], cut: int
) -> None:
    record = records.offset_commit("group", "topic", 3, value)
    assert record.value is not None
    parts = [bytearray(record.key), bytearray(record.value)]
    is_key, at, byte = change
    part = parts[0 if is_key else 1]
    part[at % len(part)] = byte
    del part[cut + 1 :]
    key, changed = bytes(parts[0]), bytes(parts[1])
    found = taken(key, changed)
    if found is not None:
        expected = decode_by_codec(key, changed)
        assert expected is not None
        assert found.groups == expected.groups


def counted(function: Callable[..., Any], calls: list[Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        calls.append(arguments)
        return function(*arguments)

    return call


def test_replay_of_plain_commits_needs_no_codec_and_keeps_each_name_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(records, "decode_key", counted(records.decode_key, calls))
    builder = RecordBatchBuilder(1 << 20)
    for partition in range(100):
        for topic in ("a", "b"):
            value = OffsetCommitValue(offset=partition, topic_id=UUID(int=9))
            builder.append(1, *records.offset_commit("group", topic, partition, value))
    replay = Replay(TopicPartition("__consumer_offsets", 0))
    for batch in read_batches(builder.close()):
        replay.take(batch)
    loaded = replay.finish()
    assert calls == []
    assert len(loaded.offsets) == 200
    ids = {id(one.topic_id) for topic in loaded.offsets.of_group("group").values() for one in topic.values()}
    assert len(ids) == 1
