"""The admin client treats groups of the classic and of the consumer protocol alike, on Apache Kafka."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator

import pytest
from eventually import eventually
from peers.apache_kafka import ApacheKafka

from kafkacore import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafkacore.admin import KafkaAdminClient, MemberToRemove, NewTopic
from kafkacore.errors import GroupSubscribedToTopicError, NoError, UnknownMemberIdError

PROTOCOLS = ["classic", "consumer"]
_names = itertools.count(1)


@pytest.fixture
def admin(apache_kafka: ApacheKafka) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=apache_kafka.bootstrap_servers) as client:
        yield client


@pytest.fixture
def topic(apache_kafka: ApacheKafka, admin: KafkaAdminClient) -> str:
    name = f"both-kinds-{next(_names)}"
    admin.create_topics([NewTopic(name, 2, 1)])
    with KafkaProducer(bootstrap_servers=apache_kafka.bootstrap_servers) as producer:
        for partition in (0, 1):
            producer.send(name, b"value", partition=partition).get(timeout=30)
    return name


class Member:
    """A consumer of the group, which polls on a thread of its own until it is stopped."""

    def __init__(self, servers: str, topic: str, protocol: str, **settings: object) -> None:
        self.consumer = KafkaConsumer(
            topic,
            bootstrap_servers=servers,
            group_id=topic,
            group_protocol=protocol,
            auto_offset_reset="earliest",
            **settings,
        )
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self.consumer.poll(50)

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        self.consumer.close()


@pytest.fixture
def join(apache_kafka: ApacheKafka, topic: str) -> Iterator[Callable[..., Member]]:
    """Return a function ``join(protocol, **settings)`` that starts a member of the topic's group."""
    members: list[Member] = []

    def start(protocol: str, **settings: object) -> Member:
        members.append(Member(apache_kafka.bootstrap_servers, topic, protocol, **settings))
        return members[-1]

    yield start
    for member in members:
        member.stop()


def has_all(members: list[Member]) -> bool:
    counts = [len(member.consumer.assignment()) for member in members]
    return all(counts) and sum(counts) == 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_group_is_listed_by_its_type_and_state(
    admin: KafkaAdminClient, topic: str, join: Callable[..., Member], protocol: str
) -> None:
    def listed(**filters: list[str]) -> bool:
        return topic in {each["group_id"] for each in admin.list_groups(**filters)}

    member = join(protocol)
    eventually(lambda: has_all([member]))
    (other,) = set(PROTOCOLS) - {protocol}
    eventually(lambda: listed(states_filter=["Stable"], types_filter=[protocol]))
    assert not listed(types_filter=[other])
    assert not listed(states_filter=["Empty"])
    assert listed(types_filter=PROTOCOLS)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_active_group_refuses_the_same_changes(
    admin: KafkaAdminClient, topic: str, join: Callable[..., Member], protocol: str
) -> None:
    first = TopicPartition(topic, 0)
    member = join(protocol)
    eventually(lambda: has_all([member]))
    assert admin.delete_groups([topic]) == {topic: "NonEmptyGroupError"}
    assert admin.alter_group_offsets(topic, {first: OffsetAndMetadata(1)}) == {first: UnknownMemberIdError}
    assert admin.delete_group_offsets(topic, [first]) == {first: GroupSubscribedToTopicError}
    member.stop()
    eventually(lambda: admin.describe_groups([topic])[topic]["group_state"] == "Empty")
    assert admin.alter_group_offsets(topic, {first: OffsetAndMetadata(1)}) == {first: NoError}
    assert admin.list_group_offsets([topic])[topic][first].offset == 1
    assert admin.delete_group_offsets(topic, [first]) == {first: NoError}
    assert first not in admin.list_group_offsets([topic])[topic]
    assert admin.describe_groups([topic])[topic]["group_type"] == protocol
    assert admin.delete_groups([topic]) == {topic: "OK"}
    assert admin.describe_groups([topic])[topic]["group_state"] == "Dead"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_members_are_removed_by_either_id(
    admin: KafkaAdminClient, topic: str, join: Callable[..., Member], protocol: str
) -> None:
    static = join(protocol, group_instance_id="one")
    eventually(lambda: has_all([static]))
    unknown = admin.remove_group_members(topic, [MemberToRemove(member_id="missing")])
    assert unknown == {"missing": UnknownMemberIdError}
    static.stop()  # A static member stays in the group when it stops.
    (member,) = admin.describe_groups([topic])[topic]["members"]
    assert member["group_instance_id"] == "one"
    removed = admin.remove_group_members(topic, [MemberToRemove(group_instance_id="one")])
    assert set(removed.values()) == {NoError}
    eventually(lambda: admin.describe_groups([topic])[topic]["group_state"] == "Empty")


def test_mixed_group_tells_which_members_are_upgraded(
    admin: KafkaAdminClient, topic: str, join: Callable[..., Member]
) -> None:
    classic = join("classic", client_id="classic")
    eventually(lambda: has_all([classic]))
    new = join("consumer", client_id="new")
    eventually(lambda: has_all([classic, new]))
    eventually(lambda: admin.describe_groups([topic])[topic]["group_state"] == "Stable")
    group = admin.describe_groups([topic])[topic]
    assert group["group_type"] == "consumer"
    assert {each["client_id"]: each["upgraded"] for each in group["members"]} == {
        "classic": False,
        "new": True,
    }
    assert {each["member_epoch"] for each in group["members"]} == {group["group_epoch"]}
    new.stop()
    eventually(lambda: has_all([classic]))
    eventually(lambda: admin.describe_groups([topic])[topic]["group_type"] == "classic")
