"""Compaction: which records it keeps, what it leaves unchanged, and when it runs."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from interleaving import at_each_step
from model.compacted_log import CONFIG, Kept, append, batches, compacted, kept, roll
from model.log_oracle import NOW_MS, TOPIC, TOPIC_ID, TP, clock, make_log, open_manager, the_log

from kafkacore.broker.log import CleanerConfig, LogManager, UnifiedLog
from kafkacore.broker.log._offset_map import BYTES_PER_ENTRY
from kafkacore.broker.log.checkpoints import read_offsets, write_offsets
from kafkacore.broker.log.cleaner import group_by_size
from kafkacore.broker.log.log_cleaner import LogCleaner
from kafkacore.record import Compression, read_batches
from kafkacore.structs import TopicPartition
from kafkacore.testing.clock import VirtualClock
from kafkacore.testing.disk import SimulatedDisk

DAY_MS = 86_400_000
CODECS = list(Compression)


def started(
    disk: SimulatedDisk | None = None, time: VirtualClock | None = None, **config: object
) -> tuple[LogManager, UnifiedLog]:
    manager = open_manager(disk or SimulatedDisk(), time=time, **{**CONFIG, **config})
    return manager, make_log(manager)


@pytest.mark.kafka(
    "LogCleanerTest.testCleanSegments",
    "LogCleanerManagerTest.testCleanableOffsetsForNone",
)
@pytest.mark.parametrize("codec", CODECS)
def test_of_each_key_the_last_record_stays_as_it_was(codec: Compression) -> None:
    manager, log = started()
    append(log, [(b"a", b"1"), (b"b", b"2"), (b"a", b"3")], codec=codec)
    append(log, [(b"c", b"4"), (b"b", b"5"), (b"d", b"")], at=NOW_MS + 10, codec=codec)
    roll(log, manager)
    compacted(manager)
    assert kept(log) == [
        Kept(2, NOW_MS + 2, b"a", b"3"),
        Kept(3, NOW_MS + 10, b"c", b"4"),
        Kept(4, NOW_MS + 11, b"b", b"5"),
        Kept(5, NOW_MS + 12, b"d", b""),
    ]
    first, second = batches(log)[:2]
    assert [first.record_count, first.base_offset, first.last_offset] == [1, 0, 2]
    assert first.compression is second.compression is codec
    assert next(iter(first)).headers == [("header", b"of a")]


@pytest.mark.kafka("LogCleanerTest.testBuildOffsetMap")
@pytest.mark.parametrize("seed", range(20))
def test_reading_all_gives_the_same_last_values_as_before(seed: int) -> None:
    chance = random.Random(seed)
    disk = SimulatedDisk()
    manager, log = started(disk, segment_bytes=chance.choice([1500, 6000]))
    for _ in range(chance.randint(2, 6)):
        for _ in range(chance.randint(5, 60)):
            pairs = [
                (b"key %d" % chance.randrange(40), None if chance.random() < 0.1 else chance.randbytes(30))
                for _ in range(chance.randint(1, 8))
            ]
            append(log, pairs, at=NOW_MS + log.log_end_offset, codec=chance.choice(CODECS))
        roll(log, manager)
        before = kept(log)
        latest = {record.key: record for record in before}
        end = log.segments()[-1].base_offset
        compacted(manager)
        after = kept(log)
        assert {record.key: record for record in after} == latest
        assert set(after) <= set(before)
        assert [record.offset for record in after] == sorted(record.offset for record in after)
        # The compacted part has each key once.
        keys = [record.key for record in after if record.offset < end]
        assert len(keys) == len(set(keys))
    manager.close()
    again = the_log(open_manager(disk, **CONFIG))
    assert kept(again) == after
    for segment in again.segments():
        offset_entries, time_entries = segment.offset_index.file.count, segment.time_index.file.count
        segment.rebuild_indexes()
        assert (segment.offset_index.file.count, segment.time_index.file.count) == (
            offset_entries,
            time_entries,
        )


@pytest.mark.kafka("LogCleanerManagerTest.testCleanableOffsetsActiveSegment")
def test_active_segment_is_left_alone() -> None:
    manager, log = started()
    append(log, [(b"a", b"1"), (b"a", b"2")])
    manager.flush_dirty()
    assert compacted(manager) == 0
    assert len(kept(log)) == 2


def test_what_is_not_yet_on_disk_is_left_alone() -> None:
    manager, log = started()
    append(log, [(b"a", b"1"), (b"a", b"2")])
    while log.segment_count == 1:
        append(log, [(b"filling", b"f" * 900)])
    assert manager.clean_filthiest() is None
    manager.flush_dirty()
    assert manager.clean_filthiest() is not None


@pytest.mark.kafka("LogCleanerTest.testCleaningWithDeletes", "LogCleanerTest.testCleanTombstone")
def test_tombstone_stays_until_its_time_is_up_from_when_it_was_first_cleaned() -> None:
    time = clock()
    manager, log = started(time=time, delete_retention_ms=DAY_MS)
    append(log, [(b"a", b"1"), (b"b", b"2"), (b"a", None)], at=NOW_MS - 10 * DAY_MS)
    roll(log, manager)
    compacted(manager)
    assert kept(log) == [
        Kept(1, NOW_MS - 10 * DAY_MS + 1, b"b", b"2"),
        Kept(2, NOW_MS - 10 * DAY_MS + 2, b"a", None),
    ]
    first = batches(log)[0]
    assert first.has_delete_horizon
    assert first.base_timestamp == time.wall_ms() + DAY_MS
    for more_ms, left in [(DAY_MS - 1000, [b"b", b"a"]), (1000, [b"b"])]:
        time.advance(more_ms)
        append(log, [(b"c", b"3"), (b"c", b"4")])
        roll(log, manager)
        compacted(manager)
        assert [record.key for record in kept(log) if record.key != b"c"] == left


def test_key_that_comes_again_after_its_tombstone_stays() -> None:
    time = clock()
    manager, log = started(time=time)
    append(log, [(b"a", b"1"), (b"a", None), (b"a", b"2")])
    roll(log, manager)
    compacted(manager)
    assert [(record.offset, record.value) for record in kept(log)] == [(2, b"2")]


def test_records_before_the_dirty_part_give_way_to_later_ones() -> None:
    manager, log = started()
    append(log, [(b"a", b"1"), (b"b", b"2")])
    roll(log, manager)
    compacted(manager)
    append(log, [(b"a", b"3")])
    roll(log, manager)
    compacted(manager)
    assert [(record.key, record.value) for record in kept(log)] == [(b"b", b"2"), (b"a", b"3")]


@pytest.mark.kafka("LogCleanerTest.testSegmentGrouping")
def test_small_segments_become_one_again() -> None:
    manager, log = started()
    for index in range(40):
        append(log, [(b"a", b"%d" % index * 100)])
    roll(log, manager)
    many = log.segment_count
    compacted(manager)
    append(log, [(b"z", b"")])
    roll(log, manager)
    compacted(manager)
    assert log.segment_count <= 3 < many
    assert [(record.key, record.value) for record in kept(log)] == [(b"a", b"39" * 100), (b"z", b"")]


@pytest.mark.kafka(
    "LogCleanerTest.testDuplicateCheckAfterCleaning",
    "LogCleanerTest.testLogCleanerRetainsProducerLastSequence",
)
def test_batch_with_the_last_sequence_number_of_a_producer_stays_without_records() -> None:
    disk = SimulatedDisk()
    manager, log = started(disk)
    producer = {"producer_id": 7, "producer_epoch": 1}
    append(log, [(b"a", b"1")], base_sequence=0, **producer)
    append(log, [(b"b", b"2"), (b"a", b"3")], base_sequence=1, **producer)
    append(log, [(b"a", b"4"), (b"b", b"5")])
    roll(log, manager)
    compacted(manager)
    left = batches(log)[0]
    assert (left.producer_id, left.base_sequence, left.last_sequence, left.record_count) == (7, 1, 2, 0)
    assert (left.base_offset, left.last_offset) == (1, 2)
    assert [(record.key, record.value) for record in kept(log)] == [(b"a", b"4"), (b"b", b"5")]
    # This is why the batch is kept: the producer can continue even after its snapshots are lost.
    manager.close()
    for name in disk.listdir(log.folder):
        if name.endswith(".snapshot"):
            disk.unlink(log.folder / name)
    again = the_log(open_manager(disk, **CONFIG))
    append(again, [(b"c", b"6")], base_sequence=3, **producer)


@pytest.mark.kafka("LogCleanerTest.testCleanSegmentsRetainingLastEmptyBatch")
def test_last_batch_of_what_is_cleaned_stays_to_tell_where_the_log_went_on() -> None:
    manager, log = started()
    append(log, [(b"a", b"1")])
    append(log, [(b"a", b"2")])
    roll(log, manager)
    # All filling records have the same key, and the last of them is in the active segment.
    append(log, [(b"filling", b"")])
    roll(log, manager)
    compacted(manager)
    end = log.segments()[-1].base_offset
    assert batches(log, end)[-1].last_offset == end - 1


@pytest.mark.behaviour("Broker storage", "a read at an offset in a gap returns the records after it")
def test_read_position_in_a_gap_goes_on_behind_it() -> None:
    manager, log = started()
    for index in range(30):
        append(log, [(b"a", b"%d" % index)])
    append(log, [(b"b", b"end")])
    roll(log, manager)
    compacted(manager)
    for offset in range(31):
        found = next(iter(next(iter(read_batches(log.read(offset, 1)[0])))))
        assert found.offset == (29 if offset < 30 else 30)


def test_offsets_by_time_are_those_of_what_is_left() -> None:
    manager, log = started()
    for index in range(30):
        append(log, [(b"a", b"%d" % index), (b"k%d" % index, b"")], at=NOW_MS + 10 * index)
    roll(log, manager)
    compacted(manager)
    assert log.offset_for_timestamp(NOW_MS) == (NOW_MS + 1, 1, 0)
    assert log.offset_for_timestamp(NOW_MS + 285) == (NOW_MS + 290, 58, 0)


@pytest.mark.kafka(
    "LogCleanerTest.testPartialSegmentClean",
    "LogCleanerTest.testBuildPartialOffsetMap",
)
def test_map_that_is_too_small_cleans_in_several_rounds() -> None:
    manager = open_manager(
        SimulatedDisk(), cleaner=CleanerConfig(dedupe_buffer_size=20 * BYTES_PER_ENTRY), **CONFIG
    )
    log = make_log(manager)
    for number in range(200):
        append(log, [(b"key %d" % (number % 50), b"%d" % number)])
    roll(log, manager)
    assert compacted(manager) > 2
    assert [record.value for record in kept(log)] == [b"%d" % number for number in range(150, 200)]


@pytest.mark.kafka(
    "LogCleanerTest.testLogToClean",
    "LogCleanerManagerTest.testGrabFilthiestCompactedLogReturnsLogWithDirtiestRatio",
)
def test_dirtiest_log_comes_first() -> None:
    manager = open_manager(SimulatedDisk(), **{**CONFIG, "min_cleanable_dirty_ratio": 0.5})
    manager.create_topic(TOPIC, 2, TOPIC_ID, {})
    logs = [log for log in (manager.log(TP), manager.log(TP._replace(partition=1))) if log is not None]
    for log in logs:
        for number in range(60):
            append(log, [(b"%d" % (number % 30), b"x" * 30)])
        roll(log, manager)
    first = manager.clean_filthiest()
    second = manager.clean_filthiest()
    assert first is not None
    assert second is not None
    assert manager.clean_filthiest() is None
    # Now half of one log is dirty, and little of the other.
    for log, number in zip(logs, (60, 5), strict=True):
        for index in range(number):
            append(log, [(b"more %d" % index, b"x" * 30)])
        roll(log, manager)
    before = [log.size_in_bytes for log in logs]
    assert manager.clean_filthiest() is not None
    assert [log.size_in_bytes < size for log, size in zip(logs, before, strict=True)] == [True, False]


def test_log_is_left_alone_until_enough_of_it_is_dirty_or_it_is_overdue() -> None:
    time = clock()
    manager, log = started(time=time, min_cleanable_dirty_ratio=0.9, max_compaction_lag_ms=DAY_MS)
    for number in range(60):
        append(log, [(b"%d" % number, b"x" * 30)])
    roll(log, manager)
    assert compacted(manager) == 1
    append(log, [(b"1", b"")])
    roll(log, manager)
    assert compacted(manager) == 0
    time.advance(DAY_MS + 10_000)
    assert compacted(manager) == 1


@pytest.mark.kafka(
    "LogCleanerTest.testCleaningWithUncleanableSection",
    "LogCleanerTest.testLogToCleanWithUncleanableSection",
    "LogCleanerManagerTest.testCleanableOffsetsForTime",
    "LogCleanerManagerTest.testCleanableOffsetsForShortTime",
)
def test_young_records_are_left_alone() -> None:
    time = clock()
    manager, log = started(time=time, min_compaction_lag_ms=DAY_MS)
    append(log, [(b"a", b"1"), (b"a", b"2")])
    roll(log, manager)
    assert compacted(manager) == 0
    time.advance(DAY_MS + 10_000)
    assert compacted(manager) == 1


def test_segment_of_a_compacted_topic_is_closed_by_its_lag() -> None:
    _, log = started(max_compaction_lag_ms=1000)
    append(log, [(b"a", b"1")], at=NOW_MS)
    append(log, [(b"a", b"1")], at=NOW_MS + 1000)
    assert log.segment_count == 1
    append(log, [(b"a", b"1")], at=NOW_MS + 1001)
    assert log.segment_count == 2


@pytest.mark.kafka(
    "LogCleanerManagerTest.testLogsWithSegmentsToDeleteShouldConsiderCleanupPolicyCompactDeleteLogs",
)
def test_policy_compact_and_delete_does_both() -> None:
    manager, log = started(cleanup_policy="compact,delete", retention_ms=DAY_MS)
    append(log, [(b"old", b"1"), (b"a", b"2")], at=NOW_MS - 2 * DAY_MS)
    while log.segment_count == 1:
        append(log, [(b"filling", b"f" * 900)], at=NOW_MS - 2 * DAY_MS)
    append(log, [(b"a", b"3"), (b"a", b"4")])
    roll(log, manager)
    compacted(manager)
    assert [record.value for record in kept(log)] == [b"1", b"4"]
    assert manager.run_retention(NOW_MS) > 0
    assert [record.value for record in kept(log)] == [b"4"]


@pytest.mark.kafka(
    "LogCleanerManagerTest.testLogsWithSegmentsToDeleteShouldNotConsiderCleanupPolicyDeleteLogs",
)
def test_topic_that_only_deletes_is_never_compacted() -> None:
    manager, log = started(cleanup_policy="delete")
    append(log, [(b"a", b"1"), (b"a", b"2")])
    roll(log, manager)
    assert compacted(manager) == 0


@pytest.mark.kafka(
    "LogCleanerManagerTest.testUpdateCheckpointsShouldAddOffsetToPartition",
    "LogCleanerManagerTest.testDoneCleaning",
)
def test_what_was_cleaned_is_remembered_by_a_file_as_kafkas() -> None:
    disk = SimulatedDisk()
    manager, log = started(disk)
    append(log, [(b"a", b"1"), (b"a", b"2")])
    roll(log, manager)
    compacted(manager)
    end = log.segments()[-1].base_offset
    path = manager.data_dir / "cleaner-offset-checkpoint"
    assert disk.read_file(path) == f"0\n1\n{TOPIC} 0 {end}\n".encode()
    manager.close()
    manager = open_manager(disk, **CONFIG)
    assert compacted(manager) == 0


@pytest.mark.kafka("LogCleanerManagerTest.testUpdateCheckpointsShouldRemovePartitionData")
def test_checkpoint_of_a_topic_that_was_made_anew_does_not_count() -> None:
    manager, log = started()
    for number in range(20):
        append(log, [(b"a", b"%d" % number)])
    roll(log, manager)
    compacted(manager)
    manager.delete_topic(TOPIC)
    manager.flush_dirty()
    log = make_log(manager)
    for number in range(40):
        append(log, [(b"a", b"%d" % number)])
    roll(log, manager)
    compacted(manager)
    assert [record.value for record in kept(log)] == [b"39"]


@pytest.mark.parametrize("report", [LogCleaner._write_checkpoint, LogCleaner._mark_uncleanable])
def test_deleted_topic_leaves_no_state_in_the_cleaner(report: Callable[..., None]) -> None:
    tried: list[LogManager] = []

    def prepare() -> tuple[Callable[[], object], Callable[[], object]]:
        manager, log = started()
        tried.append(manager)
        result = 3 if report is LogCleaner._write_checkpoint else "damaged"
        return (lambda: report(manager._cleaner, TP, log, result)), (lambda: delete(manager))

    def delete(manager: LogManager) -> None:
        # A thread that needs the lock of the cleaner waits for it.
        if not manager._cleaner._condition._is_owned():  # type: ignore[attr-defined]
            manager.delete_topic(TOPIC)

    for _ in at_each_step(report, prepare):
        manager = tried[-1]
        if TOPIC in manager.topics():
            manager.delete_topic(TOPIC)
        assert TP not in manager.uncleanable
        assert TP not in manager._cleaner._offsets


def test_checkpoint_is_whole_while_another_topic_is_deleted() -> None:
    disk = SimulatedDisk()
    manager, _ = started(disk)
    cleaner, deleted = manager._cleaner, TopicPartition("deleted", 0)

    def prepare() -> tuple[Callable[[], object], Callable[[], object]]:
        cleaner._offsets = {TP: 3, deleted: 2}
        return cleaner.checkpoint, (lambda: cleaner.forget(deleted))

    for outcome in at_each_step(write_offsets, prepare):
        assert outcome is None
        assert read_offsets(disk, manager.data_dir / "cleaner-offset-checkpoint")[TP] == 3


@pytest.mark.kafka("LogCleanerManagerTest.testUpdateCheckpointsShouldRemovePartitionData")
@pytest.mark.parametrize("is_anew_before_stop", [True, False])
def test_checkpoint_of_a_topic_that_was_made_anew_does_not_count_after_a_restart(
    is_anew_before_stop: bool,
) -> None:
    disk = SimulatedDisk()
    manager, log = started(disk)
    for number in range(20):
        append(log, [(b"a", b"%d" % number)])
    roll(log, manager)
    compacted(manager)
    manager.delete_topic(TOPIC)
    manager.flush_dirty()
    if is_anew_before_stop:
        make_log(manager)
    manager.close()
    manager = open_manager(disk, **CONFIG)
    log = manager.log(TP) if is_anew_before_stop else make_log(manager)
    assert log is not None
    for key in (b"a", b"b"):
        for number in range(20):
            append(log, [(key, b"%d" % number)])
    roll(log, manager)
    compacted(manager)
    assert [(record.key, record.value) for record in kept(log)] == [(b"a", b"19"), (b"b", b"19")]


@pytest.mark.kafka(
    "LogCleanerTest.testMessageLargerThanMaxMessageSizeWithCorruptHeader",
    "LogCleanerManagerTest.testGrabFilthiestCompactedLogThrowsException",
    "LogCleanerManagerTest.testGrabFilthiestCompactedLogIgnoresUncleanablePartitions",
)
def test_broken_log_is_set_aside_by_one_line_and_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    disk = SimulatedDisk()
    manager = open_manager(disk, **CONFIG)
    manager.create_topic(TOPIC, 2, TOPIC_ID, {})
    logs = [log for log in (manager.log(TP), manager.log(TP._replace(partition=1))) if log is not None]
    for log in logs:
        append(log, [(b"a", b"1"), (b"a", b"2")])
        roll(log, manager)
    path = logs[0].folder / "00000000000000000000.log"
    fd = disk.open(path)
    disk.pwritev(fd, [b"X"], 70)
    disk.close(fd)
    before = disk.read_file(path)
    for _ in range(5):
        manager.clean_filthiest()
    assert list(manager.uncleanable) == [TP]
    assert "offset 0" in manager.uncleanable[TP]
    (line,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert "flights-0: compaction failed and is not retried until the broker restarts" in line.getMessage()
    assert disk.read_file(path) == before
    assert not [name for name in disk.listdir(logs[0].folder) if name.endswith(".cleaned")]
    assert [record.value for record in kept(logs[1])] == [b"2"]


@pytest.mark.kafka(
    "LogCleanerTest.testCleanSegmentsWithAbort",
    "LogCleanerManagerTest.testConcurrentLogCleanupAndTopicDeletion",
)
def test_log_that_is_closed_while_it_is_cleaned_is_left_as_it_was() -> None:
    disk = SimulatedDisk()
    manager, log = started(disk)
    append(log, [(b"a", b"1"), (b"a", b"2")])
    roll(log, manager)
    names = [name for name in disk.listdir(log.folder) if name.endswith(".log")]
    segments = log.segments()
    log.close()
    assert manager.clean_filthiest() is None
    assert [name for name in disk.listdir(log.folder) if name.endswith(".log")] == names
    assert log.segments() == segments


@pytest.mark.kafka(
    "LogCleanerTest.testCleanSegmentsWithConcurrentSegmentDeletion",
    "LogCleanerManagerTest.testLogsWithSegmentsToDeleteShouldConsiderCleanupPolicyCompactLogs",
)
def test_records_deleted_by_a_client_meanwhile_do_not_come_back() -> None:
    manager, log = started()
    append(log, [(b"a", b"1"), (b"b", b"2")])
    roll(log, manager)
    append(log, [(b"c", b"3")])
    roll(log, manager)
    before = log.segments()
    log.delete_records(before[1].base_offset)
    assert not log.replace_segments(before[0], before[:1])
    compacted(manager)
    assert [record.key for record in kept(log)] == [b"c"]


def test_reader_of_a_segment_that_is_replaced_keeps_what_it_has() -> None:
    manager, log = started()
    append(log, [(b"a", b"1"), (b"a", b"2")])
    roll(log, manager)
    old = log.segments()[0]
    with old.pinned():
        whole = old.read_bytes(1 << 20, 0)
        compacted(manager)
        manager.flush_dirty()
        assert log.segments()[0] is not old
        assert old.read_bytes(1 << 20, 0) == whole


def test_rate_of_reading_and_writing_is_limited() -> None:
    time = clock()
    config = CleanerConfig(io_max_bytes_per_second=1000, io_buffer_size=500)
    manager = open_manager(SimulatedDisk(), cleaner=config, time=time, **CONFIG)
    log = make_log(manager)
    for number in range(100):
        append(log, [(b"key %d" % number, b"x" * 30)])
    roll(log, manager)
    size = sum(segment.size for segment in log.segments()[:-1])
    before_ms = time.monotonic_ms()
    compacted(manager)
    # Everything is read twice and written once.
    assert time.monotonic_ms() - before_ms == pytest.approx(3 * size, rel=0.2)


@pytest.mark.kafka(
    "LogCleanerTest.testLargeMessage",
    "LogCleanerTest.testMessageLargerThanMaxMessageSize",
)
def test_batch_that_is_larger_than_what_is_read_at_once_is_cleaned() -> None:
    manager = open_manager(SimulatedDisk(), cleaner=CleanerConfig(io_buffer_size=64), **CONFIG)
    log = make_log(manager)
    append(log, [(b"a", b"1" * 700), (b"b", b"2" * 700)])
    append(log, [(b"a", b"3")], codec=Compression.ZSTD)
    roll(log, manager)
    compacted(manager)
    assert [record.value for record in kept(log)] == [b"2" * 700, b"3"]


@pytest.mark.kafka("LogCleanerTest.testCorruptMessageSizeLargerThanBytesAvailable")
@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_any_flipped_byte_of_a_batch_stops_the_cleaning_and_changes_nothing(codec: Compression) -> None:
    disk = SimulatedDisk()
    manager, log = started(disk)
    append(log, [(b"a", b"1"), (b"b", b"2")], codec=codec)
    size = log.size_in_bytes
    roll(log, manager)
    manager.close()
    path = log.folder / "00000000000000000000.log"
    whole = disk.read_file(path)
    # The CRC does not cover the base offset and the leader epoch.
    for position in [*range(8, 12), *range(16, size)]:
        broken = disk.copy()
        data = whole[:position] + bytes([whole[position] ^ 0xFF]) + whole[position + 1 :]
        fd = broken.open(path)
        broken.pwritev(fd, [data], 0)
        broken.close(fd)
        manager = open_manager(broken, **CONFIG)
        assert manager.clean_filthiest() is None
        assert list(manager.uncleanable) == [TP], position
        assert broken.read_file(path) == data, position


@pytest.mark.kafka("LogCleanerTest.testLogCleanerStats")
def test_what_was_read_and_kept_is_counted() -> None:
    manager, log = started()
    append(log, [(b"a", b"1"), (b"a", b"2"), (b"b", b"3")])
    roll(log, manager)
    closed = log.segments()[0]
    count = closed.next_offset()
    size = closed.size
    result = manager.clean_filthiest()
    assert result is not None
    assert (result.end_offset, result.records_read, result.bytes_read) == (count, count, size)
    left = log.segments()[0]
    # The last filling record is in the active segment, which the map does not cover.
    assert result.records_kept == sum(one.record_count for one in batches(log, count)) == 3
    assert result.bytes_kept == left.size


@pytest.mark.kafka("LogCleanerTest.testCleaningWithUnkeyedMessages")
def test_records_without_a_key_from_before_the_policy_are_dropped() -> None:
    disk = SimulatedDisk()
    manager, log = started(disk, cleanup_policy="delete")
    append(log, [(None, b"no key"), (b"a", b"1"), (None, None)])
    roll(log, manager)
    manager.close()
    manager = open_manager(disk, **CONFIG)
    compacted(manager)
    assert [(record.key, record.value) for record in kept(the_log(manager))] == [(b"a", b"1")]


@pytest.mark.kafka("LogCleanerTest.testCleaningBeyondMissingOffsets")
def test_offsets_that_are_missing_do_not_stop_the_cleaning() -> None:
    disk = SimulatedDisk()
    manager, log = started(disk)
    for turn in range(5):
        append(log, [(b"only", b"%d" % turn)])
        roll(log, manager)
        assert compacted(manager) > 0
        assert [record.value for record in kept(log)] == [b"%d" % turn]
        # The log is compacted up to the active segment, although offsets before it are missing.
        end = log.segments()[-1].base_offset
        assert read_offsets(disk, manager.data_dir / "cleaner-offset-checkpoint") == {TP: end}


class HasSize(NamedTuple):
    size: int


class Indexed(NamedTuple):
    file: HasSize


class Sized(NamedTuple):
    """The attributes of a segment that grouping uses."""

    base_offset: int
    size: int
    offset_index: Indexed
    time_index: Indexed


def sized(base_offset: int, size: int = 10, index: int = 1, times: int = 1) -> Any:
    return Sized(base_offset, size, Indexed(HasSize(index)), Indexed(HasSize(times)))


def grouped(*segments: Any, end: int = 1000) -> list[list[int]]:
    groups = group_by_size(segments, end, max_bytes=100, max_index_bytes=50)
    return [[segment.base_offset for segment in group] for group in groups]


@pytest.mark.kafka("LogCleanerTest.testSegmentGrouping")
def test_neighbours_are_grouped_as_far_as_the_limits_of_a_segment_let_them() -> None:
    assert grouped(sized(0, 60), sized(10, 40), sized(20, 1)) == [[0, 10], [20]]
    assert grouped(sized(0, index=30), sized(10, index=20), sized(20)) == [[0, 10], [20]]
    assert grouped(sized(0, times=30), sized(10, times=21)) == [[0], [10]]
    assert grouped(sized(0, 500), sized(10)) == [[0], [10]]


@pytest.mark.kafka(
    "LogCleanerTest.testSegmentGroupingWithSparseOffsetsAndEmptySegments",
    "LogCleanerTest.testSegmentGroupingWithSparseOffsets",
    "LogCleanerTest.testSegmentGroupingFollowingLoadOfZeroIndex",
    "LogCleanerTest.testBuildOffsetMapFakeLarge",
)
def test_segments_whose_offsets_lie_too_far_apart_stay_apart() -> None:
    far = 2**31
    assert grouped(sized(0), sized(5), sized(far), end=far + 10) == [[0, 5], [far]]
    assert grouped(sized(0), sized(5), end=far) == [[0, 5]]
    assert grouped(sized(0), sized(5), end=far + 1) == [[0], [5]]
    # An empty segment has no offsets that must fit into the index.
    assert grouped(sized(0), sized(5), sized(far, 0), end=far + 10) == [[0, 5, far]]


@pytest.mark.kafka(
    "LogCleanerManagerTest.testDirtyOffsetResetIfLargerThanEndOffset",
    "LogCleanerManagerTest.testDirtyOffsetResetIfSmallerThanStartOffset",
    "LogCleanerManagerTest.testLogStartOffsetLargerThanActiveSegmentBaseOffset",
    "LogCleanerManagerTest.testDirtyOffsetLargerThanActiveSegmentBaseOffset",
    "LogCleanerManagerTest.testMaybeTruncateCheckpointShouldTruncateData",
    "LogCleanerManagerTest.testCleanableOffsetsNeedsCheckpointReset",
    "LogCleanerManagerTest.testCheckpointUpdatedForInvalidOffsetNoCleaning",
    "LogCleanerManagerTest.testCheckpointUpdatedForInvalidOffsetNotSelected",
)
@pytest.mark.parametrize("offset", [10**6, -5])
def test_checkpoint_outside_the_log_is_passed_over(offset: int) -> None:
    disk = SimulatedDisk()
    manager, log = started(disk)
    append(log, [(b"a", b"1"), (b"a", b"2")])
    roll(log, manager)
    manager.close()
    disk.write_file(manager.data_dir / "cleaner-offset-checkpoint", f"0\n1\n{TOPIC} 0 {offset}\n".encode())
    manager = open_manager(disk, **CONFIG)
    assert compacted(manager) == 1
    assert [record.value for record in kept(the_log(manager))] == [b"2"]
