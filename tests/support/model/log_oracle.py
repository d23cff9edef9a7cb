"""A model of a log as a list of records, the slow and simple ``UnifiedLog``, and helpers for batches."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from kafkacore.broker.log import CleanerConfig, LogManager, UnifiedLog
from kafkacore.broker.storage.disk import Disk
from kafkacore.record import Compression, RecordBatchBuilder, read_batches
from kafkacore.structs import TopicPartition
from kafkacore.testing.clock import VirtualClock

#: Wall-clock time of tests, and the default timestamp of their records.
NOW_MS = 1_700_000_000_000
TOPIC = "flights"
TP = TopicPartition(TOPIC, 0)
TOPIC_ID = UUID("0f6b4a3e-6d0c-4bd5-9f60-1d4c4d8a6c11")


class LogRecord(NamedTuple):
    offset: int
    timestamp: int
    value: bytes | None


def batch(
    values: Iterable[bytes | None],
    timestamp: int = NOW_MS,
    *,
    producer: tuple[int, int, int] = (-1, -1, -1),
    compression: Compression = Compression.NONE,
    is_control: bool = False,
    step_ms: int = 1,
) -> memoryview:
    """Return a batch as a producer sends it. ``producer`` is its id, epoch and base sequence."""
    builder = RecordBatchBuilder(1 << 24, compression)
    for index, value in enumerate(values):
        builder.append(timestamp + index * step_ms, b"key", value)
    producer_id, epoch, sequence = producer
    return builder.close(
        producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, is_control=is_control
    )


def clock(seed: int = 0) -> VirtualClock:
    return VirtualClock(start_ms=NOW_MS, seed=seed)


def open_manager(
    disk: Disk,
    data_dir: Path = Path("/data"),
    *,
    flush: str = "ack",
    cleaner: CleanerConfig | None = None,
    time: VirtualClock | None = None,
    **config: object,
) -> LogManager:
    """Open a manager without a thread. ``config`` contains topic configs, with underscores."""
    configs = {key.replace("_", "."): str(value) for key, value in config.items()}
    return LogManager(
        data_dir,
        clock=time or clock(),
        disk=disk,
        default_config=configs,
        flush=flush,
        background=False,
        cleaner=cleaner,
    )


def make_log(manager: LogManager) -> UnifiedLog:
    """Create the partition that most tests use."""
    if TOPIC not in manager.topics():
        manager.create_topic(TOPIC, 1, TOPIC_ID, {})
    return the_log(manager)


def the_log(manager: LogManager) -> UnifiedLog:
    log = manager.log(TP)
    assert log is not None
    return log


def read_all(log: UnifiedLog, max_bytes: int = 1 << 20) -> list[LogRecord]:
    """Return every readable record, in as many reads as needed."""
    records: list[LogRecord] = []
    offset = log.log_start_offset
    while offset < log.high_watermark:
        found = log.read(offset, max_bytes)
        assert found.next_offset > offset, f"stuck at {offset}"
        records += [record for record in records_of(found.records) if record.offset >= offset]
        offset = found.next_offset
    return records


def records_of(data: memoryview) -> list[LogRecord]:
    return [
        LogRecord(record.offset, record.timestamp, record.value)
        for found in read_batches(data)
        for record in found
    ]


class OracleLog:
    """The expected results of a log, found by a search of the whole list."""

    def __init__(self) -> None:
        self.batches: list[list[LogRecord]] = []
        self.start = 0
        self.end = 0

    def append(self, values: list[bytes | None], timestamp: int, step_ms: int = 1) -> int:
        records = [
            LogRecord(self.end + index, timestamp + index * step_ms, value)
            for index, value in enumerate(values)
        ]
        self.batches.append(records)
        self.end += len(records)
        return records[0].offset

    def records(self) -> list[LogRecord]:
        return [record for records in self.batches for record in records if record.offset >= self.start]

    def offset_for_timestamp(self, timestamp: int) -> tuple[int, int] | None:
        found = next((record for record in self.records() if record.timestamp >= timestamp), None)
        return None if found is None else (found.timestamp, found.offset)

    def offset_of_max_timestamp(self) -> tuple[int, int] | None:
        records = self.records()
        if not records:
            return None
        found = max(records, key=lambda record: (record.timestamp, -record.offset))
        return found.timestamp, found.offset
