"""Changes of a topic's configuration while its logs are open."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Condition

import pytest
from eventually import eventually
from model.blocking_clock import BlockingClock
from model.log_oracle import NOW_MS, TOPIC, TOPIC_ID, TP, batch, open_manager, the_log

from kafkacore.broker.log import LogManager
from kafkacore.broker.log.cleaner import CleanerConfig
from kafkacore.errors import InvalidConfigurationError, MessageSizeTooLargeError
from kafkacore.structs import TopicPartition
from kafkacore.testing.disk import SimulatedDisk


def manager_with(disk: SimulatedDisk, partitions: int = 1) -> LogManager:
    manager = open_manager(disk)
    manager.create_topic(TOPIC, partitions, TOPIC_ID, {})
    return manager


def test_changed_config_outlives_the_broker_and_is_all_that_the_topic_has() -> None:
    disk = SimulatedDisk()
    manager = manager_with(disk)
    manager.update_topic_configs(TOPIC, {"retention.ms": "5", "segment.ms": "9"})
    manager.update_topic_configs(TOPIC, {"retention.ms": "6"})
    again = open_manager(disk.kill_process())
    assert again.topics()[TOPIC].configs == {"retention.ms": "6"}
    assert the_log(again).config.retention_ms == 6


def test_segment_bytes_rolls_the_open_segment_at_the_next_append() -> None:
    manager = manager_with(SimulatedDisk())
    log = the_log(manager)
    for _ in range(3):
        log.append(batch([b"x" * 100]), now_ms=NOW_MS)
    assert log.segment_count == 1
    manager.update_topic_configs(TOPIC, {"segment.bytes": "200"})
    log.append(batch([b"x" * 100]), now_ms=NOW_MS)
    assert log.segment_count == 2
    log.append(batch([b"x" * 100]), now_ms=NOW_MS)
    assert log.segment_count == 3


def test_retention_is_that_of_the_moment() -> None:
    manager = manager_with(SimulatedDisk())
    log = the_log(manager)
    for _ in range(3):
        log.append(batch([b"x"]), now_ms=NOW_MS)
    log.flush()
    assert manager.run_retention(NOW_MS + 1000) == 0
    manager.update_topic_configs(TOPIC, {"retention.ms": "10"})
    assert manager.run_retention(NOW_MS + 1000) == 1
    assert log.log_start_offset == 3


def test_batch_size_and_timestamps_are_judged_by_the_config_of_the_moment() -> None:
    manager = manager_with(SimulatedDisk())
    log = the_log(manager)
    records = batch([b"x" * 500])
    assert log.append(records, now_ms=NOW_MS).log_append_time_ms == -1
    manager.update_topic_configs(
        TOPIC, {"max.message.bytes": "100", "message.timestamp.type": "LogAppendTime"}
    )
    with pytest.raises(MessageSizeTooLargeError):
        log.append(records, now_ms=NOW_MS)
    assert log.append(batch([b"x"]), now_ms=NOW_MS).log_append_time_ms == NOW_MS


def test_every_partition_obeys_those_made_later_too() -> None:
    manager = manager_with(SimulatedDisk(), 2)
    manager.update_topic_configs(TOPIC, {"retention.ms": "7"})
    manager.create_partitions(TOPIC, 3)
    logs = [manager.log(TopicPartition(TOPIC, partition)) for partition in range(3)]
    assert [log.config.retention_ms for log in logs if log is not None] == [7, 7, 7]


def test_changed_default_reaches_topics_that_do_not_say_otherwise() -> None:
    manager = manager_with(SimulatedDisk())
    manager.create_topic("other", 1, TOPIC_ID, {"retention.ms": "1"})
    manager.update_defaults({"retention.ms": "8", "segment.bytes": "99"}, CleanerConfig())
    other = manager.log(TopicPartition("other", 0))
    assert other is not None
    assert (the_log(manager).config.retention_ms, other.config.retention_ms) == (8, 1)
    assert (the_log(manager).config.segment_bytes, other.config.segment_bytes) == (99, 99)


def test_change_that_cannot_be_read_or_written_is_not_made() -> None:
    disk = SimulatedDisk()
    manager = manager_with(disk)
    with pytest.raises(InvalidConfigurationError):
        manager.update_topic_configs(TOPIC, {"retention.ms": "soon"})
    disk.fault = lambda call, verb, path: OSError("Input/output error") if verb == "fdatasync" else None
    with pytest.raises(OSError, match="Input/output error"):
        manager.update_topic_configs(TOPIC, {"retention.ms": "5"})
    assert manager.topics()[TOPIC].configs == {}
    assert the_log(manager).config.retention_ms == 7 * 24 * 3600 * 1000


def test_producers_are_told_as_they_are_and_stay_so() -> None:
    log = the_log(manager_with(SimulatedDisk()))
    log.append(batch([b"x"] * 2, producer=(9, 1, 0)), now_ms=NOW_MS)
    log.append(batch([b"x"], producer=(4, 0, 0)), now_ms=NOW_MS)
    active = log.active_producers()
    log.append(batch([b"x"], producer=(9, 1, 2)), now_ms=NOW_MS)
    assert [(p.producer_id, p.producer_epoch, p.last_sequence) for p in active] == [(4, 0, 0), (9, 1, 1)]
    assert [p.last_sequence for p in log.active_producers()] == [0, 2]
    assert log.topic_partition == TP


class NotingClock(BlockingClock):
    """A clock that records the timeouts of waits when they begin."""

    def __init__(self) -> None:
        super().__init__()
        self.timeouts_ms: list[float | None] = []

    def wait_for(self, condition: Condition, predicate: Callable[[], bool], timeout_ms: float | None) -> bool:
        self.timeouts_ms.append(timeout_ms)
        return super().wait_for(condition, predicate, timeout_ms)


def test_cleaner_that_waits_hears_at_once_that_it_is_to_wait_less(tmp_path: Path) -> None:
    clock = NotingClock()
    manager = LogManager(
        tmp_path / "data",
        clock=clock,
        default_config={"min.cleanable.dirty.ratio": "0", "cleanup.policy": "compact"},
        cleaner=CleanerConfig(backoff_ms=3_600_000),
    )
    try:
        # If the cleaner began after the appends, it would compact them without having waited.
        eventually(lambda: 3_600_000 in clock.timeouts_ms)
        manager.create_topic(TOPIC, 1, TOPIC_ID, {"segment.bytes": "200"})
        log = the_log(manager)
        for _ in range(5):
            log.append(batch([b"x" * 100]), now_ms=NOW_MS)
        log.flush()
        before = log.size_in_bytes
        manager.update_defaults({"cleanup.policy": "compact"}, CleanerConfig(backoff_ms=10))
        manager.update_topic_configs(TOPIC, {"min.cleanable.dirty.ratio": "0"})
        eventually(lambda: log.size_in_bytes != before)
    finally:
        manager.close()
