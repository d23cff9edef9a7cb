"""Recovery after files were truncated, damaged, emptied or lost: reliability goals G3 and G4."""

from __future__ import annotations

from pathlib import Path

import pytest
from model.log_oracle import NOW_MS, TP, LogRecord, batch, clock, make_log, open_manager, read_all, the_log

from kafkacore.broker.log import LogManager
from kafkacore.broker.storage.disk import Disk
from kafkacore.errors import CorruptRecordError, KafkaStorageError
from kafkacore.testing.disk import SimulatedDisk

FOLDER = Path("/data/flights-0")
FIRST = FOLDER / "00000000000000000000.log"
CONFIG = {"segment_bytes": 1000, "index_interval_bytes": 100}


def overwrite(disk: Disk, path: Path, data: bytes) -> None:
    fd = disk.open(path, create=True)
    disk.truncate(fd, 0)
    disk.pwritev(fd, [data], 0)
    disk.close(fd)


def three_batches() -> tuple[SimulatedDisk, list[int]]:
    """Return the disk of a broker killed before any checkpoint, and the ends of its three batches."""
    disk = SimulatedDisk()
    log = make_log(open_manager(disk))
    ends = []
    for index in range(3):
        log.append(batch([b"value %d" % index, b"x"]), now_ms=NOW_MS)
        ends.append(log.size_in_bytes)
    return disk.kill_process(), ends


def recovered(disk: SimulatedDisk, data: bytes) -> int:
    """Start with ``data`` as the segment, check that the log is usable, and count the batches kept."""
    disk = disk.copy()
    overwrite(disk, FIRST, data)
    log = the_log(open_manager(disk))
    records = read_all(log)
    assert [record.offset for record in records] == list(range(log.log_end_offset))
    assert log.high_watermark == log.log_end_offset
    assert log.append(batch([b"next"]), now_ms=NOW_MS).first_offset == log.log_end_offset - 1
    return (log.log_end_offset - 1) // 2


@pytest.mark.behaviour(
    "Broker storage",
    "after damage to the last segment, exactly the records before the damage remain",
)
def test_segment_cut_at_any_byte_keeps_the_whole_batches_before() -> None:
    disk, ends = three_batches()
    data = disk.read_file(FIRST)
    for size in range(len(data) + 1):
        assert recovered(disk, data[:size]) == sum(end <= size for end in ends), f"cut at {size}"


