"""Idempotent producers: duplicates, gaps, epochs, wrap-around, and snapshots."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model.log_oracle import NOW_MS, batch, make_log, open_manager, the_log

from kafkacore.broker.log import LogAppendInfo, UnifiedLog
from kafkacore.broker.log.producer_entries import BatchMetadata, ProducerStateEntry
from kafkacore.broker.log.producer_state import read_snapshot, snapshot_bytes
from kafkacore.errors import (
    CorruptRecordError,
    InvalidProducerEpochError,
    OutOfOrderSequenceNumberError,
)
from kafkacore.testing.disk import SimulatedDisk

FOLDER = Path("/data/flights-0")
MAX_SEQUENCE = 2**31 - 1
PRODUCERS = st.tuples(st.integers(0, 2**63 - 1), st.integers(0, MAX_SEQUENCE), st.integers(0, 999))


@pytest.fixture
def log() -> UnifiedLog:
    return make_log(open_manager(SimulatedDisk(), flush="os"))


def send(log: UnifiedLog, sequence: int, count: int = 1, *, epoch: int = 0) -> LogAppendInfo:
    return log.append(batch([b"value"] * count, producer=(7, epoch, sequence)), now_ms=NOW_MS)


@pytest.mark.behaviour(
    "Broker storage",
    "a repeat of one of a producer's last five batches is recognized and gets the original offset",
)
def test_repeated_batch_gets_the_offsets_it_has(log: UnifiedLog) -> None:
    first = send(log, 0, 3)
    send(log, 3, 2)
    again = send(log, 0, 3)
    assert again == first._replace(duplicate=True)
    assert log.log_end_offset == 5


@pytest.mark.behaviour(
    "Broker storage",
    "a repeat of one of a producer's last five batches is recognized and gets the original offset",
)
def test_only_the_last_five_batches_are_known_as_duplicates(log: UnifiedLog) -> None:
    for sequence in range(6):
        send(log, sequence)
    assert all(send(log, sequence).duplicate for sequence in range(1, 6))
    with pytest.raises(OutOfOrderSequenceNumberError, match=r"0 \(incoming seq. number\), 5 \(current end"):
        send(log, 0)


@pytest.mark.behaviour("Broker storage", "partial duplicates, older batches and gaps are rejected")
@pytest.mark.parametrize(("sequence", "count"), [(0, 2), (1, 3), (2, 1), (4, 1), (100, 1)])
def test_gap_and_partial_duplicate_are_refused(log: UnifiedLog, sequence: int, count: int) -> None:
    send(log, 0, 3)
    with pytest.raises(OutOfOrderSequenceNumberError):
        send(log, sequence, count)
    assert log.log_end_offset == 3


def test_refused_batch_changes_nothing(log: UnifiedLog) -> None:
    send(log, 0)
    with pytest.raises(OutOfOrderSequenceNumberError):
        send(log, 5)
    assert send(log, 1).first_offset == 1


def test_unknown_producer_may_begin_anywhere(log: UnifiedLog) -> None:
    assert send(log, 41).first_offset == 0
    assert send(log, 42).first_offset == 1


@pytest.mark.behaviour("Broker storage", "an old epoch of a producer is fenced")
def test_new_epoch_begins_at_zero_and_fences_the_old(log: UnifiedLog) -> None:
    send(log, 0, 5)
    with pytest.raises(OutOfOrderSequenceNumberError):
        send(log, 5, epoch=1)
    assert send(log, 0, epoch=1).first_offset == 5
    with pytest.raises(InvalidProducerEpochError, match="is 0, which is smaller than the last seen epoch 1"):
        send(log, 5, epoch=0)


@pytest.mark.behaviour("Broker storage", "sequence numbers wrap to 0 after 2³¹ - 1")
def test_sequences_wrap_to_zero(log: UnifiedLog) -> None:
    first = send(log, MAX_SEQUENCE - 1, 4)
    assert send(log, 2).first_offset == 4
    assert send(log, MAX_SEQUENCE - 1, 4) == first._replace(duplicate=True)
    send(log, 3, 1)


@pytest.mark.behaviour("Broker storage", "sequence numbers wrap to 0 after 2³¹ - 1")
def test_sequence_after_the_largest_is_zero(log: UnifiedLog) -> None:
    send(log, MAX_SEQUENCE)
    assert send(log, 0).first_offset == 1


@pytest.mark.behaviour("Broker storage", "the state of producers survives a restart")
@pytest.mark.parametrize("end", ["close", "kill"])
@pytest.mark.parametrize("segment_bytes", [300, 100_000])
def test_producers_are_known_after_a_restart(end: str, segment_bytes: int) -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk, flush="os", segment_bytes=segment_bytes)
    log = make_log(manager)
    for sequence in range(10):
        send(log, sequence)
    if end == "close":
        manager.close()
    else:
        disk = disk.kill_process()
    log = the_log(open_manager(disk, flush="os", segment_bytes=segment_bytes))
    assert send(log, 9) == (9, 9, -1, 0, True)
    with pytest.raises(OutOfOrderSequenceNumberError):
        send(log, 12)
    assert send(log, 10).first_offset == 10


@pytest.mark.behaviour("Broker storage", "the state of producers survives a restart")
@pytest.mark.parametrize("end", ["close", "kill"])
@pytest.mark.parametrize("segment_bytes", [120, 300, 100_000])
def test_last_five_batches_are_known_as_duplicates_after_a_restart(end: str, segment_bytes: int) -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk, flush="os", segment_bytes=segment_bytes)
    log = make_log(manager)
    for sequence in range(0, 30, 3):
        send(log, sequence, 3)
    for number in range(8):
        log.append(batch([b"value"], producer=(8, 0, number)), now_ms=NOW_MS)
    if end == "close":
        manager.close()
    else:
        disk = disk.kill_process()
    log = the_log(open_manager(disk, flush="os", segment_bytes=segment_bytes))
    for sequence in range(15, 30, 3):
        assert send(log, sequence, 3) == (sequence, sequence + 2, -1, 0, True)
    assert log.append(batch([b"value"], producer=(8, 0, 3)), now_ms=NOW_MS).first_offset == 33
    for sequence in (12, 16):
        with pytest.raises(OutOfOrderSequenceNumberError):
            send(log, sequence, 3)
    assert send(log, 30).first_offset == 38


def test_large_batches_before_a_snapshot_are_looked_for_farther_back() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk, flush="os")
    log = make_log(manager)
    for sequence in range(6):
        log.append(batch([b"v" * 900_000], producer=(7, 0, sequence)), now_ms=NOW_MS)
    manager.close()
    log = the_log(open_manager(disk, flush="os"))
    assert log.append(batch([b"v" * 900_000], producer=(7, 0, 1)), now_ms=NOW_MS).duplicate


def damaged(data: bytes) -> list[bytes]:
    flipped = [bytes([*data[:at], data[at] ^ 1, *data[at + 1 :]]) for at in range(len(data))]
    return [data[:size] for size in range(len(data))] + flipped


@pytest.mark.behaviour("Broker storage", "recovery replaces a damaged producer snapshot with an older one")
def test_damaged_snapshot_is_replaced_by_an_older_one_and_the_log() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk, flush="os", segment_bytes=300)
    log = make_log(manager)
    for sequence in range(10):
        send(log, sequence)
    manager.close()
    (*_, latest) = sorted(name for name in disk.listdir(FOLDER) if name.endswith(".snapshot"))
    for data in damaged(disk.read_file(FOLDER / latest)):
        broken = disk.copy()
        broken.write_file(FOLDER / latest, data)
        log = the_log(open_manager(broken, flush="os", segment_bytes=300))
        assert send(log, 9).duplicate
        assert send(log, 10).first_offset == 10


def test_silent_producers_are_forgotten(log: UnifiedLog) -> None:
    send(log, 0)
    log.remove_expired_producers(NOW_MS + 999, 1000)
    with pytest.raises(OutOfOrderSequenceNumberError):
        send(log, 5)
    log.remove_expired_producers(NOW_MS + 1000, 1000)
    assert send(log, 5).first_offset == 1


def test_all_logs_forget_producers_after_a_day_by_default() -> None:
    manager = open_manager(SimulatedDisk(), flush="os")
    log = make_log(manager)
    send(log, 0)
    manager.remove_expired_producers(NOW_MS + 24 * 3_600_000 - 1)
    assert [entry.producer_id for entry in log.active_producers()] == [7]
    manager.producer_expiration_ms = 1000
    manager.remove_expired_producers(NOW_MS + 1000)
    assert log.active_producers() == []


@settings(max_examples=50)
@given(st.lists(PRODUCERS, max_size=9))
def test_snapshot_is_read_as_it_was_written(producers: list[tuple[int, int, int]]) -> None:
    written = []
    for producer_id, sequence, delta in {producer[0]: producer for producer in sorted(producers)}.values():
        entry = ProducerStateEntry(producer_id, 3, NOW_MS)
        entry.batches.append(BatchMetadata((sequence - delta) % 2**31, sequence, 10, 10 + delta, NOW_MS))
        written.append(entry)
    assert read_snapshot(snapshot_bytes(written)) == sorted(written, key=lambda entry: entry.producer_id)


def test_damaged_snapshot_raises_nothing_but_corruption() -> None:
    entry = ProducerStateEntry(1, 0, NOW_MS)
    entry.batches.append(BatchMetadata(0, 0, 5, 5, NOW_MS))
    for data in damaged(snapshot_bytes([entry])):
        with pytest.raises(CorruptRecordError):
            read_snapshot(data)
