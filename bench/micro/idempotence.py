"""What idempotence costs a batch: its numbers when it is sent, and what is noted when it is acknowledged.

    python -m pytest bench/micro/idempotence.py --benchmark-enable

The peer is kafka-python, whose manager is asked as its accumulator and its sender ask it.
"""

from __future__ import annotations

from typing import Any

from kafka.producer.transaction_manager import ProducerIdAndEpoch, TransactionManager
from kafka.structs import TopicPartition as TheirTopicPartition

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.producer.batch import ProducerBatch
from kafkacore.producer.idempotence import IdempotenceManager
from kafkacore.record.builder import RecordBatchBuilder
from kafkacore.structs import TopicPartition

PARTITIONS = 16
RECORDS = 100


def new_batches(count: int) -> list[ProducerBatch]:
    batches = []
    for number in range(count):
        place = TopicPartition("t", number % PARTITIONS)
        batch = ProducerBatch(place, RecordBatchBuilder(16_384), SYSTEM_CLOCK, 0.0)
        batch.append(0, None, b"v")
        batches.append(batch)
    return batches


def test_number_and_acknowledge_kafkacore(benchmark: Any, record_count: int) -> None:
    benchmark.group = "a batch numbered and acknowledged"

    def fresh() -> tuple[tuple[IdempotenceManager, list[ProducerBatch]], dict[str, Any]]:
        manager = IdempotenceManager()
        manager.producer_id, manager.producer_epoch = 7, 0
        return (manager, new_batches(record_count // RECORDS)), {}

    def run(manager: IdempotenceManager, batches: list[ProducerBatch]) -> None:
        for offset, batch in enumerate(batches):
            manager.begin_turn(0.0, True)
            assert manager.may_send()
            assert manager.may_drain(batch)
            manager.assign(batch)
            manager.completed(batch, offset)

    benchmark.pedantic(run, setup=fresh, rounds=20, warmup_rounds=2)


def test_number_and_acknowledge_kafka_python(benchmark: Any, record_count: int) -> None:
    benchmark.group = "a batch numbered and acknowledged"
    places = [TheirTopicPartition("t", number) for number in range(PARTITIONS)]

    def fresh() -> tuple[tuple[TransactionManager], dict[str, Any]]:
        manager = TransactionManager()
        manager.set_producer_id_and_epoch(ProducerIdAndEpoch(7, 0))
        return (manager,), {}

    def run(manager: TransactionManager) -> None:
        for offset in range(record_count // RECORDS):
            place = places[offset % PARTITIONS]
            assert manager.is_send_to_partition_allowed(place)
            assert manager.has_producer_id()
            assert manager.sequence_number(place) >= 0
            manager.increment_sequence_number(place, 1)
            manager.update_last_acked_offset(place, offset, 1)

    benchmark.pedantic(run, setup=fresh, rounds=20, warmup_rounds=2)


def test_number_anew_in_sealed_bytes(benchmark: Any, record_count: int) -> None:
    benchmark.group = "a sealed batch of 16 KiB numbered anew"
    batch = ProducerBatch(TopicPartition("t", 0), RecordBatchBuilder(16_384), SYSTEM_CLOCK, 0.0)
    while batch.append(0, None, bytes(RECORDS)) is not None:
        pass
    batch.set_producer_state(7, 0, 0)
    batch.seal()

    def run() -> None:
        batch.set_producer_state(7, 1, 0)
        batch.seal()

    benchmark(run)
