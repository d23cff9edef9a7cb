"""Our producer and consumer through each secure listener of Apache Kafka, and the logins that it rejects."""

from __future__ import annotations

import collections
import contextlib
import ssl
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from eventually import BUDGET_S, eventually
from model.tokens import TokenOf
from peers.client_security import for_kafkacore
from peers.clients import clients
from peers.java_peer import JavaPeer, Sample
from peers.samples import T0, edge_samples, expected
from peers.secure_broker import SecureBroker
from peers.secure_kafka import KEY_LIFETIME_BYTES, SecureKafka
from peers.secure_listeners import MECHANISMS, renew_sessions_early

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.errors import (
    KafkaConfigurationError,
    SaslAuthenticationFailedError,
    SslAuthenticationError,
    TopicAuthorizationFailedError,
    UnsupportedSaslMechanismError,
)
from kafkacore.security.client_authenticator import SaslClientAuthenticator

#: (listener, mechanism)
WAYS = [
    ("SSL", None),
    ("MTLS", None),
    *((listener, mechanism) for listener in ("SASL_PLAINTEXT", "SASL_SSL") for mechanism in MECHANISMS),
    ("SHORT_SESSIONS", "SCRAM-SHA-256"),
]


def way(
    kafka: SecureKafka | SecureBroker, listener: str, mechanism: str | None, **more: Any
) -> dict[str, Any]:
    """Return the settings of our clients."""
    settings = kafka.settings(listener, mechanism, **more)
    return for_kafkacore(settings) | {"bootstrap_servers": settings["bootstrap_servers"]}


@pytest.mark.kafka(
    "SaslAuthenticatorTest.testValidSaslPlainOverSsl",
    "SaslAuthenticatorTest.testValidSaslPlainOverPlaintext",
    "SaslAuthenticatorTest.testValidSaslScramSha256",
    "SaslAuthenticatorTest.testValidSaslScramMechanisms",
    "SaslAuthenticatorTest.testValidSaslOauthBearerMechanism",
)
@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
def test_we_and_java_read_what_the_other_has_written_through_each_listener(
    secure_kafka: SecureKafka, java_peer: JavaPeer, listener: str, mechanism: str | None
) -> None:
    topic = f"both-{listener}-{mechanism}"
    java_peer.create_topic(secure_kafka.bootstrap_servers, topic, 2)
    settings = secure_kafka.settings(listener, mechanism)
    known, servers = clients(java_peer, settings), settings["bootstrap_servers"]
    ours, java = known["kafkacore"], known["java"]
    samples = edge_samples(2)
    written = expected(samples, ours.produce(servers, topic, samples, "zstd"))
    assert sorted(java.consume(servers, topic, 2, len(written))) == written
    written = sorted(written + expected(samples, java.produce(servers, topic, samples, "gzip")))
    assert sorted(ours.consume(servers, topic, 2, len(written))) == written


@pytest.mark.kafka(
    "SaslAuthenticatorTest.testInvalidPasswordSaslPlain",
    "SaslAuthenticatorTest.testInvalidUsernameSaslPlain",
    "SaslAuthenticatorTest.testInvalidPasswordSaslScram",
    "SaslAuthenticatorTest.testUnknownUserSaslScram",
)
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("who", [("alice", "wrong"), ("unknown", "alice-5ecret")], ids=["password", "user"])
def test_wrong_password_and_unknown_user_are_told_in_the_same_words(
    secure_kafka: SecureKafka, mechanism: str, who: tuple[str, str]
) -> None:
    user, password = who
    settings = way(secure_kafka, "SASL_SSL", mechanism, user=user, password=password)
    with pytest.raises(SaslAuthenticationFailedError) as raised:
        KafkaConsumer(**settings)
    assert password not in str(raised.value)
    with (
        pytest.raises(SaslAuthenticationFailedError),
        contextlib.closing(KafkaProducer(**settings)) as producer,
    ):
        producer.send("never", b"value").get(BUDGET_S)


def test_token_that_has_expired_is_refused(secure_kafka: SecureKafka) -> None:
    settings = way(secure_kafka, "SASL_SSL", "OAUTHBEARER")
    settings["sasl_oauth_token_provider"] = TokenOf("alice", lifetime_s=-60.0)
    with pytest.raises(SaslAuthenticationFailedError):
        KafkaConsumer(**settings)


@pytest.mark.kafka("SaslAuthenticatorTest.testDisabledMechanism")
def test_mechanism_that_the_broker_does_not_have_is_an_error_and_no_other_is_tried(
    secure_kafka: SecureKafka,
) -> None:
    settings = way(secure_kafka, "ONLY_SCRAM", "PLAIN")
    with pytest.raises(UnsupportedSaslMechanismError, match="SCRAM-SHA-512"):
        KafkaConsumer(**settings)


