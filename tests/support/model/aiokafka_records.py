"""Assertions about the records that a program gets that imports aiokafka and runs on kafkacore.

python -m model.aiokafka_records SERVERS TOPIC
"""

from __future__ import annotations

import asyncio
import sys

# isort: off
import kafkacore.aio.as_aiokafka  # noqa: F401 - before aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
# isort: on


async def main(servers: str, topic: str) -> None:
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        for number in range(3):
            await producer.send_and_wait(topic, b"%d" % number, headers=[("h", b"x")])
    async with AIOKafkaConsumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        first = await consumer.getone()
        second = await anext(consumer)
        (third,) = (await consumer.getmany(timeout_ms=30_000))[TopicPartition(topic, 0)]
    for number, record in enumerate((first, second, third)):
        assert isinstance(record, ConsumerRecord)
        assert (record.topic, record.offset, record.value) == (topic, number, b"%d" % number)
        assert (record.key, record.headers, record.serialized_value_size) == (None, (("h", b"x"),), 1)
        record.mine = number
    fields = {name: getattr(first, name) for name in vars(first) if name != "mine"}
    assert ConsumerRecord(**fields) == first != second


asyncio.run(main(*sys.argv[1:]))
