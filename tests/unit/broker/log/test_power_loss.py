"""Power loss and kills at every call of a small workload: reliability goal G2.

The workload creates and deletes topics, appends, rolls, flushes, applies retention and restarts. It runs on a
simulated disk until the power fails at call k. After the next start, exactly the acknowledged state must be
there.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import pytest
from model.log_oracle import NOW_MS, LogRecord, batch, clock, open_manager, read_all

from kafkacore.broker.log import LogAppendInfo, LogManager, UnifiedLog
from kafkacore.broker.log.producer_entries import BatchMetadata, ProducerStateEntry
from kafkacore.broker.log.producer_state import snapshot_bytes
from kafkacore.structs import TopicPartition
from kafkacore.testing.clock import VirtualClock
from kafkacore.testing.disk import PowerLossError, SimulatedDisk

CONFIG = {"segment_bytes": 700, "index_interval_bytes": 150}
KEPT = TopicPartition("kept", 0)
FOLDER = Path("/data/kept-0")
TRIMMED = TopicPartition("trimmed", 0)


@dataclass
class Acknowledged:
    """The state that was acknowledged to clients."""

    topics: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    #: Topics with a call that was neither acknowledged nor failed.
    open: set[str] = field(default_factory=set)
    #: Last high watermark that was reported for each partition.
    end: dict[TopicPartition, int] = field(default_factory=dict)
    #: Log start offset that was requested last.
    asked_start: int = 0
    #: Log start offset that was acknowledged last.
    start: int = 0
    sent: dict[TopicPartition, list[bytes]] = field(default_factory=dict)


class Workload:
    def __init__(self, disk: SimulatedDisk, known: Acknowledged) -> None:
        self.disk = disk
        self.known = known

    def run(self) -> None:
        manager = self.start()
        for name in ("kept", "trimmed", "gone"):
            self.create(manager, name)
        for turn in range(12):
            self.append(manager, KEPT, turn)
            self.append(manager, TRIMMED, turn)
            self.append(manager, TopicPartition("gone", 0), turn)
            if turn % 2:
                self.flush(manager)
            if turn == 4:
                manager.checkpoint()
            if turn == 6:
                self.delete_records(manager, 6)
            if turn == 8:
                self.delete(manager, "gone")
                self.flush(manager)
                manager.close()
                manager = self.start()
                self.create(manager, "gone")
        self.delete_records(manager, 9)
        manager.flush_dirty()

    def start(self) -> LogManager:
        return open_manager(self.disk, **CONFIG)

    def create(self, manager: LogManager, name: str) -> None:
        self.known.open.add(name)
        self.known.deleted.discard(name)
        manager.create_topic(name, 1, UUID(int=len(self.known.topics) + 1), {})
        self.known.open.discard(name)
        self.known.topics.add(name)
        self.known.sent[TopicPartition(name, 0)] = []
        self.known.end[TopicPartition(name, 0)] = 0

    def append(self, manager: LogManager, tp: TopicPartition, turn: int) -> None:
        values = [b"%d of %s" % (index, tp.topic.encode()) for index in (2 * turn, 2 * turn + 1)]
        sent = self.known.sent[tp]
        log = manager.log(tp)
        assert log is not None
        sent += values
        producer = (3, 0, len(sent) - 2)
        info = log.append(batch(values, NOW_MS + turn, producer=producer), now_ms=NOW_MS)
        assert info.first_offset == len(sent) - len(values)
        self.known.end[tp] = log.high_watermark

    def flush(self, manager: LogManager) -> None:
        manager.flush_dirty()
        for tp in self.known.sent:
            log = manager.log(tp)
            if log is not None:
                self.known.end[tp] = log.high_watermark

    def delete_records(self, manager: LogManager, before: int) -> None:
        self.known.asked_start = before
        manager.delete_records(TRIMMED, before)
        self.known.start = before

    def delete(self, manager: LogManager, name: str) -> None:
        self.known.open.add(name)
        manager.delete_topic(name)
        self.known.open.discard(name)
        self.known.topics.discard(name)
        self.known.deleted.add(name)
        del self.known.sent[TopicPartition(name, 0)], self.known.end[TopicPartition(name, 0)]


def call_count() -> int:
    disk = SimulatedDisk()
    Workload(disk, Acknowledged()).run()
    return disk.call_count


CALLS = call_count()


def interrupted(call: int) -> tuple[SimulatedDisk, Acknowledged]:
    disk, known = SimulatedDisk(), Acknowledged()
    disk.fault = lambda number, verb, path: PowerLossError(verb) if number == call else None
    with pytest.raises(PowerLossError):
        Workload(disk, known).run()
    return disk, known


def check(manager: LogManager, known: Acknowledged, *, keeps_all: bool) -> None:
    topics = set(manager.topics())
    assert known.topics - known.open <= topics
    assert not (known.deleted - known.open) & topics
    for tp, sent in known.sent.items():
        if tp.topic not in known.topics or tp.topic in known.open:
            continue
        log = manager.log(tp)
        assert log is not None
        end = len(sent) - 2 if keeps_all else known.end[tp]
        assert end <= log.log_end_offset <= len(sent)
        assert log.high_watermark == log.log_end_offset
        check_records(log, tp, sent, known)


def check_records(log: UnifiedLog, tp: TopicPartition, sent: list[bytes], known: Acknowledged) -> None:
    records: list[LogRecord] = read_all(log)
    assert [record.offset for record in records] == list(range(log.log_start_offset, log.log_end_offset))
    assert [record.value for record in records] == sent[log.log_start_offset : log.log_end_offset]
    if tp == TRIMMED:
        assert known.start <= log.log_start_offset <= known.asked_start
    else:
        assert log.log_start_offset == 0
    # Send the last batch again, as a producer does without an acknowledgement. It must not be duplicated.
    if log.log_end_offset:
        end, last = log.log_end_offset, log.log_end_offset - 2
        again = log.append(batch(sent[last:end], NOW_MS, producer=(3, 0, last)), now_ms=NOW_MS)
        assert (again.duplicate, again.first_offset, log.log_end_offset) == (True, last, end)


@pytest.mark.parametrize("seed", range(3))
def test_nothing_acknowledged_is_lost_with_the_power(seed: int) -> None:
    decide: VirtualClock = clock(seed)
    for call in range(seed, CALLS, 3):
        disk, known = interrupted(call)
        found = disk.lose_power(decide)
        manager = open_manager(found, **CONFIG)
        check(manager, known, keeps_all=False)
        manager.close()
        check(open_manager(found, **CONFIG), known, keeps_all=False)


def test_nothing_appended_is_lost_with_the_process() -> None:
    for call in range(0, CALLS, 2):
        disk, known = interrupted(call)
        check(open_manager(disk.kill_process(), **CONFIG), known, keeps_all=True)


def test_power_loss_during_recovery_loses_nothing_either() -> None:
    decide = clock(7)
    for call in range(0, CALLS, 11):
        disk, known = interrupted(call)
        for recovery_call in range(0, 40, 3):
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
            check(open_manager(found, **CONFIG), known, keeps_all=False)


def test_what_a_start_has_shown_survives_a_loss_of_power() -> None:
    for seed in range(10):
        disk = SimulatedDisk()
        manager = open_manager(disk, **CONFIG)
        manager.create_topic("kept", 1, UUID(int=1), {})
        log = manager.log(KEPT)
        assert log is not None
        for turn in range(10):
            log.append(batch([b"value %d" % turn] * 2), now_ms=NOW_MS)
        disk = disk.kill_process()
        shown = open_manager(disk, **CONFIG).log(KEPT)
        assert shown is not None
        assert shown.high_watermark == 20
        after = open_manager(disk.lose_power(clock(seed)), **CONFIG).log(KEPT)
        assert after is not None
        assert after.high_watermark == 20


def test_tail_that_a_start_has_cut_at_the_recovery_point_does_not_come_back() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk, flush="os")
    manager.create_topic("kept", 1, UUID(int=1), {})
    log = manager.log(KEPT)
    assert log is not None
    log.append(batch([b"kept"]), now_ms=NOW_MS)
    log.flush()
    manager.checkpoint()
    end = log.size_in_bytes
    log.append(batch([b"cut"]), now_ms=NOW_MS)
    fd = disk.open(Path("/data") / "kept-0" / "00000000000000000000.log")
    disk.fdatasync(fd)
    # This write is not synced, so a loss of power may undo the damage.
    disk.pwritev(fd, [b"\xff"], end + 30)
    found = disk.kill_process()
    shown = open_manager(found, flush="os").log(KEPT)
    assert shown is not None
    assert shown.log_end_offset == 1
    for seed in range(20):
        after = open_manager(found.copy().lose_power(clock(seed)), flush="os").log(KEPT)
        assert after is not None
        assert [record.value for record in read_all(after)] == [b"kept"]


def test_simulated_power_loss_takes_what_was_not_synced() -> None:
    """The tests above require a disk that really loses unsynced data."""
    lost = 0
    for seed in range(20):
        disk = SimulatedDisk()
        manager = open_manager(disk, flush="os")
        manager.create_topic("kept", 1, UUID(int=1), {})
        log = manager.log(KEPT)
        assert log is not None
        log.append(batch([b"value"]), now_ms=NOW_MS)
        after = open_manager(disk.lose_power(clock(seed))).log(KEPT)
        lost += after is not None and after.log_end_offset == 0
    assert 5 <= lost <= 19


def append_two(manager: LogManager, producer: tuple[int, int, int]) -> LogAppendInfo:
    log = manager.log(KEPT)
    assert log is not None
    return log.append(batch([b"value"] * 2, producer=producer), now_ms=NOW_MS)


@pytest.mark.behaviour("Broker storage", "the state of producers survives a restart")
def test_snapshot_of_lost_batches_does_not_come_back_with_a_second_loss_of_power() -> None:
    """It would be used once the log has grown to its offset again, and would lack the real producer."""
    entry = ProducerStateEntry(7, 0, NOW_MS, batches=deque([BatchMetadata(0, 3, 0, 3, NOW_MS)]))
    lost = snapshot_bytes([entry])
    kept = 0
    for seed in range(40):
        disk = SimulatedDisk()
        manager = open_manager(disk)
        manager.create_topic("kept", 1, UUID(int=1), {})
        append_two(manager, producer=(8, 0, 0))
        manager.flush_dirty()
        manager.checkpoint()
        disk.write_file(FOLDER / "00000000000000000004.snapshot", lost)
        disk.fsync_dir(FOLDER)
        disk = disk.kill_process()
        append_two(open_manager(disk), producer=(8, 0, 2))
        manager = open_manager(disk.lose_power(clock(seed)))
        log = manager.log(KEPT)
        assert log is not None
        if log.log_end_offset == 4:
            kept += 1
            assert append_two(manager, producer=(8, 0, 2)).duplicate, f"seed {seed}"
    assert kept >= 5


def test_log_whose_records_were_all_deleted_is_synced_by_a_start() -> None:
    """Otherwise a loss of power could tear records below the recovery point, and the log would be offline."""
    for seed in range(40):
        disk = SimulatedDisk()
        manager = open_manager(disk, flush="os")
        manager.create_topic("kept", 1, UUID(int=1), {})
        log = manager.log(KEPT)
        assert log is not None
        for turn in range(10):
            log.append(batch([b"value %d" % turn * 40]), now_ms=NOW_MS)
        manager.delete_records(KEPT, log.log_end_offset)
        disk = disk.kill_process()
        assert open_manager(disk, flush="os").offline == {}
        after = open_manager(disk.lose_power(clock(seed)), flush="os")
        assert after.offline == {}, f"seed {seed}"


def test_log_that_a_start_has_emptied_stays_readable_after_the_next_loss_of_power() -> None:
    emptied = 0
    for seed in range(150):
        decide = clock(seed)
        manager = open_manager(disk := SimulatedDisk(), flush="os", **CONFIG)
        manager.create_topic("kept", 1, UUID(int=1), {})
        log = manager.log(KEPT)
        assert log is not None
        for turn in range(10):
            log.append(batch([b"value %d" % turn] * 2), now_ms=NOW_MS)
        manager.delete_records(KEPT, 19)
        for _ in range(2):
            disk = disk.lose_power(decide)
            log = open_manager(disk, flush="os", **CONFIG).log(KEPT)
            assert log is not None
            assert log.log_end_offset >= log.log_start_offset == 19
            assert [record.offset for record in read_all(log)] == list(range(19, log.log_end_offset))
            emptied += log.size_in_bytes == 0
    assert emptied > 10
