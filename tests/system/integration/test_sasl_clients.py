"""Our clients authenticate to Apache Kafka and to our broker, and re-authenticate with requests in flight.

Both brokers reject invalid credentials.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Any

import pytest
from eventually import BUDGET_S, eventually
from peers.secure_broker import SecureBroker
from peers.secure_kafka import SecureKafka
from peers.secure_listeners import renew_sessions_early

from kafkacore import KafkaConsumer, KafkaProducer
from kafkacore.admin import KafkaAdminClient
from kafkacore.errors import (
    KafkaConfigurationError,
    SaslAuthenticationFailedError,
)
from kafkacore.producer import FutureRecordMetadata
from kafkacore.security.client_authenticator import SaslClientAuthenticator

Server = SecureKafka | SecureBroker


@pytest.fixture(params=["secure_kafka", "secure_broker"])
def server(request: pytest.FixtureRequest) -> Server:
    return request.getfixturevalue(request.param)


def read(consumer: KafkaConsumer, count: int) -> list[bytes]:
    found: list[bytes] = []

    def step() -> None:
        for records in consumer.poll(timeout_ms=200).values():
            found.extend(record.value for record in records)

    eventually(lambda: len(found) >= count, lambda: found, step=step)
    return found


def test_clients_reauthenticate_while_requests_are_in_flight_and_no_record_is_lost_or_repeated(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    renew_sessions_early(monkeypatch)
    settings, topic = server.settings("REAUTH", "SCRAM-SHA-512"), "sessions"
    again: list[SaslClientAuthenticator] = []
    begin = SaslClientAuthenticator.begin_reauthentication

    def counted(self: SaslClientAuthenticator, payload: memoryview | None) -> Any:
        again.append(self)
        return begin(self, payload)

    monkeypatch.setattr(SaslClientAuthenticator, "begin_reauthentication", counted)
    # A new topic has no leader for a moment, and a record that is not retried would be lost then.
    with contextlib.closing(KafkaProducer(**settings)) as producer:
        begun = producer.send(topic, b"begun").get(BUDGET_S).offset + 1
    again.clear()
    futures: list[FutureRecordMetadata] = []
    with contextlib.closing(
        KafkaProducer(linger_ms=0, batch_size=500, retries=0, enable_idempotence=False, **settings)
    ) as producer:

        def step() -> None:
            futures.extend([producer.send(topic, b"%d" % (len(futures) + number)) for number in range(20)])
            # So many that some are always in flight, but memory use stays limited.
            futures[max(len(futures) - 500, 0)].get(BUDGET_S)

        eventually(
            lambda: len(again) >= 2 and all(client.is_complete for client in again), lambda: again, step=step
        )
        offsets = [future.get(BUDGET_S).offset for future in futures]
    assert offsets == list(range(begun, begun + len(futures)))
    with contextlib.closing(
        KafkaConsumer(topic, auto_offset_reset="earliest", group_id=None, **settings)
    ) as consumer:
        found = read(consumer, begun + len(futures))
        assert found[begun:] == [b"%d" % number for number in range(len(futures))]


def produced(settings: dict[str, Any]) -> None:
    with contextlib.closing(KafkaProducer(**settings)) as producer:
        producer.send("unused", b"value").get(BUDGET_S)


def consumed(settings: dict[str, Any]) -> None:
    with contextlib.closing(KafkaConsumer("unused", group_id="unused", **settings)) as consumer:
        read(consumer, 1)


def listed(settings: dict[str, Any]) -> None:
    with contextlib.closing(KafkaAdminClient(**settings)) as admin:
        admin.list_topics()


@pytest.mark.parametrize("use", [produced, consumed, listed])
@pytest.mark.parametrize("user", ["alice", "mallory"])
def test_who_is_not_believed_is_told_so_and_no_log_has_the_password(
    server: Server, caplog: pytest.LogCaptureFixture, use: Callable[[dict[str, Any]], None], user: str
) -> None:
    caplog.set_level(logging.NOTSET)
    settings = server.settings("SASL_PLAINTEXT", "SCRAM-SHA-256", "alice", "canary-7")
    with pytest.raises(SaslAuthenticationFailedError, match=f"user '{user}'") as caught:
        use(settings | {"sasl_plain_username": user})
    assert "canary-7" not in str(caught.value) + caplog.text


def test_password_over_plaintext_is_refused_before_there_is_a_connection() -> None:
    settings = {"sasl_mechanism": "PLAIN", "sasl_plain_username": "alice", "sasl_plain_password": "pencil"}
    with pytest.raises(KafkaConfigurationError, match="sasl_allow_plain_over_plaintext=True"):
        KafkaProducer(bootstrap_servers="localhost:1", security_protocol="SASL_PLAINTEXT", **settings)
