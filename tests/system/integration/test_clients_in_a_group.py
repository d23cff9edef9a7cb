"""Clients in a group on our broker: aiokafka, confluent, kafka-python, Java's and ours.

Each client is alone in a group, leaves and rejoins. Then a group has one member of each: they join one after
the other, share the partitions, read all records once, commit and leave.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from pathlib import Path

import aiokafka
import pytest
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from eventually import eventually
from model.group_history import GroupHistory
from peers.java_peer import JavaPeer, Sample
from peers.mixed_group import MixedGroup

from kafkacore.testing.embedded_broker import EmbeddedBroker

PARTITIONS = 10
TOPIC = "each-client"
#: Long enough that no session expires while a slow machine makes a member wait for its turn.
SESSION_TIMEOUT_MS = 30_000
EACH = ("kafkacore", "java", "confluent", "kafka-python")


class AioMember:
    """aiokafka's consumer in a thread of its own."""

    def __init__(self, servers: str, group_id: str) -> None:
        self.owned: set[int] = set()
        self.read: list[tuple[int, int]] = []
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run(servers, group_id)))
        self._thread.start()

    async def _run(self, servers: str, group_id: str) -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            TOPIC,
            bootstrap_servers=servers,
            group_id=group_id,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=200,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            partition_assignment_strategy=[RangePartitionAssignor],
        )
        await consumer.start()
        try:
            while not self._leaving.is_set():
                found = await consumer.getmany(timeout_ms=100)
                self.read += [(one.partition, one.offset) for records in found.values() for one in records]
                if found:
                    await consumer.commit()
                self.owned = {tp.partition for tp in consumer.assignment()}
        finally:
            await consumer.stop()

    def leave(self) -> None:
        self._leaving.set()
        self._thread.join()


def test_a_member_of_each_client_shares_one_group(
    our_groups: EmbeddedBroker, java_peer: JavaPeer, tmp_path: Path
) -> None:
    servers = our_groups.bootstrap_servers
    java_peer.create_topic(servers, TOPIC, PARTITIONS)
    with MixedGroup(servers, TOPIC, PARTITIONS, "range", tmp_path) as group:
        group.options["session_timeout_ms"] = SESSION_TIMEOUT_MS
        aio = AioMember(servers, f"group of {TOPIC}")
        try:
            for client in EACH:
                group.join(client)

            def owners() -> list[set[int]]:
                return [aio.owned, *(member.owned() for member in group.members)]

            eventually(
                lambda: Counter(map(len, owners())) == {2: 5} and len(set().union(*owners())) == 10, owners
            )
            samples = [Sample(b"%d" % n, partition=n % PARTITIONS) for n in range(20 * PARTITIONS)]
            java_peer.produce(servers, TOPIC, samples)
            eventually(
                lambda: len(aio.read) == 40 and list(group.committed().values()) == [20] * 8, lambda: aio.read
            )
        finally:
            aio.leave()
        eventually(lambda: sum(len(member.owned()) for member in group.members) == PARTITIONS, lambda: None)
        assert sorted(aio.read) == [(number, offset) for number in sorted(aio.owned) for offset in range(20)]


@pytest.mark.parametrize("client", ["java", "confluent", "kafka-python", "aiokafka"])
def test_client_comes_back_where_it_left_its_group(
    our_groups: EmbeddedBroker, java_peer: JavaPeer, tmp_path: Path, client: str
) -> None:
    servers, topic = our_groups.bootstrap_servers, f"back-{client}"
    java_peer.create_topic(servers, topic, 3)
    with MixedGroup(servers, topic, 3, "range", tmp_path) as group:
        group.options["session_timeout_ms"] = SESSION_TIMEOUT_MS
        for life in (1, 2):
            java_peer.produce(servers, topic, [Sample(b"%d" % n, partition=n % 3) for n in range(150)])
            group.ends = dict.fromkeys(range(3), 50 * life)
            member = group.join(client)
            group.settle()
            group.past.append(group.members.pop())
            read = [event.what for event in member.events if event.kind == "records"]
            for partition in range(3):
                spans = [(one["first"], one["last"] + 1) for one in read if one["partition"] == partition]
                assert (spans[0][0], spans[-1][1]) == (50 * (life - 1), 50 * life)
            committed = java_peer.group_offsets(servers, f"group of {topic}", topic)
            assert {number: offset for number, (offset, _, _) in committed.items()} == group.ends
        history = GroupHistory()
        assert history.check(group.events(), group.ends) == []
        assert (history.repeated, history.counts["closed"]) == (0, 2)
