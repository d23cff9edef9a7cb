"""The coordinator log: the state in memory matches the log, and answers wait until records are durable."""

from __future__ import annotations

from pathlib import Path

import pytest
from model.offsets_harness import NODE, OffsetsHarness, noted
from model.topic_changes import delete_topic

from kafkacore.broker.group import records
from kafkacore.broker.topics.internal_topics import OFFSETS_TOPIC
from kafkacore.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    KafkaStorageError,
    MessageSizeTooLargeError,
    NotCoordinatorError,
    UnknownError,
)
from kafkacore.protocol.generated.group_records import GroupMetadataValue, OffsetCommitValue
from kafkacore.record import Compression, RecordBatchBuilder, read_batches

#: A group whose partition of the 50 is not that of "g".
ELSEWHERE = "h"


@pytest.fixture
def harness(tmp_path: Path) -> OffsetsHarness:
    return OffsetsHarness(tmp_path)


def value(offset: int) -> OffsetCommitValue:
    return OffsetCommitValue(offset=offset, commit_timestamp=1)


def commit(offset: int, group_id: str = "g") -> records.CoordinatorRecord:
    return records.offset_commit(group_id, "t", 0, value(offset))


def test_topic_is_made_with_kafkas_settings(harness: OffsetsHarness) -> None:
    topic = harness.topics.get(OFFSETS_TOPIC)
    assert topic is not None
    assert topic.partition_count == 50
    assert topic.configs == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }


def test_one_append_is_one_batch(harness: OffsetsHarness) -> None:
    harness.log.append("g", [commit(1), commit(2), records.group_metadata_tombstone("g")], noted()[1])
    ((_, last, written),) = harness.log_of().batches
    (batch,) = read_batches(written)
    assert (last, [(r.key, r.value) for r in batch]) == (
        2,
        [commit(1), commit(2), records.group_metadata_tombstone("g")],
    )


@pytest.mark.parametrize("codec", range(5))
def test_batches_have_the_codec_that_is_asked_for(tmp_path: Path, codec: int) -> None:
    harness = OffsetsHarness(tmp_path, offsets_topic_compression_codec=codec)
    harness.commit(("t", 0, 7))
    (batch,) = read_batches(harness.log_of().batches[0][2])
    assert batch.compression == Compression(codec)


def test_append_is_applied_at_once_and_told_when_it_is_safe(harness: OffsetsHarness) -> None:
    codes, on_safe = noted()
    harness.log.append("g", [commit(1)], on_safe)
    offsets = harness.state.offsets_of(harness.log.partition_for("g"))
    assert offsets is not None
    assert offsets.of_group("g")["t"][0].offset == 1
    harness.turns()
    assert codes == []
    harness.sync()
    assert codes == [0]


def test_appends_of_a_partition_are_told_in_their_order(harness: OffsetsHarness) -> None:
    told: list[str] = []
    harness.log.append("g", [commit(1)], lambda _: told.append("first"))
    harness.log_of().sync()  # The callback has not run yet.
    harness.log.append("g", [commit(2)], lambda _: told.append("second"))
    harness.log.when_safe("g", lambda _: told.append("read"))
    harness.sync()
    assert told == ["first", "second", "read"]


def test_an_append_in_answer_to_another_is_told_after_it(harness: OffsetsHarness) -> None:
    told: list[str] = []

    def first(_: int) -> None:
        told.append("first")
        harness.log.append("g", [commit(2)], lambda _: told.append("third"))

    harness.log.append("g", [commit(1)], first)
    harness.log.when_safe("g", lambda _: told.append("second"))
    harness.sync()
    assert told == ["first", "second"]
    harness.sync()
    assert told == ["first", "second", "third"]


def test_a_failing_answer_does_not_cost_the_others_theirs(harness: OffsetsHarness) -> None:
    codes, on_safe = noted()

    def broken(_: int) -> None:
        raise ValueError("ours")

    harness.log.append("g", [commit(1)], broken)
    harness.log.append("g", [commit(2)], on_safe)
    harness.sync()
    assert codes == [0]


