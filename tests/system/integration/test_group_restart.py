"""A killed broker restarts with its groups: members, also static ones, keep their generation."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from eventually import eventually

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.structs import OffsetAndMetadata
from kafkacore.testing.embedded_broker import EmbeddedBroker

PARTITIONS = 4


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(group_initial_rebalance_delay_ms=0) as made:
        with KafkaAdminClient(bootstrap_servers=made.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("t", num_partitions=PARTITIONS, replication_factor=1)])
        yield made


def member(broker: EmbeddedBroker, **settings: object) -> KafkaConsumer:
    return KafkaConsumer(
        "t",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="g",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=200,
        **settings,
    )


def poll_until(members: list[KafkaConsumer], condition: Callable[[], bool]) -> None:
    def step() -> None:
        for one in members:
            one.poll(20)

    eventually(condition, lambda: [one.assignment() for one in members], step=step)


def shares(members: list[KafkaConsumer]) -> list[set[int]]:
    return [{tp.partition for tp in one.assignment()} for one in members]


def test_members_go_on_in_their_generation_when_the_broker_was_killed(broker: EmbeddedBroker) -> None:
    with member(broker) as first, member(broker) as second:
        members = [first, second]
        poll_until(members, lambda: sorted(map(len, shares(members))) == [2, 2])
        before = [one.group_metadata() for one in members]
        owned = shares(members)
        (place,) = [tp for tp in first.assignment() if tp.partition == min(owned[0])]
        first.commit({place: OffsetAndMetadata(0, "before", -1)})
        broker.kill()
        broker.start()
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for partition in range(PARTITIONS):
                producer.send("t", b"after", partition=partition)
        read: set[int] = set()

        def all_read() -> bool:
            for one in members:
                read.update(tp.partition for tp in one.poll(20))
            return len(read) == PARTITIONS

        poll_until([], all_read)
        first.commit({place: OffsetAndMetadata(1, "after", -1)})
        assert first.committed(place) == 1
        assert [one.group_metadata() for one in members] == before
        assert shares(members) == owned
    assert "loaded generation" in broker.log_tail(200)


def test_static_member_keeps_its_partitions_when_it_and_the_broker_start_anew(broker: EmbeddedBroker) -> None:
    with member(broker, group_instance_id="a") as first:
        second = member(broker, group_instance_id="b")
        members = [first, second]
        poll_until(members, lambda: sorted(map(len, shares(members))) == [2, 2])
        owned, generation_id = shares(members), first.group_metadata().generation_id
        second.close()
        broker.kill()
        broker.start()
        with member(broker, group_instance_id="b") as back:
            members = [first, back]
            poll_until(members, lambda: len(back.assignment()) == 2)
            assert shares(members) == owned
            assert back.group_metadata().generation_id == generation_id
            assert TopicPartition("t", min(owned[1])) in back.assignment()
