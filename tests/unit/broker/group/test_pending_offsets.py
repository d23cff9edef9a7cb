"""Offsets of a group in transactions: pending until the marker, in memory, in the log and after a load."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from model.dose import dose, new_seed
from model.offsets_harness import NODE, OffsetsHarness, noted
from model.topic_changes import delete_topic
from model.transactional_offsets import OffsetsRun, records_of

from kafkacore.broker.coordinator.interfaces import NO_PRODUCER_ID, Producer
from kafkacore.broker.group import records
from kafkacore.broker.group.offset_store import CommittedOffset, PartitionOffsets, PendingOffsets
from kafkacore.broker.group.replay import Replay
from kafkacore.errors import (
    CoordinatorLoadInProgressError,
    IllegalGenerationError,
    InvalidProducerEpochError,
    KafkaStorageError,
    NotCoordinatorError,
    OffsetMetadataTooLargeError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol.generated.group_records import OffsetCommitValue
from kafkacore.record import RecordBatchBuilder

RETENTION_MS = 7 * 24 * 60 * 60_000
P, Q = Producer(10, 0), Producer(11, 0)


@pytest.fixture
def harness(tmp_path: Path) -> OffsetsHarness:
    return OffsetsHarness(tmp_path)


def after_sweep(harness: OffsetsHarness) -> Any:
    harness.sweeper.sweep()
    harness.turns()
    return harness.committed()


# ---- The end of a transaction ------------------------------------------------------------------------------
def test_offset_counts_when_its_transaction_is_committed(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 1))
    assert harness.commit(("t", 0, 5), ("t", 1, 6), producer=P) == []
    assert (harness.committed(), harness.pending()) == ({("t", 0): 1}, [("t", 0), ("t", 1)])
    assert harness.end(P.producer_id, commit=True) == 4
    assert (harness.committed(), harness.pending()) == ({("t", 0): 5, ("t", 1): 6}, [])


def test_offset_of_an_aborted_transaction_is_dropped(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 1))
    harness.commit(("t", 0, 5), producer=P)
    harness.end(P.producer_id, commit=False)
    assert (harness.committed(), harness.pending()) == ({("t", 0): 1}, [])
    harness.end(P.producer_id, commit=True)
    assert harness.committed() == harness.restarted().committed() == {("t", 0): 1}


def test_marker_ends_only_its_producers_transaction(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 5), ("t", 1, 5), producer=P)
    harness.commit(("t", 1, 6), ("t", 2, 6), producer=Q)
    harness.end(P.producer_id, commit=False)
    assert (harness.committed(), harness.pending()) == ({}, [("t", 1), ("t", 2)])
    harness.end(Q.producer_id, commit=True)
    assert harness.committed() == {("t", 1): 6, ("t", 2): 6}


def test_transaction_ends_for_all_groups_of_the_partition(tmp_path: Path) -> None:
    harness = OffsetsHarness(tmp_path, offsets_topic_num_partitions=1)
    harness.commit(("t", 0, 5), producer=P)
    harness.commit(("t", 0, 6), group_id="h", producer=P)
    harness.end(P.producer_id, commit=True)
    assert (harness.committed(), harness.committed("h")) == ({("t", 0): 5}, {("t", 0): 6})


def test_last_offset_of_a_partition_in_a_transaction_counts(harness: OffsetsHarness) -> None:
    for offset in (5, 7, 6):
        harness.commit(("t", 0, offset), producer=P)
    harness.end(P.producer_id, commit=True)
    assert harness.committed() == harness.restarted().committed() == {("t", 0): 6}


def test_later_commit_outside_the_transaction_wins(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 5), producer=P)
    harness.commit(("t", 0, 2))
    assert harness.pending() == harness.restarted().pending() == [("t", 0)]
    harness.end(P.producer_id, commit=True)
    assert harness.committed() == harness.restarted().committed() == {("t", 0): 2}


def test_later_record_of_two_transactions_wins_whichever_ends_first(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 5), producer=P)
    harness.commit(("t", 0, 6), producer=Q)
    harness.end(Q.producer_id, commit=True)
    harness.end(P.producer_id, commit=True)
    assert harness.committed() == harness.restarted().committed() == {("t", 0): 6}


def test_readers_wait_until_the_marker_is_safe(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 5), producer=P)
    harness.sync()
    assert harness.fetched() == [{}]
    harness.end(P.producer_id, commit=True)
    answers = harness.fetched()
    assert answers == []
    harness.sync()
    assert answers == [{("t", 0): 5}]


def test_offsets_of_a_transaction_are_one_transactional_batch(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 5), ("t", 1, 6), producer=P)
    harness.end(P.producer_id, commit=True)
    assert records_of(harness.log_of()) == [(0, P.producer_id, False), (2, P.producer_id, True)]
    assert not harness.log.has_open_transaction("g", P)


# ---- Refusals ----------------------------------------------------------------------------------------------
def test_commit_of_a_fenced_producer_is_refused(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 5), producer=Producer(10, 3))
    harness.end(10, epoch=3, commit=True)
    assert harness.commit(("t", 0, 6), producer=Producer(10, 2)) == [[InvalidProducerEpochError.errno]]
    with pytest.raises(InvalidProducerEpochError):
        harness.end(10, epoch=2, commit=False)
    assert (harness.committed(), harness.pending()) == ({("t", 0): 5}, [])


def test_commit_that_the_group_refuses_is_not_written(harness: OffsetsHarness) -> None:
    harness.groups.refusal = IllegalGenerationError()
    assert harness.commit(("t", 0, 5), producer=P) == [[IllegalGenerationError.errno]]
    assert harness.log_of().batches == []


def test_too_long_metadata_is_refused_alone(tmp_path: Path) -> None:
    harness = OffsetsHarness(tmp_path, offset_metadata_max_bytes=2)
    answers = harness.commit(("t", 0, 5), metadata="long", producer=P)
    assert (answers, harness.pending()) == ([[OffsetMetadataTooLargeError.errno]], [])


def test_marker_for_a_partition_that_is_not_served_is_refused(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 5), producer=P)
    other = OffsetsHarness(harness.config.data_dir, harness.logs, harness.clock)
    other.log.start()
    with pytest.raises(CoordinatorLoadInProgressError):
        other.end(P.producer_id, commit=True)
    other.wait_for_load()
    other.log_of().failure = "the disk has failed"
    with pytest.raises(NotCoordinatorError):
        other.end(P.producer_id, commit=True)
    delete_topic(harness.topics, "__consumer_offsets")
    with pytest.raises(UnknownTopicOrPartitionError, match="does not exist"):
        harness.end(P.producer_id, commit=True)


def test_failed_append_of_a_marker_unloads_the_partition(
    harness: OffsetsHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.commit(("t", 0, 5), producer=P)

    def fail(*_: object, **__: object) -> None:
        harness.log_of().failure = "the disk has failed"
        raise KafkaStorageError("the disk has failed")

    monkeypatch.setattr(harness.log_of(), "append_marker", fail)
    with pytest.raises(KafkaStorageError):
        harness.end(P.producer_id, commit=True)
    with pytest.raises(NotCoordinatorError):
        harness.log.check("g", NODE)


# ---- Load --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("commit", [True, False])
def test_transaction_that_is_open_at_a_restart_can_be_ended(harness: OffsetsHarness, commit: bool) -> None:
    harness.commit(("t", 0, 1))
    harness.commit(("t", 0, 5), ("t", 1, 6), producer=P)
    other = harness.restarted()
    assert (other.committed(), other.pending()) == ({("t", 0): 1}, [("t", 0), ("t", 1)])
    other.end(P.producer_id, commit=commit)
    expected = {("t", 0): 5, ("t", 1): 6} if commit else {("t", 0): 1}
    assert other.committed() == other.restarted().committed() == expected
    assert other.pending() == other.restarted().pending() == []


def test_pending_offsets_survive_a_change_of_the_leader(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 5), producer=P)
    harness.log_of().begin_epoch(1)
    harness.log.leader_changed(harness.place_of())
    harness.wait_for_load()
    assert (harness.committed(), harness.pending()) == ({}, [("t", 0)])
    harness.end(P.producer_id, commit=True)
    assert harness.committed() == {("t", 0): 5}


def test_group_that_has_only_pending_offsets_exists_after_a_load(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 5), producer=P)
    assert harness.groups.known == harness.restarted().groups.known == {"g": None}


def test_pending_offset_in_the_first_brokers_format_is_read(harness: OffsetsHarness) -> None:
    value = OffsetCommitValue(offset=5, commit_timestamp=1)
    key, written = records.offset_commit("g", "t", 0, value)
    builder = RecordBatchBuilder(1000)
    builder.append(1, b"\0\0" + key[2:], written)
    batch = builder.close(*P, is_transactional=True)
    harness.log_of().append_from_coordinator(batch, now_ms=1)
    other = harness.restarted()
    assert other.pending() == [("t", 0)]
    other.end(P.producer_id, commit=True)
    assert other.committed() == other.restarted().committed() == {("t", 0): 5}


# ---- Removal -----------------------------------------------------------------------------------------------
def deleted(harness: OffsetsHarness, *partitions: tuple[str, int]) -> list[Any]:
    answers: list[Any] = []
    harness.offsets.delete("g", NODE, partitions, lambda code, codes: answers.append((code, list(codes))))
    harness.sync()
    return answers


def test_deleted_offset_takes_pending_ones_along(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 5), ("t", 1, 6), producer=P)
    harness.commit(("t", 0, 7), producer=Q)
    assert deleted(harness, ("t", 0), ("t", 2)) == [(0, [0, 0])]
    assert harness.pending() == harness.restarted().pending() == [("t", 1)]
    harness.commit(("t", 0, 8), producer=Q)
    harness.end(P.producer_id, commit=True)
    harness.end(Q.producer_id, commit=True)
    assert harness.committed() == harness.restarted().committed() == {("t", 0): 8, ("t", 1): 6}


def test_transaction_does_not_bring_back_a_deleted_group(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 5))
    harness.commit(("t", 0, 6), ("t", 1, 6), producer=P)
    tombstones = harness.offsets.removal("g")
    assert len(tombstones) == 2
    harness.log.append("g", [*tombstones, records.group_metadata_tombstone("g")], noted()[1])
    harness.end(P.producer_id, commit=True)
    for each in (harness, harness.restarted()):
        assert (each.committed(), each.pending(), each.groups.known) == ({}, [], {})


def test_offset_with_a_pending_successor_does_not_expire(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 5), ("t", 1, 5))
    harness.commit(("t", 0, 6), producer=P)
    harness.clock.advance(RETENTION_MS)
    assert after_sweep(harness) == {("t", 0): 5}
    harness.end(P.producer_id, commit=False)
    assert after_sweep(harness) == {}
    assert not harness.groups.exists("g")


def test_group_that_has_only_pending_offsets_is_not_removed(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 6), producer=P)
    harness.clock.advance(RETENTION_MS)
    assert after_sweep(harness) == {}
    assert harness.groups.exists("g")
    harness.end(P.producer_id, commit=True)
    assert harness.committed() == {("t", 0): 6}
    after_sweep(harness)
    assert not harness.groups.exists("g")


def test_group_is_removed_after_its_only_transaction_was_aborted(harness: OffsetsHarness) -> None:
    harness.commit(("t", 0, 6), producer=P)
    harness.end(P.producer_id, commit=False)
    after_sweep(harness)
    assert not harness.groups.exists("g")


def test_pending_offsets_go_with_their_topic(harness: OffsetsHarness) -> None:
    harness.topics.create("u", 2, {})
    harness.commit(("u", 0, 5), ("t", 0, 5), producer=P)
    delete_topic(harness.topics, "u")
    harness.turns()
    assert harness.pending() == [("t", 0)]
    harness.topics.create("u", 2, {})
    harness.end(P.producer_id, commit=True)
    assert harness.committed() == harness.restarted().committed() == {("t", 0): 5}


def test_store_of_pending_offsets_keeps_nothing_of_what_has_ended() -> None:
    pending = PendingOffsets()
    offset = CommittedOffset(1, -1, "", 1)
    for producer_id in (1, 2):
        for place in (("t", 0), ("t", 1)):
            pending.put(producer_id, "g", place, offset)
    assert len(pending) == 4
    pending.remove("g", ("t", 0))
    pending.remove("g", ("t", 9))
    pending.remove("h", ("t", 0))
    assert (len(pending), list(pending.of_group("g")), list(pending.of_group("h"))) == (2, [("t", 1)], [])
    assert pending.end(1) == [("g", ("t", 1), offset)]
    assert pending.end(1) == pending.end(3) == []
    pending.remove("g", ("t", 1))
    assert (len(pending), pending.groups, pending.end(2)) == (0, {}, [])


# ---- Random transactions -----------------------------------------------------------------------------------
def run_of(folder: Path, seed: int) -> list[str]:
    return [f"seed {seed}: {finding}" for finding in OffsetsRun(folder, seed).run(60)]


def test_random_transactions_leave_what_the_records_say(tmp_path: Path) -> None:
    seed = new_seed()
    for number in range(dose(40, 2000)):
        assert run_of(tmp_path, seed + number) == []


apply, end, finish = PartitionOffsets.apply, PartitionOffsets.end_transaction, Replay.finish


def show_early(offsets: PartitionOffsets, key: Any, value: Any, offset: int, producer_id: int = -1) -> None:
    apply(offsets, key, value, offset, producer_id)
    if producer_id != NO_PRODUCER_ID:
        apply(offsets, key, value, offset)


def end_as_commit(offsets: PartitionOffsets, producer_id: int, *, is_committed: bool) -> None:
    end(offsets, producer_id, is_committed=True)


def end_as_abort(offsets: PartitionOffsets, producer_id: int, *, is_committed: bool) -> None:
    end(offsets, producer_id, is_committed=False)


def end_in_any_order(offsets: PartitionOffsets, producer_id: int, *, is_committed: bool) -> None:
    for group_id, (topic, partition), offset in offsets.pending.end(producer_id):
        if is_committed:
            offsets.put(group_id, topic, partition, offset)


def load_without_open_transactions(replay: Replay) -> Any:
    replay._pending.clear()
    return finish(replay)


def load_open_transactions_as_committed(replay: Replay) -> Any:
    for producer_id in list(replay._pending):
        replay._end_transaction(producer_id, True)
    return finish(replay)


def load_without_deletions(replay: Replay) -> Any:
    replay._deleted.clear()
    return finish(replay)


PLANTED: dict[str, tuple[type, str, Callable[..., Any]]] = {
    "offsets are visible before the marker": (PartitionOffsets, "apply", show_early),
    "aborted offsets count": (PartitionOffsets, "end_transaction", end_as_commit),
    "committed offsets are dropped": (PartitionOffsets, "end_transaction", end_as_abort),
    "an older record replaces a later one": (PartitionOffsets, "end_transaction", end_in_any_order),
    "a tombstone leaves pending offsets": (PendingOffsets, "remove", lambda *_: None),
    "a load drops open transactions": (Replay, "finish", load_without_open_transactions),
    "a load commits open transactions": (Replay, "finish", load_open_transactions_as_committed),
    "a load forgets deletions": (Replay, "finish", load_without_deletions),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_bug_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    place, attribute, planted = PLANTED[name]
    monkeypatch.setattr(place, attribute, planted)
    assert any(run_of(tmp_path, seed) for seed in range(20))
