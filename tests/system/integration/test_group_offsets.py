"""Offsets of groups on Apache Kafka 4.3.1 and on our broker.

Each client reads what the others commit, and a restarted consumer resumes where the last one stopped. On
Apache Kafka, a transaction commits only for a current member of the group.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import confluent_kafka
import kafka as kafka_python
import pytest
from eventually import BUDGET_MS, BUDGET_S, eventually
from peers.apache_kafka import ApacheKafka
from peers.java_peer import JavaPeer, Sample

import kafkacore
from kafkacore import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafkacore.errors import CommitFailedError, FencedInstanceIdError, KafkaTimeoutError, UnknownMemberIdError
from kafkacore.testing.embedded_broker import EmbeddedBroker

RECORDS = 20
_names = itertools.count(1)
#: Partition → offset, metadata, leader epoch.
Offsets = dict[int, tuple[int, str, int]]


Broker = ApacheKafka | EmbeddedBroker
with_transactions = pytest.mark.parametrize("broker", ["apache_kafka"], indirect=True)


@pytest.fixture(params=["apache_kafka", "our_broker"])
def broker(request: pytest.FixtureRequest) -> Broker:
    """Return each broker in turn."""
    found: Broker = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def topic(broker: Broker, java_peer: JavaPeer) -> str:
    name = f"group-offsets-{next(_names)}"
    java_peer.create_topic(broker.bootstrap_servers, name, 2)
    samples = [Sample(b"%d" % number, partition=number % 2) for number in range(RECORDS)]
    java_peer.produce(broker.bootstrap_servers, name, samples)
    return name


def make_consumer(kafka: Broker, *topics: str, group_id: str, **settings: Any) -> KafkaConsumer:
    return KafkaConsumer(
        *topics,
        bootstrap_servers=kafka.bootstrap_servers,
        group_id=group_id,
        **{"auto_offset_reset": "earliest"} | settings,
    )


def read_all(consumer: KafkaConsumer, count: int) -> list[bytes]:
    """Return the values of ``count`` records, after a check that there are no more."""
    found: list[bytes] = []

    def step() -> None:
        for records in consumer.poll(timeout_ms=500).values():
            found.extend([record.value for record in records])

    eventually(lambda: len(found) >= count, lambda: f"{len(found)} of {count}", step=step)
    assert len(found) == count
    return found


# ---- Each client reads what the others commit --------------------------------------------------------------


class Ours:
    def __init__(self, module: Any, servers: str) -> None:
        self.module, self.servers = module, servers

    def _consumer(self, group: str) -> Any:
        return self.module.KafkaConsumer(
            bootstrap_servers=self.servers, group_id=group, enable_auto_commit=False
        )

    def commit(self, group: str, topic: str, offsets: Offsets) -> None:
        consumer = self._consumer(group)
        consumer.assign([self.module.TopicPartition(topic, each) for each in offsets])
        consumer.commit(
            {
                self.module.TopicPartition(topic, each): self.module.OffsetAndMetadata(*committed)
                for each, committed in offsets.items()
            }
        )
        consumer.close()

    def committed(self, group: str, topic: str) -> Offsets:
        consumer = self._consumer(group)
        found = {
            each: consumer.committed(self.module.TopicPartition(topic, each), metadata=True)
            for each in range(2)
        }
        consumer.close()
        return {each: tuple(committed) for each, committed in found.items() if committed is not None}


class Java:
    def __init__(self, peer: JavaPeer, servers: str) -> None:
        self.peer, self.servers = peer, servers

    def commit(self, group: str, topic: str, offsets: Offsets) -> None:
        self.peer.commit(self.servers, group, topic, offsets)

    def committed(self, group: str, topic: str) -> Offsets:
        return self.peer.committed(self.servers, group, topic)


class Confluent:
    """librdkafka. Its tests ignore the metadata of commits, and leader epochs, which it does not return.

    It ends metadata with a zero byte, and reads past the end of metadata without one.
    """

    def __init__(self, servers: str) -> None:
        self.servers = servers

    def _consumer(self, group: str) -> confluent_kafka.Consumer:
        return confluent_kafka.Consumer(
            {"bootstrap.servers": self.servers, "group.id": group, "enable.auto.commit": False}
        )

    def commit(self, group: str, topic: str, offsets: Offsets) -> None:
        consumer = self._consumer(group)
        places = [
            confluent_kafka.TopicPartition(topic, each, offset, metadata)
            for each, (offset, metadata, _) in offsets.items()
        ]
        consumer.assign(places)
        consumer.commit(offsets=places, asynchronous=False)
        consumer.close()

    def committed(self, group: str, topic: str) -> Offsets:
        consumer = self._consumer(group)
        places = [confluent_kafka.TopicPartition(topic, each) for each in range(2)]
        found = consumer.committed(places, timeout=BUDGET_S)
        consumer.close()
        return {each.partition: (each.offset, "", -1) for each in found if each.offset >= 0}


def test_each_client_reads_what_the_others_commit(broker: Broker, java_peer: JavaPeer, topic: str) -> None:
    servers = broker.bootstrap_servers
    ours = Ours(kafkacore, servers)
    others: dict[str, Any] = {
        "java": Java(java_peer, servers),
        "kafka-python": Ours(kafka_python, servers),
        "confluent-kafka": Confluent(servers),
    }
    for number, (name, other) in enumerate(others.items(), 1):
        offsets: Offsets = {0: (number, f"note of {name}", -1)}
        other.commit(f"of-{name}", topic, offsets)
        found = ours.committed(f"of-{name}", topic)
        assert {0: (found[0][0], found[0][1].rstrip("\0"), found[0][2])} == offsets, name
    with_epoch: Offsets = {0: (7, "note", 0), 1: (8, "", -1)}
    ours.commit("of-ours", topic, with_epoch)
    assert ours.committed("of-ours", topic) == with_epoch
    for name, other in others.items():
        expected = with_epoch if name != "confluent-kafka" else {0: (7, "", -1), 1: (8, "", -1)}
        assert other.committed("of-ours", topic) == expected, name
    java_peer.commit(servers, "of-java", topic, with_epoch)
    assert ours.committed("of-java", topic) == with_epoch


# ---- Resuming ----------------------------------------------------------------------------------------------


@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "auto-commit runs at its interval, before a revocation and in close, and covers only returned records",
)
def test_restarted_consumer_goes_on_where_the_last_one_was(broker: Broker, topic: str) -> None:
    group = f"restarted-{topic}"
    with make_consumer(broker, topic, group_id=group, consumer_timeout_ms=BUDGET_MS) as first:
        taken = [record.value for record in itertools.islice(first, 7)]
    with make_consumer(broker, topic, group_id=group) as second:
        rest = read_all(second, RECORDS - 7)
    assert sorted(taken + rest, key=int) == [b"%d" % number for number in range(RECORDS)]
    with make_consumer(broker, topic, group_id=group) as third:
        places = [TopicPartition(topic, each) for each in range(2)]
        assert third.committed(places) == dict.fromkeys(places, RECORDS // 2)


def test_failed_block_and_a_close_without_it_commit_nothing(broker: Broker, topic: str) -> None:
    group = f"failed-{topic}"
    place = TopicPartition(topic, 0)
    # The interval does not pass on a slow machine: poll() would commit.
    never: dict[str, Any] = {"auto_commit_interval_ms": int(10 * BUDGET_MS)}

    def fail() -> None:
        with make_consumer(broker, topic, group_id=group, **never) as consumer:
            read_all(consumer, RECORDS)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    consumer = make_consumer(broker, topic, group_id=group, **never)
    read_all(consumer, RECORDS)
    assert consumer.committed(place) is None
    consumer.close(autocommit=False)
    with make_consumer(broker, topic, group_id=group) as consumer:
        read_all(consumer, RECORDS)


def test_assigned_partitions_are_committed_by_the_interval_without_a_member(
    broker: Broker, topic: str
) -> None:
    group, place = f"assigned-{topic}", TopicPartition(topic, 0)
    with make_consumer(broker, group_id=group, auto_commit_interval_ms=100) as consumer:
        consumer.assign([place])
        read_all(consumer, RECORDS // 2)
        eventually(
            lambda: consumer.committed(place) == RECORDS // 2, step=lambda: consumer.poll(timeout_ms=20)
        )
        assert consumer.group_metadata().member_id == ""
    with make_consumer(broker, group_id=group) as consumer:
        consumer.assign([place])
        assert consumer.position(place) == RECORDS // 2


@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "callbacks of asynchronous commits run in order, and before a later synchronous commit returns",
)
def test_asynchronous_commits_come_in_order_and_before_the_synchronous_one(
    broker: Broker, topic: str
) -> None:
    place, outcomes = TopicPartition(topic, 0), []
    with make_consumer(broker, topic, group_id=f"async-{topic}", enable_auto_commit=False) as consumer:
        read_all(consumer, RECORDS)
        for number in range(50):
            consumer.commit_async(
                {place: OffsetAndMetadata(number)},
                lambda offsets, error: outcomes.append((offsets[place].offset, error)),
            )
        consumer.commit({place: OffsetAndMetadata(3, "last")})
        assert outcomes == [(number, None) for number in range(50)]
        assert consumer.committed(place, metadata=True) == OffsetAndMetadata(3, "last")


@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "a lookup of committed offsets waits while a transaction is open; without a commit it returns none",
)
@with_transactions
def test_offset_behind_an_open_transaction_is_waited_for(broker: Broker, topic: str) -> None:
    group, place = f"unstable-{topic}", TopicPartition(topic, 0)
    with (
        KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id=f"tx-{topic}") as producer,
        make_consumer(broker, group_id=group, enable_auto_commit=False) as consumer,
    ):
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_offsets_to_transaction({place: OffsetAndMetadata(4)}, consumer.group_metadata())
        # The first attempts may time out before they have found the coordinator.
        cause = ""

        def step() -> None:
            nonlocal cause
            with pytest.raises(KafkaTimeoutError) as raised:
                consumer.committed(place, timeout_ms=300)
            cause = str(raised.value.__cause__)

        eventually(lambda: "UNSTABLE_OFFSET_COMMIT" in cause, lambda: cause, step=step)
        producer.commit_transaction()
        assert consumer.committed(place) == 4


def test_the_example_goes_on_where_it_was(broker: Broker, java_peer: JavaPeer, topic: str) -> None:
    def run() -> list[str]:
        example = Path(__file__).resolve().parents[3] / "examples" / "group.py"
        command = [sys.executable, "-W", "error", str(example), broker.bootstrap_servers, topic, topic]
        done = subprocess.run(command, capture_output=True, timeout=BUDGET_S, check=False, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    expected = [f"{number % 2} {number // 2} {number}" for number in range(RECORDS)]
    assert sorted(run()) == sorted(expected)
    java_peer.produce(broker.bootstrap_servers, topic, [Sample(b"one more", partition=0)])
    assert run() == [f"0 {RECORDS // 2} one more"]


def test_static_member_whose_place_was_taken_is_fenced(broker: Broker, topic: str) -> None:
    settings = {"group_id": f"static-{topic}", "group_instance_id": "one", "enable_auto_commit": False}
    first = make_consumer(broker, topic, **settings)
    with make_consumer(broker, topic, **settings) as second:
        read_all(first, RECORDS)
        read_all(second, RECORDS)
        with pytest.raises(FencedInstanceIdError):
            first.commit()
        second.commit()
        assert second.committed(TopicPartition(topic, 0)) == RECORDS // 2
        first.close()
        second.commit({TopicPartition(topic, 0): OffsetAndMetadata(1)})


# ---- Consume, transform, produce ---------------------------------------------------------------------------


@with_transactions
def test_transaction_commits_for_a_member_and_not_for_one_who_was_thrown_out(
    broker: Broker, java_peer: JavaPeer, topic: str
) -> None:
    group, output = f"copies-{topic}", f"{topic}-copy"
    servers = broker.bootstrap_servers
    java_peer.create_topic(servers, output)
    producer = KafkaProducer(bootstrap_servers=servers, transactional_id=f"copier-{topic}")
    producer.init_transactions()

    def copy(consumer: KafkaConsumer, stop: Callable[[], bool]) -> None:
        def step() -> None:
            polled = consumer.poll(timeout_ms=200, max_records=5)
            if not polled:
                return
            producer.begin_transaction()
            for records in polled.values():
                for record in records:
                    producer.send(output, record.value)
            offsets = {place: OffsetAndMetadata(records[-1].offset + 1) for place, records in polled.items()}
            producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
            producer.commit_transaction()

        eventually(stop, step=step)

    places = [TopicPartition(topic, each) for each in range(2)]
    with producer, make_consumer(broker, topic, group_id=group, enable_auto_commit=False) as consumer:
        copy(consumer, lambda: consumer.committed(places) == dict.fromkeys(places, RECORDS // 2))
        stale = consumer.group_metadata()
        assert (stale.group_id, stale.generation_id > 0, stale.member_id != "") == (group, True, True)
        consumer.unsubscribe()
        producer.begin_transaction()
        producer.send(output, b"of a former member")
        with pytest.raises((CommitFailedError, UnknownMemberIdError)):
            producer.send_offsets_to_transaction({places[0]: OffsetAndMetadata(1)}, stale)
        producer.abort_transaction()
        assert consumer.committed(places[0]) == RECORDS // 2
    copied = java_peer.consume(servers, output, None, {"isolation.level": "read_committed"})
    assert sorted(int(each.value or b"") for each in copied) == list(range(RECORDS))
