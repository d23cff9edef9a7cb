"""Calls of AIOKafkaConsumer that are cancelled at random points lose, double and skip no record."""

import asyncio
import random

import pyarrow as pa
import pytest

from kafkacore import TopicPartition
from kafkacore.admin import KafkaAdminClient, NewTopic

PARTITIONS = 2
#: Number of records of each partition.
COUNT = 400


class Reader:
    """Reads all records of a topic by calls that it cancels at random points."""

    def __init__(self, consumer, topic, seed):
        self.consumer = consumer
        self.random = random.Random(seed)
        self.partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        #: Partition → offsets, in the order in which the records were returned.
        self.offsets = {partition: [] for partition in self.partitions}
        self.cancelled = 0

    async def read(self):
        calls = [
            self.getone,
            self.getone_of,
            self.iterate,
            self.getmany,
            self.arrow,
            self.commit,
            self.position,
        ]
        while sum(map(len, self.offsets.values())) < PARTITIONS * COUNT:
            await self.interrupt(self.random.choice(calls))

    async def interrupt(self, call):
        task = asyncio.create_task(call())
        steps = self.random.choice([0, 1, 2, 3, 5, 8, 13, 21])
        for _ in range(steps):
            await asyncio.sleep(0)
        if self.random.random() < 0.3:
            await asyncio.sleep(self.random.random() / 50)
        task.cancel()
        try:
            records = await task
        except asyncio.CancelledError:
            self.cancelled += 1
            return
        for partition, offsets in records.items():
            self.offsets[partition] += offsets

    async def getone(self):
        return taken([await self.consumer.getone()])

    async def getone_of(self):
        return taken([await self.consumer.getone(self.random.choice(self.partitions))])

    async def iterate(self):
        records = aiter(self.consumer)
        return taken([await anext(records)])

    async def getmany(self):
        found = await self.consumer.getmany(timeout_ms=20, max_records=self.random.randint(1, 20))
        return taken(record for records in found.values() for record in records)

    async def arrow(self):
        found = await self.consumer.poll_arrow(timeout_ms=20, max_records=20, columns=["offset"])
        return {tp: pa.table(columns).column("offset").to_pylist() for tp, columns in found.items()}

    async def commit(self):
        await self.consumer.commit()
        return {}

    async def position(self):
        for partition in self.partitions:
            assert await self.consumer.position(partition) == len(self.offsets[partition])
        return {}


def taken(records):
    offsets = {}
    for record in records:
        offsets.setdefault(TopicPartition(record.topic, record.partition), []).append(record.offset)
    return offsets


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_cancelled_calls_lose_double_and_skip_no_record(
    run, our_broker, topic, produce, new_consumer, seed, protocol
):
    with KafkaAdminClient(bootstrap_servers=our_broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic, PARTITIONS, 1)])

    async def write():
        for first in range(0, COUNT, 50):
            for partition in range(PARTITIONS):
                await asyncio.to_thread(produce, topic, range(first, first + 50), partition)

    async def main():
        settings = {"group_id": topic, "group_protocol": protocol, "auto_commit_interval_ms": 20}
        async with new_consumer(topic, **settings) as consumer:
            reader = Reader(consumer, topic, seed)
            writing = asyncio.create_task(write())
            await reader.read()
            await writing
            assert list(reader.offsets.values()) == [list(range(COUNT))] * PARTITIONS
            assert reader.cancelled > 20
            await consumer.commit()
            for partition in reader.partitions:
                assert await consumer.committed(partition) == COUNT

    run(main())
