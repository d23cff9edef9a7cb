"""Our consumers on a cluster of two brokers whose coordinator is killed, paused and stopped.

Meanwhile a producer writes, and members may compute while they hold the GIL. The second broker is the
coordinator whenever it runs, and the faults happen to it. The offsets topic is replicated, so that the first
broker takes over until the second one is back. No partition may change its owner. ``model.group_history``
checks what the members report.
"""

from __future__ import annotations

import bisect
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from eventually import BUDGET_MS, LONG_SESSION_MS, eventually
from model.dose import dose, new_seed, note
from model.group_history import Event, GroupHistory
from model.new_topics import create_topics
from model.paused_process import paused
from peers.apache_kafka import RESTARTS_SOON, ApacheKafka
from peers.mixed_group import Member, MixedGroup

from kafkacore import KafkaConsumer
from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.consumer.group.lookup import MAX_NODE_ID

PARTITIONS = 6
FAULTS = dose(1, 30)
OFFSETS = "__consumer_offsets"
REQUEST_TIMEOUT_MS = 1_500
#: Longer than the test: a member that loses its partitions has failed to send heartbeats.
SESSION_TIMEOUT_MS = int(2 * BUDGET_MS)
#: Session timeout of a group whose members are killed: longer than any of the outages.
MORTAL_SESSION_MS = 25_000
HEARTBEAT_INTERVAL_MS = 500
#: In random order, each before any is repeated. Short runs omit "paused", which another test covers.
WAYS = ["killed", "stopped", *dose([], ["paused"])]
PROPERTIES = RESTARTS_SOON | {
    "leader.imbalance.check.interval.seconds": "1",
    "leader.imbalance.per.broker.percentage": "0",
    "offsets.topic.replication.factor": "2",
    # A replica may learn of a new leader before the leader itself does. It then retries after this time.
    "replica.fetch.backoff.ms": "100",
}


@dataclass
class Cluster:
    """Two brokers: the first is also the controller, the second is the coordinator."""

    nodes: list[ApacheKafka]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(node.bootstrap_servers for node in self.nodes)

    def create_topic(self, topic: str) -> None:
        """Create a topic of which each broker leads one half of the partitions."""
        self._create(
            NewTopic(topic, replica_assignments={n: [2 - n % 2, 1 + n % 2] for n in range(PARTITIONS)})
        )

    def create_offsets(self) -> None:
        compacted = {"cleanup.policy": "compact"}
        self._create(NewTopic(OFFSETS, replica_assignments={0: [2, 1]}, topic_configs=compacted))

    def _create(self, topic: NewTopic) -> None:
        create_topics(self.bootstrap_servers, topic)

    def await_return(self) -> None:
        """Wait until the second broker is the coordinator again."""
        with KafkaAdminClient(bootstrap_servers=self.nodes[0].bootstrap_servers) as admin:
            eventually(lambda: admin.describe_topics([OFFSETS])[0]["partitions"][0]["leader_id"] == 2)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with ExitStack() as held:
        folder = tmp_path_factory.mktemp("apache-kafka")
        nodes: list[ApacheKafka] = []
        for number in (1, 2):
            joins = nodes[0] if number == 2 else None
            nodes.append(held.enter_context(ApacheKafka(folder / str(number), PROPERTIES, joins=joins)))
        made = Cluster(nodes)
        made.create_offsets()
        yield made


@dataclass
class Outages:
    """The outages of the coordinator, and how long the members needed to commit again."""

    cluster: Cluster
    group: MixedGroup
    chance: random.Random
    is_rebalancing: bool
    done: list[str] = field(default_factory=list)
    recoveries_ms: list[float] = field(default_factory=list)

    def one(self, how: str, is_busy: bool) -> None:
        """Cause one outage and end it. All members must commit during it and after it."""
        node = self.cluster.nodes[1]
        members = list(self.group.members)
        if is_busy:
            busy = self.chance.choice(members)
            busy.compute(self.chance.uniform(2.0, 4.0))
            members.remove(busy)
        if self.is_rebalancing:
            # The next coordinator may still count the departing member, until its session expires.
            gone = self.chance.choice(members)
            self.chance.choice([self.group.leave, self.group.leave, self.group.kill])(gone)
            members.remove(gone)
            members.append(self.group.join("kafkacore"))
            SYSTEM_CLOCK.sleep_ms(self.chance.uniform(0, 2_000))
        begun_ms = SYSTEM_CLOCK.monotonic_ms()
        self.done.append(f"{how}, a member busy" if is_busy else how)
        if how == "paused":
            with paused(node.pid):
                # A joining member may wait for its response as long as a rebalance may take, as with Java's
                # client.
                if not self.is_rebalancing:
                    self.await_commits(members, begun_ms)
                left_ms = begun_ms + self.chance.uniform(1.5, 3.0) * REQUEST_TIMEOUT_MS
                SYSTEM_CLOCK.sleep_ms(max(left_ms - SYSTEM_CLOCK.monotonic_ms(), 0.0))
        else:
            node.kill() if how == "killed" else node.stop()
            self.await_commits(members, begun_ms)
            node.start()
        # Sometimes the next outage begins before the second broker is the coordinator again.
        if self.chance.random() < 0.7:
            self.cluster.await_return()
        else:
            SYSTEM_CLOCK.sleep_ms(self.chance.uniform(0, 1_500))
        self.await_commits(self.group.members, SYSTEM_CLOCK.monotonic_ms())

    def await_commits(self, members: list[Member], begun_ms: float) -> None:
        """Wait until each member has begun a commit after ``begun_ms`` that succeeded."""
        for member in members:
            since = bisect.bisect(member.events, begun_ms * 1e6, key=lambda event: event.time_ns)
            place = next_place(member, "committed", next_place(member, "committing", since))
            self.recoveries_ms.append(member.events[place].time_ns / 1e6 - begun_ms)


