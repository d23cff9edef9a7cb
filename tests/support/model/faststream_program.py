"""A FastStream application on kafkacore, and what its subscribers received, as JSON.

python -m model.faststream_program SERVERS TOPIC
"""

from __future__ import annotations

import asyncio
import json
import sys

# isort: off
import kafkacore.aio.as_aiokafka  # noqa: F401 - before FastStream
from faststream import AckPolicy
from faststream.kafka import KafkaBroker, TopicPartition
# isort: on

SENT = [f"message {number}" for number in range(5)]


async def main(servers: str, topic: str) -> dict[str, list[str]]:
    broker = KafkaBroker(servers)
    received: dict[str, list[str]] = {"single": [], "batches": [], "partition": [], "workers": []}
    changed = asyncio.Event()

    def receive(kind: str, messages: list[str]) -> None:
        received[kind] += messages
        changed.set()

    @broker.subscriber(topic, group_id=f"{topic}-single", auto_offset_reset="earliest")
    async def single(message: str) -> None:
        receive("single", [message])

    @broker.subscriber(topic, group_id=f"{topic}-batches", auto_offset_reset="earliest", batch=True)
    async def batches(messages: list[str]) -> None:
        receive("batches", messages)

    @broker.subscriber(partitions=[TopicPartition(topic, 0)], auto_offset_reset="earliest")
    async def partition(message: str) -> None:
        receive("partition", [message])

    # Each worker has a consumer of its own, and commits after the message.
    @broker.subscriber(
        topic,
        group_id=f"{topic}-workers",
        auto_offset_reset="earliest",
        max_workers=2,
        ack_policy=AckPolicy.ACK,
    )
    async def workers(message: str) -> None:
        receive("workers", [message])

    await broker.start()
    await broker.publish_batch(*SENT[:3], topic=topic, partition=0)
    for message in SENT[3:]:
        await broker.publish(message, topic, partition=0)
    while any(len(messages) < len(SENT) for messages in received.values()):
        await changed.wait()
        changed.clear()
    await broker.stop()
    return received


sys.stdout.write(json.dumps(asyncio.run(main(*sys.argv[1:]))) + "\n")
