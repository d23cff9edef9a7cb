"""Five Kafka clients behind one pair of functions, so that a test can pair every writer and reader.

The records are :class:`~integration.java_peer.Sample` and :class:`~integration.java_peer.Received`. Security
settings have kafka-python's names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import aiokafka
import confluent_kafka
import kafka
from eventually import BUDGET_S, eventually
from peers.client_security import (
    for_aiokafka,
    for_java,
    for_kafkacore,
    for_librdkafka,
    without_address,
)
from peers.java_peer import JavaPeer, Received, Sample

import kafkacore

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
MAX_REQUEST_SIZE = 2_097_152

#: (partition, offset) of each record, in the order in which they were sent.
Places = list[tuple[int, int]]


class Client(Protocol):
    """One Kafka client that can write and read."""

    def produce(self, servers: str, topic: str, samples: Sequence[Sample], codec: str) -> Places:
        """Send all samples with ``codec`` and wait for their acknowledgements. A failure raises."""

    def consume(self, servers: str, topic: str, partitions: int, count: int) -> list[Received]:
        """Read ``count`` records from the start of partitions 0 to ``partitions`` - 1, without a group."""


def _headers(sample: Sample) -> list[Any]:
    return list(sample.headers)


def _received(record: Any) -> Received:
    """Convert a record of kafka-python, aiokafka or kafkacore, which use the same attribute names."""
    headers = tuple((name, value) for name, value in record.headers)
    return Received(
        record.partition,
        record.offset,
        record.timestamp,
        record.timestamp_type,
        record.key,
        record.value,
        headers,
    )


def _poll_until(count: int, poll: Callable[[], list[Received]]) -> list[Received]:
    """Call ``poll`` until it has returned ``count`` records."""
    found: list[Received] = []
    eventually(lambda: len(found) >= count, lambda: found, step=lambda: found.extend(poll()))
    return found


class KafkaPythonLike:
    """kafka-python or kafkacore, which have the same API and differ only in the import."""

    def __init__(
        self, module: Any, security: Mapping[str, Any] | None = None, **producer_config: object
    ) -> None:
        self._module = module
        self._security = without_address(security or {})
        self._producer_config = producer_config

    def produce(self, servers: str, topic: str, samples: Sequence[Sample], codec: str) -> Places:
        producer = self._module.KafkaProducer(
            bootstrap_servers=servers,
            compression_type=None if codec == "none" else codec,
            max_request_size=MAX_REQUEST_SIZE,
            linger_ms=5,
            **self._security,
            **self._producer_config,
        )
        try:
            futures = [
                producer.send(
                    topic,
                    value=sample.value,
                    key=sample.key,
                    headers=_headers(sample),
                    partition=sample.partition,
                    timestamp_ms=sample.timestamp,
                )
                for sample in samples
            ]
            producer.flush(timeout=BUDGET_S)
            metadata = [future.get(timeout=BUDGET_S) for future in futures]
        finally:
            producer.close(timeout=BUDGET_S)
        return [(one.partition, one.offset) for one in metadata]

    def consume(self, servers: str, topic: str, partitions: int, count: int) -> list[Received]:
        consumer = self._module.KafkaConsumer(
            bootstrap_servers=servers,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            group_id=None,
            **self._security,
        )
        try:
            consumer.assign([self._module.TopicPartition(topic, number) for number in range(partitions)])
            return _poll_until(
                count,
                lambda: [
                    _received(record)
                    for records in consumer.poll(timeout_ms=200).values()
                    for record in records
                ],
            )
        finally:
            consumer.close()


class Confluent:
    """confluent-kafka, which uses librdkafka."""

    def __init__(self, security: Mapping[str, Any] | None = None) -> None:
        self._security = for_librdkafka(security or {})

    def produce(self, servers: str, topic: str, samples: Sequence[Sample], codec: str) -> Places:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": servers,
                "compression.codec": codec,
                "message.max.bytes": MAX_REQUEST_SIZE,
                "linger.ms": 5,
            }
            | self._security
        )
        done: dict[int, tuple[int, int]] = {}
        errors: list[object] = []

        def report(index: int) -> Callable[[Any, Any], None]:
            def on_delivery(error: object, message: Any) -> None:
                if error is not None:
                    errors.append(error)
                else:
                    done[index] = (message.partition(), message.offset())

            return on_delivery

        for index, sample in enumerate(samples):
            optional: dict[str, Any] = {"timestamp": sample.timestamp, "partition": sample.partition}
            producer.produce(
                topic,
                value=sample.value,
                key=sample.key,
                headers=_headers(sample),
                on_delivery=report(index),
                **{name: value for name, value in optional.items() if value is not None},
            )
            producer.poll(0)
        left = producer.flush(BUDGET_S)
        assert (left, errors) == (0, [])
        return [done[index] for index in range(len(samples))]

    def consume(self, servers: str, topic: str, partitions: int, count: int) -> list[Received]:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "assigned-only",
                "enable.auto.commit": False,
                "fetch.message.max.bytes": MAX_REQUEST_SIZE,
            }
            | self._security
        )
        try:
            consumer.assign(
                [confluent_kafka.TopicPartition(topic, number, 0) for number in range(partitions)]
            )
            return _poll_until(count, lambda: [self._received(one) for one in consumer.consume(500, 0.2)])
        finally:
            consumer.close()

    @staticmethod
    def _received(message: Any) -> Received:
        if message.error() is not None:
            raise confluent_kafka.KafkaException(message.error())
        kind, timestamp = message.timestamp()
        # librdkafka numbers timestamp types from 1 (CreateTime); 0 means "not available".
        return Received(
            message.partition(),
            message.offset(),
            timestamp,
            kind - 1,
            message.key(),
            message.value(),
            tuple(message.headers() or ()),
        )


class AioKafka:
    """aiokafka, with an event loop per call."""

    def __init__(self, security: Mapping[str, Any] | None = None) -> None:
        self._security = for_aiokafka(security or {})

    def produce(self, servers: str, topic: str, samples: Sequence[Sample], codec: str) -> Places:
        return asyncio.run(self._produce(servers, topic, samples, codec))

    async def _produce(self, servers: str, topic: str, samples: Sequence[Sample], codec: str) -> Places:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=servers,
            compression_type=None if codec == "none" else codec,
            max_request_size=MAX_REQUEST_SIZE,
            linger_ms=5,
            **self._security,
        )
        await producer.start()
        try:
            futures = [
                await producer.send(
                    topic,
                    value=sample.value,
                    key=sample.key,
                    headers=_headers(sample),
                    partition=sample.partition,
                    timestamp_ms=sample.timestamp,
                )
                for sample in samples
            ]
            metadata = await asyncio.wait_for(asyncio.gather(*futures), BUDGET_S)
        finally:
            await producer.stop()
        return [(one.partition, one.offset) for one in metadata]

    def consume(self, servers: str, topic: str, partitions: int, count: int) -> list[Received]:
        return asyncio.run(self._consume(servers, topic, partitions, count))

    async def _consume(self, servers: str, topic: str, partitions: int, count: int) -> list[Received]:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=servers,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            group_id=None,
            **self._security,
        )
        await consumer.start()
        found: list[Received] = []
        try:
            consumer.assign([aiokafka.TopicPartition(topic, number) for number in range(partitions)])
            async with asyncio.timeout(BUDGET_S):
                while len(found) < count:
                    batches = await consumer.getmany(timeout_ms=200)
                    found += [_received(record) for records in batches.values() for record in records]
        finally:
            await consumer.stop()
        return found


class Java:
    """Kafka's own Java client."""

    def __init__(self, peer: JavaPeer, security: Mapping[str, Any] | None = None) -> None:
        self._peer = peer
        self._security = for_java(security or {})

    def produce(self, servers: str, topic: str, samples: Sequence[Sample], codec: str) -> Places:
        config = {"compression.type": codec, "max.request.size": str(MAX_REQUEST_SIZE), "linger.ms": "5"}
        return self._peer.produce(servers, topic, samples, config | self._security)

    def consume(self, servers: str, topic: str, partitions: int, count: int) -> list[Received]:
        return self._peer.consume(servers, topic, count, self._security)


def clients(peer: JavaPeer, security: Mapping[str, Any] | None = None) -> dict[str, Client]:
    """Return every client by its name, with these settings."""
    return {
        "kafkacore": KafkaPythonLike(kafkacore, for_kafkacore(security or {})),
        "java": Java(peer, security),
        "confluent-kafka": Confluent(security),
        "kafka-python": KafkaPythonLike(kafka, security),
        "aiokafka": AioKafka(security),
    }


CLIENT_NAMES = ("kafkacore", "java", "confluent-kafka", "kafka-python", "aiokafka")