def test_reading_waits_for_what_it_would_show(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 1))
    answers = harness.fetched()
    assert answers == []
    harness.sync()
    assert answers == [{("t", 0): 1}]
    assert harness.fetched() == [{("t", 0): 1}]


def test_append_that_takes_too_long_is_told_and_may_yet_be_safe(harness: OffsetsHarness) -> None:
    codes, on_safe = noted()
    harness.log.append("g", [commit(1)], on_safe)
    harness.clock.advance(4_999)
    harness.turn()
    assert codes == []
    harness.clock.advance(1)
    harness.turn()
    assert codes == [CoordinatorNotAvailableError.errno]
    assert harness.committed() == {("t", 0): 1}


def test_refused_append_leaves_memory_as_it_was(
    harness: OffsetsHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.commit(("t", 0, 1))
    harness.sync()
    for error, told in (
        (KafkaStorageError("no space left"), NotCoordinatorError),
        (MessageSizeTooLargeError("too large"), UnknownError),
    ):

        def refuse(*_: object, error: Exception = error, **__: object) -> None:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(harness.log_of(), "append", refuse)
            assert harness.commit(("t", 0, 2)) == [[told.errno]]
        assert harness.committed() == {("t", 0): 1}
    # The error is temporary: the next commit succeeds.
    harness.commit(("t", 0, 3))
    assert harness.committed() == {("t", 0): 3}


def test_failed_log_takes_back_all_that_was_not_safe(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 1))
    harness.sync()
    codes = harness.commit(("t", 0, 2))
    read = harness.fetched()
    harness.log_of().failure = "flush failed"
    harness.replica_manager.on_high_watermark(harness.place_of(), 0)
    harness.turns()
    assert (codes, read) == ([[NotCoordinatorError.errno]], [NotCoordinatorError.errno])
    assert harness.groups.unloaded == [harness.log.partition_for("g")]
    assert not harness.groups.exists("g")
    with pytest.raises(NotCoordinatorError, match="offline"):
        harness.log.check("g", NODE)
    assert harness.state.offsets_of(harness.log.partition_for("g")) is None
    harness.log.check(ELSEWHERE, NODE)


def test_only_the_leader_coordinates(harness: OffsetsHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    harness.log.check("g", NODE)
    with pytest.raises(NotCoordinatorError, match="is not the leader"):
        harness.log.check("g", NODE + 1)


def test_without_the_topic_nobody_coordinates(tmp_path: Path) -> None:
    from model.memory_log import MemoryLogManager

    harness = OffsetsHarness(tmp_path, MemoryLogManager())
    with pytest.raises(NotCoordinatorError, match="__consumer_offsets does not exist yet"):
        harness.log.check("g", NODE)
    harness.log.ensure_topic()
    harness.log.check("g", NODE)


def test_topic_made_by_somebody_else_is_noticed(tmp_path: Path) -> None:
    from model.memory_log import MemoryLogManager

    harness = OffsetsHarness(tmp_path, MemoryLogManager())
    harness.topics.create(OFFSETS_TOPIC, 3, {})
    harness.log.check("g", NODE)
    assert harness.log.partition_count == 3
    assert harness.log.partition_for("consume_group") == 34 % 3 or harness.log.partition_for("g") < 3


def test_groups_go_with_the_topic_and_those_who_wait_are_sent_away(harness: OffsetsHarness) -> None:
    codes = harness.commit(("t", 0, 1))
    delete_topic(harness.topics, OFFSETS_TOPIC)
    harness.turns()
    assert codes == [[NotCoordinatorError.errno]]
    assert len(harness.groups.unloaded) == 50
    with pytest.raises(NotCoordinatorError):
        harness.log.check("g", NODE)
    harness.log.ensure_topic()
    assert harness.committed() == {}


def test_new_leader_begins_from_the_log(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 1))
    harness.sync()
    waiting = harness.commit(("t", 0, 2))
    harness.log_of().begin_epoch(1)
    harness.log.leader_changed(harness.place_of())
    # The old leader cannot know the result. The commit is in the log, so the reload finds it.
    assert waiting == [[NotCoordinatorError.errno]]
    with pytest.raises(CoordinatorLoadInProgressError):
        harness.log.check("g", NODE)
    harness.wait_for_load()
    assert harness.groups.loaded == ["g"]
    assert harness.committed() == {("t", 0): 2}


