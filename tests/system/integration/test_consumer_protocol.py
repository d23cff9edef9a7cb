"""Groups of our consumers in the protocol of KIP-848 on Apache Kafka 4.3.1."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
from eventually import BUDGET_MS, LONG_SESSION_MS, eventually
from model.held_gil import beats_while_gil_is_held
from model.new_topics import create_topics
from peers.apache_kafka import RESTARTS_SOON, ApacheKafka

from kafkacore import (
    ConsumerRebalanceListener,
    KafkaConsumer,
    KafkaProducer,
    OffsetAndMetadata,
    SubscriptionPattern,
    TopicPartition,
)
from kafkacore.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewTopic
from kafkacore.errors import (
    InvalidRegularExpressionError,
    UnreleasedInstanceIdError,
    UnsupportedAssignorError,
    UnsupportedVersionError,
)

PARTITIONS = 6
ALL = set(range(PARTITIONS))
INTERVAL_MS = 200
#: Session timeout of a group whose dead member must be noticed soon.
SHORT_SESSION_MS = 5000
#: Heartbeats of a member that does not poll: as many as in two short sessions.
BEATS_AWAY = 2 * SHORT_SESSION_MS // INTERVAL_MS
#: Heartbeats of this module's broker are frequent, so that a rebalance does not take seconds. Its
#: sessions are long, so that none expires on a slow machine unless the test needs it.
PROPERTIES = {
    "group.consumer.min.heartbeat.interval.ms": str(INTERVAL_MS),
    "group.consumer.heartbeat.interval.ms": str(INTERVAL_MS),
    "group.consumer.min.session.timeout.ms": str(SHORT_SESSION_MS),
    "group.consumer.session.timeout.ms": str(LONG_SESSION_MS),
    "group.consumer.max.session.timeout.ms": str(LONG_SESSION_MS),
    "offsets.topic.num.partitions": "1",
}
_names = itertools.count(1)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    folder: Path = tmp_path_factory.mktemp("kafka")
    with ApacheKafka(folder, PROPERTIES | RESTARTS_SOON) as broker:
        yield broker


@pytest.fixture
def topic(kafka: ApacheKafka) -> str:
    """Create a topic with ten records in each partition."""
    name = f"consumer-protocol-{next(_names)}"
    create_topics(kafka.bootstrap_servers, NewTopic(name, PARTITIONS, 1))
    produce(kafka, name)
    return name


def produce(kafka: ApacheKafka, topic: str) -> None:
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        for number in range(10 * PARTITIONS):
            producer.send(topic, b"%d" % number, partition=number % PARTITIONS)


class Member(ConsumerRebalanceListener):
    """A consumer of a group, with the calls of its listener and the records that it has read."""

    def __init__(self, kafka: ApacheKafka, topic: str, **settings: Any) -> None:
        settings = {"auto_offset_reset": "earliest", "group_id": topic} | settings
        self.consumer = KafkaConsumer(
            bootstrap_servers=kafka.bootstrap_servers, group_protocol="consumer", **settings
        )
        self.consumer.subscribe([topic], listener=self)
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


@pytest.fixture
def join(kafka: ApacheKafka, topic: str) -> Iterator[Any]:
    """Return a function that creates a member of the topic's group."""
    made: list[Member] = []

    def make(**settings: Any) -> Member:
        made.append(Member(kafka, topic, **settings))
        return made[-1]

    yield make
    for member in made:
        member.consumer.close(timeout_ms=5000)


def share(*members: Member) -> None:
    """Poll until the members have all partitions, about equally many each."""

    def is_shared() -> bool:
        counts = [len(member.partitions) for member in members]
        owned = [number for member in members for number in member.partitions]
        return sorted(owned) == sorted(ALL) and max(counts) - min(counts) <= 1

    eventually(is_shared, lambda: [member.calls for member in members], step=lambda: poll(*members))


def poll(*members: Member) -> None:
    for member in members:
        member.poll()


