"""The data folder: its lock and files, topics after a restart, and what a start does with damaged files."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest
from eventually import BUDGET_S
from interleaving import at_each_step
from model.blocking_clock import BlockingClock
from model.held_disk import HeldDisk, path_of
from model.log_oracle import NOW_MS, TOPIC_ID, TP, batch, make_log, open_manager, read_all, the_log

from kafkacore.broker.log import LogConfig, LogManager, TopicState
from kafkacore.broker.log.flusher import SYNC_THREADS
from kafkacore.broker.storage.disk import Disk
from kafkacore.errors import (
    InvalidConfigurationError,
    InvalidTopicError,
    KafkaConfigurationError,
    KafkaStorageError,
)
from kafkacore.structs import TimestampType, TopicPartition
from kafkacore.testing import VirtualClock
from kafkacore.testing.disk import SimulatedDisk

DATA = Path("/data")


def names(disk: SimulatedDisk) -> list[str]:
    return [name for name in disk.listdir(DATA) if disk.is_dir(DATA / name)]


def test_topics_outlive_the_broker() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    manager.create_topic("a.b_c-1", 3, TOPIC_ID, {"retention.ms": "-1"})
    assert manager.topics() == {"a.b_c-1": TopicState("a.b_c-1", TOPIC_ID, 3, {"retention.ms": "-1"})}
    topics = open_manager(disk.kill_process()).topics()
    assert topics == {"a.b_c-1": TopicState("a.b_c-1", TOPIC_ID, 3, {"retention.ms": "-1"})}


def test_config_of_a_topic_goes_over_the_default() -> None:
    manager = open_manager(SimulatedDisk(), retention_ms=5, segment_bytes=99)
    manager.create_topic("flights", 1, TOPIC_ID, {"segment.bytes": "77", "compression.type": "lz4"})
    config = the_log(manager).config
    assert (config.segment_bytes, config.retention_ms, config.index_interval_bytes) == (77, 5, 4096)


def test_default_config_may_be_given_as_numbers(tmp_path: Path) -> None:
    manager = LogManager(
        tmp_path / "data", clock=VirtualClock(), default_config=LogConfig(retention_ms=5), background=False
    )
    manager.create_topic("flights", 1, TOPIC_ID, {"message.timestamp.type": "LogAppendTime"})
    config = the_log(manager).config
    assert config == LogConfig(retention_ms=5, message_timestamp_type=TimestampType.LOG_APPEND_TIME)
    manager.close()


def test_config_that_is_no_number_is_refused_before_anything_is_made() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    with pytest.raises(
        InvalidConfigurationError, match=r"Invalid value many for configuration segment\.bytes"
    ):
        manager.create_topic("flights", 1, TOPIC_ID, {"segment.bytes": "many"})
    assert names(disk) == []


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "a\0", "ä", "x" * 250, "a b"])
def test_name_that_is_no_topics_becomes_no_folder(name: str) -> None:
    disk = SimulatedDisk()
    with pytest.raises(InvalidTopicError):
        open_manager(disk).create_topic(name, 1, TOPIC_ID, {})
    assert names(disk) == []


def test_partition_that_is_not_there_is_none() -> None:
    manager = open_manager(SimulatedDisk())
    make_log(manager)
    assert manager.log(TopicPartition("flights", 1)) is None
    assert manager.log(TopicPartition("other", 0)) is None


def test_partitions_can_be_added() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    make_log(manager)
    manager.create_partitions("flights", 3)
    assert open_manager(disk.kill_process()).topics()["flights"].partition_count == 3


def test_files_of_a_partition_are_kafkas() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    make_log(manager).append(batch([b"value"]), now_ms=NOW_MS)
    manager.close()
    folder = DATA / "flights-0"
    assert disk.listdir(folder) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "00000000000000000001.snapshot",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
    metadata = disk.read_file(folder / "partition.metadata")
    assert metadata == b"version: 0\ntopic_id: D2tKPm0MS9WfYB1MTYpsEQ\n"
    assert disk.read_file(folder / "leader-epoch-checkpoint") == b"0\n1\n0 0\n"
    assert disk.read_file(DATA / "recovery-point-offset-checkpoint") == b"0\n1\nflights 0 1\n"
    assert json.loads(disk.read_file(DATA / ".kafka_cleanshutdown")) == {"version": "0", "broker_epoch": "-1"}


def test_deleted_topic_is_gone_at_once_and_its_files_soon() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    log = make_log(manager)
    log.append(batch([b"value"]), now_ms=NOW_MS)
    manager.delete_topic("flights")
    assert manager.log(TP) is None
    assert dict(manager.topics()) == {}
    assert names(disk) == [f"flights-0.{TOPIC_ID.hex}-delete"]
    with pytest.raises(KafkaStorageError, match="closed"):
        log.append(batch([b"value"]), now_ms=NOW_MS)
    manager.flush_dirty()
    assert names(disk) == []


def test_offline_partition_is_deleted_during_a_lookup() -> None:
    def prepare() -> tuple[Callable[[], object], Callable[[], object]]:
        manager = open_manager(SimulatedDisk())
        make_log(manager).close()
        del manager._logs[TP]
        manager._set_offline(TP, OSError("damaged"))
        return (lambda: manager.log(TP)), (lambda: manager.delete_topic(TP.topic))

    found = {type(outcome) for outcome in at_each_step(LogManager.log, prepare)}
    assert found == {type(None), KafkaStorageError}


def test_topic_of_the_same_name_begins_empty() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    make_log(manager).append(batch([b"value"]), now_ms=NOW_MS)
    manager.delete_topic("flights")
    manager.create_topic("flights", 1, UUID(int=5), {})
    assert the_log(manager).log_end_offset == 0
    assert the_log(open_manager(disk.kill_process())).log_end_offset == 0


def test_deletion_of_a_topic_with_the_longest_name_fits_a_file_name() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    manager.create_topic("x" * 249, 2, TOPIC_ID, {})
    manager.delete_topic("x" * 249)
    assert [len(name) for name in names(disk)] == [255, 255]


def test_start_finishes_a_deletion() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    make_log(manager).append(batch([b"value"]), now_ms=NOW_MS)
    manager.delete_topic("flights")
    disk = disk.kill_process()
    assert names(disk) != []
    open_manager(disk).flush_dirty()
    assert names(disk) == []


def test_topic_whose_folders_could_not_be_removed_is_deleted_all_the_same() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    make_log(manager).append(batch([b"value"]), now_ms=NOW_MS)
    disk.fault = lambda call, verb, path: (
        OSError(errno.EIO, "planted") if verb == "rename" and path.name == "flights-0" else None
    )
    manager.delete_topic("flights")
    disk.fault = lambda call, verb, path: None
    assert names(disk) == ["flights-0"]
    after = disk.copy()
    open_manager(after).flush_dirty()
    assert names(after) == []
    manager.create_topic("flights", 1, UUID(int=5), {})
    assert the_log(manager).log_end_offset == 0


def test_folder_with_records_that_no_topic_claims_is_put_aside() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    make_log(manager).append(batch([b"value"]), now_ms=NOW_MS)
    manager.close()
    disk.write_file(DATA / "topics.json", b'{"version": 1, "topics": [], "deleting": []}')
    assert dict(open_manager(disk).topics()) == {}
    (name,) = names(disk)
    assert re.fullmatch(r"flights-0\.[0-9a-f]{32}-stray", name)
    assert disk.read_file(DATA / name / f"{0:020d}.log")


def test_folders_without_a_list_of_topics_are_taken_over() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    make_log(manager).append(batch([b"value"]), now_ms=NOW_MS)
    manager.close()
    disk.unlink(DATA / "topics.json")
    manager = open_manager(disk)
    assert manager.topics()["flights"] == TopicState("flights", TOPIC_ID, 1, {})
    assert len(read_all(the_log(manager))) == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"version": 2, "topics": [], "deleting": []}',
        b'{"version": 1, "topics": [{"name": "../x", "partition_count": 1, "configs": {}, "topic_id": "0"}]}',
        b'{"version": 1, "topics": [{"name": "x", "partition_count": 0, "configs": {}, "topic_id": "0"}]}',
        b'{"version": 1, "topics": [{"name": "x", "partition_count": 1, "configs": 3, "topic_id": "0"}]}',
        b'{"version": 1, "topics": [{"name": "x", "partition_count": 1, "configs": {}, "topic_id": "0"}]}',
    ],
)
def test_unreadable_list_of_topics_stops_the_start_and_is_left_alone(data: bytes) -> None:
    disk = SimulatedDisk()
    open_manager(disk).close()
    disk.write_file(DATA / "topics.json", data)
    with pytest.raises(KafkaStorageError, match=r"topics\.json cannot be read"):
        open_manager(disk)
    assert disk.read_file(DATA / "topics.json") == data
    assert disk.open_count == 0


def test_second_broker_on_the_folder_is_refused_with_a_sentence(tmp_path: Path) -> None:
    first = LogManager(tmp_path / "data", clock=VirtualClock(), background=False)
    with pytest.raises(
        KafkaConfigurationError, match=r"another broker is using .*data; stop that broker, or use"
    ):
        LogManager(tmp_path / "data", clock=VirtualClock(), background=False)
    first.close()
    LogManager(tmp_path / "data", clock=VirtualClock(), background=False).close()


def test_folders_and_files_are_the_owners_alone(tmp_path: Path) -> None:
    manager = LogManager(tmp_path / "deep" / "data", clock=VirtualClock(), background=False)
    make_log(manager).append(batch([b"value"]), now_ms=NOW_MS)
    manager.close()
    seen = 0
    for folder, _, file_names in os.walk(tmp_path / "deep"):
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        for name in file_names:
            assert stat.S_IMODE((Path(folder) / name).stat().st_mode) == 0o600
            seen += 1
    assert seen == 12


def test_deletion_does_not_follow_links(tmp_path: Path) -> None:
    manager = LogManager(tmp_path / "data", clock=VirtualClock(), background=False)
    make_log(manager)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_bytes(b"mine")
    (tmp_path / "data" / "flights-0" / "link").symlink_to(outside)
    manager.delete_topic("flights")
    manager.close()
    assert (outside / "precious").exists()
    assert not (tmp_path / "data" / "flights-0").exists()


def test_flusher_thread_syncs_tells_and_ends(tmp_path: Path) -> None:
    reported = threading.Event()
    manager = LogManager(tmp_path / "data", clock=BlockingClock())
    threads: list[str] = []

    def on_high_watermark(topic_partition: TopicPartition, high_watermark: int) -> None:
        threads.append(threading.current_thread().name)
        if high_watermark == 2:
            reported.set()

    with manager:
        manager.on_high_watermark = on_high_watermark
        log = make_log(manager)
        log.append(batch([b"a"]), now_ms=NOW_MS)
        log.append(batch([b"b"]), now_ms=NOW_MS)
        assert reported.wait(BUDGET_S)
        assert log.high_watermark == 2
        assert set(threads) == {"kafka-log-flusher"}
    manager.close()
    assert "kafka-log-flusher" not in {thread.name for thread in threading.enumerate()}


class BarrierDisk(HeldDisk):
    """A held disk on which each sync of a log waits for the others to begin, once :attr:`barrier` is set."""

    barrier: threading.Barrier | None = None

    def fdatasync(self, fd: int) -> None:
        barrier = self.barrier if path_of(fd).suffix == ".log" else None
        super().fdatasync(fd)
        if barrier is not None:
            barrier.wait(BUDGET_S)


def test_logs_of_one_round_are_synced_at_the_same_time(tmp_path: Path) -> None:
    disk, safe = BarrierDisk(), threading.Semaphore(0)
    with LogManager(tmp_path / "data", clock=BlockingClock(), disk=disk) as manager:
        manager.create_topic("t", 1 + SYNC_THREADS, TOPIC_ID, {})
        first, *others = (manager.logs()[TopicPartition("t", index)] for index in range(1 + SYNC_THREADS))
        manager.on_high_watermark = lambda topic_partition, high_watermark: safe.release()
        disk.hold("fdatasync", ".log")
        first.append(batch([b"a"]), now_ms=NOW_MS)
        assert disk.is_held.wait(BUDGET_S)
        for log in others:
            log.append(batch([b"b"]), now_ms=NOW_MS)
        assert [log.high_watermark for log in (first, *others)] == [0] * (1 + SYNC_THREADS)
        disk.barrier = threading.Barrier(SYNC_THREADS)
        disk.may_go.set()
        for _ in (first, *others):
            assert safe.acquire(timeout=BUDGET_S), "the syncs do not overlap"
        assert [log.high_watermark for log in (first, *others)] == [1] * (1 + SYNC_THREADS)
        disk.barrier = None
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("kafka-log")]


def test_listener_that_raises_does_not_end_the_flusher(tmp_path: Path) -> None:
    failed, reported = threading.Event(), threading.Event()

    def fail(topic_partition: TopicPartition, high_watermark: int) -> None:
        if failed.is_set():
            reported.set()
        failed.set()
        raise ValueError("planted")

    with LogManager(tmp_path / "data", clock=BlockingClock(), on_high_watermark=fail) as manager:
        log = make_log(manager)
        log.append(batch([b"a"]), now_ms=NOW_MS)
        assert failed.wait(BUDGET_S)
        log.append(batch([b"b"]), now_ms=NOW_MS)
        assert reported.wait(BUDGET_S)


def test_checkpoint_is_written_after_much_has_been_synced() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk, max_message_bytes=2**30)
    log = make_log(manager)
    path = DATA / "recovery-point-offset-checkpoint"
    written = []
    for _ in range(5):
        log.append(batch([bytes(20 * 2**20)]), now_ms=NOW_MS)
        manager.flush_dirty()
        manager._on_idle()
        written.append(disk.read_file(path))
    assert written == [b"0\n0\n"] * 3 + [b"0\n1\nflights 0 4\n"] * 2


def test_unused_partition_holds_one_descriptor() -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk)
    before = disk.open_count
    manager.create_topic("flights", 10, TOPIC_ID, {})
    assert disk.open_count - before == 10


def test_unknown_flush_mode_is_refused() -> None:
    with pytest.raises(KafkaConfigurationError, match="flush must be 'ack' or 'os', not 'never'"):
        open_manager(SimulatedDisk(), flush="never")


def test_real_disk_writes_more_buffers_than_one_call_takes(tmp_path: Path) -> None:
    disk = Disk()
    fd = disk.open(tmp_path / "file", create=True)
    buffers = [b"%05d" % number for number in range(3000)]
    disk.pwritev(fd, buffers, 10)
    assert disk.pread(fd, 20_000, 0) == bytes(10) + b"".join(buffers)
    disk.close(fd)


def test_write_that_the_system_ends_halfway_goes_on_behind_it_and_says_why_it_stops(tmp_path: Path) -> None:
    disk = Disk()
    fd = disk.open(tmp_path / "file", create=True)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match=os.strerror(errno.EFBIG)) as raised:
            disk.pwritev(fd, [b"a" * 700, b"b" * 700], 10)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert raised.value.errno == errno.EFBIG
    assert disk.pread(fd, 2000, 0) == bytes(10) + b"a" * 700 + b"b" * 290
    disk.pwritev(fd, [], 0)
    disk.close(fd)
