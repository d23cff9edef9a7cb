"""Our producer on a cluster of two brokers, of which one fails or loses the leadership.

The failure is noticed in time and does not affect the other broker, and acknowledged records survive.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

import pytest
from eventually import BUDGET_S, eventually
from model.dose import dose, new_seed, note
from model.history import LogRecord
from model.killed_producer import PARTITIONS, KilledProducer
from model.paused_process import paused
from model.shifted_clock import HOUR_MS, PATIENT, ShiftedClock, requests_in_flight
from model.topic_reader import await_markers
from peers.apache_kafka import RESTARTS_SOON, ApacheKafka
from peers.java_peer import JavaPeer

from kafkacore import KafkaProducer
from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import InvalidReplicationAssignmentError, KafkaError
from kafkacore.producer._future import FutureRecordMetadata
from kafkacore.testing import Ending, FaultProxy

PRODUCE = 0
#: The coordinator moves as well. A broker that restarts as the coordinator may omit a marker, see
#: copied_topic.
COORDINATOR_MOVES = {"transaction.state.log.replication.factor": "2"}
#: A restarted broker becomes the leader of its partitions again at once.
LEADERS_RETURN = {
    "leader.imbalance.check.interval.seconds": "1",
    "leader.imbalance.per.broker.percentage": "0",
}


@dataclass
class Cluster:
    """Two brokers, the first of which is also the controller, each behind a proxy of its own."""

    nodes: list[ApacheKafka]
    proxies: list[FaultProxy]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(proxy.bootstrap_servers for proxy in self.proxies)

    def create_topic(self, name: str, assignments: dict[int, list[int]]) -> None:
        """Create a topic once a replica of each partition is on a broker that is not fenced.

        With its short session, a broker is fenced when the machine stops for a second.
        """
        topic = NewTopic(name, replica_assignments=assignments)
        with KafkaAdminClient(bootstrap_servers=self.bootstrap_servers) as admin:

            def is_created() -> bool:
                with suppress(InvalidReplicationAssignmentError):
                    admin.create_topics([topic])
                    return True
                return False

            eventually(is_created, f"{name} is not created")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with ExitStack() as held:
        nodes: list[ApacheKafka] = []
        proxies: list[FaultProxy] = []
        for number in (1, 2):
            proxy = held.enter_context(FaultProxy())
            folder = tmp_path_factory.mktemp("apache-kafka") / "data"
            advertised = {"advertised.listeners": f"PLAINTEXT://{proxy.bootstrap_servers}"}
            properties = RESTARTS_SOON | LEADERS_RETURN | COORDINATOR_MOVES | advertised
            node = ApacheKafka(folder, properties, joins=nodes[0] if number == 2 else None)
            nodes.append(held.enter_context(node))
            proxy.target = node.bootstrap_servers
            proxies.append(proxy)
        yield Cluster(nodes, proxies)


@pytest.mark.behaviour(
    "Reliability",
    "a half-open connection is detected in time, while requests to other brokers continue",
)
def test_half_open_connection_is_noticed_in_time_and_the_other_broker_is_served(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request times out after an hour, which passes once the other broker has been served."""
    clock = ShiftedClock()
    monkeypatch.setattr("kafkacore.producer.kafka_producer.SYSTEM_CLOCK", clock)
    cluster.create_topic("half-open", {0: [1], 1: [2]})
    with KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers,
        request_timeout_ms=int(HOUR_MS),
        delivery_timeout_ms=int(3 * HOUR_MS),
        reconnect_backoff_max_ms=100,
        retry_backoff_max_ms=100,
        **PATIENT,
    ) as producer:
        for partition in (0, 1, 0, 1):
            producer.send("half-open", b"before", partition=partition).get(BUDGET_S)
        # The proxy drops everything from within the next request on, and keeps the connection open.
        cluster.proxies[1].cut_request(PRODUCE, 20, ending=Ending.SILENCE)
        swallowed = producer.send("half-open", b"swallowed", partition=1)
        eventually(lambda: requests_in_flight(producer) == 1)
        for _ in range(20):
            producer.send("half-open", b"beside", partition=0).get(BUDGET_S)
        clock.let_pass(producer, hours=0.9)
        producer.send("half-open", b"beside", partition=0).get(BUDGET_S)
        assert not swallowed.is_done
        clock.let_pass(producer, hours=0.2)
        swallowed.get(BUDGET_S)


@dataclass
class FailingLeader:
    """The second broker is paused, killed or both; the first one takes over its partitions."""

    cluster: Cluster
    chance: random.Random
    done: list[str] = field(default_factory=list)
    _killed: bool = False

    @property
    def bootstrap_servers(self) -> str:
        return self.cluster.bootstrap_servers

    def kill(self) -> None:
        node = self.cluster.nodes[1]
        what = self.chance.choice(["killed", "paused", "paused and killed"])
        self.done.append(what)
        if what != "killed":
            # About the time after which the controller fences it: sometimes it remains the leader, sometimes
            # not.
            with paused(node.pid):
                SYSTEM_CLOCK.sleep_ms(self.chance.uniform(300, 3_000))
        self._killed = what != "paused"
        if self._killed:
            node.kill()

    def start(self) -> None:
        if self._killed:
            # Give the first broker time to take over.
            SYSTEM_CLOCK.sleep_ms(self.chance.uniform(0, 1_500))
            self.cluster.nodes[1].start()


