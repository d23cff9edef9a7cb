"""Peers through each secure listener of Apache Kafka, and logins that it rejects.

Other tests rely on both.
"""

from __future__ import annotations

from typing import Any

import confluent_kafka
import kafka
import kafka.errors
import pytest
from eventually import BUDGET_S, eventually
from peers.client_security import for_librdkafka
from peers.clients import clients
from peers.java_peer import JavaPeer, Sample
from peers.samples import T0, expected
from peers.secure_kafka import SecureKafka

#: (listener, mechanism)
WAYS = [("SSL", None), ("MTLS", None), ("SASL_PLAINTEXT", "OAUTHBEARER"), ("SHORT_SESSIONS", "SCRAM-SHA-256")]
SAMPLES = [Sample(b"value %d" % number, b"key", 0, T0 + number) for number in range(20)]


@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
def test_what_one_peer_writes_through_a_listener_another_reads_through_it(
    secure_kafka: SecureKafka, java_peer: JavaPeer, listener: str, mechanism: str | None
) -> None:
    topic = f"peers-{listener}-{mechanism}"
    java_peer.create_topic(secure_kafka.bootstrap_servers, topic)
    settings = secure_kafka.settings(listener, mechanism)
    peers, servers = clients(java_peer, settings), settings["bootstrap_servers"]
    places = peers["kafka-python"].produce(servers, topic, SAMPLES, "lz4")
    assert peers["aiokafka"].consume(servers, topic, 1, len(places)) == expected(SAMPLES, places)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_wrong_password_is_refused(secure_kafka: SecureKafka, mechanism: str) -> None:
    settings = secure_kafka.settings("SASL_PLAINTEXT", mechanism, password="wrong")
    errors: list[Any] = []
    config = for_librdkafka(settings) | {"bootstrap.servers": settings["bootstrap_servers"]}
    producer = confluent_kafka.Producer(config | {"error_cb": errors.append})
    eventually(lambda: errors, step=lambda: producer.poll(0.1))
    assert errors[0].code() == confluent_kafka.KafkaError._AUTHENTICATION


def test_user_without_acls_may_nothing_and_who_shows_the_certificate_may_everything(
    secure_kafka: SecureKafka, java_peer: JavaPeer
) -> None:
    java_peer.create_topic(secure_kafka.bootstrap_servers, "guarded")
    bob = secure_kafka.settings("SASL_PLAINTEXT", "PLAIN", "bob")
    producer = kafka.KafkaProducer(**bob, max_block_ms=60_000)
    with pytest.raises(kafka.errors.TopicAuthorizationFailedError):
        producer.send("guarded", b"value").get(BUDGET_S)
    producer.close()
    admin = kafka.KafkaAdminClient(**secure_kafka.settings("MTLS"))
    admin.delete_topics(["guarded"])
    admin.close()