def test_any_flipped_bit_of_the_last_batch_keeps_the_batches_before() -> None:
    disk, ends = three_batches()
    data = disk.read_file(FIRST)
    # The CRC does not cover offset and leader epoch, so a wrong but plausible offset is not detected.
    uncovered = {*range(ends[1], ends[1] + 8), *range(ends[1] + 12, ends[1] + 16)}
    for bit in range(ends[1] * 8, len(data) * 8):
        if bit // 8 not in uncovered:
            flipped = bytearray(data)
            flipped[bit // 8] ^= 1 << bit % 8
            assert recovered(disk, bytes(flipped)) == 2, f"bit {bit}"


@pytest.mark.parametrize("tail", [bytes(1), bytes(5000), b"\x02" * 300, b"garbage" * 20])
def test_garbage_behind_the_last_batch_is_cut(tail: bytes) -> None:
    disk, _ = three_batches()
    data = disk.read_file(FIRST)
    assert recovered(disk, data + tail) == 3


def test_repeated_batch_behind_the_end_is_cut() -> None:
    disk, ends = three_batches()
    data = disk.read_file(FIRST)
    assert recovered(disk, data + data[: ends[0]]) == 3


def closed_segments(**config: object) -> tuple[SimulatedDisk, list[LogRecord]]:
    """Return the disk of a killed broker with several segments, all below the recovery point."""
    disk = SimulatedDisk()
    manager = open_manager(disk, **(CONFIG | config))
    log = make_log(manager)
    for index in range(40):
        log.append(batch([b"value %d" % index], NOW_MS + index), now_ms=NOW_MS)
    manager.flush_dirty()
    manager.checkpoint()
    assert log.segment_count > 3
    records = read_all_of(manager)
    return disk.kill_process(), records


def read_all_of(manager: LogManager) -> list[LogRecord]:
    return read_all(the_log(manager))


def files(disk: SimulatedDisk, suffix: str) -> list[Path]:
    return [FOLDER / name for name in disk.listdir(FOLDER) if name.endswith(suffix)]


@pytest.mark.behaviour(
    "Broker storage",
    "a missing, truncated or damaged index is rebuilt, at a start and while the log is open",
)
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "flipped", "zeroed"])
def test_damaged_indexes_are_built_anew(suffix: str, damage: str) -> None:
    disk, records = closed_segments()
    before = {path: disk.read_file(path) for path in files(disk, suffix)}
    for path, data in before.items():
        if damage == "missing":
            disk.unlink(path)
        elif data:
            flipped = data[:-5] + bytes([data[-5] ^ 0x10]) + data[-4:]
            changes = {"empty": b"", "cut": data[:-1], "flipped": flipped, "zeroed": bytes(len(data))}
            overwrite(disk, path, changes[damage])
    log = the_log(open_manager(disk, **CONFIG))
    assert read_all(log) == records
    for offset in range(40):
        assert log.read(offset, 1).next_offset == offset + 1
        assert log.offset_for_timestamp(NOW_MS + offset) == (NOW_MS + offset, offset, 0)


def test_every_flip_in_an_offset_index_is_survived_by_reads() -> None:
    disk, records = closed_segments()
    path = files(disk, ".index")[1]
    data = disk.read_file(path)
    for bit in range(len(data) * 8):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        overwrite(disk, path, bytes(flipped))
        manager = open_manager(disk, **CONFIG)
        log = the_log(manager)
        for record in records:
            assert log.read(record.offset, 1).next_offset == record.offset + 1
        manager.close()


@pytest.mark.behaviour(
    "Broker storage",
    "a missing, truncated or damaged index is rebuilt, at a start and while the log is open",
)
def test_index_that_is_emptied_under_a_running_log_is_built_anew() -> None:
    disk, _ = closed_segments()
    log = the_log(open_manager(disk, **CONFIG))
    for path in files(disk, ".index"):
        overwrite(disk, path, b"")
    for offset in range(40):
        assert log.read(offset, 1).next_offset == offset + 1


@pytest.mark.behaviour(
    "Broker storage", "an index without its log and the leftovers of a deletion are removed"
)
def test_leftovers_of_a_crash_are_removed() -> None:
    disk, records = closed_segments()
    for name in (
        "00000000000000000000.log.deleted",
        "x.tmp",
        "00000000000000000099.index",
        "0099.log.cleaned",
    ):
        overwrite(disk, FOLDER / name, b"leftover")
    assert read_all_of(open_manager(disk, **CONFIG)) == records
    assert not any(b"leftover" in disk.read_file(FOLDER / name) for name in disk.listdir(FOLDER))


def test_damage_in_a_closed_segment_is_named_and_cuts_nothing() -> None:
    disk, _ = closed_segments()
    path = files(disk, ".log")[1]
    base = int(path.stem)
    data = bytearray(disk.read_file(path))
    data[16] = 9
    overwrite(disk, path, bytes(data))
    log = the_log(open_manager(disk, **CONFIG))
    assert log.log_end_offset == 40
    with pytest.raises(CorruptRecordError) as raised:
        log.read(base, 1000)
    assert raised.value.topic_partition == TP
    assert raised.value.offset == base
    assert log.read(0, 1).next_offset == 1
    later = int(files(disk, ".log")[2].stem)
    assert log.read(later, 1).next_offset == later + 1


