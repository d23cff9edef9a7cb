"""Measure what idempotence costs per batch, when it is sent and when it is acknowledged.

    python -m pytest bench/micro/idempotence.py --benchmark-enable

The peer is kafka-python, whose transaction manager is called as its accumulator and its sender call it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kafka.producer.transaction_manager import ProducerIdAndEpoch, TransactionManager
from kafka.structs import TopicPartition as TheirTopicPartition

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.producer._batch import ProducerBatch
from kafkacore.producer.idempotence import IdempotenceManager
from kafkacore.record._builder import RecordBatchBuilder
from kafkacore.structs import TopicPartition

PARTITIONS = 16
#: Number of records in a batch. The number of batches is smaller by this factor.
RECORDS = 100
ROUNDS = 20


def new_batch(place: TopicPartition) -> ProducerBatch:
    batch = ProducerBatch(place, RecordBatchBuilder(16_384), SYSTEM_CLOCK, 0.0)
    batch.append(0, None, b"v" * RECORDS)
    return batch


def ours(count: int) -> Callable[[], None]:
    manager = IdempotenceManager()
    manager.id_state.set_producer_id_and_epoch(7, 0)
    batches = [new_batch(TopicPartition("t", number % PARTITIONS)) for number in range(count)]

    def run() -> None:
        for offset, batch in enumerate(batches):
            manager.begin_turn(0.0, True)
            assert manager.may_send()
            assert manager.may_drain(batch)
            manager.assign(batch)
            manager.completed(batch, offset)

    return run


def theirs(count: int) -> Callable[[], None]:
    manager = TransactionManager()
    manager.set_producer_id_and_epoch(ProducerIdAndEpoch(7, 0))
    places = [TheirTopicPartition("t", number) for number in range(PARTITIONS)]

    def run() -> None:
        for offset in range(count):
            place = places[offset % PARTITIONS]
            assert manager.is_send_to_partition_allowed(place)
            assert manager.has_producer_id()
            assert manager.sequence_number(place) >= 0
            manager.increment_sequence_number(place, 1)
            manager.update_last_acked_offset(place, offset, 1)

    return run


@pytest.mark.parametrize("contender", ["kafkacore", "kafka-python"])
def test_batch_numbered_and_acknowledged(benchmark: Any, record_count: int, contender: str) -> None:
    benchmark.group = "number and acknowledge a batch"
    count = record_count // RECORDS
    make = ours if contender == "kafkacore" else theirs

    def fresh() -> tuple[tuple[Callable[[], None]], dict[str, Any]]:
        return (make(count),), {}

    benchmark.pedantic(lambda run: run(), setup=fresh, rounds=ROUNDS, warmup_rounds=2)
    if benchmark.stats is not None:
        benchmark.extra_info["batches/s"] = round(count / benchmark.stats.stats.min)


def test_sealed_batch_renumbered(benchmark: Any) -> None:
    benchmark.group = "renumber a sealed batch of 16 KiB"
    batch = ProducerBatch(TopicPartition("t", 0), RecordBatchBuilder(16_384), SYSTEM_CLOCK, 0.0)
    while batch.append(0, None, bytes(RECORDS)) is not None:
        pass
    batch.set_producer_state(7, 0, 0)
    batch.seal()

    def run() -> None:
        batch.set_producer_state(7, 1, 0)
        batch.seal()

    benchmark(run)
    if benchmark.stats is not None:
        benchmark.extra_info["batches/s"] = round(1 / benchmark.stats.stats.min)