def test_user_whom_no_acl_lets_in_is_told_so_and_stays_a_client(
    secure_kafka: SecureKafka, java_peer: JavaPeer
) -> None:
    java_peer.create_topic(secure_kafka.bootstrap_servers, "not-for-bob")
    settings = way(secure_kafka, "SASL_SSL", "SCRAM-SHA-512", user="bob")
    with contextlib.closing(KafkaProducer(**settings)) as producer:
        for _ in range(2):
            with pytest.raises(TopicAuthorizationFailedError, match="not-for-bob"):
                producer.send("not-for-bob", b"value").get(BUDGET_S)
    with contextlib.closing(KafkaConsumer(**settings)) as consumer:
        consumer.assign([TopicPartition("not-for-bob", 0)])
        with pytest.raises(TopicAuthorizationFailedError, match="not-for-bob"):
            consumer.poll(timeout_ms=60_000)


# ---- Re-authentication during use --------------------------------------------------------------------------


class Copied:
    """The records that a producer and a consumer have written and read while they re-authenticated."""

    def __init__(self, whose: str, broker: SecureKafka | SecureBroker, mechanism: str) -> None:
        self.name = f"{whose}-{mechanism}"
        self._settings = way(broker, "REAUTH", mechanism)
        self._topic = f"again-{mechanism}"
        self.sent: list[bytes] = []
        self.read: list[bytes] = []
        self.connections: dict[str, tuple[float, float]] = {}

    def run(self, begun_again: collections.Counter[str]) -> None:
        """Write and read until both clients have re-authenticated twice."""
        ids = (f"{self.name}-producer", f"{self.name}-consumer")
        with (
            contextlib.closing(KafkaProducer(**self._settings, client_id=ids[0])) as producer,
            contextlib.closing(
                KafkaConsumer(**self._settings, client_id=ids[1], auto_offset_reset="earliest")
            ) as consumer,
        ):
            consumer.assign([TopicPartition(self._topic, 0)])
            self._step(producer, consumer)
            before = {"producer": connections(producer), "consumer": connections(consumer)}
            eventually(
                lambda: min(begun_again[each] for each in ids) >= 2,
                lambda: f"{self.name}: {begun_again}",
                step=lambda: self._step(producer, consumer),
            )
            self._step(producer, consumer)
            for name, client in (("producer", producer), ("consumer", consumer)):
                self.connections[name] = (before[name], connections(client))

    def _step(self, producer: KafkaProducer, consumer: KafkaConsumer) -> None:
        value = b"%d" % len(self.sent)
        producer.send(self._topic, value, partition=0).get(BUDGET_S)
        self.sent.append(value)
        while len(self.read) < len(self.sent):
            records = consumer.poll(timeout_ms=60_000)
            assert records, f"{len(self.read)} of {len(self.sent)} arrived"
            self.read += [record.value for each in records.values() for record in each]


def connections(client: Any) -> float:
    """Return how many connections the client has created."""
    (found,) = {
        values["connection-creation-total"]
        for values in client.metrics().values()
        if "connection-creation-total" in values
    }
    return float(found)


@pytest.fixture
def begun_again(monkeypatch: pytest.MonkeyPatch) -> collections.Counter[str]:
    """Count re-authentications by client id, and let clients re-authenticate early."""
    renew_sessions_early(monkeypatch)
    counted: collections.Counter[str] = collections.Counter()
    begin = SaslClientAuthenticator.begin_reauthentication

    def counting(own: SaslClientAuthenticator, payload: memoryview | None) -> object:
        counted[str(own._client_id)] += 1
        return begin(own, payload)

    monkeypatch.setattr(SaslClientAuthenticator, "begin_reauthentication", counting)
    return counted


@pytest.mark.kafka(
    "SaslAuthenticatorTest.testValidSaslPlainOverSsl",
    "SaslAuthenticatorTest.testMultipleServerMechanisms",
    "SaslAuthenticatorTest.testRepeatedValidSaslPlainOverSsl",
)
def test_clients_reauthenticate_in_the_middle_of_writing_and_reading(
    secure_kafka: SecureKafka,
    secure_broker: SecureBroker,
    java_peer: JavaPeer,
    begun_again: collections.Counter[str],
) -> None:
    copies = []
    for whose, broker in (("kafka", secure_kafka), ("ours", secure_broker)):
        for mechanism in MECHANISMS:
            java_peer.create_topic(broker.bootstrap_servers, f"again-{mechanism}")
            copies.append(Copied(whose, broker, mechanism))
    with ThreadPoolExecutor(len(copies)) as pool:
        list(pool.map(lambda copy: copy.run(begun_again), copies))
    for copy in copies:
        assert copy.read == copy.sent, copy.name
        # No session has expired, and no broker has closed a connection.
        kept = [before == after for before, after in copy.connections.values()]
        assert all(kept), (copy.name, copy.connections)


