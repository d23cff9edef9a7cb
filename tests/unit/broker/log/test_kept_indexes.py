"""Indexes at a start: used as they are after a kill, and rebuilt after a loss of power."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from model.log_oracle import NOW_MS, batch, make_log, open_manager, read_all, the_log

from kafkacore.broker.log import UnifiedLog
from kafkacore.broker.log.checkpoints import BOOT_FILE
from kafkacore.broker.storage.disk import Disk
from kafkacore.testing.clock import VirtualClock
from kafkacore.testing.disk import PowerLossError, SimulatedDisk

FOLDER = Path("/data/flights-0")
FIRST = FOLDER / f"{0:020d}.log"
INDEX, TIME_INDEX = FIRST.with_suffix(".index"), FIRST.with_suffix(".timeindex")
CONFIG = {"index_interval_bytes": 150}


def overwrite(disk: Disk, path: Path, data: bytes) -> None:
    fd = disk.open(path, create=True)
    disk.truncate(fd, 0)
    disk.pwritev(fd, [data], 0)
    disk.close(fd)


def fill(log: UnifiedLog, chance: random.Random, count: int) -> None:
    for _ in range(count):
        values = [b"v" * chance.randrange(60) for _ in range(chance.randrange(1, 4))]
        log.append(batch(values, NOW_MS + chance.randrange(1000)), now_ms=NOW_MS)


def killed(seed: int = 0, checked: int = 60, behind: int = 30) -> SimulatedDisk:
    """Return the disk of a broker that was killed with ``behind`` batches above its recovery point."""
    disk = SimulatedDisk()
    manager = open_manager(disk, **CONFIG)
    log = make_log(manager)
    chance = random.Random(seed)
    fill(log, chance, checked)
    log.flush()
    manager.checkpoint()
    fill(log, chance, behind)
    return disk.kill_process()


def rebuilt(disk: SimulatedDisk) -> SimulatedDisk:
    """Return a copy of the disk after a start that rebuilt all indexes."""
    disk = disk.copy()
    disk.unlink(Path("/data") / BOOT_FILE)
    open_manager(disk, **CONFIG)
    return disk.kill_process()


def count_reads(disk: SimulatedDisk) -> int:
    """Count the reads of the log that a start needs."""
    reads: list[Path] = []
    disk.fault = lambda call, verb, path: reads.append(path) if verb == "pread" else None
    open_manager(disk, **CONFIG)
    return reads.count(FIRST)


@pytest.mark.parametrize("seed", range(20))
def test_kept_indexes_are_those_that_a_walk_builds(seed: int) -> None:
    disk = killed(seed, checked=random.Random(seed).randrange(1, 80))
    expected = rebuilt(disk)
    log = the_log(open_manager(disk, **CONFIG))
    for path in (FIRST, INDEX, TIME_INDEX):
        assert disk.read_file(path) == expected.read_file(path)
    # The segment continues from the last entry of the time index.
    from_walk = the_log(open_manager(expected, **CONFIG))
    assert log.offset_of_max_timestamp() == from_walk.offset_of_max_timestamp()


def test_what_lies_below_the_recovery_point_is_not_read_after_a_kill() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk, **CONFIG)
    log = make_log(manager)
    for number in range(3000):
        log.append(batch([b"value"], NOW_MS + number), now_ms=NOW_MS)
    log.flush()
    log.snapshot_producers(1)
    manager.checkpoint()
    kept, lost = disk.copy(), disk.copy().lose_power(VirtualClock())
    assert count_reads(kept) < 10
    assert count_reads(lost) > 50


def test_indexes_are_built_anew_after_a_loss_of_power() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk, **CONFIG)
    log = make_log(manager)
    fill(log, random.Random(0), 60)
    log.flush()
    manager.checkpoint()
    expected = rebuilt(disk)
    for seed in range(20):
        lost = disk.copy().lose_power(VirtualClock(seed=seed))
        open_manager(lost, **CONFIG)
        for path in (FIRST, INDEX, TIME_INDEX):
            assert lost.read_file(path) == expected.read_file(path)


@pytest.mark.parametrize("path", [INDEX, TIME_INDEX])
@pytest.mark.parametrize("how", ["emptied", "cut", "cut within an entry", "zeroed", "exchanged", "removed"])
def test_damaged_index_is_built_anew_after_a_kill(path: Path, how: str) -> None:
    disk = killed()
    expected = rebuilt(disk)
    data, size = disk.read_file(path), 8 if path == INDEX else 12
    if how == "removed":
        disk.unlink(path)
    else:
        first, second = data[:size], data[size : 2 * size]
        changed = {
            "emptied": b"",
            "cut": data[:size],
            "cut within an entry": data[:-3],
            "zeroed": first + bytes(size) + data[2 * size :],
            "exchanged": second + first + data[2 * size :],
        }
        overwrite(disk, path, changed[how])
    log = the_log(open_manager(disk, **CONFIG))
    assert disk.read_file(path) == expected.read_file(path)
    assert len(read_all(log)) == log.log_end_offset


@pytest.mark.parametrize("seed", range(10))
def test_kill_at_any_call_leaves_indexes_that_can_be_gone_on_with(seed: int) -> None:
    chance = random.Random(seed)
    disk = SimulatedDisk()
    for _ in range(6):
        manager = open_manager(disk, **CONFIG)
        log = make_log(manager)
        fill(log, chance, 10)
        log.flush()
        manager.checkpoint()
        fatal = disk.call_count + chance.randrange(1, 60)
        disk.fault = lambda call, verb, path, fatal=fatal: PowerLossError() if call >= fatal else None
        with pytest.raises(PowerLossError):
            fill(log, chance, 100)
        disk = disk.kill_process()
        # Kill the broker again during recovery.
        fatal = disk.call_count + chance.randrange(1, 30)
        disk.fault = lambda call, verb, path, fatal=fatal: PowerLossError() if call >= fatal else None
        try:
            open_manager(disk, **CONFIG)
        except PowerLossError:
            disk = disk.kill_process()
        disk.fault = lambda call, verb, path: None
        disk = disk.kill_process()
        expected = rebuilt(disk)
        open_manager(disk, **CONFIG)
        for path in (FIRST, INDEX, TIME_INDEX):
            assert disk.read_file(path) == expected.read_file(path)
        disk = disk.kill_process()


def test_producers_are_written_down_in_the_midst_of_a_segment_and_the_note_before_goes() -> None:
    disk = SimulatedDisk()
    log = make_log(open_manager(disk, **CONFIG))
    for sequence in range(6):
        log.append(batch([b"value"], producer=(7, 0, sequence)), now_ms=NOW_MS)
        log.flush()
        log.snapshot_producers(1)
        log.snapshot_producers(1)
        assert [name for name in disk.listdir(FOLDER) if name.endswith(".snapshot")] == [
            f"{sequence + 1:020d}.snapshot"
        ]
    log.append(batch([b"value"], producer=(7, 0, 6)), now_ms=NOW_MS)
    log = the_log(open_manager(disk.kill_process(), **CONFIG))
    for sequence in range(2, 7):
        assert log.append(batch([b"value"], producer=(7, 0, sequence)), now_ms=NOW_MS).duplicate
    assert log.append(batch([b"value"], producer=(7, 0, 7)), now_ms=NOW_MS).first_offset == 7


def test_note_of_producers_that_cannot_be_written_stops_no_log() -> None:
    disk = SimulatedDisk()
    log = make_log(open_manager(disk, **CONFIG))
    log.append(batch([b"value"], producer=(7, 0, 0)), now_ms=NOW_MS)
    log.flush()
    disk.fault = lambda call, verb, path: OSError(28, "No space left on device")
    log.snapshot_producers(1)
    disk.fault = lambda call, verb, path: None
    assert log.append(batch([b"value"], producer=(7, 0, 1)), now_ms=NOW_MS).first_offset == 1
    assert read_all(the_log(open_manager(disk.kill_process(), **CONFIG)))
