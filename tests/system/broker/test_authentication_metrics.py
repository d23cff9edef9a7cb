"""Authentication metrics of client and broker: TLS, SASL, re-authentication and failures.

A plaintext connection counts no authentication.
"""

from __future__ import annotations

import urllib.request
from contextlib import suppress

import pytest
from eventually import BUDGET_S, eventually

from kafkacore import KafkaProducer
from kafkacore.admin import KafkaAdminClient, UserScramCredentialUpsertion
from kafkacore.errors import KafkaError
from kafkacore.testing.embedded_broker import EmbeddedBroker

IMPATIENT = {"request_timeout_ms": 5000, "delivery_timeout_ms": 6000, "max_block_ms": 6000}


def figures(producer: KafkaProducer) -> dict[str, float]:
    found = producer.metrics()["producer-metrics"]
    return {name: value for name, value in found.items() if "authentication" in name}


def broker_metrics(broker: EmbeddedBroker) -> dict[str, float]:
    """Return the authentication counters and sums of ``/metrics`` by name, without the common prefix."""
    with urllib.request.urlopen(f"{broker.status_url}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    prefix = "kafka_server_socket_server_metrics_"
    samples = (line.removeprefix(prefix).split() for line in lines if line.startswith(prefix))
    return {name: float(value) for name, value in samples if "authentication" in name}


def test_sessions_that_are_renewed_or_cannot_be_are_counted_on_both_ends() -> None:
    config = {"security_protocol": "SASL_SSL", "connections.max.reauth.ms": 1500, "status_port": 0}
    users = {"alice": "a-5ecret", "admin": "other-5ecret"}
    with (
        EmbeddedBroker(users=users, **config) as broker,
        KafkaProducer(**broker.client_settings("alice"), **IMPATIENT) as producer,
    ):

        def is_renewed() -> bool:
            producer.send("t", b"v").get(BUDGET_S)
            return figures(producer)["successful-reauthentication-total"] >= 1

        eventually(is_renewed)
        found = figures(producer)
        made = producer.metrics()["producer-metrics"]["connection-creation-total"]
        assert found["successful-authentication-total"] == made > 0
        assert found["successful-authentication-rate"] > 0
        assert found["reauthentication-latency-max"] >= found["reauthentication-latency-avg"] > 0
        assert (found["failed-authentication-total"], found["failed-reauthentication-total"]) == (0, 0)
        metrics = broker_metrics(broker)
        assert metrics["successful_authentication_total"] == made
        assert metrics["reauthentication_latency_count"] == metrics["successful_reauthentication_total"] >= 1
        assert metrics["reauthentication_latency_sum"] > 0
        assert metrics["failed_authentication_total"] == metrics["failed_reauthentication_total"] == 0

        with KafkaAdminClient(**broker.client_settings("admin")) as admin:
            other = UserScramCredentialUpsertion("alice", "SCRAM-SHA-512", "another")
            admin.alter_user_scram_credentials([other])

        def is_refused() -> bool:
            with suppress(KafkaError):
                producer.send("t", b"v").get(1)
            counted = figures(producer)
            return min(counted["failed-authentication-total"], counted["failed-reauthentication-total"]) > 0

        eventually(is_refused)
        metrics = broker_metrics(broker)
        assert metrics["failed_reauthentication_total"] >= 1
        assert metrics["failed_authentication_total"] > metrics["failed_reauthentication_total"]


@pytest.mark.parametrize(("protocol", "is_counted"), [("PLAINTEXT", False), ("SSL", True)])
def test_handshake_of_tls_is_an_authentication_and_a_connection_in_the_clear_is_none(
    protocol: str, is_counted: bool
) -> None:
    with (
        EmbeddedBroker(security_protocol=protocol, status_port=0) as broker,
        KafkaProducer(**broker.client_settings()) as producer,
    ):
        producer.send("t", b"v").get(BUDGET_S)
        assert (figures(producer)["successful-authentication-total"] > 0) is is_counted
        assert (broker_metrics(broker)["successful_authentication_total"] > 0) is is_counted
