"""Logs for tests of compaction: fill them, clean them, and read the remaining records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from model.log_oracle import NOW_MS

from kafkacore.broker.log import LogManager, UnifiedLog
from kafkacore.record import Compression, RecordBatch, RecordBatchBuilder, read_batches

CONFIG = {"cleanup_policy": "compact", "segment_bytes": 2000, "min_cleanable_dirty_ratio": 0.01}

Pair = tuple[bytes | None, bytes | None]


class Kept(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def append(
    log: UnifiedLog,
    pairs: Iterable[Pair],
    *,
    at: int = NOW_MS,
    codec: Compression = Compression.NONE,
    **close: int,
) -> None:
    builder = RecordBatchBuilder(1 << 20, codec)
    for index, (key, value) in enumerate(pairs):
        builder.append(at + index, key, value, [("header", b"of " + (key or b"none"))])
    log.append(builder.close(**close), now_ms=NOW_MS)


def roll(log: UnifiedLog, manager: LogManager) -> None:
    """Roll a new segment, so that everything before it can be cleaned."""
    count = log.segment_count
    while log.segment_count == count:
        append(log, [(b"filling", b"f" * 900)])
    manager.flush_dirty()


def batches(log: UnifiedLog, before: int | None = None) -> list[RecordBatch]:
    found: list[RecordBatch] = []
    offset = log.log_start_offset
    while offset < log.high_watermark:
        data = log.read(offset, 1 << 20)
        if data.next_offset == offset:
            break
        found += list(read_batches(data.records))
        offset = data.next_offset
    return [one for one in found if before is None or one.last_offset < before]


def kept(log: UnifiedLog, before: int | None = None) -> list[Kept]:
    """Return all readable records except fillers."""
    return [
        Kept(record.offset, record.timestamp, record.key, record.value)
        for one in batches(log, before)
        for record in one
        if record.key != b"filling"
    ]


def compacted(manager: LogManager) -> int:
    """Clean until nothing is left to clean, and return the number of cleanings."""
    count = 0
    while manager.clean_filthiest() is not None:
        count += 1
        assert count < 50
        manager.flush_dirty()
    assert manager.uncleanable == {}
    return count
