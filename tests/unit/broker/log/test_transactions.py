"""Transactions in a log: checks of batches and markers, the last stable offset, and aborted transactions.

A randomized test compares the log with a model, as a read-committed consumer sees it at any time.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from model.log_oracle import NOW_MS, make_log, open_manager, the_log
from model.log_oracle import batch as plain_batch
from model.transaction_log import (
    LogModel,
    TransactionalProducer,
    all_batches,
    batch,
    check_state,
    read_committed,
)

from kafkacore.broker.log import LogManager, UnifiedLog
from kafkacore.broker.log.end_transaction_marker import EndTransactionMarker, read_marker
from kafkacore.broker.log.transaction_index import AbortedTransaction, read_aborted
from kafkacore.errors import (
    CorruptRecordError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    KafkaStorageError,
    MessageSizeTooLargeError,
    OutOfOrderSequenceNumberError,
    TransactionCoordinatorFencedError,
)
from kafkacore.record import RecordBatch, RecordBatchBuilder, read_batches
from kafkacore.testing.disk import SimulatedDisk

FOLDER = Path("/data/flights-0")


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


@pytest.fixture
def manager(disk: SimulatedDisk) -> LogManager:
    return open_manager(disk)


@pytest.fixture
def log(manager: LogManager) -> UnifiedLog:
    return make_log(manager)


def marker(log: UnifiedLog, producer_id: int = 7, epoch: int = 0, **changed: Any) -> Any:
    options = {"commit": True, "coordinator_epoch": 0, "transaction_version": 1, "now_ms": NOW_MS}
    return log.append_marker(producer_id, epoch, **{**options, **changed})


# ---- Markers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("commit", [True, False])
def test_marker_is_a_control_batch_with_the_coordinator_epoch(log: UnifiedLog, commit: bool) -> None:
    info = marker(log, 7, 3, commit=commit, coordinator_epoch=11)
    assert (info.first_offset, info.last_offset) == (0, 0)
    log.flush()
    (found,) = read_batches(log.read(0, 1000).records)
    assert (found.is_control, found.is_transactional, found.producer_id, found.producer_epoch) == (
        True,
        True,
        7,
        3,
    )
    (record,) = found
    assert (record.key, record.value, record.timestamp) == (
        b"\0\0\0\1" if commit else b"\0\0\0\0",
        b"\0\0\0\0\0\x0b",
        NOW_MS,
    )
    assert read_marker(found) == EndTransactionMarker(commit, 11)


@pytest.mark.parametrize("value", [None, b"", b"\0", b"\0\0\0\0\0", b"\xff\xff\0\0\0\0"])
def test_marker_with_a_malformed_value_is_damage(value: bytes | None) -> None:
    builder = RecordBatchBuilder(1000)
    builder.append(NOW_MS, b"\0\0\0\1", value)
    records = builder.close(producer_id=7, producer_epoch=0, is_transactional=True, is_control=True)
    with pytest.raises(CorruptRecordError):
        read_marker(next(read_batches(records)))


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", b"\0\0\0\2", b"\0\0\0\6"])
def test_control_batch_of_another_kind_is_no_marker(key: bytes | None) -> None:
    builder = RecordBatchBuilder(1000)
    builder.append(NOW_MS, key, b"\0\0\0\0\0\0")
    records = builder.close(producer_id=7, producer_epoch=0, is_transactional=True, is_control=True)
    assert read_marker(next(read_batches(records))) is None


def test_marker_without_an_open_transaction_is_appended(log: UnifiedLog) -> None:
    marker(log)
    marker(log, commit=False)
    log.flush()
    assert log.log_end_offset == log.last_stable_offset == 2
    assert log.aborted_transactions(0, 2) == []


@pytest.mark.kafka(
    "UnifiedLogTest.testEndTxnWithFencedProducerEpoch",
    "ProducerStateManagerTest.testOldEpochForControlRecord",
)
def test_marker_of_an_old_epoch_is_fenced(log: UnifiedLog) -> None:
    TransactionalProducer(log, 7, epoch=2).send(b"a")
    with pytest.raises(InvalidProducerEpochError, match="is 1, which is smaller than the last seen epoch 2"):
        marker(log, 7, 1)
    assert log.log_end_offset == 1
    assert log.has_open_transaction(7, 2)


def test_marker_of_version_2_needs_a_higher_epoch_than_the_open_transaction(log: UnifiedLog) -> None:
    TransactionalProducer(log, 7, epoch=2).send(b"a")
    with pytest.raises(InvalidProducerEpochError, match="is 2, which is not above the epoch 2 of its open"):
        marker(log, 7, 2, transaction_version=2)
    marker(log, 7, 3, transaction_version=2)
    # The coordinator may send the same marker again after a restart.
    marker(log, 7, 3, transaction_version=2)
    assert not log.has_open_transaction(7, 3)


def test_marker_of_version_2_may_repeat_the_largest_epoch(log: UnifiedLog) -> None:
    TransactionalProducer(log, 7, epoch=32767).send(b"a")
    marker(log, 7, 32767, transaction_version=2)
    assert not log.has_open_transaction(7, 32767)


@pytest.mark.kafka(
    "UnifiedLogTest.testZombieCoordinatorFenced",
    "UnifiedLogTest.testZombieCoordinatorFencedEmptyTransaction",
    "ProducerStateManagerTest.testCoordinatorFencing",
)
def test_marker_of_an_old_coordinator_is_fenced(log: UnifiedLog) -> None:
    marker(log, coordinator_epoch=5)
    with pytest.raises(TransactionCoordinatorFencedError, match=r"4 \(zombie\), 5 \(current\)"):
        marker(log, coordinator_epoch=4)
    marker(log, coordinator_epoch=5)
    marker(log, coordinator_epoch=6)
    assert log.log_end_offset == 3


def test_epoch_of_a_marker_fences_the_producer_and_resets_its_sequence(log: UnifiedLog) -> None:
    producer = TransactionalProducer(log, 7, version=2)
    producer.send(b"a", b"b")
    producer.end(commit=True)
    with pytest.raises(InvalidProducerEpochError):
        log.append(batch([b"c"], (7, 0, 2)), now_ms=NOW_MS)
    with pytest.raises(OutOfOrderSequenceNumberError):
        log.append(batch([b"c"], (7, 1, 2)), now_ms=NOW_MS)
    assert producer.send(b"c").first_offset == 3


def test_sequence_continues_after_a_marker_of_version_1(log: UnifiedLog) -> None:
    producer = TransactionalProducer(log, 7)
    first = producer.send(b"a", b"b")
    producer.end(commit=True)
    assert producer.send(b"c").first_offset == 3
    assert log.append(batch([b"a", b"b"], (7, 0, 0)), now_ms=NOW_MS) == first._replace(duplicate=True)


# ---- Batches --------------------------------------------------------------------------------------------


@pytest.mark.kafka("ProducerStateManagerTest.testNonTransactionalAppendWithOngoingTransaction")
def test_plain_batch_of_a_producer_with_an_open_transaction_is_refused(log: UnifiedLog) -> None:
    producer = TransactionalProducer(log, 7)
    producer.send(b"a")
    with pytest.raises(
        InvalidTxnStateError, match="Expected transactional write from producer 7 in flights-0"
    ):
        producer.send(b"b", is_transactional=False)
    other = TransactionalProducer(log, 8)
    other.send(b"of another producer", is_transactional=False)
    producer.end(commit=True)
    assert producer.send(b"b", is_transactional=False).first_offset == 3


def test_batch_of_the_coordinator_is_checked_by_its_epoch_only(log: UnifiedLog) -> None:
    for _ in range(3):
        assert not log.append_from_coordinator(batch([b"a"], (7, 1, -1)), now_ms=NOW_MS).duplicate
    with pytest.raises(InvalidProducerEpochError):
        log.append_from_coordinator(batch([b"a"], (7, 0, -1)), now_ms=NOW_MS)
    log.append_from_coordinator(plain_batch([b"without a producer"]), now_ms=NOW_MS)
    assert log.log_end_offset == 4
    assert log.has_open_transaction(7, 1)
    log.flush()
    check_state(log)


def test_batch_of_the_coordinator_above_the_limit_is_refused(disk: SimulatedDisk) -> None:
    log = make_log(open_manager(disk, max_message_bytes=100))
    with pytest.raises(MessageSizeTooLargeError):
        log.append_from_coordinator(batch([b"a" * 200], (7, 1, -1)), now_ms=NOW_MS)


def test_open_transaction_is_known_by_producer_and_epoch(log: UnifiedLog) -> None:
    assert not log.has_open_transaction(7, 0)
    producer = TransactionalProducer(log, 7)
    producer.send(b"a", is_transactional=False)
    assert not log.has_open_transaction(7, 0)
    producer.send(b"b")
    assert log.has_open_transaction(7, 0)
    assert not log.has_open_transaction(7, 1)
    assert not log.has_open_transaction(8, 0)
    producer.end(commit=False)
    assert not log.has_open_transaction(7, 0)


@pytest.mark.kafka(
    "ProducerStateManagerTest.testSequenceAndEpochInVerificationEntry",
    "ProducerStateManagerTest.testThrowOutOfOrderSequenceWithVerificationSequenceCheck",
    "ProducerStateManagerTest.testRejectNonZeroSequenceForTransactionsV2WithEmptyState",
)
def test_first_batch_that_waits_for_the_coordinator_comes_first(log: UnifiedLog) -> None:
    def first(sequence: int, epoch: int = 1) -> int:
        return log.append(batch([b"a"], (7, epoch, sequence)), now_ms=NOW_MS).first_offset

    log.update_lowest_sequence(7, 1, 5)
    log.update_lowest_sequence(7, 1, 3)
    log.update_lowest_sequence(7, 1, 4)
    log.update_lowest_sequence(7, 0, 0)
    for sequence in (4, 5):
        with pytest.raises(OutOfOrderSequenceNumberError, match=r"number\), 3 \(earliest seen seq"):
            first(sequence)
    assert first(3) == 0
    assert first(4) == 1
    # The entry of the producer decides now.
    log.update_lowest_sequence(7, 1, 0)
    assert first(5) == 2


def test_lowest_sequence_of_a_new_epoch_replaces_that_of_the_old_one(log: UnifiedLog) -> None:
    log.update_lowest_sequence(7, 1, 0)
    log.update_lowest_sequence(7, 2, 6)
    with pytest.raises(OutOfOrderSequenceNumberError):
        log.append(batch([b"a"], (7, 2, 7)), now_ms=NOW_MS)
    log.append(batch([b"a"], (7, 2, 6)), now_ms=NOW_MS)


@pytest.mark.kafka("ProducerStateManagerTest.testVerificationStateEntryExpiration")
def test_lowest_sequence_is_forgotten_with_the_expired_producers(log: UnifiedLog) -> None:
    log.update_lowest_sequence(7, 1, 0)
    log.remove_expired_producers(NOW_MS, 1000)
    assert log.append(batch([b"a"], (7, 1, 9)), now_ms=NOW_MS).first_offset == 0


@pytest.mark.kafka("ProducerStateManagerTest.testProducersWithOngoingTransactionsDontExpire")
def test_producer_with_an_open_transaction_does_not_expire(log: UnifiedLog) -> None:
    TransactionalProducer(log, 7).send(b"a")
    TransactionalProducer(log, 8).send(b"a", is_transactional=False)
    log.remove_expired_producers(NOW_MS + 1000, 1000)
    assert [entry.producer_id for entry in log.active_producers()] == [7]
    marker(log, 7)
    log.remove_expired_producers(NOW_MS + 1000, 1000)
    assert log.active_producers() == []


# ---- Last stable offset ---------------------------------------------------------------------------------


@pytest.mark.kafka("UnifiedLogTest.testFirstUnstableOffsetNoTransactionalData")
def test_without_transactions_all_durable_records_are_stable(log: UnifiedLog) -> None:
    log.append(plain_batch([b"a", b"b"]), now_ms=NOW_MS)
    assert log.last_stable_offset == 0
    log.flush()
    assert log.last_stable_offset == 2


@pytest.mark.kafka("UnifiedLogTest.testFirstUnstableOffsetWithTransactionalData")
def test_last_stable_offset_is_that_of_the_first_open_transaction(log: UnifiedLog) -> None:
    log.append(plain_batch([b"a", b"b"]), now_ms=NOW_MS)
    first, second = TransactionalProducer(log, 7), TransactionalProducer(log, 8)
    first.send(b"c")
    second.send(b"d")
    first.send(b"e")
    log.flush()
    assert log.last_stable_offset == 2
    second.end(commit=True)
    log.flush()
    assert log.last_stable_offset == 2
    first.end(commit=False)
    # The marker is not durable yet.
    assert log.last_stable_offset == 2
    log.flush()
    assert log.last_stable_offset == log.log_end_offset == 7


@pytest.mark.kafka("ProducerStateManagerTest.testFirstUnstableOffset")
def test_transaction_with_a_durable_marker_waits_for_an_earlier_one(log: UnifiedLog) -> None:
    first, second = TransactionalProducer(log, 7), TransactionalProducer(log, 8)
    second.send(b"a")
    first.send(b"b")
    first.end(commit=True)
    log.flush()
    assert log.last_stable_offset == 0
    first.send(b"c")
    second.end(commit=True)
    assert log.last_stable_offset == 0
    log.flush()
    assert log.last_stable_offset == 3


def test_with_flush_os_a_transaction_is_stable_with_its_marker(disk: SimulatedDisk) -> None:
    log = make_log(open_manager(disk, flush="os"))
    producer = TransactionalProducer(log, 7)
    producer.send(b"a")
    assert (log.high_watermark, log.last_stable_offset) == (1, 0)
    producer.end(commit=True)
    assert (log.high_watermark, log.last_stable_offset) == (2, 2)


def test_last_stable_offset_is_not_below_the_log_start(log: UnifiedLog) -> None:
    producer = TransactionalProducer(log, 7)
    for value in (b"a", b"b", b"c"):
        producer.send(value)
    log.flush()
    log.delete_records(2)
    assert (log.log_start_offset, log.last_stable_offset) == (2, 2)


# ---- Aborted transactions -------------------------------------------------------------------------------


@pytest.mark.kafka("UnifiedLogTest.testTransactionIndexUpdated")
def test_aborted_transactions_are_indexed_with_the_last_stable_offset(
    log: UnifiedLog, disk: SimulatedDisk
) -> None:
    one, two, three = (TransactionalProducer(log, number) for number in (1, 2, 3))
    one.send(b"a")
    two.send(b"b")
    three.send(b"c")
    two.end(commit=False)
    one.send(b"d")
    three.end(commit=True)
    one.end(commit=False)
    two.send(b"e")
    two.end(commit=False)
    log.flush()
    expected = [
        AbortedTransaction(1, 3, 2, 0),
        AbortedTransaction(0, 6, 1, 7),
        AbortedTransaction(7, 8, 2, 9),
    ]
    assert log.aborted_transactions(0, 9) == expected
    assert read_aborted(disk.read_file(FOLDER / "00000000000000000000.txnindex")) == expected
    check_state(log)
    assert [value for _, value in read_committed(log)] == [b"c"]


def test_read_returns_the_aborted_transactions_of_its_batches(log: UnifiedLog) -> None:
    producer = TransactionalProducer(log, 7)
    for value in (b"a", b"b", b"c"):
        producer.send(value)
        producer.end(commit=False)
    log.flush()
    size = len(batch([b"a"], (7, 0, 0)))
    found = log.read(0, size, with_aborted=True)
    assert (found.next_offset, list(found.aborted_transactions)) == (1, [AbortedTransaction(0, 1, 7, 2)])
    assert list(log.read(0, size).aborted_transactions) == []
    assert list(log.read(1, 0, min_one_message=False, with_aborted=True).aborted_transactions) == []
    found = log.read(3, 10_000, with_aborted=True)
    assert [one.first_offset for one in found.aborted_transactions] == [2, 4]


def test_aborted_transaction_that_ends_in_a_later_segment_is_found(disk: SimulatedDisk) -> None:
    manager = open_manager(disk, segment_bytes=300)
    log = make_log(manager)
    long, short = TransactionalProducer(log, 7), TransactionalProducer(log, 8)
    long.send(b"first")
    for number in range(20):
        short.send(b"value %d" % number)
        short.end(commit=number % 3 > 0)
    long.end(commit=False)
    short.send(b"last")
    short.end(commit=True)
    log.flush()
    assert log.segment_count > 5
    model = check_state(log)
    assert AbortedTransaction(0, 41, 7, 42) in log.aborted_transactions(0, 1)
    for start in range(log.log_end_offset):
        for max_bytes in (1, 400, 10_000):
            expected = [record for record in model.committed if record[0] >= start]
            assert read_committed(log, start, max_bytes) == expected


@pytest.mark.parametrize("end", ["close", "kill", "lose power"])
def test_transactions_are_known_after_a_restart(disk: SimulatedDisk, end: str) -> None:
    manager = open_manager(disk, segment_bytes=400)
    log = make_log(manager)
    open_one, other = TransactionalProducer(log, 7), TransactionalProducer(log, 8, version=2)
    for number in range(12):
        other.send(b"value %d" % number)
        other.end(commit=number % 2 == 0)
        if number == 5:
            open_one.send(b"open")
    log.flush()
    if end == "close":
        manager.close()
    else:
        disk = disk.kill_process() if end == "kill" else disk.lose_power(manager._clock)
    log = the_log(open_manager(disk, segment_bytes=400))
    assert log.log_end_offset == 25
    model = check_state(log)
    assert (len(model.aborted), log.last_stable_offset) == (6, 12)
    open_one.log = log
    open_one.end(commit=True)
    log.flush()
    assert log.last_stable_offset == 26


@pytest.mark.parametrize("after", range(12))
def test_full_disk_leaves_neither_a_marker_nor_an_index_entry(disk: SimulatedDisk, after: int) -> None:
    log = make_log(open_manager(disk, flush="os", segment_bytes=300))
    left = [-1]

    def fault(call: int, verb: str, path: Path) -> OSError | None:
        left[0] -= verb in ("pwritev", "create")
        return OSError(errno.ENOSPC, "planted") if left[0] == -1 and verb in ("pwritev", "create") else None

    disk.fault = fault
    producer = TransactionalProducer(log, 7)
    refused = 0
    for number in range(8):
        producer.send(b"value")
        left[0] = after if number == 3 else -1
        for commit in (False, False):
            try:
                producer.end(commit=commit)
                break
            except KafkaStorageError:
                refused += 1
        left[0] = -1
    check_state(log)
    assert log.log_end_offset == 16
    disk.fault = lambda call, verb, path: None
    log = the_log(open_manager(disk.kill_process(), segment_bytes=300))
    check_state(log)
    assert refused == (after < 3)


# ---- Random transactions --------------------------------------------------------------------------------


class Reader:
    """A read-committed consumer that polls now and then."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.position = 0
        self.records: list[tuple[int, bytes | None]] = []

    def poll(self, log: UnifiedLog) -> None:
        stable = log.last_stable_offset
        self.records += read_committed(log, self.position, self.max_bytes)
        self.position = stable


