"""Our consumer with isolation_level="read_committed" reads what Kafka's own consumer reads.

The topics are full of transactions of other clients. The consumer reads records and columns, in pieces of any
size and from any offset.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from eventually import BUDGET_MS, eventually
from model.dose import dose, new_seed
from peers.apache_kafka import ApacheKafka
from peers.java_peer import JavaPeer
from peers.mixed_transactions import PARTITIONS, MixedTransactions

from kafkacore import KafkaConsumer, TopicPartition

STEPS = dose(250, 2_000)

#: Partition → (offset, value) of its records.
Records = dict[int, list[tuple[int, bytes]]]


@dataclass
class Topic:
    """A topic, and the records that Kafka's consumer reads from it."""

    servers: str
    name: str
    records: Records
    ends: dict[int, int]

    @property
    def partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self.name, number) for number in range(PARTITIONS)]


def by_java(java_peer: JavaPeer, servers: str, topic: str) -> Records:
    received = java_peer.consume(servers, topic, None, {"isolation.level": "read_committed"})
    records: Records = {number: [] for number in range(PARTITIONS)}
    for each in received:
        records[each.partition].append((each.offset, each.value or b""))
    return records


@pytest.fixture(scope="module", params=["all ended", "one open"])
def topic(request: pytest.FixtureRequest, apache_kafka: ApacheKafka, java_peer: JavaPeer) -> Topic:
    name, servers = f"mixed-{request.param.replace(' ', '-')}", apache_kafka.bootstrap_servers
    java_peer.create_topic(servers, name, PARTITIONS)
    mixed = MixedTransactions(servers, name, random.Random(new_seed()))
    mixed.write(STEPS)
    ends = java_peer.offsets(servers, name).end
    if request.param == "one open":
        mixed.leave_open()
    records = by_java(java_peer, servers, name)
    assert {(number, value) for number in records for _, value in records[number]} == mixed.to_be_seen()
    assert all(mixed.aborted.values())
    return Topic(servers, name, records, ends)


def consumer_of(topic: Topic, **options: Any) -> KafkaConsumer:
    consumer = KafkaConsumer(
        bootstrap_servers=topic.servers, isolation_level="read_committed", fetch_max_wait_ms=50, **options
    )
    consumer.assign(topic.partitions)
    consumer.seek_to_beginning(*topic.partitions)
    return consumer


def read_until(consumer: KafkaConsumer, topic: Topic, poll: Callable[[], Records]) -> Records:
    """Poll until each position is at the end, and return the records."""
    read: Records = {number: [] for number in range(PARTITIONS)}

    def step() -> None:
        for number, records in poll().items():
            read[number] += records

    eventually(
        lambda: all(consumer.position(tp) >= topic.ends[tp.partition] for tp in topic.partitions), step=step
    )
    return read


def polled(consumer: KafkaConsumer, most: int | None) -> Records:
    return {
        tp.partition: [(record.offset, record.value) for record in records]
        for tp, records in consumer.poll(timeout_ms=200, max_records=most).items()
    }


def polled_columns(consumer: KafkaConsumer, most: int | None, **options: Any) -> Records:
    found = consumer.poll_arrow(timeout_ms=200, max_records=most, columns=["offset", "value"], **options)
    return {
        tp.partition: [(row["offset"], row["value"]) for row in pa.record_batch(columns).to_pylist()]
        for tp, columns in found.items()
    }


SIZES: dict[str, dict[str, int]] = {
    "whole": {},
    "in pieces": {"max_partition_fetch_bytes": 400, "fetch_max_bytes": 1_000},
}


@pytest.mark.behaviour(
    "Reliability",
    "read_committed returns the same records as Kafka's consumer, as records or columns, from any offset",
)
@pytest.mark.parametrize("most", [None, 1, 7])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("poll", [polled, polled_columns])
def test_what_is_read_is_what_kafkas_consumer_reads(
    topic: Topic, size: str, poll: Callable[..., Records], most: int | None
) -> None:
    with consumer_of(topic, **SIZES[size]) as consumer:
        assert read_until(consumer, topic, lambda: poll(consumer, most)) == topic.records
        # No record is visible after the end: what follows is in an open transaction, or comes after one.
        assert poll(consumer, None) == {}
        assert {tp.partition: consumer.position(tp) for tp in topic.partitions} == topic.ends


@pytest.mark.behaviour(
    "Reliability",
    "read_committed returns the same records as Kafka's consumer, as records or columns, from any offset",
)
def test_iteration_gives_the_same_and_ends_of_the_topic_are_before_open_transactions(topic: Topic) -> None:
    with consumer_of(topic, consumer_timeout_ms=BUDGET_MS) as consumer:
        ends = consumer.end_offsets(topic.partitions)
        read: Records = {number: [] for number in range(PARTITIONS)}
        for record in itertools.islice(consumer, sum(map(len, topic.records.values()))):
            read[record.partition].append((record.offset, record.value))
        assert polled(consumer, None) == {}
    assert read == topic.records
    assert {tp.partition: end for tp, end in ends.items()} == topic.ends


@pytest.mark.behaviour(
    "Reliability",
    "read_committed returns the same records as Kafka's consumer, as records or columns, from any offset",
)
def test_columns_up_to_an_end_offset_in_the_middle_of_transactions_are_those_before_it(topic: Topic) -> None:
    chance = random.Random(new_seed())
    with consumer_of(topic) as consumer:
        read: Records = {number: [] for number in range(PARTITIONS)}
        goals = dict.fromkeys(topic.partitions, 0)

        def step() -> None:
            for number, records in polled_columns(consumer, None, end_offsets=goals).items():
                read[number] += records

        while any(goals[tp] < topic.ends[tp.partition] for tp in topic.partitions):
            for tp in topic.partitions:
                goals[tp] = min(goals[tp] + chance.randint(0, 60), topic.ends[tp.partition])
            eventually(lambda: all(consumer.position(tp) >= goals[tp] for tp in topic.partitions), step=step)
            assert {tp: consumer.position(tp) for tp in goals} == goals
            for tp, goal in goals.items():
                expected = [each for each in topic.records[tp.partition] if each[0] < goal]
                assert read[tp.partition] == expected


@pytest.mark.behaviour(
    "Reliability",
    "read_committed returns the same records as Kafka's consumer, as records or columns, from any offset",
)
def test_reading_may_begin_at_any_offset(topic: Topic) -> None:
    chance = random.Random(new_seed())
    with consumer_of(topic) as consumer:
        for _ in range(dose(60, 1_000)):
            starts = {tp: chance.randint(0, topic.ends[tp.partition]) for tp in topic.partitions}
            for tp, start in starts.items():
                consumer.seek(tp, start)
            poll = chance.choice([polled, polled_columns])
            read = read_until(consumer, topic, lambda poll=poll: poll(consumer, None))
            for tp, start in starts.items():
                expected = [each for each in topic.records[tp.partition] if each[0] >= start]
                assert read[tp.partition] == expected, f"from {start} of {tp}"


def test_read_uncommitted_sees_what_was_aborted(topic: Topic) -> None:
    """Check that the missing records are due to the isolation level."""
    with KafkaConsumer(bootstrap_servers=topic.servers, auto_offset_reset="earliest") as consumer:
        consumer.assign(topic.partitions)
        read = read_until(consumer, topic, lambda: polled(consumer, None))
    assert all(len(read[number]) > len(topic.records[number]) for number in range(PARTITIONS))
