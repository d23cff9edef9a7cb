"""Concurrent appends, reads, syncs and removals on a real disk."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

from eventually import BUDGET_S, eventually
from model.blocking_clock import BlockingClock
from model.log_oracle import NOW_MS, batch, records_of

from kafkacore.broker.log import LogManager, UnifiedLog
from kafkacore.errors import OffsetOutOfRangeError
from kafkacore.structs import TopicPartition

APPENDS = 150
PARTITIONS = 2


def read_to_the_end(log: UnifiedLog) -> None:
    """Read as a consumer does, skipping records that were removed before they could be read."""
    offset = 0
    while offset < APPENDS:
        try:
            found = log.read(offset, 700)
        except OffsetOutOfRangeError:
            assert log.log_start_offset > offset
            offset = log.log_start_offset
            continue
        for record in records_of(found.records):
            assert record.offset == offset
            assert record.value == b"value %d" % offset
            offset += 1
        assert offset <= log.high_watermark


def test_readers_see_each_record_once_while_segments_come_and_go(tmp_path: Path) -> None:
    config = {"segment.bytes": "1000", "retention.bytes": "4000"}
    with (
        LogManager(tmp_path / "data", clock=BlockingClock(), default_config=config) as manager,
        ThreadPoolExecutor() as pool,
    ):
        manager.create_topic("busy", PARTITIONS, UUID(int=1), {})
        logs = [log_of(manager, partition) for partition in range(PARTITIONS)]
        readers = [pool.submit(read_to_the_end, log) for log in logs for _ in range(2)]
        for index in range(APPENDS):
            for log in logs:
                log.append(batch([b"value %d" % index]), now_ms=NOW_MS)
            if index % 20 == 0:
                # Retention removes only what has been synced. A busy disk may be some time behind.
                eventually(lambda least=index - 20: all(log.high_watermark > least for log in logs))
                manager.run_retention(NOW_MS)
        for reader in readers:
            reader.result(BUDGET_S)
        assert all(log.log_start_offset > 0 for log in logs)


def log_of(manager: LogManager, partition: int) -> UnifiedLog:
    log = manager.log(TopicPartition("busy", partition))
    assert log is not None
    return log
