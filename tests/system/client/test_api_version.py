"""``config["api_version"]`` of connected clients, compared with kafka-python's."""

from __future__ import annotations

import kafka

from kafkacore import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafkacore.testing import EmbeddedBroker


def test_clients_hold_the_release_of_the_broker(our_broker: EmbeddedBroker) -> None:
    servers = our_broker.bootstrap_servers
    theirs = kafka.KafkaProducer(bootstrap_servers=servers)
    release = theirs.config["api_version"]
    theirs.close()
    with (
        KafkaProducer(bootstrap_servers=servers) as producer,
        KafkaConsumer(bootstrap_servers=servers) as consumer,
    ):
        consumer.topics()
        assert producer.config["api_version"] == consumer.config["api_version"] == release
    with KafkaAdminClient(bootstrap_servers={servers}) as admin:
        assert admin.config["api_version"] == release
    with KafkaProducer(bootstrap_servers=f"PLAINTEXT://{servers}", api_version=(2, 8)) as producer:
        producer.partitions_for("given-version")
        assert producer.config["api_version"] == (2, 8)