def test_a_member_reads_commits_and_the_next_one_continues(kafka: ApacheKafka, topic: str, join: Any) -> None:
    first = join()
    eventually(lambda: len(first.records) == 10 * PARTITIONS, step=first.poll)
    first.consumer.close()
    assert first.calls[-1] == ("revoked", ALL)
    produce(kafka, topic)
    second = join()
    eventually(lambda: len(second.records) == 10 * PARTITIONS, step=second.poll)
    assert {offset for _, offset in second.records} == set(range(10, 20))


@pytest.mark.parametrize("count", [2, 5])
def test_partitions_move_one_by_one_and_no_record_is_read_twice(
    kafka: ApacheKafka, topic: str, join: Any, count: int
) -> None:
    members = [join()]
    share(*members)
    while len(members) < count:
        members.append(join())
        share(*members)
    first = members[0]
    kept = [partitions for call, partitions in first.calls if call == "revoked"]
    assert set().union(*kept) == ALL - first.partitions
    produce(kafka, topic)
    eventually(
        lambda: sum(len(each.records) for each in members) == 20 * PARTITIONS,
        step=lambda: poll(*members),
    )
    assert len({record for each in members for record in each.records}) == 20 * PARTITIONS
    assert all(call != "lost" for each in members for call, _ in each.calls)
    members.pop().consumer.close()
    share(*members)


def set_session_timeout(kafka: ApacheKafka, group: str, timeout_ms: int) -> None:
    """Set the session timeout of a group, and wait until the broker has applied it."""
    name = "consumer.session.timeout.ms"
    with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
        admin.alter_configs([ConfigResource(ConfigResourceType.GROUP, group, {name: str(timeout_ms)})])

        def session_timeout() -> object:
            described = admin.describe_configs([ConfigResource(ConfigResourceType.GROUP, group)])
            # Until Apache Kafka has replayed the change, it describes a group without settings.
            return described["group"][group].get(name, {}).get("value")

        eventually(lambda: session_timeout() == str(timeout_ms), session_timeout)


def test_partitions_of_a_dead_member_move_after_its_session(
    kafka: ApacheKafka, topic: str, join: Any
) -> None:
    set_session_timeout(kafka, topic, SHORT_SESSION_MS)
    alive, dead = join(), join()
    share(alive, dead)
    dead.die()
    share(alive)


def test_a_static_member_returns_to_its_partitions(join: Any) -> None:
    other, static = join(), join(group_instance_id="one")
    share(other, static)
    before = static.partitions
    static.consumer.close()
    returned = join(group_instance_id="one")
    share(other, returned)
    assert returned.partitions == before
    assert [call for call, partitions in other.calls if call == "assigned" and partitions & before] == [
        call for call, partitions in other.calls if call == "assigned" and partitions == ALL
    ]


def test_a_second_member_with_the_instance_id_is_refused(join: Any) -> None:
    owner = join(group_instance_id="one")
    share(owner)
    second = join(group_instance_id="one")
    with pytest.raises(UnreleasedInstanceIdError, match="'one'"):
        eventually(lambda: False, step=lambda: poll(owner, second))
    assert owner.partitions == ALL


def test_a_member_that_does_not_poll_leaves_and_returns(join: Any) -> None:
    slow, other = join(max_poll_interval_ms=2000), join()
    share(slow, other)
    # A slow machine may have let it miss a poll before.
    calls = len(slow.calls)
    eventually(lambda: other.partitions == ALL, step=other.poll)
    assert len(slow.calls) == calls
    share(slow, other)
    assert "lost" in [call for call, _ in slow.calls[calls:]]


def test_heartbeats_continue_while_the_gil_is_held(join: Any) -> None:
    member = join()
    share(member)
    calls = list(member.calls)
    beats_while_gil_is_held(member.consumer._engine.heartbeats._heartbeat, BEATS_AWAY, INTERVAL_MS)
    for _ in range(20):
        member.poll()
    assert (member.calls, member.partitions) == (calls, ALL)


