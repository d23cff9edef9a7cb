"""The number of requests, sockets and sessions that our consumer uses on Apache Kafka.

The tests cover fetch sessions of many partitions, and topics that are recreated.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from eventually import BUDGET_MS, BUDGET_S, eventually
from peers.apache_kafka import ApacheKafka

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.consumer import _steady_fetcher
from kafkacore.network import NetworkSend
from kafkacore.protocol import decode_request
from kafkacore.protocol.generated.fetch import FetchRequest
from kafkacore.testing.embedded_broker import EmbeddedBroker

#: Apache Kafka needs half a minute to create a thousand partitions on a busy machine.
MANY = 1000


def new_topic(servers: str, partitions: int = 1, name: str = "") -> str:
    topic = name or f"fetching-{uuid.uuid4().hex[:8]}"
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic(topic, partitions, 1)])
    # Wait until every partition has a leader: a group member that joined earlier would have to rejoin.
    with KafkaConsumer(bootstrap_servers=servers) as consumer:
        places = [TopicPartition(topic, number) for number in range(partitions)]
        assert len(consumer.end_offsets(places, timeout_ms=BUDGET_MS)) == partitions
    return topic


def poll_until(consumer: KafkaConsumer, condition: Callable[[], bool]) -> list[Any]:
    """Poll until ``condition()`` holds, and return the records."""
    records: list[Any] = []

    def step() -> None:
        for found in consumer.poll(100).values():
            records.extend(found)

    eventually(condition, step=step)
    return records


def fetches_of(consumer: KafkaConsumer, monkeypatch: pytest.MonkeyPatch) -> list[FetchRequest]:
    """Return a list that collects the Fetch requests of the consumer from now on."""
    sent: list[FetchRequest] = []
    send = consumer._engine.client.send

    def note(node: Any, request: Any, **more: Any) -> Any:
        if isinstance(request, FetchRequest):
            sent.append(request)
        return send(node, request, **more)

    def note_steady(connection_id: str, pieces: Any) -> NetworkSend:
        message = decode_request(b"".join(pieces))[1]
        assert isinstance(message, FetchRequest)
        sent.append(message)
        return NetworkSend(connection_id, pieces)

    monkeypatch.setattr(consumer._engine.client, "send", note)
    # At low rates, compiled code sends the next requests.
    monkeypatch.setattr(_steady_fetcher, "NetworkSend", note_steady)
    return sent


def named(request: FetchRequest) -> list[tuple[int, int]]:
    """Return the partitions and offsets that a request contains."""
    return [(each.partition, each.fetch_offset) for topic in request.topics for each in topic.partitions]


@pytest.mark.behaviour(
    "FetchSessionHandler",
    "the first request of a session is full, later ones contain the changes",
)
@pytest.mark.parametrize("broker", ["apache_kafka", "our_broker"])
def test_later_requests_of_many_partitions_name_only_the_one_that_changed(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, broker: str
) -> None:
    servers, count = request.getfixturevalue(broker).bootstrap_servers, MANY
    topic = new_topic(servers, count)
    partitions = [TopicPartition(topic, number) for number in range(count)]
    changed = count // 2 + 7
    with (
        KafkaConsumer(bootstrap_servers=servers, fetch_max_wait_ms=100) as consumer,
        KafkaProducer(bootstrap_servers=servers) as producer,
    ):
        consumer.assign(partitions)
        for partition in partitions:
            consumer.seek(partition, 0)
        sent = fetches_of(consumer, monkeypatch)
        poll_until(consumer, lambda: len(sent) >= 3)
        assert sorted(named(sent[0])) == [(number, 0) for number in range(count)]
        assert [named(request) for request in sent[1:]] == [[]] * len(sent[1:])
        del sent[:]
        producer.send(topic, b"v", partition=changed).get(BUDGET_S)
        records = poll_until(consumer, lambda: [each for each in sent if each.topics] != [])
        assert [(record.partition, record.value) for record in records] == [(changed, b"v")]
        assert [named(request) for request in sent if request.topics] == [[(changed, 1)]]
        assert all(not request.forgotten_topics_data for request in sent)
        consumer.pause(partitions[5])
        poll_until(consumer, lambda: [each for each in sent if each.forgotten_topics_data] != [])
        gone = [each for request in sent for each in request.forgotten_topics_data]
        assert [each.partitions for each in gone] == [[5]]


def sockets_to(port: int) -> set[str]:
    """Return the inodes of this process's sockets that are connected to ``port``."""
    inodes = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            target = os.readlink(descriptor)
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[len("socket:[") : -1])
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/self/net", table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in inodes and int(fields[2].rpartition(":")[2], 16) == port:
                found.add(fields[9])
    return found


