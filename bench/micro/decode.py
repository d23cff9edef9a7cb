"""Read batches of 100-byte values as records and as Arrow columns, against aiokafka's reader.

    python -m pytest bench/micro/decode.py --benchmark-enable

All readers check the CRC, and each value of aiokafka's reader is accessed. Rates are those of the best round.
"""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka.record.memory_records import MemoryRecords

from kafkacore.record import RecordBatchBuilder, decode, read_batches, validate_batch

#: Batch layouts: one batch, which stays in the caches; a long fetch; and small batches from a slow producer.
ONE, MANY, SMALL = "of one batch of 1 MB", "in many batches of 1 MB", "in batches of 10"
BATCHES = {ONE: 9_000, MANY: 9_000, SMALL: 10}
GOALS = {ONE: 3.0, MANY: 3.0}
COLUMN_GOALS = {ONE: 8.0, MANY: 8.0}
FOUR = ("offset", "timestamp", "key", "value")
COLUMNS = {"value": ("value",), "offset, timestamp, key, value": FOUR}
VALUE = bytes(range(100))


def build(record_count: int, records_each: int, key: bytes | None = None, headers: Any = ()) -> bytes:
    """Return this many records in consecutive batches."""
    batches = []
    for start in range(0, record_count, records_each):
        builder = RecordBatchBuilder(1 << 30)
        for number in range(start, min(start + records_each, record_count)):
            builder.append(1_700_000_000_000 + number, key, VALUE, headers)
        batches.append(builder.close(base_offset=start))
    return b"".join(batches)


def records_in_all(record_count: int, batches: str) -> int:
    return min(record_count, BATCHES[ONE]) if batches == ONE else record_count


def report(benchmark: Any, record_count: int) -> None:
    if benchmark.stats is not None:
        benchmark.extra_info["records/s"] = round(record_count / benchmark.stats.stats.min)


def touch_ours(log: bytes) -> int:
    size = 0
    for batch in read_batches(log):
        for record in batch:
            size += len(record.value or b"")
    return size


def touch_aiokafka(log: bytes) -> int:
    size = 0
    batches = MemoryRecords(log)
    while batches.has_next():
        batch = batches.next_batch()
        assert batch.validate_crc()
        for record in batch:
            size += len(record.value or b"")
    return size


@pytest.mark.parametrize("contender", ["kafkacore", "aiokafka"])
@pytest.mark.parametrize("batches", BATCHES)
def test_values_touched(benchmark: Any, record_count: int, contender: str, batches: str) -> None:
    benchmark.group = f"decode to records {batches}"
    record_count = records_in_all(record_count, batches)
    log = build(record_count, BATCHES[batches])
    touch = touch_ours if contender == "kafkacore" else touch_aiokafka
    assert benchmark(touch, log) == record_count * len(VALUE)
    if contender == "kafkacore" and batches in GOALS:
        benchmark.extra_info["goal"] = GOALS[batches]
    report(benchmark, record_count)


def test_keys_and_values_kept(benchmark: Any, record_count: int) -> None:
    benchmark.group = "decode to lists of keys and values"
    log = build(record_count, 9_000, b"key-123")
    benchmark(lambda: [(record.key, record.value) for batch in read_batches(log) for record in batch])
    report(benchmark, record_count)


def test_validate(benchmark: Any, record_count: int) -> None:
    benchmark.group = "validate batches for the log"
    log = build(record_count, 9_000)
    batches = [log[batch.position : batch.position + batch.size_in_bytes] for batch in read_batches(log)]
    benchmark(lambda: [validate_batch(batch) for batch in batches])
    report(benchmark, record_count)


@pytest.mark.parametrize("contender", ["kafkacore", "aiokafka"])
@pytest.mark.parametrize("batches", BATCHES)
@pytest.mark.parametrize("columns", COLUMNS)
def test_columns(benchmark: Any, record_count: int, contender: str, batches: str, columns: str) -> None:
    benchmark.group = f"decode to columns {columns} {batches}"
    record_count = records_in_all(record_count, batches)
    log = build(record_count, BATCHES[batches])
    if contender == "kafkacore":
        assert len(benchmark(decode, log, COLUMNS[columns])) == record_count
        if batches in COLUMN_GOALS:
            benchmark.extra_info["goal"] = COLUMN_GOALS[batches]
    else:
        benchmark(touch_aiokafka, log)
    report(benchmark, record_count)


def test_columns_with_keys_and_headers(benchmark: Any, record_count: int) -> None:
    benchmark.group = "decode to columns with a key and a header each"
    log = build(record_count, 9_000, b"key-123", [("trace", b"0123456789abcdef")])
    assert len(benchmark(decode, log, (*FOUR, "headers"))) == record_count
    report(benchmark, record_count)