def test_key_is_safe_now_if_its_coordinator_is_active_and_nothing_waits(harness: OffsetsHarness) -> None:
    log = harness.log
    assert log.is_safe_now("g", NODE)
    assert not log.is_safe_now("g", NODE + 1)
    log.refusal = NotCoordinatorError()
    assert not log.is_safe_now("g", NODE)
    log.refusal = None
    harness.commit(("t", 0, 1))
    assert not log.is_safe_now("g", NODE)
    assert log.is_safe_now(ELSEWHERE, NODE)
    harness.sync()
    assert log.is_safe_now("g", NODE)
    harness.log_of().begin_epoch(1)
    assert not log.is_safe_now("g", NODE)
    with pytest.raises(CoordinatorLoadInProgressError):
        log.check("g", NODE)
    assert not log.is_safe_now("g", NODE)
    harness.wait_for_load()
    assert log.is_safe_now("g", NODE)
    harness.log_of().failure = "flush failed"
    assert not log.is_safe_now("g", NODE)


def test_no_key_is_safe_without_the_topic_or_with_another_topic(harness: OffsetsHarness) -> None:
    delete_topic(harness.topics, OFFSETS_TOPIC)
    assert not harness.log.is_safe_now("g", NODE)
    harness.topics.create(OFFSETS_TOPIC, 50, {})
    # The partitions of the new topic are not loaded yet.
    assert not harness.log.is_safe_now("g", NODE)
    harness.log.check("g", NODE)
    assert harness.log.is_safe_now("g", NODE)


def test_restart_finds_offsets_and_groups(harness: OffsetsHarness) -> None:
    generation = GroupMetadataValue(protocol_type="consumer", generation=3, protocol="range", leader="m")
    harness.log.append("g", [records.group_metadata("g", generation)], noted()[1])
    harness.commit(("t", 0, 1), ("t", 1, 5))
    harness.commit(("t", 0, 2))
    harness.log.append("g", [records.offset_commit_tombstone("g", "t", 1)], noted()[1])
    harness.commit(("t", 3, 9), group_id=ELSEWHERE)
    harness.log.append("gone", [records.group_metadata("gone", generation)], noted()[1])
    harness.log.append("gone", [records.group_metadata_tombstone("gone")], noted()[1])
    other = harness.restarted()
    assert other.committed() == {("t", 0): 2}
    assert other.committed(ELSEWHERE) == {("t", 3): 9}
    assert other.groups.known == {"g": generation, ELSEWHERE: None}
    assert sorted(other.groups.loaded) == ["g", ELSEWHERE]


def test_requests_are_put_off_while_a_partition_is_loaded(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 1))
    other = OffsetsHarness(harness.config.data_dir, harness.logs, harness.clock)
    other.log.start()
    with pytest.raises(CoordinatorLoadInProgressError):
        other.log.check("g", NODE)
    assert other.commit(("t", 0, 2)) == [[CoordinatorLoadInProgressError.errno]]
    other.log.check(ELSEWHERE, NODE)  # Its partition has nothing to load.
    other.wait_for_load()
    other.log.check("g", NODE)


def test_what_compaction_leaves_loads_as_the_whole(harness: OffsetsHarness) -> None:
    for number in range(10):
        harness.commit(("t", number % 3, number))
    harness.log.append("g", [records.offset_commit_tombstone("g", "t", 2)], noted()[1])
    expected = harness.restarted().committed()
    log = harness.log_of()
    # Keep the last batch of each key; then drop the tombstone at the end, too.
    log.batches = [log.batches[at] for at in (7, 9, 10)]
    assert harness.restarted().committed() == expected == {("t", 0): 9, ("t", 1): 7}
    log.batches = log.batches[:2]
    assert harness.restarted().committed() == expected


