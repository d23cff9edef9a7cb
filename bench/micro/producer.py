"""Measure the application thread's cost per 100-byte record of send(), send_batch() and send_arrow().

    python -m pytest bench/micro/producer.py --benchmark-enable

Nothing is sent to a broker. Records accumulate in the producer and are dropped between the rounds, for
kafkacore and for librdkafka. With more than one partition, the records have keys and are partitioned by
their hash.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow
import pytest
from confluent_kafka import Producer

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import KafkaError
from kafkacore.producer._future import FutureRecordMetadata
from kafkacore.producer._record_sender import RecordSender
from kafkacore.producer.record_accumulator import RecordAccumulator
from kafkacore.record._source import RecordSource
from kafkacore.structs import Compression, Node, TopicPartition

PARTITIONS = [1, 6, 1000]
NODE = Node(0, "nowhere", 9092)
VALUE = bytes(range(100))


class Leaders:
    """A cluster of one node that leads all partitions of topic ``t``."""

    def __init__(self, partition_count: int) -> None:
        self._partitions = tuple(range(partition_count))

    def leader_for(self, partition: TopicPartition, /) -> Node | None:
        return NODE

    def leader_epoch(self, partition: TopicPartition, /) -> int | None:
        return 0

    def partitions_for_topic(self, topic: str, /) -> tuple[int, ...] | None:
        return self._partitions

    def available_partitions(self, topic: str, /) -> tuple[int, ...]:
        return self._partitions


class Unprepared:
    """A stand-in for RecordPreparer, which records of a known topic do not need."""

    def send(self, *record: object) -> FutureRecordMetadata:
        raise AssertionError(record)

    send_to_unknown = send


def new_accumulator(partition_count: int) -> RecordAccumulator:
    accumulator = RecordAccumulator(
        SYSTEM_CLOCK,
        lambda: None,
        batch_size=1 << 20,
        linger_ms=60_000.0,
        buffer_memory=1 << 30,
        compression=Compression.NONE,
        compression_level=None,
        retry_backoff_ms=100.0,
        retry_backoff_max_ms=1000.0,
        delivery_timeout_ms=120_000.0,
        max_request_size=1 << 20,
        max_block_ms=0.0,
    )
    accumulator.update_topic("t", Leaders(partition_count))
    return accumulator


def measure(benchmark: Any, count: int, work: Callable[[], Any], drop: Callable[[], Any]) -> None:
    """Time ``work``, which handles ``count`` records. ``drop`` is not timed."""
    benchmark.pedantic(work, setup=lambda: (drop(), None)[1], rounds=10 if count > 1000 else 1)
    if benchmark.stats is not None:
        benchmark.extra_info["records/s"] = round(count / benchmark.stats.stats.min)


def drop_from(accumulator: RecordAccumulator) -> Callable[[], None]:
    return lambda: accumulator.abort(lambda batch: KafkaError("dropped"))


def keys_of(record_count: int, partition_count: int) -> list[bytes | None]:
    return [b"key-%d" % (at % 5000) if partition_count > 1 else None for at in range(record_count)]


@pytest.mark.parametrize("partition_count", PARTITIONS)
def test_send(benchmark: Any, record_count: int, partition_count: int) -> None:
    benchmark.group = f"{partition_count} partitions"
    accumulator = new_accumulator(partition_count)
    producer = RecordSender(accumulator.records, Unprepared(), True)
    keys = keys_of(record_count, partition_count)

    def send_all() -> None:
        send = producer.send
        for key in keys:
            send("t", VALUE, key)

    measure(benchmark, record_count, send_all, drop_from(accumulator))


@pytest.mark.parametrize("partition_count", PARTITIONS)
def test_send_batch(benchmark: Any, record_count: int, partition_count: int) -> None:
    benchmark.group = f"{partition_count} partitions"
    accumulator = new_accumulator(partition_count)
    values, keys = [VALUE] * record_count, keys_of(record_count, partition_count)
    measure(
        benchmark,
        record_count,
        lambda: accumulator.append_source("t", RecordSource(values, keys), None),
        drop_from(accumulator),
    )


@pytest.mark.parametrize("partition_count", PARTITIONS)
def test_send_arrow(benchmark: Any, record_count: int, partition_count: int) -> None:
    benchmark.group = f"{partition_count} partitions"
    accumulator = new_accumulator(partition_count)
    keys = pyarrow.array(keys_of(record_count, partition_count), pyarrow.binary())
    table = pyarrow.table({"key": keys, "value": [VALUE] * record_count})
    measure(
        benchmark,
        record_count,
        lambda: accumulator.append_source("t", RecordSource.from_arrow(table), None),
        drop_from(accumulator),
    )


def test_produce_of_confluent_kafka(benchmark: Any, record_count: int) -> None:
    benchmark.group = "1 partitions"
    config = {"bootstrap.servers": "127.0.0.1:1", "queue.buffering.max.messages": 2_000_000, "log_level": 0}
    producer = Producer(config | {"error_cb": lambda error: None})

    def produce_all() -> None:
        produce = producer.produce
        for _ in range(record_count):
            produce("t", VALUE)

    def drop() -> None:
        producer.purge()
        producer.poll(0)

    measure(benchmark, record_count, produce_all, drop)
    drop()
