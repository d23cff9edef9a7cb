"""A client that takes our broker for one of Kafka 0.9 reads from it what is written today."""

from __future__ import annotations

import confluent_kafka
import pytest

from kafkacore import KafkaProducer
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.testing.embedded_broker import EmbeddedBroker

COUNT = 3000
LIMIT_MS = 30_000


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4"])
def test_client_of_an_old_release_reads_all(our_broker: EmbeddedBroker, codec: str | None) -> None:
    topic = f"old-{codec}"
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
            # No cut in the middle of everything that there is.
            "fetch.message.max.bytes": 20_000,
        }
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)])
        deadline_ms = SYSTEM_CLOCK.monotonic_ms() + LIMIT_MS
        found = []
        while len(found) < COUNT:
            assert SYSTEM_CLOCK.monotonic_ms() < deadline_ms, f"only {len(found)} came"
            for message in consumer.consume(500, 0.2):
                assert message.error() is None, message.error()
                found.append((message.offset(), message.key(), message.value(), message.headers()))
    finally:
        consumer.close()
    assert found == [(number, b"k", b"value %d" % number, None) for number in range(COUNT)]
