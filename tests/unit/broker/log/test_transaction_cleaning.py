"""Compaction and retention of a log with open, committed and aborted transactions."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from model.compacted_log import CONFIG, append, compacted, roll
from model.log_oracle import NOW_MS, clock, make_log, open_manager, the_log
from model.transaction_log import (
    LogModel,
    TransactionalProducer,
    all_batches,
    batch,
    check_state,
    read_committed,
)

from kafkacore.broker.log import LogManager, UnifiedLog
from kafkacore.broker.log.cleaner import Cleaner
from kafkacore.broker.log.transaction_index import AbortedTransaction, read_aborted
from kafkacore.testing.clock import VirtualClock
from kafkacore.testing.disk import SimulatedDisk

DAY_MS = 86_400_000


def started(
    disk: SimulatedDisk | None = None, time: VirtualClock | None = None, **config: object
) -> tuple[LogManager, UnifiedLog]:
    manager = open_manager(disk or SimulatedDisk(), time=time, **{**CONFIG, **config})
    return manager, make_log(manager)


def values_by_key(log: UnifiedLog) -> dict[bytes, bytes | None]:
    """Return the last committed value of each key, in the model's and the consumer's view."""
    model = LogModel(all_batches(log))
    seen = read_committed(log)
    assert seen == model.committed_before(log.last_stable_offset)
    keys = {record.offset: record.key for one in all_batches(log) if not one.is_control for record in one}
    found = {keys[offset] or b"": value for offset, value in seen}
    found.pop(b"filling", None)
    return found


# ---- Compaction -----------------------------------------------------------------------------------------


@pytest.mark.kafka("LogCleanerTest.testAbortedTransactionSpanningSegments")
def test_record_of_an_aborted_transaction_supersedes_nothing_even_if_the_marker_is_not_cleaned() -> None:
    """The marker is in the active segment, whose index compaction must read, too."""
    manager, log = started()
    append(log, [(b"a", b"committed")])
    producer = TransactionalProducer(log, 7)
    producer.send(b"aborted", key=b"a")
    roll(log, manager)
    producer.end(commit=False)
    manager.flush_dirty()
    assert compacted(manager)
    assert values_by_key(log) == {b"a": b"committed"}


@pytest.mark.kafka("LogCleanerManagerTest.testUndecidedTransactionalDataNotCleanable")
def test_nothing_is_compacted_from_an_open_transaction_on() -> None:
    manager, log = started()
    append(log, [(b"a", b"1")])
    roll(log, manager)
    producer = TransactionalProducer(log, 7)
    append(log, [(b"a", b"2")])
    producer.send(b"open", key=b"a")
    append(log, [(b"a", b"3"), (b"b", b"4")])
    append(log, [(b"b", b"5")])
    roll(log, manager)
    unchanged = [one.base_offset for one in all_batches(log) if one.base_offset >= log.last_stable_offset]
    compacted(manager)
    assert [one.base_offset for one in all_batches(log) if one.base_offset >= log.last_stable_offset] == (
        unchanged
    )
    producer.end(commit=True)
    roll(log, manager)
    assert compacted(manager)
    assert values_by_key(log) == {b"a": b"3", b"b": b"5"}


def test_markers_of_the_coordinators_transactions_go_with_their_records() -> None:
    """A partition of offsets must not keep a marker for each transaction of a producer."""
    time = clock()
    disk = SimulatedDisk()
    manager, log = started(disk, time, delete_retention_ms=1000)
    for number in range(60):
        records = batch([b"offset %d" % number], (7, 0, -1), key=b"group")
        log.append_from_coordinator(records, now_ms=NOW_MS)
        log.append_marker(7, 0, commit=True, coordinator_epoch=0, transaction_version=1, now_ms=NOW_MS)
    roll(log, manager)
    for _ in range(3):
        compacted(manager)
        time.advance(5000)
        roll(log, manager)
    compacted(manager)
    markers = [one for one in all_batches(log) if one.is_control and one.base_offset < 120]
    assert len(markers) <= 2
    assert values_by_key(log) == {b"group": b"offset 59"}


@pytest.mark.parametrize("seed", range(12))
def test_compaction_changes_no_committed_value(seed: int) -> None:
    """Random transactions over few keys; compaction, kills and losses of power in between."""
    chance, decide = random.Random(seed), clock(seed)
    disk = SimulatedDisk()
    config = {"segment_bytes": chance.choice([1200, 2500]), "delete_retention_ms": 1000}
    time = clock(seed)
    manager, log = started(disk, time, **config)
    producers = [TransactionalProducer(log, number, version=1 + number % 2) for number in range(4)]
    for _ in range(6):
        for _ in range(chance.randrange(20, 80)):
            producer = chance.choice(producers)
            if chance.random() < 0.6:
                producer.send(b"%d" % log.log_end_offset, key=b"key %d" % chance.randrange(12))
            elif log.has_open_transaction(producer.producer_id, producer.epoch):
                producer.end(commit=chance.random() < 0.5)
        manager.flush_dirty()
        before = values_by_key(log)
        compacted(manager)
        assert values_by_key(log) == before
        time.advance(chance.choice([10, 2000]))
        how = chance.randrange(4)
        if how:
            if how == 1:
                manager.close()
            else:
                disk = disk.kill_process() if how == 2 else disk.lose_power(decide)
            manager, log = started(disk, time, **config)
            assert values_by_key(log) == before
            for producer in producers:
                producer.log = log
    for producer in producers:
        if log.has_open_transaction(producer.producer_id, producer.epoch):
            producer.end(commit=True)
    manager.flush_dirty()
    assert log.last_stable_offset == log.log_end_offset
    before = values_by_key(log)
    roll(log, manager)
    compacted(manager)
    assert values_by_key(log) == before


def test_planted_bug_that_ignores_markers_after_the_cleaned_part_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def only_in_cleaned_segments(log: UnifiedLog, start: int, end: int) -> list[AbortedTransaction]:
        return [one for one in log.aborted_transactions(start, end) if one.last_offset < end]

    monkeypatch.setattr(Cleaner, "_aborted", staticmethod(only_in_cleaned_segments))
    with pytest.raises(AssertionError):
        test_record_of_an_aborted_transaction_supersedes_nothing_even_if_the_marker_is_not_cleaned()


# ---- Retention ------------------------------------------------------------------------------------------


def fill(log: UnifiedLog, producer: TransactionalProducer, count: int) -> None:
    for number in range(count):
        producer.send(b"value %d" % number * 10)


@pytest.mark.kafka("UnifiedLogTest.testLastStableOffsetDoesNotExceedLogStartOffsetMidSegment")
def test_retention_removes_old_segments_of_an_open_transaction_as_in_kafka() -> None:
    """In Kafka, the high watermark limits retention and the last stable offset does not."""
    disk = SimulatedDisk()
    manager = open_manager(disk, segment_bytes=600, retention_ms=DAY_MS)
    log = make_log(manager)
    producer = TransactionalProducer(log, 7)
    fill(log, producer, 20)
    manager.flush_dirty()
    assert (log.last_stable_offset, log.segment_count > 5) == (0, True)
    removed = log.run_retention(NOW_MS + DAY_MS + 1)
    assert removed > 5
    assert log.last_stable_offset == log.log_start_offset == log.log_end_offset == 20
    fill(log, producer, 2)
    manager.flush_dirty()
    assert log.last_stable_offset == 20
    producer.end(commit=False)
    manager.flush_dirty()
    assert log.last_stable_offset == log.log_end_offset == 23
    assert log.aborted_transactions(20, 23) == [AbortedTransaction(0, 22, 7, 23)]
    assert read_committed(log) == []


def test_retention_never_removes_what_is_not_below_the_high_watermark() -> None:
    manager = open_manager(SimulatedDisk(), segment_bytes=600, retention_ms=DAY_MS)
    log = make_log(manager)
    fill(log, TransactionalProducer(log, 7), 20)
    assert log.run_retention(NOW_MS + DAY_MS + 1) == 0
    manager.flush_dirty()


@pytest.mark.parametrize("end", ["close", "kill", "lose power"])
def test_transaction_whose_start_was_removed_is_continued_after_a_restart(end: str) -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk, segment_bytes=600)
    log = make_log(manager)
    producer, other = TransactionalProducer(log, 7), TransactionalProducer(log, 8)
    fill(log, producer, 20)
    other.send(b"other")
    other.end(commit=False)
    fill(log, producer, 5)
    manager.flush_dirty()
    manager.delete_records(log.topic_partition, 10)
    if end == "close":
        manager.close()
    else:
        disk = disk.kill_process() if end == "kill" else disk.lose_power(clock(3))
    manager = open_manager(disk, segment_bytes=600)
    log = producer.log = the_log(manager)
    assert log.last_stable_offset == 10
    assert read_committed(log) == []
    producer.end(commit=False)
    manager.flush_dirty()
    assert log.last_stable_offset == log.log_end_offset == 28
    assert read_committed(log) == []


def test_index_goes_with_its_segment() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk, segment_bytes=600, retention_ms=DAY_MS)
    log = make_log(manager)
    producer = TransactionalProducer(log, 7)
    for number in range(20):
        producer.send(b"value %d" % number * 10)
        producer.end(commit=False)
    manager.flush_dirty()
    check_state(log)
    folder = Path("/data/flights-0")
    kept = [name for name in disk.listdir(folder) if name.endswith(".txnindex")]
    assert len(kept) > 5
    log.run_retention(NOW_MS + DAY_MS + 1)
    manager.flush_dirty()
    assert [name for name in disk.listdir(folder) if ".txnindex" in name] == []
    assert log.aborted_transactions(0, log.log_end_offset) == []


def test_compacted_segment_keeps_the_index_entries_of_remaining_markers() -> None:
    disk = SimulatedDisk()
    manager, log = started(disk)
    for number in range(20):
        producer = TransactionalProducer(log, number)
        producer.send(b"value", key=b"key %d" % number)
        producer.end(commit=number % 2 == 0)
    roll(log, manager)
    assert compacted(manager)
    manager.flush_dirty()
    folder = Path("/data/flights-0")
    data = b"".join(
        disk.read_file(folder / name) for name in disk.listdir(folder) if name.endswith(".txnindex")
    )
    assert len(read_aborted(data)) == 10
    assert len(values_by_key(log)) == 10
