"""Full disks, failing writes and failing syncs: the errors that clients get, and the log afterwards."""

from __future__ import annotations

import errno
from pathlib import Path
from uuid import UUID

import pytest
from model.log_oracle import NOW_MS, TP, batch, clock, make_log, open_manager, read_all, the_log

from kafkacore.errors import KafkaStorageError
from kafkacore.testing.disk import SimulatedDisk

CONFIG = {"segment_bytes": 600, "index_interval_bytes": 100}


def fail_once(disk: SimulatedDisk, verb: str, code: int, after: int = 0, suffix: str = "") -> None:
    """Make one call of ``verb`` fail, after ``after`` successful ones."""
    left = [after]

    def fault(call: int, called: str, path: Path) -> OSError | None:
        if called != verb or not path.name.endswith(suffix):
            return None
        left[0] -= 1
        return OSError(code, "planted") if left[0] == -1 else None

    disk.fault = fault


@pytest.mark.parametrize("after", range(30))
def test_full_disk_at_any_write_leaves_no_half_batch_and_goes_on_later(after: int) -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk, flush="os", **CONFIG)
    log = make_log(manager)
    fail_once(disk, "pwritev", errno.ENOSPC, after)
    values: list[bytes] = []
    refused = 0
    for index in range(60):
        if refused and index >= 20:
            break
        value = b"value %d" % index
        try:
            log.append(batch([value], NOW_MS + index, producer=(1, 0, len(values))), now_ms=NOW_MS)
            values.append(value)
        except KafkaStorageError:
            refused += 1
    assert refused == 1
    assert [record.value for record in read_all(log)] == values
    log = the_log(open_manager(disk.kill_process(), **CONFIG))
    assert [record.value for record in read_all(log)] == values


def test_disk_without_space_refuses_until_there_is_some() -> None:
    disk = SimulatedDisk()
    log = make_log(open_manager(disk, flush="os"))
    log.append(batch([b"first"]), now_ms=NOW_MS)
    disk.capacity = disk.used_bytes() + 30
    for _ in range(3):
        with pytest.raises(KafkaStorageError):
            log.append(batch([b"too much"]), now_ms=NOW_MS)
    disk.capacity = None
    assert log.append(batch([b"second"]), now_ms=NOW_MS).first_offset == 1
    assert [record.value for record in read_all(log)] == [b"first", b"second"]


def test_full_disk_is_said_once_in_the_log_until_something_fits_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = SimulatedDisk()
    log = make_log(open_manager(disk, flush="os"))
    for _ in range(2):
        disk.capacity = disk.used_bytes() + 30
        for _ in range(3):
            with pytest.raises(KafkaStorageError, match="flights-0: the disk is full, so appends fail"):
                log.append(batch([b"too much"]), now_ms=NOW_MS)
        disk.capacity = None
        log.append(batch([b"fits"]), now_ms=NOW_MS)
    assert caplog.messages == ["flights-0: the disk is full, so appends fail until there is free space"] * 2


