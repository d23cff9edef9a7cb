"""Measure the cost of metrics: one value of a sensor, one producer request and one consumer fetch.

    python -m pytest bench/micro/metrics.py --benchmark-enable

The peer is kafka-python, which defines the same metrics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kafka.metrics
import pytest
from kafka.consumer.fetcher import FetchManagerMetrics, FetchResponseMetricAggregator
from kafka.metrics.stats import Avg, Max, Rate
from kafka.producer.sender import SenderMetrics

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.consumer.metrics import FetchMetrics
from kafkacore.consumer.subscription_state import SubscriptionState
from kafkacore.metrics import Metrics, Sensor
from kafkacore.producer._batch import ProducerBatch
from kafkacore.producer._buffer_pool import BufferPool
from kafkacore.producer.sender_metrics import ProducerMetrics
from kafkacore.record._builder import RecordBatchBuilder
from kafkacore.structs import TopicPartition


def kafkacore_sensor() -> Callable[[], object]:
    sensor = Sensor("size")
    now_ms = SYSTEM_CLOCK.monotonic_ms
    return lambda: sensor.record(100.0, now_ms())


def kafka_python_sensor() -> Callable[[], object]:
    registry = kafka.metrics.Metrics()
    sensor = registry.sensor("size")
    for name, stat in (("avg", Avg()), ("max", Max()), ("rate", Rate())):
        sensor.add(registry.metric_name(name, "group"), stat)
    return lambda: sensor.record(100.0)


@pytest.mark.parametrize("contender", ["kafkacore", "kafka-python"])
def test_note_a_value(benchmark: Any, record_count: int, contender: str) -> None:
    benchmark.group = "record a value in a sensor with average, maximum and rate"
    note = kafkacore_sensor() if contender == "kafkacore" else kafka_python_sensor()
    benchmark.pedantic(note, rounds=5, iterations=record_count // 5)
    if benchmark.stats is not None:
        benchmark.extra_info["values/s"] = round(1 / benchmark.stats.stats.min)


class Records:
    """The records of a batch, with the attributes that kafka-python's metrics read."""

    def size_in_bytes(self) -> int:
        return 16_000

    def compression_rate(self) -> float:
        return 1.0


class Batch:
    topic_partition = TopicPartition("t", 0)
    records = Records()
    record_count = 160
    max_record_size = 110
    created, drained = 1.0, 2.0


def kafkacore_batch() -> Callable[[], object]:
    metrics = ProducerMetrics(
        Metrics(), SYSTEM_CLOCK, BufferPool(1 << 20, SYSTEM_CLOCK), {}, lambda now_ms: 0.0
    )
    batch = ProducerBatch(TopicPartition("t", 0), RecordBatchBuilder(16_000), SYSTEM_CLOCK, 0.0)
    while batch.append(1, b"k", b"v" * 90) is not None:
        pass
    batch.seal()
    now_ms = SYSTEM_CLOCK.monotonic_ms
    return lambda: metrics.batches.sent([batch], now_ms())


def kafkacore_fetch() -> Callable[[], object]:
    metrics = FetchMetrics(Metrics(), SYSTEM_CLOCK, SubscriptionState())
    partition, now_ms = TopicPartition("t", 0), SYSTEM_CLOCK.monotonic_ms

    def count() -> None:
        metrics.fetches.response(2.0, 0.0, 1).part_is_done("t", 1_000_000.0, 9_000.0)
        metrics.fetches.position_moved(partition, 9_000, 10_000, 0, now_ms())

    return count


def kafka_python_fetch() -> Callable[[], object]:
    metrics = FetchManagerMetrics(kafka.metrics.Metrics(), "consumer")
    partition = TopicPartition("t", 0)

    def count() -> None:
        metrics.fetch_latency.record(2.0)
        FetchResponseMetricAggregator(metrics, {partition}).record(partition, 1_000_000, 9_000)
        metrics.records_fetch_lag.record(1_000)

    return count


@pytest.mark.parametrize("contender", ["kafkacore", "kafka-python"])
def test_count_a_fetch(benchmark: Any, record_count: int, contender: str) -> None:
    benchmark.group = "count a fetch of one partition"
    count = kafkacore_fetch() if contender == "kafkacore" else kafka_python_fetch()
    benchmark.pedantic(count, rounds=5, iterations=record_count // 50)
    if benchmark.stats is not None:
        benchmark.extra_info["fetches/s"] = round(1 / benchmark.stats.stats.min)


def kafka_python_batch() -> Callable[[], object]:
    metrics = SenderMetrics(kafka.metrics.Metrics(), None, None)
    return lambda: metrics.update_produce_request_metrics({0: [Batch()]})


@pytest.mark.parametrize("contender", ["kafkacore", "kafka-python"])
def test_count_a_request(benchmark: Any, record_count: int, contender: str) -> None:
    benchmark.group = "count a request of one batch"
    count = kafkacore_batch() if contender == "kafkacore" else kafka_python_batch()
    benchmark.pedantic(count, rounds=5, iterations=record_count // 50)
    if benchmark.stats is not None:
        benchmark.extra_info["requests/s"] = round(1 / benchmark.stats.stats.min)
