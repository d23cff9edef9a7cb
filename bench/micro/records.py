"""Records of 100-byte values appended one by one.

    python -m pytest bench/micro/records.py --benchmark-enable

Rates are of the best round.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from kafkacore.record import RecordBatchBuilder

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


def report(benchmark: Any, count: int, unit: str) -> None:
    if benchmark.stats is not None:
        benchmark.extra_info[unit] = round(count / benchmark.stats.stats.min)


@pytest.mark.parametrize("batch_size", [16_384, BATCH_SIZE])
def test_append(benchmark: Any, record_count: int, batch_size: int) -> None:
    benchmark(build, record_count, batch_size)
    report(benchmark, record_count, "records/s")
