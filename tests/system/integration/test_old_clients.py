"""A client that takes our broker for Kafka 0.9 reads records of the current format."""

from __future__ import annotations

import confluent_kafka
import pytest
from eventually import eventually

from kafkacore import KafkaProducer
from kafkacore.testing.embedded_broker import EmbeddedBroker

COUNT = 3000


@pytest.mark.parametrize(
    ("codec", "fetch_bytes"),
    # With the smallest size, no response ends at the end of a batch; with the largest, one holds all batches.
    [(None, 20_000), ("gzip", 20_000), ("snappy", 20_000), ("lz4", 20_000), (None, 1_000_000)],
)
def test_client_of_an_old_release_reads_all(
    our_broker: EmbeddedBroker, codec: str | None, fetch_bytes: int
) -> None:
    topic = f"old-{codec}-{fetch_bytes}"
    with KafkaProducer(
        bootstrap_servers=our_broker.bootstrap_servers, compression_type=codec, batch_size=4000
    ) as producer:
        for number in range(COUNT):
            producer.send(topic, b"value %d" % number, key=b"k", headers=[("h", b"x")], partition=0)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": our_broker.bootstrap_servers,
            "group.id": "unused",
            "api.version.request": False,
            "broker.version.fallback": "0.9.0",
            "fetch.message.max.bytes": fetch_bytes,
        }
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)])
        found = []

        def step() -> None:
            for message in consumer.consume(500, 0.2):
                assert message.error() is None, message.error()
                found.append((message.offset(), message.key(), message.value(), message.headers()))

        eventually(lambda: len(found) >= COUNT, lambda: f"only {len(found)} arrived", step=step)
    finally:
        consumer.close()
    assert found == [(number, b"k", b"value %d" % number, None) for number in range(COUNT)]
