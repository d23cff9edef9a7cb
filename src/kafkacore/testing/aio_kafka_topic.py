"""A topic for one asynchronous test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kafkacore.aio import AIOKafkaConsumer
from kafkacore.consumer import ConsumerRecord
from kafkacore.testing.kafka_topic import KafkaTopic, before, too_few


class AIOKafkaTopic:
    """A topic that belongs to one asynchronous test: the fixture ``aio_kafka_topic``.

    Its calls leave the event loop free for the program under test.

    Parameters
    ----------
    topic:
        The same topic for synchronous tests.
    """

    def __init__(self, topic: KafkaTopic) -> None:
        self._topic = topic

    def __repr__(self) -> str:
        return f"<AIOKafkaTopic {self.name!r} on {self.bootstrap_servers}>"

    @property
    def name(self) -> str:
        """Name of the topic."""
        return self._topic.name

    @property
    def bootstrap_servers(self) -> str:
        """Addresses of the brokers, for the program under test."""
        return self._topic.bootstrap_servers

    def client_settings(self) -> dict[str, Any]:
        """Return the settings that a client needs: ``AIOKafkaProducer(**topic.client_settings())``."""
        return self._topic.client_settings()

    async def records(self, **settings: Any) -> list[ConsumerRecord]:
        """Return all records that the topic has now. See :meth:`KafkaTopic.records`."""
        found: list[ConsumerRecord] = []
        async with self._reader(settings) as consumer:
            ends = await consumer.end_offsets(consumer.assignment())
            for partition, end in ends.items():
                while await consumer.position(partition) < end:
                    found += (await consumer.getmany(partition, timeout_ms=1000)).get(partition, [])
        return before(ends, found)

    async def wait_for(self, count: int, timeout: float = 30.0, **settings: Any) -> list[ConsumerRecord]:
        """Wait until the topic has ``count`` records. See :meth:`KafkaTopic.wait_for`."""
        found: list[ConsumerRecord] = []
        try:
            async with asyncio.timeout(timeout), self._reader(settings) as consumer:
                while len(found) < count:
                    for records in (await consumer.getmany(timeout_ms=60_000)).values():
                        found += records
        except TimeoutError:
            raise too_few(self.name, found, count, timeout) from None
        return found

    @asynccontextmanager
    async def _reader(self, settings: dict[str, Any]) -> AsyncIterator[AIOKafkaConsumer]:
        given = {**self.client_settings(), "auto_offset_reset": "earliest", **settings}
        # Without a group, the consumer reads all partitions.
        async with AIOKafkaConsumer(self.name, **given) as consumer:
            yield consumer
