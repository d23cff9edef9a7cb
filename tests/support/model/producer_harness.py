"""The producer's parts assembled on a virtual clock, with short names for the tests.

:class:`AccumulatorHarness` contains only a RecordAccumulator. :class:`SenderHarness` contains a Sender and a
client that the test answers by hand. Topic ``t`` has partitions 0 and 1 on broker 1, and partition 2 on
broker 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from uuid import UUID

from model.producer_client import HandClient, TableMetadata
from model.producer_cluster import NODES, TableCluster

from kafkacore.clock import Clock
from kafkacore.errors import KafkaError
from kafkacore.producer._batch import ProducerBatch
from kafkacore.producer._future import FutureRecordMetadata
from kafkacore.producer._partition_sequences import MAX_SEQUENCE, PartitionSequences
from kafkacore.producer.idempotence import IdempotenceManager
from kafkacore.producer.producer_manager import ProducerManager
from kafkacore.producer.record_accumulator import RecordAccumulator
from kafkacore.producer.sender import Sender
from kafkacore.producer.sender_metrics import SenderMetrics
from kafkacore.protocol.generated.init_producer_id import InitProducerIdResponse
from kafkacore.record import read_batches
from kafkacore.structs import Compression, TopicPartition
from kafkacore.testing import VirtualClock

TP0, TP1, TP2 = (TopicPartition("t", partition) for partition in range(3))
LEADERS: dict[str, list[int | None]] = {"t": [1, 1, 2]}
VALUE = b"v" * 100
BUFFER_MEMORY = 64 * 1024
MAX_REQUEST_SIZE = 1 << 20


def make_accumulator(
    clock: Clock, wakeup: Callable[[], None] = lambda: None, **changes: Any
) -> RecordAccumulator:
    config: dict[str, Any] = {
        "batch_size": 1024,
        "linger_ms": 10.0,
        "buffer_memory": BUFFER_MEMORY,
        "compression": Compression.NONE,
        "compression_level": None,
        "retry_backoff_ms": 100.0,
        "retry_backoff_max_ms": 1000.0,
        "delivery_timeout_ms": 120_000.0,
        "max_request_size": MAX_REQUEST_SIZE,
        "max_block_ms": 1000.0,
    }
    return RecordAccumulator(clock, wakeup, **(config | changes))


class AccumulatorHarness:
    """An accumulator, and the number of times it woke the sender."""

    def __init__(self, cluster: TableCluster | None = None, **changes: Any) -> None:
        self.clock = VirtualClock()
        self.cluster = cluster or TableCluster(LEADERS)
        self.wakeups = 0
        self.accumulator = make_accumulator(self.clock, self.wakeup, **changes)
        for topic in self.cluster.topics():
            self.accumulator.update_topic(topic, self.cluster)

    def wakeup(self) -> None:
        self.wakeups += 1

    def append(self, partition: int | None = 0, value: bytes = VALUE, **more: Any) -> FutureRecordMetadata:
        fields = {"topic": "t", "key": None, "headers": None, "timestamp_ms": None} | more
        future = self.accumulator.append(value=value, partition=partition, **fields)
        assert future is not None
        return future

    def fill(self, partition: int = 0) -> int:
        """Append records until the first batch is full and closed; return the number of its records."""
        count = 0
        queue = self.accumulator._queue(TopicPartition("t", partition))
        while not queue.is_head_full:
            self.append(partition)
            count += 1
        return count

    def ready(self) -> set[int]:
        return set(self.accumulator.ready(self.cluster, self.now).nodes)

    def drain(self, *nodes: int, max_size: int = 1 << 20) -> list[ProducerBatch]:
        drained = self.accumulator.drain(
            self.cluster, [NODES[node] for node in nodes or (1, 2)], max_size, self.now
        )
        return [batch for batches in drained.values() for batch in batches]

    @property
    def now(self) -> float:
        return self.clock.monotonic_ms()

    def finish(self, batch: ProducerBatch) -> None:
        """Complete a batch as the sender does after success."""
        self.accumulator.incomplete.pop(batch, None)
        self.accumulator.release(batch)
        batch.complete(base_offset=0)


def values(batch: ProducerBatch) -> list[bytes | None]:
    return [record.value for sealed in read_batches(batch.seal()) for record in sealed]


class IdCluster(TableCluster):
    """A cluster whose topics have ids."""

    ids = {"t": UUID(int=7)}  # noqa: RUF012 - a table that no test changes

    def topic_id(self, topic: str) -> UUID | None:
        return self.ids.get(topic)


class SenderHarness:
    """A Sender, an accumulator without linger, and a client answered by hand."""

    def __init__(
        self,
        *,
        acks: int = -1,
        retries: float = math.inf,
        ordered: bool = False,
        max_in_flight: int = 5,
        leaders: dict[str, list[int | None]] | None = None,
        idempotence: ProducerManager | None = None,
        metrics: SenderMetrics | None = None,
        clock: VirtualClock | None = None,
        **changes: Any,
    ) -> None:
        self.idempotence = idempotence
        self.clock = clock or VirtualClock()
        self.cluster = IdCluster(leaders or LEADERS)
        self.metadata = TableMetadata(self.cluster)
        self.client = HandClient(self.clock, 1 if ordered else max_in_flight)
        self.accumulator = make_accumulator(
            self.clock, self.client.wakeup, **({"linger_ms": 0.0, "idempotence": idempotence} | changes)
        )
        self.sender = Sender(
            self.client,  # type: ignore[arg-type]  # stands in
            self.metadata,  # type: ignore[arg-type]  # stands in
            self.accumulator,
            self.clock,
            acks=acks,
            retries=retries,
            request_timeout_ms=30_000,
            max_request_size=changes.get("max_request_size", MAX_REQUEST_SIZE),
            guarantee_message_order=ordered,
            metrics=metrics,
        )
        self.accumulator.update_topic("t", self.cluster)

    def sequences(self, at: int = -1) -> dict[int, tuple[int, int, int]]:
        """Return partition → producer id, epoch and base sequence of the ``at``-th request that was sent."""
        return {
            partition.index: (batch.producer_id, batch.producer_epoch, batch.base_sequence)
            for topic in self.client.sent[at].request.topic_data
            for partition in topic.partition_data
            for batch in read_batches(partition.records)
        }

    def send(self, value: bytes = b"value", partition: int = 0) -> FutureRecordMetadata:
        future = self.accumulator.append("t", value, None, None, partition, None)
        assert future is not None
        return future

    def run(self, times: int = 1) -> None:
        for _ in range(times):
            self.sender.run_once(self.clock.monotonic_ms())

    def after(self, duration_ms: float) -> None:
        self.clock.advance(duration_ms)
        self.run()

    def move(self, *leaders: int | None, epoch: int) -> None:
        """Move the leader in new metadata."""
        self.cluster = IdCluster({"t": list(leaders)}, epoch)
        self.metadata.cluster = self.cluster

    def contents(self, at: int = -1) -> dict[int, list[bytes | None]]:
        """Return partition → values of the ``at``-th request that was sent."""
        return {
            partition.index: [record.value for batch in read_batches(partition.records) for record in batch]
            for topic in self.client.sent[at].request.topic_data
            for partition in topic.partition_data
        }

    @property
    def free(self) -> int:
        return self.accumulator.pool.available_bytes


def outcome(future: FutureRecordMetadata) -> type[BaseException] | int | None:
    """Return the error class, the offset, or ``None`` if there was no outcome yet."""
    if future.exception is not None:
        return type(future.exception)
    return None if future.value is None else future.value.offset


def outcomes(futures: list[FutureRecordMetadata]) -> list[type[BaseException] | int | None]:
    return [outcome(future) for future in futures]


def possibly_persisted(future: FutureRecordMetadata) -> bool:
    assert isinstance(future.exception, KafkaError)
    return future.exception.possibly_persisted


def given_id(producer_id: int = 7, producer_epoch: int = 0, error_code: int = 0) -> InitProducerIdResponse:
    """Return a broker's response to InitProducerId."""
    return InitProducerIdResponse(
        producer_id=producer_id, producer_epoch=producer_epoch, error_code=error_code
    )


