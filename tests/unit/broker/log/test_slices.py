"""Reads that return a part of a file: they have the same records as a copy, even if the file is removed."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path
from uuid import UUID

import pytest
from model.log_oracle import NOW_MS, TOPIC, batch, clock, make_log, read_all

from kafkacore.broker.log import LogManager, UnifiedLog
from kafkacore.broker.log.reading import MIN_SLICE_SIZE
from kafkacore.broker.storage.disk import Disk
from kafkacore.record import read_batch_headers
from kafkacore.wire import FileSlice

BATCH = 4000


class WatchedDisk(Disk):
    """A disk that counts the bytes that are read."""

    def __init__(self) -> None:
        self.read_bytes = 0

    def pread(self, fd: int, size: int, position: int) -> bytes:
        data = super().pread(fd, size, position)
        self.read_bytes += len(data)
        return data


def open_manager(folder: Path, disk: Disk | None = None, flush: str = "ack", **config: object) -> LogManager:
    configs = {key.replace("_", "."): str(value) for key, value in config.items()}
    return LogManager(folder, clock=clock(), disk=disk, default_config=configs, flush=flush, background=False)


def fill(manager: LogManager, batches: int, seed: int = 0) -> UnifiedLog:
    """Append batches of random sizes up to a little more than 8000 bytes, and flush them."""
    log = make_log(manager)
    chance = random.Random(seed)
    for index in range(batches):
        log.append(batch([b"%d " % index + chance.randbytes(chance.randrange(2 * BATCH))]), now_ms=NOW_MS)
    manager.flush_dirty()
    return log


def read_in_steps(log: UnifiedLog, max_bytes: int) -> tuple[bytes, int]:
    """Read the whole log with reads of up to ``max_bytes``. Return the bytes and the number of slices."""
    offset, found, slices = log.log_start_offset, b"", 0
    while offset < log.high_watermark:
        data = log.read(offset, max_bytes, may_slice=True)
        slices += isinstance(data.records, FileSlice)
        assert 0 < len(data.records) <= max_bytes
        headers = read_batch_headers(bytes(data.records))
        assert headers[-1].position + headers[-1].size_in_bytes == len(data.records)
        assert (headers[0].base_offset, headers[-1].next_offset) == (offset, data.next_offset)
        found += bytes(data.records)
        offset = data.next_offset
    return found, slices


@pytest.mark.behaviour(
    "Broker storage",
    "a read that is sent from its file has the bytes of the segment, even if it is deleted meanwhile",
)
@pytest.mark.parametrize("flush", ["ack", "os"])
@pytest.mark.parametrize("segment_bytes", [100_000, 1 << 30])
def test_slices_have_the_bytes_of_the_segments_whatever_the_limit(
    tmp_path: Path, flush: str, segment_bytes: int
) -> None:
    log = fill(open_manager(tmp_path, flush=flush, segment_bytes=segment_bytes), 150)
    whole = b"".join(path.read_bytes() for path in sorted((tmp_path / "flights-0").glob("*.log")))
    for max_bytes in (8_100, MIN_SLICE_SIZE + 2 * BATCH, 70_000, 1 << 20):
        for _ in range(2):
            found, slices = read_in_steps(log, max_bytes)
            assert found == whole
        assert slices or max_bytes < 1 << 20
        assert not slices or max_bytes > MIN_SLICE_SIZE


def test_consumer_at_the_end_gets_slices_without_a_look_into_the_file(tmp_path: Path) -> None:
    disk = WatchedDisk()
    manager = open_manager(tmp_path, disk)
    log = fill(manager, 2)
    offset = log.read(0, 1 << 20).next_offset
    for turn in range(5):
        fill(manager, 30, turn)
        disk.read_bytes = 0
        found = log.read(offset, 1 << 20, may_slice=True)
        assert isinstance(found.records, FileSlice)
        assert (disk.read_bytes, found.next_offset) == (0, log.high_watermark)
        offset = found.next_offset


def test_reader_that_follows_another_looks_only_for_where_to_stop(tmp_path: Path) -> None:
    disk = WatchedDisk()
    log = fill(open_manager(tmp_path, disk), 300)
    read_in_steps(log, 100_000)
    disk.read_bytes = 0
    found = log.read(0, 100_000, may_slice=True)
    assert isinstance(found.records, FileSlice)
    # Only a window of the index and the header of the next batch are read.
    assert disk.read_bytes < 5000


def test_nothing_beyond_the_high_watermark_is_sliced(tmp_path: Path) -> None:
    manager = open_manager(tmp_path)
    log = fill(manager, 30)
    safe = log.high_watermark
    log.read(0, 1 << 20)
    for _ in range(30):
        log.append(batch([bytes(BATCH)]), now_ms=NOW_MS)
    found, _ = read_in_steps(log, 1 << 20)
    assert read_batch_headers(found)[-1].next_offset == safe == log.high_watermark


@pytest.mark.parametrize("value_size", [1, 200, 5_000, 20_000])
def test_read_up_to_any_limit_is_sliced_and_ends_there(tmp_path: Path, value_size: int) -> None:
    """A read-committed consumer reads up to the last stable offset."""
    log = make_log(manager := open_manager(tmp_path))
    count = 400_000 // (value_size + 80)
    for _ in range(count):
        log.append(batch([b"v" * value_size]), now_ms=NOW_MS)
    manager.flush_dirty()
    slices = 0
    for limit in range(1, count, max(count // 50, 1)):
        found = log.read(0, 1 << 20, max_offset=limit, may_slice=True)
        assert read_batch_headers(bytes(found.records))[-1].next_offset == found.next_offset == limit
        slices += isinstance(found.records, FileSlice)
    assert slices > min(count, 50) * 0.7


def test_limit_below_the_high_watermark_is_kept(tmp_path: Path) -> None:
    log = fill(open_manager(tmp_path), 60)
    read_in_steps(log, 1 << 20)
    found = log.read(0, 1 << 20, max_offset=40, may_slice=True)
    assert read_batch_headers(bytes(found.records))[-1].next_offset == found.next_offset == 40


def test_first_batch_that_is_larger_than_the_limit_is_given_once_asked_for(tmp_path: Path) -> None:
    manager = open_manager(tmp_path)
    log = make_log(manager)
    for _ in range(4):
        log.append(batch([bytes(100_000)]), now_ms=NOW_MS)
    manager.flush_dirty()
    read_in_steps(log, 1 << 20)
    assert log.read(0, 50_000, min_one_message=False, may_slice=True).next_offset == 0
    assert log.read(0, 50_000, may_slice=True).next_offset == 1


def slice_of(log: UnifiedLog) -> tuple[FileSlice, bytes]:
    read_in_steps(log, 1 << 20)
    found = log.read(log.log_start_offset, 1 << 20, may_slice=True).records
    assert isinstance(found, FileSlice)
    return found, bytes(found)


def open_count(folder: Path) -> int:
    """Count the descriptors of this process for files below ``folder``, including deleted ones."""
    if sys.platform == "darwin":
        pytest.skip("macOS has no /proc")
    names = (os.readlink(entry.path) for entry in os.scandir("/proc/self/fd") if os.path.islink(entry.path))
    return sum(name.startswith(str(folder / TOPIC)) for name in names)


@pytest.mark.behaviour(
    "Broker storage",
    "a read that is sent from its file has the bytes of the segment, even if it is deleted meanwhile",
)
def test_slice_outlives_the_deletion_of_its_segment(tmp_path: Path) -> None:
    manager = open_manager(tmp_path, segment_bytes=100_000)
    log = fill(manager, 100)
    found, content = slice_of(log)
    log.delete_records(-1)
    manager.flush_dirty()
    assert log.log_start_offset == log.log_end_offset
    assert bytes(found) == content
    before = open_count(tmp_path)
    found.release()
    assert open_count(tmp_path) == before - 1


def test_slice_outlives_its_topic_and_its_broker(tmp_path: Path) -> None:
    manager = open_manager(tmp_path)
    found, content = slice_of(fill(manager, 50))
    manager.delete_topic(TOPIC)
    manager.flush_dirty()
    manager.close()
    assert bytes(found) == content
    del found
    assert open_count(tmp_path) == 0


def test_what_was_there_at_the_start_is_looked_at_once_before_it_is_sliced(tmp_path: Path) -> None:
    manager = open_manager(tmp_path)
    fill(manager, 100)
    manager.close()
    manager = open_manager(tmp_path)
    log = fill(manager, 0)
    assert [read_in_steps(log, 80_000)[1] > 0 for _ in range(2)] == [False, True]


def test_damage_that_was_there_at_the_start_is_not_sliced(tmp_path: Path) -> None:
    manager = open_manager(tmp_path)
    log = fill(manager, 100)
    headers = read_batch_headers(log.read(0, 1 << 20).records)
    assert len(headers) > 50
    manager.close()
    with open(tmp_path / "flights-0" / "00000000000000000000.log", "r+b") as file:
        file.seek(headers[50].position + 8)
        file.write(b"\x00\x00\x00\x00")
    log = fill(open_manager(tmp_path), 0)
    for _ in range(2):
        found = log.read(0, 1 << 20, may_slice=True)
        assert not isinstance(found.records, FileSlice)
        assert found.next_offset == headers[50].base_offset


def test_random_reads_of_many_consumers_are_those_of_a_list(tmp_path: Path) -> None:
    chance = random.Random(11)
    manager = open_manager(tmp_path, segment_bytes=150_000, segment_index_bytes=256)
    log = fill(manager, 0)
    positions = [0] * 100
    for turn in range(400):
        if turn % 4 == 0:
            fill(manager, chance.randrange(5), turn)
        if turn % 90 == 89:
            log.delete_records(chance.randrange(log.high_watermark))
            manager.flush_dirty()
        reader = chance.randrange(100)
        offset = max(positions[reader], log.log_start_offset)
        found = log.read(offset, chance.choice([1, 5_000, 40_000, 70_000, 1 << 20]), may_slice=True)
        headers = read_batch_headers(bytes(found.records))
        assert [header.base_offset for header in headers] == list(range(offset, found.next_offset))
        positions[reader] = chance.choice([found.next_offset, found.next_offset, 0])
    assert len(read_all(log)) == log.high_watermark - log.log_start_offset


@pytest.mark.behaviour(
    "Broker storage",
    "a missing, truncated or damaged index is rebuilt, at a start and while the log is open",
)
def test_index_that_is_damaged_while_the_log_is_open_misleads_no_reader(tmp_path: Path) -> None:
    log = fill(open_manager(tmp_path), 200)
    whole, _ = read_in_steps(log, 60_000)
    index = tmp_path / "flights-0" / "00000000000000000000.index"
    index.write_bytes(os.urandom(index.stat().st_size))
    assert read_in_steps(log, 60_000)[0] == whole


def test_segments_remember_where_reads_ended_without_growing(tmp_path: Path) -> None:
    log = fill(open_manager(tmp_path), 300)
    for offset in range(300):
        log.read(offset, 5_000)
    (segment,) = log.segments()
    assert len(segment.positions._ends) <= 64


def test_slice_that_is_dropped_while_another_file_is_opened_blocks_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = open_manager(tmp_path)
    slices = [slice_of(fill(manager, 50))[0]]
    original = Disk.open

    def dropping(disk: Disk, path: Path, *, create: bool = False) -> int:
        slices.clear()
        return original(disk, path, create=create)

    monkeypatch.setattr(Disk, "open", dropping)
    manager.create_topic("orders", 1, UUID(int=4), {})
    assert slices == []
    manager.close()
    assert open_count(tmp_path) == 0