def test_offsets_of_a_transaction_count_when_it_was_committed(harness: OffsetsHarness) -> None:
    def write(producer: int, offset: int | None, marker: bytes = b"") -> None:
        builder = RecordBatchBuilder(1000)
        if offset is None:
            builder.append(1, marker, b"\x00\x00\x00\x00\x00\x00")
        else:
            builder.append(1, *records.offset_commit("g", "t", producer, value(offset)))
        batch = builder.close(producer, 0, 0, is_transactional=True, is_control=offset is None)
        harness.log_of().append(batch, now_ms=1)

    abort, end = b"\x00\x00\x00\x00", b"\x00\x00\x00\x01"
    for producer in (0, 1, 2):
        write(producer, 10 + producer)
    write(0, None, end)
    write(1, None, abort)
    assert harness.restarted().committed() == {("t", 0): 10}
    # Aborted offsets stay aborted after the producer commits another transaction, even an empty one.
    write(1, None, end)
    assert harness.restarted().committed() == {("t", 0): 10}


def test_offset_that_was_committed_during_a_transaction_is_not_older_than_its_end(
    harness: OffsetsHarness,
) -> None:
    builder = RecordBatchBuilder(1000)
    builder.append(1, *commit(1))
    harness.log_of().append(builder.close(7, 0, 0, is_transactional=True), now_ms=1)
    harness.commit(("t", 0, 2))
    builder = RecordBatchBuilder(1000)
    builder.append(1, b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00\x00")
    harness.log_of().append(builder.close(7, 0, -1, is_transactional=True, is_control=True), now_ms=1)
    assert harness.restarted().committed() == {("t", 0): 2}


def test_last_record_counts_whether_its_key_is_of_the_first_brokers_or_of_now(
    harness: OffsetsHarness,
) -> None:
    for kind, offset in ((b"\x00\x00", 1), (b"\x00\x01", 2), (b"\x00\x00", 3)):
        key, written = commit(offset)
        builder = RecordBatchBuilder(1000)
        builder.append(1, kind + key[2:], written)
        harness.log_of().append(builder.close(), now_ms=1)
    assert harness.restarted().committed() == {("t", 0): 3}


def test_records_of_other_protocols_are_passed_over(harness: OffsetsHarness) -> None:
    builder = RecordBatchBuilder(1000)
    builder.append(1, b"\x00\x09\x00\x01g", b"\x00\x00whatever")
    builder.append(1, *commit(4))
    harness.log_of().append(builder.close(), now_ms=1)
    assert harness.restarted().committed() == {("t", 0): 4}


@pytest.mark.parametrize("key", [b"", b"\x00", b"\x00\x01\x00\x09g", b"\x00\x02\xff\xff"])
def test_damaged_record_takes_its_partition_off_and_names_its_place(
    harness: OffsetsHarness, key: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    harness.commit(("t", 0, 1))
    harness.commit(("t", 0, 2), group_id=ELSEWHERE)
    builder = RecordBatchBuilder(1000)
    builder.append(1, key, b"\x00\x04")
    harness.log_of().append(builder.close(), now_ms=1)
    other = harness.restarted()
    assert other.commit(("t", 0, 3)) == [[NotCoordinatorError.errno]]
    assert f"{harness.place_of()}" in caplog.text
    assert "offset 1" in caplog.text
    assert other.committed(ELSEWHERE) == {("t", 0): 2}


def test_closing_does_not_wait_for_what_is_not_loaded(harness: OffsetsHarness) -> None:
    for number in range(20):
        harness.commit(("t", 0, 1), group_id=f"group-{number}")
    other = OffsetsHarness(harness.config.data_dir, harness.logs, harness.clock)
    other.log.start()
    other.log.close()
    other.log.close()
    assert other.log.is_loading or not other.replica_manager.has_events
