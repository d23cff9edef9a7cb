"""Our clients keep working while topics and brokers change, on either broker.

The tests cover a reader while Java writes, a topic that is deleted and recreated, a reader of Arrow columns
that must stop at an exact offset, and a broker that is killed.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from eventually import BUDGET_S, eventually
from peers.apache_kafka import RESTARTS_SOON, ApacheKafka
from peers.clients import CODECS
from peers.java_peer import JavaPeer, Sample
from peers.samples import T0, edge_samples, sized_samples

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.testing.embedded_broker import EmbeddedBroker


@pytest.fixture(params=["apache-kafka", "ours"])
def servers(request: pytest.FixtureRequest) -> str:
    """Return the address of each broker in turn."""
    name = "apache_kafka" if request.param == "apache-kafka" else "our_broker"
    broker: ApacheKafka | EmbeddedBroker = request.getfixturevalue(name)
    return broker.bootstrap_servers


def test_consumer_follows_while_java_goes_on_writing(servers: str, java_peer: JavaPeer) -> None:
    java_peer.create_topic(servers, "followed", 3)
    partitions = [TopicPartition("followed", number) for number in range(3)]
    consumer = KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest")
    try:
        consumer.assign(partitions)
        for turn in range(8):
            # Write one partition at a time: the others stay in the fetch session without being sent again.
            samples = [Sample(b"%d %d" % (turn, number), None, turn % 3, T0) for number in range(20)]
            java_peer.produce(servers, "followed", samples)
            assert next_values(consumer, 20) == [sample.value for sample in samples]
        assert [consumer.position(partition) for partition in partitions] == [60, 60, 40]
    finally:
        consumer.close()


def next_values(consumer: KafkaConsumer, count: int) -> list[bytes | None]:
    """Return the values of the next ``count`` records."""
    values: list[bytes | None] = []

    def step() -> None:
        for records in consumer.poll(timeout_ms=500).values():
            values.extend(record.value for record in records)

    eventually(lambda: len(values) >= count, lambda: values, step=step)
    return values


def test_producer_goes_on_when_a_topic_was_made_again(servers: str, java_peer: JavaPeer) -> None:
    java_peer.create_topic(servers, "again")
    with KafkaProducer(bootstrap_servers=servers, allow_auto_create_topics=False) as producer:
        assert producer.send("again", b"first life").get(timeout=BUDGET_S).offset == 0
        java_peer.delete_topic(servers, "again")
        java_peer.create_topic(servers, "again")
        # The producer still has the id of the deleted topic.
        assert producer.send("again", b"second life").get(timeout=BUDGET_S).offset == 0
    assert [record.value for record in java_peer.consume(servers, "again", 1)] == [b"second life"]


def test_consumer_goes_on_when_a_topic_was_made_again(servers: str, java_peer: JavaPeer) -> None:
    java_peer.create_topic(servers, "reread")
    consumer = KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest")
    try:
        consumer.assign([TopicPartition("reread", 0)])
        java_peer.produce(servers, "reread", [Sample(b"first life", None, 0, T0)])
        assert next_values(consumer, 1) == [b"first life"]
        java_peer.delete_topic(servers, "reread")
        java_peer.create_topic(servers, "reread")
        java_peer.produce(servers, "reread", [Sample(b"second life", None, 0, T0)] * 3)
        consumer.seek(TopicPartition("reread", 0), 0)
        assert next_values(consumer, 3) == [b"second life"] * 3
    finally:
        consumer.close()


def test_arrow_columns_hold_what_java_wrote_up_to_an_exact_offset(servers: str, java_peer: JavaPeer) -> None:
    java_peer.create_topic(servers, "columns")
    samples = edge_samples(1) + sized_samples()
    for codec in CODECS:
        java_peer.produce(servers, "columns", samples, {"compression.type": codec, "linger.ms": "5"})
    partition, end = TopicPartition("columns", 0), len(samples) * len(CODECS) - 3
    consumer = KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest")
    rows = []
    try:
        consumer.assign([partition])

        def step() -> None:
            polled = consumer.poll_arrow(timeout_ms=500, end_offsets={partition: end})
            rows.extend(row for columns in polled.values() for row in pa.record_batch(columns).to_pylist())

        eventually(lambda: consumer.position(partition) >= end, step=step)
        assert consumer.position(partition) == end
    finally:
        consumer.close()
    assert [row["offset"] for row in rows] == list(range(end))
    read = [(row["key"], row["value"], headers_of(row["headers"])) for row in rows]
    assert read == [(one.key, one.value, one.headers) for one in (samples * len(CODECS))[:end]]


def headers_of(headers: list[dict[str, bytes]] | None) -> tuple[tuple[object, object], ...]:
    return tuple((header["key"], header["value"]) for header in headers or ())


def test_aborted_transactions_are_left_out_when_reading_committed(
    apache_kafka: ApacheKafka, java_peer: JavaPeer
) -> None:
    servers = apache_kafka.bootstrap_servers
    java_peer.create_topic(servers, "committed")
    for number, end in enumerate(("commit", "abort", "abort", "commit")):
        samples = [Sample(b"%s %d" % (end.encode(), number), None, 0, T0)] * 3
        java_peer.produce(
            servers, "committed", samples, {"transactional.id": f"t{number % 2}"}, transaction=end
        )
    consumer = KafkaConsumer(
        bootstrap_servers=servers, auto_offset_reset="earliest", isolation_level="read_committed"
    )
    try:
        consumer.assign([TopicPartition("committed", 0)])
        assert next_values(consumer, 6) == [b"commit 0"] * 3 + [b"commit 3"] * 3
        # After the last marker, which is not a record.
        assert consumer.position(TopicPartition("committed", 0)) == 16
    finally:
        consumer.close()


def test_nothing_acknowledged_is_missing_when_apache_kafka_is_killed(
    tmp_path: Path, java_peer: JavaPeer
) -> None:
    acknowledged: dict[int, bytes] = {}
    with ApacheKafka(tmp_path, RESTARTS_SOON) as kafka:
        java_peer.create_topic(kafka.bootstrap_servers, "killed")
        with KafkaProducer(
            bootstrap_servers=kafka.bootstrap_servers, acks="all", max_in_flight_requests_per_connection=1
        ) as producer:

            def send(number: int) -> None:
                value = b"%d" % number
                producer.send("killed", value).add_callback(
                    lambda metadata: acknowledged.__setitem__(metadata.offset, value)
                )

            for number in range(5_000):
                send(number)
                if number == 2_500:
                    kafka.kill()
            kafka.start()
            producer.flush(timeout=BUDGET_S)
        log = java_peer.consume(kafka.bootstrap_servers, "killed", max(acknowledged) + 1)
    assert len(acknowledged) == 5_000
    assert {offset: log[offset].value for offset in acknowledged} == acknowledged