def test_full_disk_at_the_end_is_a_line_of_the_log_and_no_clean_marker(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    make_log(manager).append(batch([b"a"]), now_ms=NOW_MS)
    manager.flush_dirty()
    disk.fault = lambda call, verb, path: OSError(errno.ENOSPC, "full") if verb == "pwritev" else None
    manager.close()
    assert disk.open_count == 0
    assert [line for line in caplog.messages if "not closed cleanly" in line] == [
        "the logs were not closed cleanly, so the next start recovers them: [Errno 28] full"
    ]
    disk.fault = lambda call, verb, path: None
    assert not disk.exists(Path("/data/.kafka_cleanshutdown"))
    assert the_log(open_manager(disk)).log_end_offset == 1


def test_checkpoint_that_the_disk_refuses_is_one_sentence_and_comes_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    log = make_log(manager)
    log.append(batch([b"a"]), now_ms=NOW_MS)
    fail_once(disk, "pwritev", errno.ENOSPC, suffix="checkpoint.tmp")
    flusher = manager._flusher
    flusher.schedule(manager.checkpoint)
    flusher.run_once()
    assert [(record.message, record.exc_info) for record in caplog.records] == [
        ("background task of the log flusher failed: [Errno 28] planted", None)
    ]
    assert log.high_watermark == 1


def test_failed_sync_acknowledges_nothing_ever() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    log = make_log(manager)
    notified: list[tuple[object, int]] = []
    manager.on_high_watermark = lambda tp, offset: notified.append((tp, offset))
    log.append(batch([b"synced"]), now_ms=NOW_MS)
    manager.flush_dirty()
    log.append(batch([b"not synced"]), now_ms=NOW_MS)
    fail_once(disk, "fdatasync", errno.EIO)
    manager.flush_dirty()
    assert notified == [(TP, 1), (TP, 1)], "the listener is called for the failed log as well"
    assert log.failure is not None
    manager.flush_dirty()
    assert log.high_watermark == 1
    with pytest.raises(KafkaStorageError, match="flush failed"):
        log.append(batch([b"next"]), now_ms=NOW_MS)
    with pytest.raises(KafkaStorageError):
        log.read(0, 1000)
    with pytest.raises(KafkaStorageError, match="offline"):
        manager.log(TP)


@pytest.mark.parametrize("rolls", [False, True], ids=["one segment", "several"])
@pytest.mark.parametrize("fails_again", [False, True], ids=["once", "at the next start too"])
def test_batch_whose_sync_has_failed_is_durable_once_a_later_start_acknowledges_it(
    rolls: bool, fails_again: bool
) -> None:
    # Linux marks pages as clean even if it failed to write them, so a later sync succeeds without writing.
    config = {"segment_bytes": 250} if rolls else {}
    for seed in range(20):
        disk = SimulatedDisk()
        manager = open_manager(disk, **config)
        log = make_log(manager)
        log.append(batch([b"synced"], producer=(1, 0, 0)), now_ms=NOW_MS)
        manager.flush_dirty()
        sent = [batch([b"value %d" % index] * 3, producer=(1, 0, 1 + 3 * index)) for index in range(4)]
        for each in sent:
            log.append(each, now_ms=NOW_MS)
        fail_once(disk, "fdatasync", errno.EIO, suffix=".log")
        manager.flush_dirty()
        assert (log.high_watermark, log.failure is None) == (1, False)
        disk = disk.kill_process()
        if fails_again:
            fail_once(disk, "fdatasync", errno.EIO, suffix=".log")
            with pytest.raises(KafkaStorageError, match="offline"):
                open_manager(disk, **config).log(TP)
            disk = disk.kill_process()
        manager = open_manager(disk, **config)
        log = the_log(manager)
        for each in sent:
            log.append(each, now_ms=NOW_MS)
        manager.flush_dirty()
        assert log.high_watermark == log.log_end_offset == 13, "all of it is acknowledged"
        after = the_log(open_manager(disk.lose_power(clock(seed)), **config))
        assert [record.value for record in read_all(after)] == [
            b"synced",
            *[b"value %d" % index for index in range(4) for _ in range(3)],
        ]


def test_failure_of_one_partition_leaves_the_others_alone() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    log = make_log(manager)
    manager.create_partitions("flights", 2)
    other = manager.log(TP._replace(partition=1))
    assert other is not None
    log.append(batch([b"a"]), now_ms=NOW_MS)
    other.append(batch([b"b"]), now_ms=NOW_MS)
    fail_once(disk, "fdatasync", errno.EIO)
    manager.flush_dirty()
    assert log.failure is not None
    assert other.high_watermark == 1
    manager.close()
    assert not disk.exists(Path("/data/.kafka_cleanshutdown"))
    manager = open_manager(disk)
    assert the_log(manager).log_end_offset == 1


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_append_that_cannot_be_undone_puts_the_partition_offline(code: int) -> None:
    disk = SimulatedDisk()
    log = make_log(open_manager(disk, flush="os"))
    disk.fault = lambda call, verb, path: (
        OSError(code, "planted") if verb in ("pwritev", "truncate") and path.suffix == ".log" else None
    )
    with pytest.raises(KafkaStorageError, match="offline"):
        log.append(batch([b"a"]), now_ms=NOW_MS)
    disk.fault = lambda call, verb, path: None
    with pytest.raises(KafkaStorageError, match="offline"):
        log.append(batch([b"a"]), now_ms=NOW_MS)


def test_failed_read_puts_the_partition_offline() -> None:
    disk = SimulatedDisk()
    log = make_log(open_manager(disk, flush="os"))
    log.append(batch([b"a"]), now_ms=NOW_MS)
    disk.fault = lambda call, verb, path: OSError(errno.EIO, "planted") if verb == "pread" else None
    with pytest.raises(KafkaStorageError, match="read failed"):
        log.read(0, 100)


def test_topic_that_cannot_be_made_leaves_nothing_behind() -> None:
    for after in range(8):
        disk = SimulatedDisk()
        manager = open_manager(disk)
        before = disk.listdir(manager.data_dir)
        calls = [after]

        def fault(call: int, verb: str, path: Path, calls: list[int] = calls) -> OSError | None:
            calls[0] -= 1
            return OSError(errno.ENOSPC, "planted") if calls[0] == -1 else None

        disk.fault = fault
        with pytest.raises(OSError, match="planted"):
            make_log(manager)
        assert dict(manager.topics()) == {}
        assert [n for n in disk.listdir(manager.data_dir) if not n.endswith(".tmp")] == before
        make_log(manager)


def test_failed_snapshot_leaves_the_segment_as_it_is() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk, **CONFIG)
    log = make_log(manager)
    fail_once(disk, "pwritev", errno.ENOSPC, suffix=".snapshot.tmp")
    refused = 0
    for index in range(12):
        try:
            log.append(batch([b"value"], producer=(1, 0, index - refused)), now_ms=NOW_MS)
        except KafkaStorageError:
            refused += 1
    assert refused == 1
    assert log.log_end_offset == 11
    manager.flush_dirty()
    assert log.high_watermark == 11


