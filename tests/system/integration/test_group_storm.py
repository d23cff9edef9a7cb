"""A group becomes stable soon after twenty members join at once, and after half of them leave at once."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from eventually import eventually

from kafkacore import KafkaConsumer
from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.testing.embedded_broker import EmbeddedBroker

MEMBERS, PARTITIONS = 20, 64
SESSION_TIMEOUT_MS = 30_000
#: A member learns of a rebalance by a heartbeat. With the default of 3 s, the test would mostly wait for it.
HEARTBEAT_INTERVAL_MS = 300


class Polled:
    """A member that is polled by a thread of its own."""

    def __init__(self, servers: str, group_id: str, strategy: str) -> None:
        self.consumer = KafkaConsumer(
            "storm",
            bootstrap_servers=servers,
            group_id=group_id,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
            partition_assignment_strategy=strategy,
            enable_auto_commit=False,
        )
        self.owned: frozenset[int] = frozenset()
        self.generation_id = -1
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()

    def _poll(self) -> None:
        while not self._stopped.is_set():
            self.consumer.poll(50)
            self.owned = frozenset(partition for _, partition in self.consumer.assignment())
            self.generation_id = self.consumer.group_metadata().generation_id
        self.consumer.close()

    def leave(self) -> None:
        self._stopped.set()

    def ended(self) -> None:
        self._stopped.set()
        self._thread.join()


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedBroker() as broker:
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("storm", num_partitions=PARTITIONS, replication_factor=1)])
        yield broker.bootstrap_servers


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_storm_of_joins_and_leaves_is_stable_within_two_sessions(servers: str, strategy: str) -> None:
    with ExitStack() as stack:

        def join() -> Polled:
            member = Polled(servers, f"storm {strategy}", strategy)
            stack.callback(member.ended)
            return member

        members = [join() for _ in range(MEMBERS)]

        def is_stable() -> bool:
            owned = [member.owned for member in members]
            return (
                sorted(itertools.chain(*owned)) == list(range(PARTITIONS))
                and len({member.generation_id for member in members}) == 1
                and max(map(len, owned)) - min(map(len, owned)) <= 1
            )

        def said() -> object:
            return [(member.generation_id, sorted(member.owned)) for member in members]

        eventually(is_stable, said)
        for member in members[::2]:
            member.leave()
        members = members[1::2]
        eventually(is_stable, said)