def idempotent_harness(
    producer_id: int = 7, producer_epoch: int = 0, *, next_sequence: int | None = 0, **changes: Any
) -> SenderHarness:
    """Return a harness whose producer has an id and a sequence in each partition.

    The record just before ``next_sequence`` counts as acknowledged. With ``None``, no partition knows the
    producer.
    """
    manager = IdempotenceManager()
    harness = SenderHarness(idempotence=manager, **changes)
    harness.run()
    harness.client.answer(message=given_id(producer_id, producer_epoch))
    harness.run()
    for topic_partition in (TP0, TP1, TP2) if next_sequence is not None else ():
        sequences = manager.id_state.sequences[topic_partition] = PartitionSequences()
        sequences.start_at_beginning(producer_id, producer_epoch)
        sequences.known_by_id, sequences.known_at_ms = producer_id, harness.clock.monotonic_ms()
        sequences.next = next_sequence or 0
        sequences.last_acknowledged = (sequences.next - 1) & MAX_SEQUENCE
    return harness


def sequences_of(harness: SenderHarness, topic_partition: TopicPartition = TP0) -> PartitionSequences:
    """Return the sequence numbers of a partition of an idempotent harness."""
    assert isinstance(harness.idempotence, IdempotenceManager)
    return harness.idempotence.id_state.sequences[topic_partition]


def send_each(harness: SenderHarness, *values: bytes, partition: int = 0) -> list[FutureRecordMetadata]:
    """Send every value in a separate batch and request."""
    futures = []
    for value in values:
        futures.append(harness.send(value, partition))
        harness.run()
    return futures


def sent(harness: SenderHarness) -> list[tuple[bytes | None, int, int]]:
    """Return the first value, epoch and base sequence of each request for partition 0."""
    found = []
    for at in range(len(harness.client.sent)):
        contents, sequences = harness.contents(at), harness.sequences(at)
        if 0 in contents:
            found.append((contents[0][0], *sequences[0][1:]))
    return found
