"""The loops over records: append, read lazily, decode to columns, validate, checksum; of 100-byte values.

    python -m pytest bench/micro/records.py --benchmark-enable

Rates are of the best round.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import pytest

from kafkacore.record import ColumnBuilder, RecordBatchBuilder, read_batches, validate_batch
from kafkacore.wire._crc32c import crc32c_with, implementations

BATCH_SIZE = 1 << 20
KEYS = [b"key-%d" % number for number in range(1000)]
VALUE = bytes(range(100))


def build(record_count: int, batch_size: int = BATCH_SIZE) -> bytes:
    batches = []
    builder = RecordBatchBuilder(batch_size)
    for number, key in zip(range(record_count), itertools.cycle(KEYS), strict=False):
        if builder.append(1_700_000_000_000 + number, key, VALUE) < 0:
            batches.append(builder.close())
            builder = RecordBatchBuilder(batch_size)
            builder.append(1_700_000_000_000 + number, key, VALUE)
    batches.append(builder.close())
    return b"".join(batches)


@pytest.fixture(scope="session")
def log(record_count: int) -> bytes:
    return build(record_count)


def report(benchmark: Any, count: int, unit: str) -> None:
    if benchmark.stats is not None:
        benchmark.extra_info[unit] = round(count / benchmark.stats.stats.min)


@pytest.mark.parametrize("batch_size", [16_384, BATCH_SIZE])
def test_append(benchmark: Any, record_count: int, batch_size: int) -> None:
    benchmark(build, record_count, batch_size)
    report(benchmark, record_count, "records/s")


def test_read_lazily(benchmark: Any, log: bytes, record_count: int) -> None:
    benchmark(lambda: sum(1 for batch in read_batches(log) for _ in batch))
    report(benchmark, record_count, "records/s")


def test_read_keys_and_values(benchmark: Any, log: bytes, record_count: int) -> None:
    benchmark(lambda: [(record.key, record.value) for batch in read_batches(log) for record in batch])
    report(benchmark, record_count, "records/s")


@pytest.mark.parametrize("columns", [("value",), ("offset", "timestamp", "key", "value")], ids=len)
def test_columns(benchmark: Any, log: bytes, record_count: int, columns: Iterable[str]) -> None:
    def decode_all() -> None:
        builder = ColumnBuilder(columns)
        for batch in read_batches(log):
            builder.append(batch)
        builder.finish()

    benchmark(decode_all)
    report(benchmark, record_count, "records/s")


def test_validate(benchmark: Any, log: bytes, record_count: int) -> None:
    batches = [log[batch.position : batch.position + batch.size_in_bytes] for batch in read_batches(log)]
    benchmark(lambda: [validate_batch(batch) for batch in batches])
    report(benchmark, record_count, "records/s")


@pytest.mark.parametrize("implementation", implementations())
def test_crc32c(benchmark: Any, implementation: str) -> None:
    data = bytes(1 << 20)
    benchmark(crc32c_with, implementation, data)
    report(benchmark, len(data), "bytes/s")