def test_members_keep_their_partitions_through_a_restart(kafka: ApacheKafka, join: Any) -> None:
    first, second = join(), join()
    share(first, second)
    before = first.partitions, second.partitions
    epoch = first.consumer.group_metadata().generation_id
    kafka.restart()
    eventually(lambda: first.consumer._engine.membership.coordinator(), step=lambda: poll(first, second))
    for member in (first, second):
        member.consumer.commit(timeout_ms=BUDGET_MS)
    assert (first.partitions, second.partitions) == before
    assert first.consumer.group_metadata().generation_id >= epoch
    assert "lost" not in [call for each in (first, second) for call, _ in each.calls]


def test_a_transaction_commits_with_the_member_epoch(kafka: ApacheKafka, topic: str, join: Any) -> None:
    member = join(enable_auto_commit=False)
    share(member)
    one = TopicPartition(topic, 0)
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_offsets_to_transaction(
            {one: OffsetAndMetadata(7, "", -1)}, member.consumer.group_metadata()
        )
        producer.commit_transaction()
    assert eventually(lambda: member.consumer.committed(one)) == 7


def test_a_broker_without_group_version_1_is_named(tmp_path: Path) -> None:
    with (
        ApacheKafka(tmp_path, features={"group.version": 0}) as old,
        KafkaConsumer(
            "t", bootstrap_servers=old.bootstrap_servers, group_id="g", group_protocol="consumer"
        ) as consumer,
        pytest.raises(UnsupportedVersionError, match=r"group\.version=1"),
    ):
        eventually(lambda: False, step=lambda: consumer.poll(20))


# ---- Patterns and assignors of the broker ----------------------------------------------------------------
def test_broker_matches_a_subscription_pattern(kafka: ApacheKafka, topic: str) -> None:
    """The pattern matches whole names, so the topics with longer names are left out."""
    others = [f"{topic}-more", f"x-{topic}"]
    with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, 1, 1) for name in others])
    group = f"pattern-{topic}"
    with KafkaConsumer(
        bootstrap_servers=kafka.bootstrap_servers, group_id=group, group_protocol="consumer"
    ) as consumer:
        consumer.subscribe(pattern=SubscriptionPattern(topic))
        eventually(lambda: len(consumer.assignment()) == PARTITIONS, step=lambda: consumer.poll(20))
        assert {tp.topic for tp in consumer.assignment()} == {topic}
        assert consumer.subscription() == set()
        consumer.subscribe(pattern=SubscriptionPattern(f"(x-)?{topic}"))
        eventually(lambda: len(consumer.assignment()) == PARTITIONS + 1, step=lambda: consumer.poll(20))
        consumer.unsubscribe()
        consumer.subscribe([others[0]])
        wanted = {TopicPartition(others[0], 0)}
        eventually(lambda: consumer.assignment() == wanted, step=lambda: consumer.poll(20))


def test_invalid_pattern_is_refused_by_the_broker(kafka: ApacheKafka) -> None:
    with KafkaConsumer(
        bootstrap_servers=kafka.bootstrap_servers, group_id="invalid-pattern", group_protocol="consumer"
    ) as consumer:
        consumer.subscribe(pattern=SubscriptionPattern("(unclosed"))
        with pytest.raises(InvalidRegularExpressionError, match="unclosed"):
            eventually(lambda: False, step=lambda: consumer.poll(20))


def test_unknown_remote_assignor_is_refused_by_the_broker(kafka: ApacheKafka, topic: str) -> None:
    with (
        KafkaConsumer(
            topic,
            bootstrap_servers=kafka.bootstrap_servers,
            group_id="unknown-assignor",
            group_protocol="consumer",
            group_remote_assignor="fair",
        ) as consumer,
        pytest.raises(UnsupportedAssignorError, match="fair"),
    ):
        eventually(lambda: False, step=lambda: consumer.poll(20))


def test_remote_assignor_and_limits_of_the_group_take_effect(
    kafka: ApacheKafka, topic: str, join: Any
) -> None:
    member = join(group_remote_assignor="range")
    share(member)
    with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
        assert admin.describe_groups([topic])[topic]["protocol_data"] == "range"
    set_session_timeout(kafka, topic, 2 * SHORT_SESSION_MS)
