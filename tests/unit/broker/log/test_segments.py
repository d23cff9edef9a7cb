"""Rolling of segments, and retention by age and size."""

from __future__ import annotations

from pathlib import Path

import pytest
from model.log_oracle import NOW_MS, TP, batch, make_log, open_manager, read_all, the_log

from kafkacore.broker.log import LogManager
from kafkacore.errors import OffsetOutOfRangeError
from kafkacore.testing.disk import SimulatedDisk

FOLDER = Path("/data/flights-0")
DAY_MS = 24 * 3_600_000


def manager_with(**config: object) -> LogManager:
    return open_manager(SimulatedDisk(), flush="os", **config)


def test_segment_ends_before_it_exceeds_its_size() -> None:
    size = len(batch([b"value"]))
    log = make_log(manager_with(segment_bytes=3 * size))
    for expected in (1, 1, 1, 2, 2, 2, 3):
        log.append(batch([b"value"]), now_ms=NOW_MS)
        assert log.segment_count == expected


def test_segment_ends_when_its_records_span_too_long() -> None:
    log = make_log(manager_with(segment_ms=1000))
    log.append(batch([b"value"], NOW_MS - 5000), now_ms=NOW_MS)
    log.append(batch([b"value"], NOW_MS - 4000), now_ms=NOW_MS)
    assert log.segment_count == 1
    log.append(batch([b"value"], NOW_MS - 3999), now_ms=NOW_MS)
    assert log.segment_count == 2


def test_span_of_a_segment_is_known_after_a_restart() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk, segment_ms=1000)
    make_log(manager).append(batch([b"value"], NOW_MS - 5000), now_ms=NOW_MS)
    manager.close()
    log = the_log(open_manager(disk, segment_ms=1000))
    log.append(batch([b"value"], NOW_MS - 3999), now_ms=NOW_MS)
    assert log.segment_count == 2


def test_segment_ends_when_its_index_is_full() -> None:
    log = make_log(manager_with(segment_index_bytes=36, index_interval_bytes=0))
    for _ in range(20):
        log.append(batch([b"value"]), now_ms=NOW_MS)
    assert log.segment_count > 3
    assert len(read_all(log)) == 20


def test_segments_older_than_retention_go() -> None:
    manager = manager_with(segment_bytes=200, retention_ms=DAY_MS)
    log = make_log(manager)
    for day in range(5):
        log.append(batch([b"value" * 20], NOW_MS - (5 - day) * DAY_MS), now_ms=NOW_MS)
    assert manager.run_retention(NOW_MS) == 4
    assert (log.log_start_offset, log.log_end_offset) == (4, 5)
    assert manager.run_retention(NOW_MS) == 0
    with pytest.raises(OffsetOutOfRangeError):
        log.read(3, 1000)


def test_clock_that_jumps_back_removes_nothing() -> None:
    manager = manager_with(segment_bytes=200, retention_ms=DAY_MS)
    log = make_log(manager)
    for _ in range(5):
        log.append(batch([b"value" * 20]), now_ms=NOW_MS)
    assert manager.run_retention(NOW_MS - 1000 * DAY_MS) == 0


def test_active_segment_goes_too_when_all_of_it_is_old() -> None:
    manager = manager_with(retention_ms=DAY_MS)
    log = make_log(manager)
    log.append(batch([b"value"], NOW_MS - 2 * DAY_MS), now_ms=NOW_MS)
    assert manager.run_retention(NOW_MS) == 1
    assert (log.log_start_offset, log.log_end_offset, log.size_in_bytes) == (1, 1, 0)
    assert manager.run_retention(NOW_MS) == 0
    assert log.append(batch([b"value"]), now_ms=NOW_MS).first_offset == 1


def test_records_without_limit_of_age_stay() -> None:
    manager = manager_with(segment_bytes=200, retention_ms=-1)
    log = make_log(manager)
    for _ in range(5):
        log.append(batch([b"value" * 20], 0), now_ms=NOW_MS)
    assert manager.run_retention(NOW_MS) == 0


def test_log_larger_than_retention_loses_its_oldest_segments() -> None:
    size = len(batch([b"value"]))
    manager = manager_with(segment_bytes=size, retention_bytes=3 * size, retention_ms=-1)
    log = make_log(manager)
    for _ in range(7):
        log.append(batch([b"value"]), now_ms=NOW_MS)
    assert manager.run_retention(NOW_MS) == 4
    assert log.size_in_bytes == 3 * size


def test_compacted_topics_keep_everything() -> None:
    manager = manager_with(segment_bytes=200, retention_ms=0, cleanup_policy="compact")
    log = make_log(manager)
    for _ in range(5):
        log.append(batch([b"value" * 20], 0), now_ms=NOW_MS)
    assert manager.run_retention(NOW_MS) == 0


def test_unsynced_segments_are_not_removed() -> None:
    manager = open_manager(SimulatedDisk(), segment_bytes=200, retention_ms=DAY_MS)
    log = make_log(manager)
    for _ in range(5):
        log.append(batch([b"value" * 20], 0), now_ms=NOW_MS)
    assert manager.run_retention(NOW_MS) == 0
    manager.flush_dirty()
    assert manager.run_retention(NOW_MS) == 5


def test_files_of_removed_segments_go_with_the_next_round() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk, flush="os", segment_bytes=200, retention_ms=DAY_MS)
    log = make_log(manager)
    for _ in range(5):
        log.append(batch([b"value" * 20], 0), now_ms=NOW_MS)
    log.append(batch([b"value" * 20]), now_ms=NOW_MS)
    manager.run_retention(NOW_MS)
    assert len([name for name in disk.listdir(FOLDER) if name.endswith(".log.deleted")]) == 5
    manager.flush_dirty()
    stems = {Path(name).stem for name in disk.listdir(FOLDER) if name.startswith("0")}
    assert stems == {f"{5:020d}"}


def test_deleted_records_stay_deleted_after_a_restart() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk, flush="os", segment_bytes=300)
    log = make_log(manager)
    for index in range(10):
        log.append(batch([b"%d" % index, b"x"]), now_ms=NOW_MS)
    assert manager.delete_records(TP, 9) == 9
    assert manager.delete_records(TP, 5) == 9
    log = the_log(open_manager(disk.kill_process(), flush="os", segment_bytes=300))
    assert log.log_start_offset == 9
    assert [record.offset for record in read_all(log)] == list(range(9, 20))
    with pytest.raises(OffsetOutOfRangeError):
        log.read(8, 100)
    assert log.delete_records(-1) == 20
    with pytest.raises(OffsetOutOfRangeError):
        log.delete_records(21)


def test_consumer_reads_on_while_segments_before_it_go() -> None:
    manager = manager_with(segment_bytes=200, retention_ms=DAY_MS)
    log = make_log(manager)
    log.append(batch([b"old" * 30], 0), now_ms=NOW_MS)
    log.append(batch([b"new"]), now_ms=NOW_MS)
    held = log.read(0, 1000).records
    copy = bytes(held)
    manager.run_retention(NOW_MS)
    manager.flush_dirty()
    assert held == copy
    assert log.read(1, 1000).next_offset == 2
