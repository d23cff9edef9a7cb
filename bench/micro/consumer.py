"""Measure decoding from the bytes of a fetch response to the consumer's records, with 100-byte values.

    python -m pytest bench/micro/consumer.py --benchmark-enable

Rates are those of the best round. The peer is aiokafka's compiled reader alone. aiokafka creates each
ConsumerRecord in Python on top of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from aiokafka.record.memory_records import MemoryRecords

from kafkacore.consumer.completed_fetch import CompletedFetch, ReadOptions
from kafkacore.protocol.generated.fetch import FetchResponse
from kafkacore.record import ColumnBuilder, RecordBatchBuilder
from kafkacore.structs import TopicPartition

PARTITION = TopicPartition("topic", 0)
VALUE = bytes(range(100))


def build(record_count: int, batch_size: int) -> bytes:
    log, written = bytearray(), 0
    while written < record_count:
        builder, base_offset, begin = RecordBatchBuilder(batch_size), written, len(log)
        while written < record_count and builder.append(1_700_000_000_000, None, VALUE) >= 0:
            written += 1
        log += builder.close()
        # Set the base offset as a broker does. The CRC does not cover it.
        log[begin : begin + 8] = base_offset.to_bytes(8, "big")
    return bytes(log)


def fetched(log: bytes) -> CompletedFetch:
    data = FetchResponse.PartitionData(partition_index=0, records=memoryview(log))
    return CompletedFetch(PARTITION, data, 0, 17, ReadOptions())


def our_records(log: bytes) -> int:
    fetch, size = fetched(log), 0
    while not fetch.is_consumed:
        for record in fetch.fetch_records(10_000):
            size += len(record.value)
    return size


def aiokafka_records(log: bytes) -> int:
    batches, size = MemoryRecords(log), 0
    while batches.has_next():
        batch = batches.next_batch()
        assert batch.validate_crc()
        for record in batch:
            size += len(record.value)
    return size


def our_columns(log: bytes) -> int:
    builder = ColumnBuilder(("offset", "timestamp", "timestamp_type", "key", "value", "headers"))
    return fetched(log).fetch_columns(builder) * len(VALUE)


CONTENDERS = {"kafkacore": our_records, "aiokafka": aiokafka_records}


@pytest.mark.parametrize("contender", list(CONTENDERS))
@pytest.mark.parametrize("batch_size", [16_384, 1 << 20])
def test_records_of_a_fetch(benchmark: Any, record_count: int, batch_size: int, contender: str) -> None:
    benchmark.group = f"read the value of each fetched record, batches of {batch_size} B"
    _run(benchmark, record_count, batch_size, CONTENDERS[contender])


@pytest.mark.parametrize("contender", ["kafkacore", "aiokafka"])
def test_columns_of_a_fetch(benchmark: Any, record_count: int, contender: str) -> None:
    benchmark.group = "convert fetched records to all six columns"
    _run(benchmark, record_count, 1 << 20, our_columns if contender == "kafkacore" else aiokafka_records)


def _run(benchmark: Any, record_count: int, batch_size: int, read: Callable[[bytes], int]) -> None:
    log = build(record_count, batch_size)
    assert benchmark(read, log) == record_count * len(VALUE)
    if benchmark.stats is not None:
        benchmark.extra_info["records/s"] = round(record_count / benchmark.stats.stats.min)