def test_no_descriptor_is_left_open_after_close() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk, **CONFIG)
    log = make_log(manager)
    for _ in range(20):
        log.append(batch([b"value"]), now_ms=NOW_MS)
    assert log.flush()
    assert manager.delete_records(TP, 10) == 10
    manager.flush_dirty()
    manager.create_topic("other", 3, UUID(int=9), {})
    manager.delete_topic("other")
    manager.close()
    assert disk.open_count == 0


@pytest.mark.behaviour("Broker storage", "without a producer snapshot, the recovery point does not advance")
def test_recovery_point_stays_where_it_is_if_a_snapshot_cannot_be_written() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk, **CONFIG)
    log = make_log(manager)
    fail_once(disk, "pwritev", errno.ENOSPC, suffix=".snapshot.tmp")

    def append_many() -> None:
        for index in range(100):
            log.append(batch([b"value"], producer=(1, 0, index)), now_ms=NOW_MS)

    with pytest.raises(KafkaStorageError):
        append_many()
    before = log.recovery_point
    assert before < log.log_end_offset
    assert the_log(open_manager(disk.kill_process(), **CONFIG)).log_end_offset == log.log_end_offset
    assert log.recovery_point == before


@pytest.mark.behaviour("Broker storage", "after a disk failure, appends and reads fail")
def test_disk_that_has_failed_stops_appends_and_reads() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    log = make_log(manager)
    log.append(batch([b"value"]), now_ms=NOW_MS)
    disk.fault = lambda call, verb, path: OSError(errno.EIO, "planted") if verb == "fdatasync" else None
    manager.flush_dirty()
    disk.fault = lambda call, verb, path: None
    for use in (
        lambda: log.append(batch([b"value"]), now_ms=NOW_MS),
        lambda: log.read(0, 100),
        lambda: manager.log(TP),
    ):
        with pytest.raises(KafkaStorageError, match="flights-0 is offline"):
            use()