def next_place(member: Member, kind: str, since: int) -> int:
    """Wait for an event of this kind, and return its position."""
    member.await_event(lambda event: event.kind == kind, since)
    return next(place for place, event in enumerate(member.events[since:], since) if event.kind == kind)


def test_idle_member_misses_its_coordinator_within_a_request(cluster: Cluster) -> None:
    """Check that a member notices a paused coordinator, whose connections stay open, by a request timeout.

    The member sends only heartbeats. The next coordinator soon takes over and starts a new session, which
    could expire before the member finds it.
    """
    cluster.create_topic("idle")
    cluster.await_return()
    with KafkaConsumer(
        "idle",
        bootstrap_servers=cluster.bootstrap_servers,
        group_id="idle",
        enable_auto_commit=False,
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        # Long enough that the session does not expire meanwhile.
        session_timeout_ms=LONG_SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
    ) as consumer:
        poll_until(consumer, lambda: len(consumer.assignment()) == PARTITIONS)
        generation = consumer.group_metadata()
        # A machine that stood still for a second has another coordinator for a while.
        poll_until(consumer, lambda: coordinator_of(consumer) == 2)
        with paused(cluster.nodes[1].pid):
            took_ms = poll_until(consumer, lambda: coordinator_of(consumer) == 1)
            beat_ms = SYSTEM_CLOCK.monotonic_ms()
            poll_until(consumer, lambda: SYSTEM_CLOCK.monotonic_ms() > beat_ms + 2 * HEARTBEAT_INTERVAL_MS)
        assert consumer.group_metadata() == generation
    note("idle member, coordinator paused", noticed_after_ms=round(took_ms))


def coordinator_of(consumer: KafkaConsumer) -> int | None:
    node = consumer._engine.membership.coordinator()
    return None if node is None else MAX_NODE_ID - node.node_id


def poll_until(consumer: KafkaConsumer, is_it: Callable[[], bool]) -> float:
    """Poll until the condition holds, and return the milliseconds that it took."""
    begun_ms = SYSTEM_CLOCK.monotonic_ms()
    eventually(is_it, step=lambda: consumer.poll(timeout_ms=50))
    return SYSTEM_CLOCK.monotonic_ms() - begun_ms


@pytest.mark.timeout(dose(150, 1_500))
@pytest.mark.parametrize("is_rebalancing", [False, *dose([], [True])])
def test_group_outlives_its_coordinators(cluster: Cluster, tmp_path: Path, is_rebalancing: bool) -> None:
    seed = new_seed()
    chance = random.Random(seed)
    session_ms = MORTAL_SESSION_MS if is_rebalancing else SESSION_TIMEOUT_MS
    options = {"session_timeout_ms": session_ms, "request_timeout_ms": REQUEST_TIMEOUT_MS}
    protocol = chance.choice(["range", "cooperative-sticky"])
    topic = f"outages-{is_rebalancing}"
    cluster.create_topic(topic)
    servers = cluster.bootstrap_servers
    with MixedGroup(servers, topic, PARTITIONS, protocol, tmp_path, options) as group:
        outages = Outages(cluster, group, chance, is_rebalancing)
        with group.writing():
            for _ in range(3):
                group.join("kafkacore")
            group.await_stable()
            begun_ns = int(SYSTEM_CLOCK.monotonic_ms() * 1e6)
            ways: list[str] = []
            for number in range(FAULTS):
                ways = ways or chance.sample(WAYS, len(WAYS))
                outages.one(ways.pop(), is_busy=number % 3 == 0)
            # A cooperative member may get an assignment that adds no partitions.
            changed = [event for event in group.events() if event.time_ns > begun_ns and moves(event)]
        group.settle()
        history = GroupHistory()
        wrong = history.check(group.events(), group.ends)
    note(
        f"coordinator of two brokers killed, paused, stopped; {protocol}"
        + ", members come and go" * is_rebalancing,
        seed,
        faults=dict(Counter(outages.done)),
        records=sum(group.ends.values()),
        repeated=history.repeated,
        refused_commits=history.counts["commit_failed"],
        losses=history.counts["lost"],
        slowest_commit_ms=round(max(outages.recoveries_ms)),
    )
    assert "\n".join(wrong) == ""
    assert is_rebalancing or changed == []
    assert len(outages.done) == FAULTS


def moves(event: Event) -> bool:
    """Return whether the event adds or removes partitions."""
    return event.kind in {"assigned", "revoked", "lost"} and bool(event.what["partitions"])
