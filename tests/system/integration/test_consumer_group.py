"""Groups of our consumers on Apache Kafka 4.3.1 and on our broker: members join, leave, die and return.

All members are polled in turn by one thread, and none of them ever waits for another one.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Collection, Iterator
from typing import Any

import pytest
from eventually import BUDGET_MS, eventually
from peers.apache_kafka import ApacheKafka
from peers.java_peer import JavaPeer, Sample

from kafkacore import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafkacore.consumer.group.heartbeat_thread import NAME
from kafkacore.errors import FencedInstanceIdError
from kafkacore.testing.embedded_broker import EmbeddedBroker

PARTITIONS = 6
#: Session timeout of members whose loss must be noticed soon.
SHORT_SESSION_MS = 1500
#: Heartbeats of a member that does not poll: as many as in five sessions of the default length.
BEATS_AWAY = 15
_names = itertools.count(1)


class Member(ConsumerRebalanceListener):
    """A consumer of the group, with the calls of its listener and the records that it has read."""

    def __init__(self, servers: str, topics: list[str], group_id: str, **settings: Any) -> None:
        settings = {
            "auto_offset_reset": "earliest",
            "heartbeat_interval_ms": 100,
            # Longer than a test on the slowest machine: no session expires unless the test needs it.
            "session_timeout_ms": int(5 * BUDGET_MS),
        } | settings
        self.consumer = KafkaConsumer(bootstrap_servers=servers, group_id=group_id, **settings)
        self.consumer.subscribe(topics, listener=self)
        self.calls: list[tuple[str, set[int]]] = []
        self.records: list[tuple[int, int]] = []

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        self.calls.append(("revoked", {tp.partition for tp in revoked}))

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        self.calls.append(("assigned", {tp.partition for tp in assigned}))

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        self.calls.append(("lost", {tp.partition for tp in lost}))

    @property
    def partitions(self) -> set[int]:
        return {tp.partition for tp in self.consumer.assignment()}

    @property
    def generation(self) -> int:
        return self.consumer.group_metadata().generation_id

    @property
    def beats(self) -> int:
        """Number of heartbeats sent in this generation and earlier ones."""
        return self.consumer._engine.heartbeats._heartbeat.sent_count

    def poll(self) -> None:
        for tp, records in self.consumer.poll(20).items():
            self.records += [(tp.partition, record.offset) for record in records]

    def die(self) -> None:
        """Stop as if the process had died, without a request to the broker."""
        thread = self.consumer._heartbeat_thread
        assert thread is not None
        # The thread must not use the connections after they are closed.
        thread.close(BUDGET_MS)
        self.consumer._engine.heartbeats.close()
        self.consumer._engine.client.close()
        self.consumer._closed = True


class Group:
    """The members of one test."""

    def __init__(self, servers: str, topic: str) -> None:
        self.servers, self.topic = servers, topic
        self.group_id = f"group-of-{topic}"
        self.members: list[Member] = []

    def join(self, **settings: Any) -> Member:
        member = Member(self.servers, [self.topic], self.group_id, **settings)
        self.members.append(member)
        return member

    def leave(self, member: Member, **options: Any) -> None:
        self.members.remove(member)
        member.consumer.close(**options)

    def poll_until(self, condition: Callable[[], bool]) -> None:
        def step() -> None:
            for member in self.members:
                member.poll()

        eventually(condition, lambda: [each.calls for each in self.members], step=step)

    def is_shared(self) -> bool:
        """Return whether each partition has one owner, and each member an equal share, in one generation."""
        shares = [each.partitions for each in self.members]
        return (
            sorted(itertools.chain(*shares)) == list(range(PARTITIONS))
            and max(map(len, shares)) - min(map(len, shares)) <= 1
            and len({each.generation for each in self.members}) == 1
        )


@pytest.fixture(scope="module", params=["Apache Kafka", "our broker"])
def servers(request: pytest.FixtureRequest, apache_kafka: ApacheKafka, our_groups: EmbeddedBroker) -> str:
    broker = apache_kafka if request.param == "Apache Kafka" else our_groups
    return broker.bootstrap_servers


@pytest.fixture
def topic(servers: str, java_peer: JavaPeer) -> str:
    name = f"consumer-group-{next(_names)}"
    java_peer.create_topic(servers, name, PARTITIONS)
    samples = [Sample(b"%d" % number, partition=number % PARTITIONS) for number in range(10 * PARTITIONS)]
    java_peer.produce(servers, name, samples)
    return name


@pytest.fixture
def group(servers: str, topic: str) -> Iterator[Group]:
    made = Group(servers, topic)
    yield made
    for member in made.members:
        member.consumer.close()


def test_members_share_the_partitions_when_one_joins_one_leaves_and_one_dies(group: Group) -> None:
    first = group.join()
    group.poll_until(group.is_shared)
    second, third = group.join(), group.join(session_timeout_ms=SHORT_SESSION_MS)
    group.poll_until(group.is_shared)
    # One or two rebalances: in each, the member gives up all of its partitions before it gets its new share.
    (_, had), *last = first.calls[-3:]
    assert last == [("revoked", had), ("assigned", first.partitions)]
    group.leave(second)
    group.poll_until(group.is_shared)
    assert second.calls[-1] == ("revoked", second.calls[-2][1])
    group.members.remove(third)
    third.die()
    group.poll_until(group.is_shared)
    assert first.partitions == set(range(PARTITIONS))
    read = [record for member in (first, second, third) for record in member.records]
    group.poll_until(lambda: len(set(read + first.records)) == 10 * PARTITIONS)


def test_a_group_lives_on_while_its_members_are_away(group: Group) -> None:
    """A member that is not polled sends heartbeats, and the broker confirms its generation."""
    first, away = group.join(), group.join()
    group.poll_until(group.is_shared)
    generation = first.generation
    group.members.remove(away)
    before = away.beats
    group.poll_until(lambda: away.beats >= before + BEATS_AWAY)
    group.members.append(away)
    away.poll()
    assert group.is_shared()
    assert away.generation == generation


def test_who_stays_away_longer_than_max_poll_interval_ms_loses_its_partitions(group: Group) -> None:
    first, slow = group.join(), group.join(max_poll_interval_ms=1000)
    group.poll_until(group.is_shared)
    group.members.remove(slow)
    group.poll_until(group.is_shared)
    assert first.partitions == set(range(PARTITIONS))
    group.members.append(slow)
    owned = slow.partitions
    group.poll_until(group.is_shared)
    assert ("lost", owned) in slow.calls


@pytest.mark.behaviour("ConsumerCoordinator", "a static member that closes stays in its group")
def test_a_static_member_that_comes_back_gets_its_partitions_without_a_rebalance(
    group: Group,
) -> None:
    first, static = group.join(group_instance_id="one"), group.join(group_instance_id="two")
    group.poll_until(group.is_shared)
    generation, owned, calls = first.generation, static.partitions, len(first.calls)
    group.leave(static)
    back = group.join(group_instance_id="two")
    group.poll_until(lambda: back.partitions == owned)
    assert group.is_shared()
    assert (first.generation, len(first.calls)) == (generation, calls)


@pytest.mark.behaviour(
    "AbstractCoordinator",
    "an instance id that another member has taken over is a fatal error",
)
def test_a_static_member_whose_place_is_taken_is_told_so(group: Group) -> None:
    first = group.join(group_instance_id="one")
    group.poll_until(group.is_shared)
    group.members.remove(first)
    usurper = group.join(group_instance_id="one")
    group.poll_until(lambda: usurper.partitions == set(range(PARTITIONS)))
    group.members.append(first)
    with pytest.raises(FencedInstanceIdError, match="one"):
        group.poll_until(lambda: False)


@pytest.mark.kafka("KafkaConsumerTest.testReturnRecordsDuringRebalance")
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "eager revokes all partitions, cooperative only the difference; an unsafe assignment is rejected",
)
def test_cooperative_members_never_stop_reading_what_they_keep(group: Group) -> None:
    first = group.join(partition_assignment_strategy=["cooperative-sticky"])
    group.poll_until(group.is_shared)
    second = group.join(partition_assignment_strategy=["cooperative-sticky"])
    group.poll_until(group.is_shared)
    assert {partition for what, gone in first.calls if what == "revoked" for partition in gone} == (
        second.partitions
    )
    assert not [what for what, _ in first.calls if what == "lost"]
    position = {tp: first.consumer.position(tp) for tp in first.consumer.assignment()}
    group.leave(second)
    group.poll_until(group.is_shared)
    assert first.calls[-1] == ("assigned", set(range(PARTITIONS)) - {tp.partition for tp in position})
    group.poll_until(lambda: len(set(first.records + second.records)) == 10 * PARTITIONS)


@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "new partitions and topics make a member rejoin; a pattern follows topics that are created and deleted",
)
def test_a_pattern_finds_a_topic_that_is_made_later(servers: str, java_peer: JavaPeer, topic: str) -> None:
    with KafkaConsumer(
        bootstrap_servers=servers, group_id=f"pattern-{topic}", metadata_max_age_ms=300
    ) as consumer:
        consumer.subscribe(pattern=f"{topic}($|-late)")
        eventually(lambda: len(consumer.assignment()) >= PARTITIONS, step=lambda: consumer.poll(100))
        java_peer.create_topic(servers, f"{topic}-late", 1)
        eventually(
            lambda: TopicPartition(f"{topic}-late", 0) in consumer.assignment(),
            step=lambda: consumer.poll(100),
        )


@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "close commits, then leaves; it is bounded if no coordinator answers; with a timeout of 0 it never waits",
)
def test_a_member_that_closes_while_it_joins_waits_for_nobody_and_nobody_for_it(group: Group) -> None:
    away = group.join()
    group.poll_until(group.is_shared)
    group.members.remove(away)
    joining = group.join()
    group.poll_until(lambda: joining.generation == -1 and joining.consumer.group_metadata().member_id != "")
    joining.poll()
    # The other member is not polled meanwhile: a close that waited for the rebalance would hang.
    group.leave(joining, timeout_ms=10 * BUDGET_MS)
    group.members.append(away)
    group.poll_until(group.is_shared)


@pytest.mark.kafka("ConsumerCoordinatorTest.testHeartbeatThreadClose")
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "close commits, then leaves; it is bounded if no coordinator answers; with a timeout of 0 it never waits",
)
def test_the_heartbeat_thread_ends_with_its_consumer(group: Group) -> None:
    def threads() -> list[str]:
        return [each.name for each in threading.enumerate() if each.name == f"{NAME} | {group.group_id}"]

    member = group.join()
    assert threads() == []
    group.poll_until(group.is_shared)
    assert len(threads()) == 1
    group.leave(member, timeout_ms=0)
    # A slow machine may let the thread end after close(), which waits for it a second at most.
    eventually(lambda: threads() == [], threads)


def test_one_broker_has_two_connections(group: Group) -> None:
    member = group.join()
    group.poll_until(lambda: len(member.records) == 10 * PARTITIONS)
    assert member.consumer._engine.client.client.connection_count() == 2
