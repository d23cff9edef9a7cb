"""Write 100-byte records by a loop of appends, from lists and from Arrow data, against aiokafka's builder.

    python -m pytest bench/micro/encode.py --benchmark-enable

Every contender produces complete batches of the same size from the same values. The last test copies the
values once, which is the lower bound.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from kafkacore.record import RecordBatchBuilder, RecordSource, encode

TIME = 1_700_000_000_000
BATCH_SIZES = [16_384, 1 << 20]
Column = list[bytes]


def aiokafka_builder(batch_size: int) -> DefaultRecordBatchBuilder:
    return DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=batch_size,
    )


def by_aiokafka(values: Column, batch_size: int) -> int:
    size = offset = 0
    builder = aiokafka_builder(batch_size)
    append = builder.append
    for value in values:
        if append(offset, TIME, None, value, []) is None:
            size += len(builder.build())
            builder = aiokafka_builder(batch_size)
            append = builder.append
            append(0, TIME, None, value, [])
            offset = 0
        offset += 1
    return size + len(builder.build())


def by_append(values: Column, batch_size: int) -> int:
    size = 0
    builder = RecordBatchBuilder(batch_size)
    append = builder.append
    for value in values:
        if append(TIME, None, value) < 0:
            size += len(builder.close())
            builder = RecordBatchBuilder(batch_size)
            append = builder.append
            append(TIME, None, value)
    return size + len(builder.close())


def by_encode(values: Any, batch_size: int) -> int:
    return sum(len(batch) for batch in encode(values, timestamp_ms=TIME, batch_size=batch_size))


LOOPS: dict[str, Callable[[Any, int], int]] = {"kafkacore": by_append, "aiokafka": by_aiokafka}
#: Form in which the values are passed to encode(), by name.
FORMS: dict[str, Callable[[Column], Any]] = {
    "list": lambda values: values,
    "tuple": tuple,
    "arrow": lambda values: pa.array(values, pa.binary()),
    "arrow_view": lambda values: pa.array(values, pa.binary_view()),
    "table": lambda values: pa.table({"value": pa.array(values, pa.binary())}),
}


@pytest.fixture(scope="session")
def values(record_count: int) -> Column:
    chance = random.Random(record_count)
    return [chance.randbytes(100) for _ in range(record_count)]


@pytest.mark.parametrize("contender", LOOPS)
@pytest.mark.parametrize("batch_size", BATCH_SIZES)
def test_loop_of_appends(benchmark: Any, values: Column, contender: str, batch_size: int) -> None:
    benchmark.group = f"encode by a loop of appends, batches of {batch_size} bytes"
    assert benchmark(LOOPS[contender], values, batch_size) > 100 * len(values)
    report(benchmark, len(values), 2.5)


@pytest.mark.parametrize("contender", ["kafkacore", "aiokafka"])
@pytest.mark.parametrize("form", FORMS)
def test_whole_column(benchmark: Any, values: Column, form: str, contender: str) -> None:
    benchmark.group = f"encode a column in one call ({form})"
    if contender == "aiokafka":
        assert benchmark(by_aiokafka, values, 1 << 20) > 100 * len(values)
    elif form == "table":
        table = FORMS[form](values)
        size = benchmark(lambda: by_encode(RecordSource.from_arrow(table), 1 << 20))
        assert size == by_append(values, 1 << 20)
    else:
        assert benchmark(by_encode, FORMS[form](values), 1 << 20) == by_append(values, 1 << 20)
    report(benchmark, len(values), 10.0)


def test_memcpy(benchmark: Any, values: Column) -> None:
    benchmark.group = "copy the same values, once"
    joined = b"".join(values)
    target = bytearray(len(joined))

    def copy() -> None:
        memoryview(target)[:] = joined

    benchmark(copy)
    report(benchmark, len(values), 0.0)


def report(benchmark: Any, count: int, goal: float) -> None:
    if goal:
        benchmark.extra_info["goal"] = goal
    if benchmark.stats is not None:
        benchmark.extra_info["records/s"] = round(count / benchmark.stats.stats.min)
