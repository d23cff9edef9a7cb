"""With acks=1, other clients read a record as soon as it is acknowledged, as on Apache Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import aiokafka
import confluent_kafka
import kafka
import pytest
from eventually import BUDGET_S

from kafkacore.testing.embedded_broker import EmbeddedBroker

ROUNDS = 30


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedBroker(flush="ack") as broker:
        yield broker.bootstrap_servers


def test_kafka_python_sees_each_record_at_once(servers: str) -> None:
    partition = kafka.TopicPartition("of-kafka-python", 0)
    producer = kafka.KafkaProducer(bootstrap_servers=servers, acks=1, enable_idempotence=False)
    consumer = kafka.KafkaConsumer(bootstrap_servers=servers)
    try:
        consumer.assign([partition])
        for offset in range(ROUNDS):
            assert producer.send(partition.topic, b"v", partition=0).get(BUDGET_S).offset == offset
            assert consumer.end_offsets([partition]) == {partition: offset + 1}
            consumer.seek_to_end(partition)
            assert consumer.position(partition) == offset + 1
    finally:
        consumer.close()
        producer.close()


def test_aiokafka_sees_each_record_at_once(servers: str) -> None:
    partition = aiokafka.TopicPartition("of-aiokafka", 0)

    async def run() -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=servers, acks=1)
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=servers)
        await producer.start()
        await consumer.start()
        try:
            consumer.assign([partition])
            for offset in range(ROUNDS):
                sent = await producer.send_and_wait(partition.topic, b"v", partition=0)
                assert sent.offset == offset
                assert await consumer.end_offsets([partition]) == {partition: offset + 1}
                await consumer.seek_to_end(partition)
                assert await consumer.position(partition) == offset + 1
        finally:
            await consumer.stop()
            await producer.stop()

    asyncio.run(run())


def test_librdkafka_sees_each_record_at_once(servers: str) -> None:
    offsets: list[int] = []
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "acks": "1"})
    consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": "of-librdkafka"})
    try:
        for offset in range(ROUNDS):
            producer.produce(
                "of-librdkafka", b"v", partition=0, on_delivery=lambda _, sent: offsets.append(sent.offset())
            )
            assert producer.flush(BUDGET_S) == 0
            assert offsets == list(range(offset + 1))
            partition = confluent_kafka.TopicPartition("of-librdkafka", 0)
            assert consumer.get_watermark_offsets(partition, BUDGET_S, cached=False) == (0, offset + 1)
    finally:
        consumer.close()