def test_damage_below_the_recovery_point_puts_the_partition_offline_and_keeps_its_bytes() -> None:
    disk, _ = three_batches()
    manager = open_manager(disk)
    manager.checkpoint()
    disk = disk.kill_process()
    data = bytearray(disk.read_file(FIRST))
    data[16] = 9
    overwrite(disk, FIRST, bytes(data))
    manager = open_manager(disk)
    with pytest.raises(
        KafkaStorageError, match=r"offline: not a valid batch: .* below the recovery point at offset 0"
    ):
        manager.log(TP)
    assert disk.read_file(FIRST) == data
    manager.close()
    manager = open_manager(disk)
    with pytest.raises(KafkaStorageError, match="offline"):
        manager.log(TP)


@pytest.mark.behaviour(
    "Broker storage",
    "a cleanly closed log is not scanned, and any other log only above its recovery point",
)
def test_closed_log_is_not_scanned() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    log = make_log(manager)
    log.append(batch([b"value"]), now_ms=NOW_MS)
    manager.close()
    data = bytearray(disk.read_file(FIRST))
    data[-1] ^= 1
    overwrite(disk, FIRST, bytes(data))
    log = the_log(open_manager(disk))
    assert log.log_end_offset == 1, "a scan would have removed the batch because of its CRC"


@pytest.mark.behaviour("Broker storage", "the clean shutdown marker is removed as soon as it has been read")
def test_marker_is_removed_as_soon_as_it_is_read() -> None:
    disk = SimulatedDisk()
    open_manager(disk).close()
    marker = Path("/data/.kafka_cleanshutdown")
    assert disk.exists(marker)
    open_manager(disk)
    assert not disk.exists(marker)
    assert not any(disk.copy().lose_power(clock(seed)).exists(marker) for seed in range(20))


@pytest.mark.behaviour(
    "Broker storage",
    "a cleanly closed log is not scanned, and any other log only above its recovery point",
)
def test_only_what_lies_past_the_recovery_point_is_read_as_a_whole() -> None:
    disk, _ = closed_segments()
    reads: dict[Path, int] = {}

    def count(call: int, verb: str, path: Path) -> None:
        if verb == "pread" and path.suffix == ".log":
            reads[path] = reads.get(path, 0) + 1

    disk.fault = count
    open_manager(disk, **CONFIG)
    last = files(disk, ".log")[-1]
    assert all(number <= 6 for path, number in reads.items() if path != last)


@pytest.mark.behaviour(
    "Broker storage", "a log that ends before its log start offset restarts empty at that offset"
)
def test_log_that_ends_before_its_start_begins_anew_there() -> None:
    disk, _ = three_batches()
    overwrite(disk, Path("/data/log-start-offset-checkpoint"), b"0\n1\nflights 0 100\n")
    log = the_log(open_manager(disk))
    assert (log.log_start_offset, log.log_end_offset) == (100, 100)
    assert log.append(batch([b"a"]), now_ms=NOW_MS).first_offset == 100


def test_segment_behind_a_gap_is_removed() -> None:
    disk = SimulatedDisk()
    log = make_log(open_manager(disk, **CONFIG))
    for index in range(40):
        log.append(batch([b"value %d" % index]), now_ms=NOW_MS)
    disk = disk.kill_process()
    second, third = files(disk, ".log")[1:3]
    disk.unlink(second)
    log = the_log(open_manager(disk, **CONFIG))
    assert log.log_end_offset == int(second.stem)
    assert not disk.exists(third)


@pytest.mark.parametrize(
    "data", [b"", b"1\n0\n", b"0\n2\nflights 0 3\n", b"0\n1\nflights zero 3\n", b"\xff\xfe"]
)
def test_broken_checkpoints_are_passed_over(data: bytes) -> None:
    disk, ends = three_batches()
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint"):
        overwrite(disk, Path("/data") / name, data)
    assert len(read_all_of(open_manager(disk))) == 2 * len(ends)
