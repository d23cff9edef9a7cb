"""FastStream's Kafka broker, with AIOKafkaConsumer in place of aiokafka's consumer."""

import asyncio

import aiokafka
import pytest
from eventually import BUDGET_S

from kafkacore.aio import AIOKafkaConsumer

kafka = pytest.importorskip("faststream.kafka")


def test_subscribers_of_faststream_receive_messages(our_broker, topic, monkeypatch):
    monkeypatch.setattr(aiokafka, "AIOKafkaConsumer", AIOKafkaConsumer)

    async def main():
        broker = kafka.KafkaBroker(our_broker.bootstrap_servers)
        single, batches, of_partition = [], [], []

        @broker.subscriber(topic, group_id=f"{topic}-single", auto_offset_reset="earliest")
        async def receive(message: str):
            single.append(message)

        @broker.subscriber(topic, group_id=f"{topic}-batches", auto_offset_reset="earliest", batch=True)
        async def receive_batch(messages: list[str]):
            batches.extend(messages)

        @broker.subscriber(partitions=[kafka.TopicPartition(topic, 0)], auto_offset_reset="earliest")
        async def receive_of_partition(message: str):
            of_partition.append(message)

        await broker.start()
        sent = [f"message {number}" for number in range(5)]
        for message in sent:
            await broker.publish(message, topic)
        async with asyncio.timeout(BUDGET_S):
            while not len(single) == len(batches) == len(of_partition) == 5:
                await asyncio.sleep(0.01)
        await broker.stop()
        assert single == batches == of_partition == sent

    asyncio.run(main())