@pytest.mark.behaviour(
    "Reliability",
    "no record is lost while leaders are killed or paused and leadership moves to another broker and back",
)
@pytest.mark.timeout(dose(150, 1_200))
def test_leaders_that_move_lose_double_and_reorder_nothing(cluster: Cluster, java_peer: JavaPeer) -> None:
    seed = new_seed()
    chance = random.Random(seed)
    cluster.create_topic("moved", {partition: [2, 1] for partition in range(PARTITIONS)})
    leader = FailingLeader(cluster, chance)
    run = KilledProducer(leader, "moved", {"request_timeout_ms": 2_000})
    run.run(chance, dose(8, 60), dose(8.0, 900.0))
    ends = run.history.ends()
    received = java_peer.consume(cluster.nodes[0].bootstrap_servers, "moved", None, at_least=ends)
    log = [LogRecord(each.partition, each.offset, each.value or b"") for each in received]
    note(
        "leader killed, paused or both, of two brokers",
        seed,
        faults=len(leader.done),
        acknowledged=run.acknowledged,
        in_the_log=len(log),
        failed=len(run.failures),
        slowest_ms=f"{max(run.recoveries_ms):.0f}",
    )
    run.check_each_was_answered_once()
    assert run.failures == []
    assert "\n".join(map(str, run.history.check(log))) == ""
    assert len(leader.done) >= 2


@dataclass
class Transactions:
    """A transactional producer, and the outcome of each of its transactions: committed or aborted."""

    producer: KafkaProducer
    chance: random.Random
    #: Outcome of each transaction, and its sends: value → future.
    ended: list[tuple[str, dict[bytes, FutureRecordMetadata]]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    _number: int = 0

    def make(self, topic: str) -> None:
        """Make one transaction, with a random outcome. A transaction that cannot be committed is aborted."""
        sends: dict[bytes, FutureRecordMetadata] = {}
        self.producer.begin_transaction()
        try:
            for _ in range(self.chance.choice([1, 5, 40])):
                self._number += 1
                value = b"%d" % self._number
                partition = self.chance.randrange(PARTITIONS)
                sends[value] = self.producer.send(topic, value, partition=partition)
            if self.chance.random() < 0.7:
                self.producer.commit_transaction()
                self.ended.append(("committed", sends))
                return
        except KafkaError as error:
            self.failures.append(repr(error))
        self.producer.abort_transaction()
        self.ended.append(("aborted", sends))

    def values(self, end: str) -> list[bytes]:
        """Return the values of all transactions with this outcome."""
        return [value for how, sends in self.ended if how == end for value in sends]

    def ends(self) -> dict[int, int]:
        """Return the lowest possible end offset of each partition: after its last acknowledged record."""
        ends: dict[int, int] = {}
        for _, sends in self.ended:
            for metadata in (future.value for future in sends.values()):
                if metadata is not None:
                    ends[metadata.partition] = max(ends.get(metadata.partition, 0), metadata.offset + 1)
        return ends

    def findings(self, received: list[bytes]) -> list[str]:
        """Return the differences from the reported outcomes, by transaction, with their offsets."""
        count = Counter(received)
        found = []
        for at, (end, sends) in enumerate(self.ended):
            wrong = {value: count[value] for value in sends if count[value] != (end == "committed")}
            if wrong:
                places = [f"{v.decode()} at {_place(sends[v])} {n} times" for v, n in wrong.items()]
                found.append(f"{end} transaction {at} of {len(sends)} records: " + ", ".join(places))
        foreign = set(received).difference(*(sends for _, sends in self.ended))
        return found + [f"{value!r} was never sent" for value in foreign]


def _place(future: FutureRecordMetadata) -> str:
    metadata = future.value
    return f"{future.topic_partition.partition}:{metadata.offset}" if metadata else repr(future.exception)


@pytest.mark.behaviour(
    "Reliability", "transactions stay atomic while partition leaders and coordinators change"
)
@pytest.mark.timeout(dose(150, 1_200))
def test_transactions_are_whole_while_leaders_and_coordinators_move(
    cluster: Cluster, java_peer: JavaPeer
) -> None:
    seed = new_seed()
    chance = random.Random(seed)
    cluster.create_topic("whole", {partition: [2, 1] for partition in range(PARTITIONS)})
    leader = FailingLeader(cluster, chance)
    crashes: list[BaseException] = []
    over = threading.Event()

    def fail_often() -> None:
        deadline_ms = SYSTEM_CLOCK.monotonic_ms() + dose(6_000, 400_000)
        try:
            # On a busy machine, all this time may pass before a broker has started.
            while SYSTEM_CLOCK.monotonic_ms() < deadline_ms or len(leader.done) < 2:
                SYSTEM_CLOCK.sleep_ms(chance.uniform(50, 1_500))
                leader.kill()
                leader.start()
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
            crashes.append(error)
        over.set()

    with KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers,
        transactional_id="whole",
        linger_ms=2,
        request_timeout_ms=2_000,
        retry_backoff_max_ms=200,
        reconnect_backoff_max_ms=100,
        max_block_ms=60_000,
    ) as producer:
        producer.init_transactions()
        run = Transactions(producer, random.Random(seed + 1))
        thread = threading.Thread(target=fail_often)
        thread.start()
        try:
            while not over.is_set():
                run.make("whole")
        finally:
            thread.join()
        run.make("whole")
        # A slow machine may have made few transactions by then.
        while not (run.values("committed") and run.values("aborted")):
            run.make("whole")
    servers = cluster.nodes[0].bootstrap_servers
    await_markers(servers, "whole", PARTITIONS)
    committed = {"isolation.level": "read_committed"}
    received = java_peer.consume(servers, "whole", None, committed, at_least=run.ends())
    note(
        "transactions while a leader of two brokers was killed, paused or both",
        seed,
        faults=len(leader.done),
        committed=len(run.values("committed")),
        aborted=len(run.values("aborted")),
        seen=len(received),
        failures=len(run.failures),
    )
    assert crashes == []
    assert "\n".join(run.findings([each.value or b"" for each in received])) == "", run.failures
    assert len(leader.done) >= 2
