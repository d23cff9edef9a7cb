"""Descriptors of log files: limited in number, never closed while in use, and never leaked."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from uuid import UUID

import pytest
from model.log_oracle import (
    NOW_MS,
    TOPIC,
    TOPIC_ID,
    TP,
    batch,
    clock,
    make_log,
    open_manager,
    read_all,
    the_log,
)

from kafkacore.broker.log import LogManager, UnifiedLog
from kafkacore.broker.log.open_files import MIN_OPEN, LogFile, OpenFiles, descriptor_budget
from kafkacore.broker.storage.disk import Disk
from kafkacore.errors import KafkaStorageError
from kafkacore.structs import TopicPartition
from kafkacore.testing.disk import SimulatedDisk

LIMIT = 4


def some_files(disk: Disk, count: int, folder: Path = Path("/")) -> tuple[OpenFiles, list[LogFile]]:
    """Create ``count`` synced files, each with its number as content."""
    files = OpenFiles(disk, LIMIT)
    made = [files.file(folder / str(index), creates=True) for index in range(count)]
    for index, file in enumerate(made):
        file.pwritev([b"%d" % index], 0)
        file.fdatasync()
    return files, made


def many_logs(manager: LogManager, count: int) -> list[UnifiedLog]:
    if TOPIC not in manager.topics():
        manager.create_topic(TOPIC, count, TOPIC_ID, {})
    logs = [manager.log(TopicPartition(TOPIC, partition)) for partition in range(count)]
    return [log for log in logs if log is not None]


def test_no_more_files_stay_open_than_allowed_and_each_can_be_used() -> None:
    disk = SimulatedDisk()
    files, made = some_files(disk, 20)
    for _ in range(2):
        assert [file.pread(10, 0) for file in made] == [b"%d" % index for index in range(20)]
        assert files.open_count == disk.open_count == LIMIT


def test_file_that_is_used_again_and_again_stays_open() -> None:
    disk = SimulatedDisk()
    _, made = some_files(disk, 20)
    opened: list[str] = []
    original = disk.open

    def watched(path: Path, *, create: bool = False) -> int:
        opened.append(path.name)
        return original(path, create=create)

    disk.open = watched  # type: ignore[method-assign]
    for file in made[1:]:
        made[0].pread(1, 0)
        file.pread(1, 0)
    assert opened.count("0") <= 1


def test_file_in_use_is_not_closed_however_many_others_are_opened() -> None:
    files, made = some_files(SimulatedDisk(), 20)
    fds = [file.hold() for file in made[:10]]
    assert [file.hold() for file in made[:10]] == fds
    assert files.open_count == 10
    for file in made[10:]:
        file.pread(1, 0)
    assert [file.fd for file in made[:10]] == fds
    for file in made[:10] * 2:
        file.release_hold()
    made[19].release()
    made[19].pread(1, 0)
    assert files.open_count == LIMIT


def test_released_file_stays_readable_for_whoever_holds_it(tmp_path: Path) -> None:
    disk = Disk()
    _, (file, *_) = some_files(disk, 1, tmp_path)
    fd = file.hold()
    file.release()
    os.unlink(file.path)
    assert disk.pread(fd, 1, 0) == b"0"
    file.release_hold()
    with pytest.raises(OSError, match="Bad file descriptor"):
        disk.pread(fd, 1, 0)


def test_file_that_waits_for_a_sync_is_closed_last() -> None:
    files, made = some_files(SimulatedDisk(), 20)
    made[0].pwritev([b"x"], 0)
    for file in made[1:]:
        file.pread(1, 0)
    assert made[0].fd >= 0
    for file in made[1 : LIMIT + 2]:
        file.pwritev([b"x"], 0)
    assert files.open_count == LIMIT


def test_when_the_process_has_no_descriptor_left_logs_give_theirs() -> None:
    disk = SimulatedDisk()
    files = OpenFiles(disk, 1000)
    made = [files.file(Path(f"/{index}"), creates=True) for index in range(20)]
    original = disk.open

    def scarce(path: Path, *, create: bool = False) -> int:
        if disk.open_count >= 8:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))
        return original(path, create=create)

    disk.open = scarce  # type: ignore[method-assign]
    for file in made:
        file.pwritev([b"x"], 0)
        file.fdatasync()
    assert [file.pread(1, 0) for file in made] == [b"x"] * 20


def test_log_without_a_descriptor_says_so_and_goes_on_when_there_is_one() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    log = make_log(manager)
    log.append(batch([b"value"]), now_ms=NOW_MS)
    manager.close()
    log = the_log(open_manager(disk))
    log.segments()[0]._file.release()
    original = disk.open

    def none_left(path: Path, *, create: bool = False) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))

    disk.open = none_left  # type: ignore[method-assign]
    reason = re.escape(os.strerror(errno.EMFILE))
    with pytest.raises(KafkaStorageError, match=f"flights-0: read failed: {reason}; raise the limit"):
        log.read(0, 100)
    disk.open = original  # type: ignore[method-assign]
    assert len(read_all(log)) == 1


def test_repeated_batch_is_synced_if_there_was_no_descriptor_for_the_first_sync() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    log = make_log(manager)
    sent = bytes(batch([b"value"], producer=(7, 0, 0)))
    log.append(memoryview(sent), now_ms=NOW_MS)

    def none_left(call: int, verb: str, path: Path) -> BaseException | None:
        return OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path)) if verb == "fdatasync" else None

    disk.fault, working = none_left, disk.fault
    manager.flush_dirty()
    assert (log.high_watermark, log.failure) == (0, None)
    disk.fault = working
    assert log.append(memoryview(sent), now_ms=NOW_MS).duplicate
    manager.flush_dirty()
    assert log.high_watermark == 1


def test_half_of_the_processs_descriptors_are_for_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, budget in ((1024, 512), (10, MIN_OPEN)):
        monkeypatch.setattr("resource.getrlimit", lambda which, limit=limit: (limit, 1 << 20))
        assert descriptor_budget() == budget


@pytest.mark.behaviour(
    "Broker storage", "thousands of partitions need no more file descriptors than the process may open"
)
@pytest.mark.parametrize("flush", ["ack", "os"])
def test_hundreds_of_partitions_are_written_read_closed_and_opened_with_few_descriptors(
    tmp_path: Path, flush: str
) -> None:
    disk = SimulatedDisk()
    for turn in range(2):
        manager = LogManager(
            tmp_path, clock=clock(), disk=disk, flush=flush, background=False, max_open_files=20
        )
        logs = many_logs(manager, 300)
        for number, log in enumerate(logs):
            log.append(batch([b"%d" % number] * 3), now_ms=NOW_MS)
        manager.flush_dirty()
        for number, log in enumerate(logs):
            assert {record.value for record in read_all(log)} == {b"%d" % number}
            assert log.high_watermark == 3 * (turn + 1)
        assert disk.open_count == 20 + 1
        manager.close()
        assert disk.open_count == 0


def test_partition_without_records_is_one_folder_with_one_file() -> None:
    disk = SimulatedDisk()
    make_log(open_manager(disk))
    assert disk.listdir(Path("/data/flights-0")) == ["00000000000000000000.log"]


def test_start_opens_no_file_of_a_partition_that_has_no_records() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    many_logs(manager, 50)
    manager.close()
    manager = open_manager(disk)
    assert disk.open_count == 1
    assert len(many_logs(manager, 50)) == 50


@pytest.mark.parametrize("seed", range(10))
def test_first_record_after_a_clean_end_without_any_survives_a_loss_of_power(seed: int) -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    make_log(manager)
    manager.close()
    manager = open_manager(disk)
    the_log(manager).append(batch([b"value"]), now_ms=NOW_MS)
    manager.flush_dirty()
    assert len(read_all(the_log(open_manager(disk.lose_power(clock(seed)))))) == 1


def test_end_syncs_only_what_has_been_written() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    logs = many_logs(manager, 50)
    logs[7].append(batch([b"value"]), now_ms=NOW_MS)
    synced: list[str] = []
    disk.fault = lambda call, verb, path: synced.append(str(path)) if "sync" in verb else None
    manager.close()
    assert {Path(path).parts[2] for path in synced if "flights" in path} == {"flights-7"}


def test_deleted_topics_descriptors_are_closed() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    for log in many_logs(manager, 5):
        log.append(batch([b"value"]), now_ms=NOW_MS)
    manager.delete_topic(TOPIC)
    manager.flush_dirty()
    assert disk.open_count == 1
    manager.create_topic(TOPIC, 1, UUID(int=9), {})
    assert manager.log(TP) is not None
