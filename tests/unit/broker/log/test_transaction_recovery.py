"""Kills and losses of power at every disk call of a log with transactions, and bugs planted in recovery.

After each start, the last stable offset, the aborted transactions and the state of the producers must be what
a model computes from the batches.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from model.log_oracle import NOW_MS, clock, make_log, open_manager, the_log
from model.transaction_log import (
    TransactionalProducer,
    all_batches,
    batch,
    check_state,
    read_committed,
)

from kafkacore.broker.log import LogManager, UnifiedLog, loader, producer_state
from kafkacore.broker.log._producer_batches import ProducerBatches
from kafkacore.broker.log.producer_state import ProducerStateManager
from kafkacore.broker.log.transaction_index import (
    AbortedTransaction,
    TransactionIndex,
    aborted_bytes,
    read_aborted,
)
from kafkacore.broker.log.transaction_recovery import TransactionRecovery
from kafkacore.testing.disk import PowerLossError, SimulatedDisk

CONFIG = {"segment_bytes": 900, "index_interval_bytes": 150}
FOLDER = Path("/data/flights-0")
STEPS = 26


@dataclass
class Acknowledged:
    """The high watermark that was reported last, and the batches that were appended."""

    end: int = 0
    appended: list[bytes] = field(default_factory=list)


class Workload:
    """Interleaved transactions of three producers, one of which stays open, with flushes and a restart."""

    def __init__(self, disk: SimulatedDisk, known: Acknowledged, flush: str = "ack") -> None:
        self.disk = disk
        self.known = known
        self.flush_mode = flush

    def run(self) -> None:
        manager = self.start()
        log = make_log(manager)
        first, second = TransactionalProducer(log, 1), TransactionalProducer(log, 2, version=2)
        hanging = TransactionalProducer(log, 3)
        for step in range(STEPS):
            first.send(b"first %d" % step)
            second.send(b"second %d" % step)
            if step == STEPS // 2:
                hanging.send(b"hanging")
            if step % 3:
                second.end(commit=step % 2 == 0)
            if step % 4 == 3:
                first.end(commit=step % 8 == 3)
            if step % 5 == 2:
                log.append_from_coordinator(batch([b"offsets %d" % step], (4, 0, -1)), now_ms=NOW_MS)
            if step % 5 == 4:
                log.append_marker(
                    4, 0, commit=step % 2 == 0, coordinator_epoch=1, transaction_version=1, now_ms=NOW_MS
                )
            if step % 2:
                manager.flush_dirty()
                self.known.end = log.high_watermark
            if step % 6 == 1:
                log.snapshot_producers(0)
            if step % 9 == 4:
                manager.checkpoint()
            if step == 2 * STEPS // 3:
                manager.close()
                self.known.end = log.log_end_offset
                manager = self.start()
                log = first.log = second.log = hanging.log = the_log(manager)
        manager.flush_dirty()
        self.known.end = log.high_watermark

    def start(self) -> LogManager:
        return open_manager(self.disk, flush=self.flush_mode, **CONFIG)


def call_count() -> int:
    disk = SimulatedDisk()
    Workload(disk, Acknowledged()).run()
    return disk.call_count


CALLS = call_count()


def interrupted(call: int, flush: str = "ack") -> tuple[SimulatedDisk, Acknowledged]:
    disk, known = SimulatedDisk(), Acknowledged()
    disk.fault = lambda number, verb, path: PowerLossError(verb) if number == call else None
    with suppress(PowerLossError):
        Workload(disk, known, flush).run()
    return disk, known


def check_started(disk: SimulatedDisk, known: Acknowledged, flush: str = "ack") -> LogManager:
    manager = open_manager(disk, flush=flush, **CONFIG)
    if not manager.topics():
        assert not known.end
        return manager
    log = the_log(manager)
    assert log.log_end_offset >= known.end or flush == "os"
    model = check_state(log, offset_step=5)
    assert read_committed(log) == model.committed_before(log.last_stable_offset)
    return manager


def continue_log(manager: LogManager) -> None:
    """End the open transactions as a coordinator does, and abort another one."""
    if not manager.topics():
        return
    log = the_log(manager)
    for entry in log.active_producers():
        if entry.current_txn_first_offset >= 0:
            log.append_marker(
                entry.producer_id,
                entry.producer_epoch,
                commit=entry.producer_id % 2 == 0,
                coordinator_epoch=entry.coordinator_epoch + 1,
                transaction_version=1,
                now_ms=NOW_MS,
            )
    other = TransactionalProducer(log, 9)
    other.send(b"after the start")
    other.end(commit=False)
    log.flush()
    assert log.last_stable_offset == log.log_end_offset
    check_state(log, offset_step=5)


@pytest.mark.parametrize("flush", ["ack", "os"])
def test_transactions_survive_a_kill_at_any_call(flush: str) -> None:
    for call in range(0, CALLS, 3):
        disk, known = interrupted(call, flush)
        disk = disk.kill_process()
        continue_log(check_started(disk, known, flush))
        check_started(disk.kill_process(), Acknowledged(), flush)


@pytest.mark.parametrize("flush", ["ack", "os"])
@pytest.mark.parametrize("seed", range(3))
def test_transactions_survive_a_loss_of_power_at_any_call(seed: int, flush: str) -> None:
    decide = clock(seed)
    for call in range(seed, CALLS, 5):
        disk, known = interrupted(call, flush)
        disk = disk.lose_power(decide)
        continue_log(check_started(disk, known, flush))
        # The repairs of the start, and later appends, survive the next loss of power.
        check_started(disk.lose_power(decide), known, flush)


def test_transactions_survive_a_loss_of_power_during_recovery() -> None:
    decide = clock(11)
    for call in range(0, CALLS, 13):
        disk, known = interrupted(call)
        for recovery_call in range(0, 30, 3):
            found = disk.copy().lose_power(decide)
            found.fault = lambda number, verb, path, k=recovery_call: (
                PowerLossError(verb) if number == k else None
            )
            try:
                open_manager(found, **CONFIG)
            except PowerLossError:
                found = found.lose_power(decide)
            else:
                found = found.kill_process()
            check_started(found, known)


# ---- Planted bugs ---------------------------------------------------------------------------------------


class OnlyMarkersOfTheReplayedSegment(TransactionRecovery):
    def complete(self, segment: Any, aborted: list[Any], replayed_from: int, replayed_to: int) -> None:
        super().complete(segment, [], replayed_from, replayed_to)


class ForgottenOpenTransactions(ProducerBatches):
    """Restores no open transactions from a snapshot."""

    def restore(self, entries: Any, map_end_offset: int) -> None:
        for entry in entries:
            entry.current_txn_first_offset = -1
        super().restore(entries, map_end_offset)


load, collect = ProducerStateManager.load, TransactionIndex.collect
last_stable_offset: Callable[[UnifiedLog], int] = vars(UnifiedLog)["last_stable_offset"].fget


def load_any_snapshot(producers: Any, start: int, end: int, bases: Any, names: Any, _: int) -> None:
    load(producers, start, end, bases, names)


def collect_in_one_segment(index: TransactionIndex, start: int, end: int) -> Any:
    return collect(index, start, end)[0], True


def collect_without_the_first(index: TransactionIndex, start: int, end: int) -> Any:
    found, is_complete = collect(index, start, end)
    return found[1:], is_complete


PLANTED: dict[str, tuple[Any, str, Any]] = {
    "a marker is lost at recovery": (producer_state, "read_marker", lambda _: None),
    "open transactions are lost at recovery": (producer_state, "ProducerBatches", ForgottenOpenTransactions),
    "the last stable offset is the high watermark": (
        UnifiedLog,
        "last_stable_offset",
        property(lambda log: log.high_watermark),
    ),
    "the last stable offset is one too high": (
        UnifiedLog,
        "last_stable_offset",
        property(lambda log: min(last_stable_offset(log) + 1, log.high_watermark)),
    ),
    "aborted transactions are not indexed again": (
        loader,
        "TransactionRecovery",
        OnlyMarkersOfTheReplayedSegment,
    ),
    "a snapshot above the recovery point is used": (ProducerStateManager, "load", load_any_snapshot),
    "the transaction index is not synced": (TransactionIndex, "flush", lambda _: None),
    "later segments are not searched": (TransactionIndex, "collect", collect_in_one_segment),
    "the aborted list is incomplete": (TransactionIndex, "collect", collect_without_the_first),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_bug_is_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    place, attribute, planted = PLANTED[name]
    monkeypatch.setattr(place, attribute, planted)
    for seed in range(10):
        decide = clock(seed)
        for call in range(CALLS // 3 + seed, CALLS, 7):
            disk, known = interrupted(call)
            try:
                disk = disk.lose_power(decide)
                continue_log(check_started(disk, known))
                check_started(disk.lose_power(decide), known)
            except AssertionError:
                return
    pytest.fail(f"no loss of power has found the planted bug: {name}")


def test_failed_sync_of_an_index_acknowledges_nothing() -> None:
    """The index is written again, because Linux does not sync the lost pages a second time."""
    disk = SimulatedDisk()
    manager = open_manager(disk, **CONFIG)
    log = make_log(manager)
    producer = TransactionalProducer(log, 1)
    producer.send(b"a")
    manager.flush_dirty()
    producer.end(commit=False)
    disk.fault = lambda call, verb, path: (
        OSError(errno.EIO, "planted") if (verb, path.suffix) == ("fdatasync", ".txnindex") else None
    )
    manager.flush_dirty()
    assert "planted" in (log.failure or "")
    assert (log.high_watermark, log.last_stable_offset) == (1, 0)
    disk = disk.kill_process()
    check_state(the_log(open_manager(disk, **CONFIG)))
    for seed in range(10):
        check_state(the_log(open_manager(disk.copy().lose_power(clock(seed)), **CONFIG)))


# ---- Damaged indexes ------------------------------------------------------------------------------------


def filled() -> SimulatedDisk:
    """Return the disk of a broker that was closed, with aborted transactions in many segments."""
    disk = SimulatedDisk()
    manager = open_manager(disk, **CONFIG)
    log = make_log(manager)
    long, short = TransactionalProducer(log, 1), TransactionalProducer(log, 2)
    for step in range(30):
        long.send(b"long %d" % step)
        short.send(b"short %d" % step)
        short.end(commit=step % 2 == 0)
        if step % 10 == 9:
            long.end(commit=False)
    manager.close()
    return disk


def indexes(disk: SimulatedDisk) -> list[Path]:
    return [FOLDER / name for name in disk.listdir(FOLDER) if name.endswith(".txnindex")]


def overwrite(disk: SimulatedDisk, path: Path, data: bytes) -> None:
    fd = disk.open(path)
    disk.truncate(fd, 0)
    disk.pwritev(fd, [data], 0)
    disk.fdatasync(fd)
    disk.close(fd)


def wrong_version(data: bytes) -> bytes:
    return b"\0\1" + data[2:]


def torn(data: bytes) -> bytes:
    return data[:-5]


def reversed_entries(data: bytes) -> bytes:
    return aborted_bytes(reversed(read_aborted(data)))


def marker_elsewhere(data: bytes) -> bytes:
    return aborted_bytes(one._replace(last_offset=2**40) for one in read_aborted(data))


def unstable_after_the_marker(data: bytes) -> bytes:
    return aborted_bytes(one._replace(last_stable_offset=2**40) for one in read_aborted(data))


@pytest.mark.behaviour("Broker storage", "a damaged index of transactions is rebuilt")
@pytest.mark.parametrize(
    "damage", [wrong_version, torn, reversed_entries, marker_elsewhere, unstable_after_the_marker]
)
@pytest.mark.parametrize("end", ["close", "kill"])
@pytest.mark.behaviour("Broker storage", "a damaged index of transactions is rebuilt")
def test_damaged_index_is_rebuilt(damage: Callable[[bytes], bytes], end: str) -> None:
    for path in indexes(filled()):
        disk = filled()
        right = disk.read_file(path)
        wrong = damage(right)
        if wrong == right:
            continue
        overwrite(disk, path, wrong)
        if end == "kill":
            open_manager(disk, **CONFIG)
            overwrite(disk, path, wrong)
            disk = disk.kill_process()
        check_state(the_log(open_manager(disk, **CONFIG)))
        assert disk.read_file(path) == right
        # The repaired file is durable.
        assert disk.lose_power(clock(1)).read_file(path) == right


@pytest.mark.kafka(
    "LogLoaderTest.testFullTransactionIndexRecovery", "LogLoaderTest.testRecoverLastSegmentWithNoSnapshots"
)
def test_missing_indexes_are_rebuilt_if_nothing_is_known_to_be_on_disk() -> None:
    disk = filled()
    expected = {path: disk.read_file(path) for path in indexes(disk)}
    for name in disk.listdir(FOLDER):
        if name.endswith((".txnindex", ".snapshot")):
            disk.unlink(FOLDER / name)
    disk.fsync_dir(FOLDER)
    for name in ("recovery-point-offset-checkpoint", ".kafka_cleanshutdown"):
        disk.unlink(FOLDER.parent / name)
    disk.fsync_dir(FOLDER.parent)
    disk = disk.lose_power(clock(1))
    check_state(the_log(open_manager(disk, **CONFIG)))
    assert {path: disk.read_file(path) for path in indexes(disk)} == expected


def test_start_without_damage_writes_no_index() -> None:
    disk = filled()
    written: list[str] = []

    def note(call: int, verb: str, path: Path) -> None:
        if ".txnindex" in path.name and verb not in ("pread", "fdatasync"):
            written.append(verb)

    disk.fault = note
    check_state(the_log(open_manager(disk, **CONFIG)))
    disk = disk.kill_process()
    disk.fault = note
    check_state(the_log(open_manager(disk, **CONFIG)))
    assert written == []


def test_entry_without_its_marker_is_dropped() -> None:
    """A kill between the two writes of an abort leaves the entry without the marker."""
    disk = SimulatedDisk()
    manager = open_manager(disk, **CONFIG)
    log = make_log(manager)
    producer = TransactionalProducer(log, 1)
    producer.send(b"a")
    log.flush()
    log.segments()[-1].transaction_index.append(AbortedTransaction(0, 1, 1, 2))
    log = the_log(open_manager(disk.kill_process(), **CONFIG))
    check_state(log)
    producer.log = log
    producer.end(commit=True)
    log.flush()
    check_state(log)
    assert log.aborted_transactions(0, 2) == []


def test_damaged_marker_leaves_its_transaction_open(caplog: pytest.LogCaptureFixture) -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk, **CONFIG)
    log = make_log(manager)
    producer = TransactionalProducer(log, 1)
    producer.send(b"a")
    producer.end(commit=True)
    producer.send(b"b")
    (_, marker, _) = all_batches(log)
    manager.close()
    for name in disk.listdir(FOLDER):
        if name.endswith(".snapshot"):
            disk.unlink(FOLDER / name)
    fd = disk.open(FOLDER / "00000000000000000000.log")
    disk.pwritev(fd, [b"\xff"], marker.position + marker.size_in_bytes - 2)
    disk.close(fd)
    log = the_log(open_manager(disk, **CONFIG))
    assert (log.log_end_offset, log.last_stable_offset) == (3, 0)
    assert any("the marker at offset 1 is damaged" in message for message in caplog.messages)


@pytest.mark.parametrize("first_offsets", [(5, -1), (2, 2)])
def test_snapshot_with_an_impossible_transaction_is_not_used(first_offsets: tuple[int, int]) -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk, **CONFIG)
    log = make_log(manager)
    producers = [TransactionalProducer(log, number) for number in (1, 2)]
    for producer in producers:
        producer.send(b"a")
        producer.end(commit=True)
    manager.close()
    entries = log.active_producers()
    for entry, first in zip(entries, first_offsets, strict=True):
        entry.current_txn_first_offset = first
    disk.write_file(FOLDER / "00000000000000000004.snapshot", producer_state.snapshot_bytes(entries))
    check_state(the_log(open_manager(disk, **CONFIG)))