# ---- TLS messages between frames ---------------------------------------------------------------------------


@pytest.fixture
def watched(secure_kafka: SecureKafka) -> tuple[ssl.SSLContext, collections.Counter[str]]:
    """Return an SSL context, and a counter of the TLS handshake messages that it has read."""
    context = ssl.create_default_context(cafile=secure_kafka.secure.cafile)
    read: collections.Counter[str] = collections.Counter()

    def on_message(_: object, direction: str, __: object, ___: object, kind: Any, ____: bytes) -> None:
        if direction == "read":
            read[getattr(kind, "name", str(kind))] += 1

    context._msg_callback = on_message  # type: ignore[attr-defined]
    return context, read


def test_keys_that_change_in_the_middle_of_a_frame_change_nothing_else(
    secure_kafka: SecureKafka,
    java_peer: JavaPeer,
    watched: tuple[ssl.SSLContext, collections.Counter[str]],
) -> None:
    context, read = watched
    java_peer.create_topic(secure_kafka.bootstrap_servers, "keys")
    settings = {
        "bootstrap_servers": secure_kafka.settings("SSL")["bootstrap_servers"],
        "security_protocol": "SSL",
        "ssl_context": context,
    }
    ours = clients(java_peer, settings)["kafkacore"]
    samples = [Sample(bytes([number]) * 900_000, None, 0, T0) for number in range(8)]
    written = expected(samples, ours.produce(settings["bootstrap_servers"], "keys", samples, "none"))
    after_writing = read["KEY_UPDATE"]
    assert ours.consume(settings["bootstrap_servers"], "keys", 1, len(written)) == written
    least = 8 * 900_000 // KEY_LIFETIME_BYTES - 1
    assert after_writing >= least
    assert read["KEY_UPDATE"] >= after_writing + 1
    assert read["NEWSESSION_TICKET"] > 0


# ---- Wrong security protocols ------------------------------------------------------------------------------


def test_plaintext_to_a_port_of_tls_and_the_reverse_are_told_apart(secure_kafka: SecureKafka) -> None:
    plain = {"bootstrap_servers": secure_kafka.settings("SSL")["bootstrap_servers"]}
    with pytest.raises(SslAuthenticationError, match="the port expects TLS: set security_protocol='SSL'"):
        KafkaConsumer(**plain)
    encrypted = secure_kafka.settings("SSL") | {
        "bootstrap_servers": secure_kafka.settings("PLAINTEXT")["bootstrap_servers"]
    }
    # Apache Kafka closes the connection without a response, as a stopping broker does. The client retries
    # that.
    with pytest.raises(SslAuthenticationError, match="at the start of the TLS handshake"):
        KafkaConsumer(**encrypted)


def test_sasl_listener_is_not_reached_without_sasl_nor_the_reverse(secure_kafka: SecureKafka) -> None:
    with pytest.raises(KafkaConfigurationError, match="sasl_mechanism"):
        KafkaConsumer(**secure_kafka.settings("SASL_SSL"))
    settings = way(secure_kafka, "SASL_SSL", "SCRAM-SHA-256")
    settings["bootstrap_servers"] = secure_kafka.settings("SSL")["bootstrap_servers"]
    with pytest.raises(Exception, match="SASL"):
        KafkaConsumer(**settings, bootstrap_timeout_ms=30_000)


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_client_without_a_login_reads_that_one_may_be_wanted_while_it_polls(
    secure_kafka: SecureKafka, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = secure_kafka.settings(f"SASL_{protocol}") | {"security_protocol": protocol}

    def said() -> list[str]:
        return [each.levelname for each in caplog.records if "the port requires a login" in each.message]

    with contextlib.closing(KafkaConsumer("anything", **settings, bootstrap_timeout_ms=0)) as consumer:
        polled: list[object] = []
        eventually(said, caplog.text, step=lambda: polled.append(consumer.poll(timeout_ms=1_000)))
        # Some more polls, to see that it is not repeated.
        polled += [consumer.poll(timeout_ms=0) for _ in range(20)]
    assert not any(polled)
    assert said() == ["WARNING"]