def test_one_broker_costs_a_group_member_two_sockets_and_none_before_they_are_needed(
    apache_kafka: ApacheKafka,
) -> None:
    servers = apache_kafka.bootstrap_servers
    port = int(servers.rpartition(":")[2])
    topic = new_topic(servers, 2)
    # Sockets of earlier tests may close meanwhile.
    before = sockets_to(port)
    begun_ms = SYSTEM_CLOCK.monotonic_ms()
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=servers,
        group_id=f"g-{topic}",
        fetch_max_wait_ms=50,
        bootstrap_timeout_ms=0,
    )
    with consumer:
        assert sockets_to(port) - before == set()
        poll_until(consumer, lambda: len(consumer.assignment()) == 2)
        poll_until(consumer, lambda: consumer.metrics()["consumer-fetch-manager-metrics"]["fetch-total"] >= 3)
        assert len(sockets_to(port) - before) == 2
        figures = consumer.metrics()["consumer-metrics"]
        assert figures["connection-count"] == 2
        # One more: the connection to the bootstrap server, before the cluster is known.
        assert figures["connection-creation-total"] <= 3
        of_group = consumer.metrics()["consumer-coordinator-metrics"]
        assert of_group["assigned-partitions"] == 2
        assert of_group["rebalance-total"] == of_group["sync-total"] == of_group["join-total"] == 1
        age_s = (SYSTEM_CLOCK.monotonic_ms() - begun_ms) / 1000
        assert 0 <= of_group["last-rebalance-seconds-ago"] <= age_s
    assert sockets_to(port) - before == set()


def test_idle_connection_is_closed_and_made_anew_when_it_is_needed(our_broker: EmbeddedBroker) -> None:
    servers = our_broker.bootstrap_servers
    port = int(servers.rpartition(":")[2])
    topic = new_topic(servers)
    before = sockets_to(port)
    consumer = KafkaConsumer(
        bootstrap_servers=servers,
        fetch_max_wait_ms=50,
        request_timeout_ms=200,
        connections_max_idle_ms=300,
        auto_offset_reset="earliest",
    )
    with consumer:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.position(partition, timeout_ms=BUDGET_MS)
        poll_until(consumer, lambda: len(sockets_to(port) - before) == 1)
        consumer.pause(partition)
        poll_until(consumer, lambda: sockets_to(port) - before == set())
        with KafkaProducer(bootstrap_servers=servers) as producer:
            producer.send(topic, b"v").get(BUDGET_S)
        consumer.resume(partition)
        assert values_of(consumer, 1) == [b"v"]
        assert consumer.metrics()["consumer-metrics"]["connection-close-total"] >= 1


def recreate(servers: str, topic: str) -> None:
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.delete_topics([topic])
        eventually(lambda: topic not in admin.list_topics())
    new_topic(servers, name=topic)


def values_of(consumer: KafkaConsumer, count: int) -> list[bytes]:
    """Return the next ``count`` values."""
    values: list[bytes] = []
    eventually(
        lambda: len(values) >= count,
        lambda: f"only {values} arrived",
        step=lambda: values.extend(
            [record.value for records in consumer.poll(100).values() for record in records]
        ),
    )
    return values


@pytest.mark.behaviour(
    "FetchSessionHandler",
    "another topic id replaces the old one; a change between ids and names closes the session",
)
@pytest.mark.parametrize("broker", ["apache_kafka", "our_broker"])
def test_topic_that_is_deleted_and_made_anew_is_read_from_its_beginning(
    request: pytest.FixtureRequest, broker: str
) -> None:
    servers = request.getfixturevalue(broker).bootstrap_servers
    topic = new_topic(servers)
    partition = TopicPartition(topic, 0)
    consumer = KafkaConsumer(
        bootstrap_servers=servers,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=100,
        metadata_max_age_ms=500,
    )
    with consumer:
        consumer.assign([partition])
        for values in ([b"old 0", b"old 1", b"old 2"], [b"new"]):
            with KafkaProducer(bootstrap_servers=servers) as producer:
                for value in values:
                    producer.send(topic, value).get(BUDGET_S)
            assert values_of(consumer, len(values)) == values
            if values != [b"new"]:
                recreate(servers, topic)
        assert consumer.position(partition) == 1


@pytest.mark.parametrize("broker", ["apache_kafka", "our_broker"])
def test_consumer_may_begin_a_while_ago(request: pytest.FixtureRequest, broker: str) -> None:
    servers = request.getfixturevalue(broker).bootstrap_servers
    topic, empty, old = (new_topic(servers) for _ in range(3))
    now_ms = SYSTEM_CLOCK.wall_ms()
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for name, hours_ago in ((topic, 3), (topic, 2), (topic, 1), (topic, 0), (old, 5)):
            timestamp_ms = now_ms - hours_ago * 3_600_000
            producer.send(name, b"%d hours ago" % hours_ago, timestamp_ms=timestamp_ms).get(BUDGET_S)
    with KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="by_duration:PT90M") as consumer:
        consumer.assign([TopicPartition(name, 0) for name in (topic, empty, old)])
        assert values_of(consumer, 2) == [b"1 hours ago", b"0 hours ago"]
        # These topics have no record within the duration, so that the consumer starts at their ends.
        assert [consumer.position(TopicPartition(name, 0)) for name in (empty, old)] == [0, 1]