@pytest.mark.parametrize("flush", ["ack", "os"])
@pytest.mark.parametrize("seed", range(10))
def test_random_transactions_read_as_in_the_model(disk: SimulatedDisk, seed: int, flush: str) -> None:
    chance = random.Random(seed)
    manager = open_manager(disk, flush=flush, segment_bytes=chance.choice([500, 3000, 1 << 20]))
    log = make_log(manager)
    producers = [TransactionalProducer(log, number, version=1 + number % 2) for number in range(5)]
    readers = [Reader(chance.choice([1, 300, 1 << 20])) for _ in range(4)]
    stable_before = 0
    for step in range(300):
        producer = chance.choice(producers)
        is_open = log.has_open_transaction(producer.producer_id, producer.epoch)
        match chance.randrange(8):
            case 0 | 1 | 2:
                producer.send(*(b"%d" % (step + index) for index in range(chance.randint(1, 3))))
            case 3 if not is_open:
                producer.send(b"%d plain" % step, is_transactional=False)
            case 4:
                log.append(plain_batch([b"%d without a producer" % step]), now_ms=NOW_MS)
            case 5 | 6 if is_open or chance.random() < 0.1:
                producer.end(commit=chance.random() < 0.5)
            case 7:
                manager.flush_dirty()
        batches = all_batches(log)
        model = LogModel(batches)
        # A transaction is stable when its marker is below the high watermark.
        stable = min(log.high_watermark, *LogModel(below(batches, log.high_watermark)).open_offsets(), 2**60)
        assert log.last_stable_offset == stable >= stable_before
        stable_before = stable
        if step % 7 == 0:
            chance.choice(readers).poll(log)
            start, stop = sorted(chance.choices(range(stable + 1), k=2))
            assert log.aborted_transactions(start, stop) == [
                one for one in model.aborted if one.first_offset < stop and one.last_offset >= start
            ]
    manager.flush_dirty()
    for producer in producers:
        producer.end(commit=chance.random() < 0.5)
    manager.flush_dirty()
    model = check_state(log, offset_step=3)
    for reader in readers:
        reader.poll(log)
        assert reader.records == model.committed


def below(batches: list[RecordBatch], offset: int) -> list[RecordBatch]:
    return [one for one in batches if one.last_offset < offset]


last_stable_offset: Callable[[UnifiedLog], int] = vars(UnifiedLog)["last_stable_offset"].fget


@pytest.mark.parametrize(
    "planted",
    [
        property(lambda log: log.high_watermark),
        property(lambda log: min(last_stable_offset(log) + 1, log.high_watermark)),
    ],
)
def test_planted_last_stable_offset_that_is_too_high_is_found(
    disk: SimulatedDisk, monkeypatch: pytest.MonkeyPatch, planted: property
) -> None:
    monkeypatch.setattr(UnifiedLog, "last_stable_offset", planted)
    with pytest.raises(AssertionError):
        test_random_transactions_read_as_in_the_model(disk, 1, "ack")
