"""A group of asynchronous consumers loses no record while members, tasks and connections fail."""

import asyncio
import random

import pytest
from eventually import BUDGET_S

from kafkacore import KafkaProducer, TopicPartition
from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.aio import AIOKafkaConsumer
from kafkacore.errors import KafkaError
from kafkacore.testing import EmbeddedBroker, FaultProxy

PARTITIONS = 4
COUNT = 200
#: Settings with which the group soon replaces a member whose request to leave was lost.
BROKER = {
    "group_initial_rebalance_delay_ms": 0,
    "group_min_session_timeout_ms": 500,
    "group_consumer_min_session_timeout_ms": 500,
    "group_consumer_session_timeout_ms": 1500,
    "group_consumer_min_heartbeat_interval_ms": 50,
    "group_consumer_heartbeat_interval_ms": 100,
}
#: Settings of the members, one of which is chosen for each run.
PROTOCOLS = {
    "eager": {
        "partition_assignment_strategy": "range",
        "session_timeout_ms": 1500,
        "heartbeat_interval_ms": 100,
    },
    "cooperative": {
        "partition_assignment_strategy": "cooperative-sticky",
        "session_timeout_ms": 1500,
        "heartbeat_interval_ms": 100,
    },
    "consumer": {"group_protocol": "consumer"},
}


class Members:
    """Members of a group that process each record before they commit it."""

    def __init__(self, servers, topic, settings, seed):
        self.topic = topic
        self.random = random.Random(seed)
        self.seen = {TopicPartition(topic, number): set() for number in range(PARTITIONS)}
        #: Partition → number of records that were processed again.
        self.repeated = 0
        self.errors = []
        self._settings = {
            "bootstrap_servers": servers,
            "group_id": topic,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "reconnect_backoff_ms": 5,
            "retry_backoff_ms": 10,
            "fetch_max_wait_ms": 50,
            "max_partition_fetch_bytes": 1000,
            **settings,
        }

    @property
    def is_done(self):
        return all(len(offsets) == COUNT for offsets in self.seen.values())

    async def run_member(self):
        """Run members one after another, until all records are processed."""
        while not self.is_done:
            consumer = AIOKafkaConsumer(**self._settings)
            consumer.subscribe([self.topic], listener=self)
            async with consumer:
                for _ in range(self.random.randint(5, 60)):
                    if self.is_done:
                        break
                    await self.step(consumer)

    async def on_partitions_revoked(self, revoked):
        await asyncio.sleep(self.random.random() / 100)

    async def on_partitions_assigned(self, assigned):
        await asyncio.sleep(self.random.random() / 100)

    async def step(self, consumer):
        try:
            async with asyncio.timeout(self.random.choice([0.001, 0.01, 0.1, 1.0])):
                found = await consumer.getmany(timeout_ms=200, max_records=self.random.randint(1, 30))
            for partition, records in found.items():
                self.process(partition, [record.offset for record in records])
            if self.random.random() < 0.5:
                async with asyncio.timeout(self.random.choice([0.001, 0.01, 1.0])):
                    await consumer.commit()
        except TimeoutError:
            return
        except KafkaError as error:
            self.errors.append(error)

    def process(self, partition, offsets):
        assert offsets == list(range(offsets[0], offsets[0] + len(offsets))), "skipped within a batch"
        seen = self.seen[partition]
        # This member or an earlier owner has processed all records before the first one.
        assert seen.issuperset(range(offsets[0])), f"{partition} skipped records before {offsets[0]}"
        self.repeated += len(seen.intersection(offsets))
        seen.update(offsets)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_group_loses_and_skips_no_record_under_faults(run, topic, protocol, seed):
    async def main(proxy):
        members = Members(proxy.bootstrap_servers, topic, PROTOCOLS[protocol], seed)
        tasks = [asyncio.create_task(members.run_member()) for _ in range(3)]
        async with asyncio.timeout(BUDGET_S):
            while not members.is_done and not any(task.done() for task in tasks):
                await asyncio.sleep(members.random.random())
                proxy.reset_connections()
            await asyncio.gather(*tasks)
        assert members.is_done

    with (
        FaultProxy() as proxy,
        EmbeddedBroker(advertised_port=proxy.port, **BROKER) as broker,
    ):
        proxy.target = broker.bootstrap_servers
        with KafkaAdminClient(bootstrap_servers=proxy.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
        with KafkaProducer(bootstrap_servers=proxy.bootstrap_servers) as producer:
            for value in range(COUNT):
                for partition in range(PARTITIONS):
                    producer.send(topic, b"%d" % value, partition=partition)
        run(main(proxy))
