"""A kill, a loss of power or a disk failure at every call of a compaction: each key keeps its last record."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from model.compacted_log import CONFIG, append, compacted, kept, roll
from model.dose import dose
from model.log_oracle import clock, make_log, open_manager, the_log

from kafkacore.broker.log import LogManager, UnifiedLog
from kafkacore.record import Compression
from kafkacore.testing.disk import PowerLossError, SimulatedDisk

FOLDER = Path("/data/flights-0")
SMALL = {**CONFIG, "segment_bytes": 1200}
Records = dict[bytes | None, tuple[int, bytes | None]]


def filled(disk: SimulatedDisk, flush: str = "ack") -> tuple[LogManager, UnifiedLog]:
    """Return a log of several segments. Compaction merges them, and removes the last records of one."""
    manager = open_manager(disk, flush=flush, **SMALL)
    log = make_log(manager)
    for number in range(60):
        codec = Compression.LZ4 if number % 3 == 0 else Compression.NONE
        pairs = [
            (b"key %d" % (number % 7), b"%d" % number),
            (b"all", b"x"),
            (b"gone", None if number > 40 else b""),
        ]
        append(log, pairs, codec=codec)
    roll(log, manager)
    return manager, log


def latest(log: UnifiedLog) -> Records:
    return {record.key: (record.offset, record.value) for record in kept(log)}


def call_count() -> int:
    disk = SimulatedDisk()
    manager, _ = filled(disk)
    before = disk.call_count
    assert compacted(manager) > 0
    manager.flush_dirty()
    return disk.call_count - before


def crashed_at(call: int, flush: str = "ack") -> tuple[SimulatedDisk, Records, int]:
    """Crash at a call of the compaction. Return the disk, the records before it, and the log end offset."""
    disk = SimulatedDisk()
    manager, log = filled(disk, flush)
    before, end = latest(log), log.log_end_offset
    first = disk.call_count

    def fault(number: int, verb: str, path: Path) -> BaseException | None:
        return PowerLossError(verb) if number - first == call else None

    def clean() -> None:
        for _ in range(20):
            manager.clean_filthiest()
            manager.flush_dirty()

    disk.fault = fault
    with pytest.raises(PowerLossError):
        clean()
    return disk, before, end


def check(disk: SimulatedDisk, before: Records, end: int, what: str) -> None:
    manager = open_manager(disk, **SMALL)
    log = the_log(manager)
    assert log.log_end_offset == end, what
    assert latest(log) == before, what
    names = disk.listdir(FOLDER)
    assert not [name for name in names if name.endswith((".cleaned", ".swap", ".deleted"))], what
    compacted(manager)
    assert latest(log) == before, what
    append(log, [(b"next", b"")])
    manager.close()
    again = the_log(open_manager(disk, **SMALL))
    assert latest(again) == {**before, b"next": (end, b"")}, what


@pytest.mark.kafka("LogCleanerTest.testRecoveryAfterCrash")
def test_kill_at_every_call_keeps_the_last_record_of_each_key() -> None:
    for call in range(call_count()):
        disk, before, end = crashed_at(call)
        check(disk.kill_process(), before, end, f"killed at call {call}")


def test_loss_of_power_at_every_call_keeps_the_last_record_of_each_key() -> None:
    for call in range(call_count()):
        disk, before, end = crashed_at(call)
        for seed in range(dose(3, 50)):
            check(
                disk.copy().lose_power(clock(seed)),
                before,
                end,
                f"call {call}, seed {seed}",
            )


def test_loss_of_power_keeps_no_record_after_a_lost_one() -> None:
    """The records after the compacted part are in several segments, of which the disk may keep any."""
    disk = SimulatedDisk()
    manager, log = filled(disk)
    compacted(manager)
    before, synced = latest(log), log.log_end_offset
    for number in range(40):
        append(log, [(b"key %d" % number, b"new"), (b"other %d" % number, b"x" * 30)])
    ends = set()
    for seed in range(dose(40, 1_000)):
        after = the_log(open_manager(disk.copy().lose_power(clock(seed)), **SMALL))
        found = kept(after)
        assert {one.key: (one.offset, one.value) for one in found if one.offset < synced} == before
        offsets = [one.offset for one in found if one.offset >= synced]
        assert offsets == list(range(synced, after.log_end_offset)), f"seed {seed}"
        ends.add(after.log_end_offset)
    assert len(ends) > 3


def test_kill_while_the_files_are_only_with_the_system_keeps_them_too() -> None:
    for call in range(0, call_count(), 3):
        disk, before, end = crashed_at(call, "os")
        check(disk.kill_process(), before, end, f"killed at call {call}")


def test_kill_after_the_policy_has_changed_takes_no_gap_for_the_end_of_the_log() -> None:
    disk = SimulatedDisk()
    manager, log = filled(disk)
    compacted(manager)
    before, end = latest(log), log.log_end_offset
    bases = [segment.base_offset for segment in log.segments()]
    ends = [segment.next_offset() for segment in log.segments()]
    assert any(next_offset < base for next_offset, base in zip(ends, bases[1:], strict=False))
    log = the_log(open_manager(disk.kill_process(), **{**SMALL, "cleanup_policy": "delete"}))
    assert log.log_end_offset == end
    assert latest(log) == before


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_disk_that_fails_at_any_call_loses_nothing(number: int) -> None:
    for call in range(call_count()):
        disk = SimulatedDisk()
        manager, log = filled(disk)
        before, end = latest(log), log.log_end_offset
        first = disk.call_count

        def fault(at: int, verb: str, path: Path, wanted: int = first + call) -> BaseException | None:
            return OSError(number, "the disk fails") if at == wanted else None

        disk.fault = fault
        for _ in range(6):
            manager.clean_filthiest()
            manager.flush_dirty()
        if log.failure is None:
            assert latest(log) == before, f"call {call}"
        check(disk.kill_process(), before, end, f"call {call}")


def test_full_disk_is_said_once_and_cleaning_goes_on_when_there_is_room(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = SimulatedDisk()
    manager, log = filled(disk)
    before = latest(log)
    disk.capacity = disk.used_bytes() + 300
    for _ in range(5):
        assert manager.clean_filthiest() is None
    assert manager.uncleanable == {}
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert said == ["flights-0: the disk is full; compaction waits for free space"]
    assert disk.used_bytes() <= disk.capacity
    disk.capacity = None
    assert compacted(manager) > 0
    assert latest(log) == before


@pytest.mark.kafka("LogCleanerTest.testRecoveryAfterCrash")
@pytest.mark.behaviour(
    "Broker storage",
    "an interrupted replacement of segments is rolled back or completed, at every stage",
)
@pytest.mark.parametrize(
    ("cleaned", "swapped", "old"),
    [
        ((".log", ".index", ".timeindex"), (), "kept"),
        ((".index",), (".log", ".timeindex"), "kept"),
        ((), (".log", ".index", ".timeindex"), "kept"),
        ((), (".log", ".index", ".timeindex"), "gone"),
        ((), (".index", ".timeindex"), "gone"),
        ((), (".timeindex",), "gone"),
    ],
)
def test_every_stage_that_apache_kafka_can_leave_is_taken_back_or_finished(
    cleaned: tuple[str, ...], swapped: tuple[str, ...], old: str
) -> None:
    disk = SimulatedDisk()
    manager, log = filled(disk)
    before, end = latest(log), log.log_end_offset
    stale = disk.copy()
    bases = [segment.base_offset for segment in log.segments()]
    compacted(manager)
    new = log.segments()[0]
    replaced = [base for base in bases if new.base_offset <= base < new.next_offset()]
    for suffix in (".log", ".index", ".timeindex"):
        name = f"{new.base_offset:020d}{suffix}"
        content = disk.read_file(FOLDER / name)
        ending = ".cleaned" if suffix in cleaned else ".swap" if suffix in swapped else ""
        if old == "gone":
            for base in replaced:
                path = FOLDER / f"{base:020d}{suffix}"
                if stale.exists(path):
                    stale.rename(path, path.with_name(path.name + ".deleted"))
        stale.write_file(FOLDER / f"{name}{ending}", content)
    check(stale, before, end, f"{cleaned}, {swapped}, {old}")
