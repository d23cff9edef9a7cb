"""Our SASL client, frame by frame, with Apache Kafka: successful logins, and the errors of failed ones."""

from __future__ import annotations

import contextlib
import math
import ssl
from collections.abc import Callable, Iterator

import pytest
from eventually import eventually
from model.raw_line import Line
from peers.secure_kafka import SecureKafka
from peers.secure_listeners import PASSWORDS, SESSION_LIFETIMES_MS

from kafkacore.access_control import ScramMechanism
from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.errors import (
    IllegalSaslStateError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)
from kafkacore.protocol.generated.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from kafkacore.protocol.generated.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.security import Secret
from kafkacore.security.client_authenticator import SaslClientAuthenticator
from kafkacore.security.sasl import SaslConfig, SaslMechanism, register_sasl_mechanism
from kafkacore.security.sasl.scram_keys import HASH_NAMES, random_text, salted_password

MECHANISMS = ["PLAIN", *sorted(HASH_NAMES)]


def authenticator(
    mechanism: str, user: str = "alice", password: str | None = None, clock: Clock = SYSTEM_CLOCK
) -> SaslClientAuthenticator:
    password = PASSWORDS[user] if password is None else password
    config = SaslConfig(mechanism=mechanism, username=user, password=Secret(password))
    return SaslClientAuthenticator(config, "localhost", "raw", clock)


def talk(line: Line, client: SaslClientAuthenticator, frame) -> None:
    while frame is not None:
        line.say_bytes(b"".join(frame))
        answer = memoryview(line.hear_bytes())
        assert client.expects(answer)
        frame = client.receive(answer)
    assert client.is_complete


def servers(kafka: SecureKafka, listener: str = "SASL_PLAINTEXT") -> str:
    return f"localhost:{kafka.secure.port_of(listener)}"


def add_user(kafka: SecureKafka, name: str, mechanism: str, password: str, iterations: int) -> None:
    salt = random_text().encode()
    upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name=name,
        mechanism=ScramMechanism[mechanism.replace("-", "_")],
        iterations=iterations,
        salt=salt,
        salted_password=salted_password(HASH_NAMES[mechanism], Secret(password), salt, iterations),
    )
    named = DescribeUserScramCredentialsRequest.UserName(name=name)
    asked = DescribeUserScramCredentialsRequest(users=[named])
    with Line(kafka.bootstrap_servers) as line:
        answer = line.ask(AlterUserScramCredentialsRequest(deletions=[], upsertions=[upsertion]), 0)
        assert [result.error_code for result in answer.results] == [0]
        # The controller responds before the broker has applied the change.
        eventually(
            lambda: (
                upsertion.mechanism
                in (
                    info.mechanism
                    for result in line.ask(asked, 0).results
                    for info in result.credential_infos
                )
            ),
            lambda: f"{name} is not made",
        )


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_believes_the_client(secure_kafka: SecureKafka, mechanism: str) -> None:
    client = authenticator(mechanism)
    with Line(servers(secure_kafka)) as line:
        talk(line, client, client.begin())
        assert line.ask(MetadataRequest(topics=[]), 9).brokers
    assert client.reauthenticate_at_ms == math.inf


@pytest.mark.kafka("SaslAuthenticatorTest.testScramUsernameWithSpecialCharacters")
@pytest.mark.parametrize("mechanism", sorted(HASH_NAMES))
@pytest.mark.parametrize(
    ("name", "password", "iterations"),
    [("a,b=c", "p,=q", 4096), ("=2C", "pä ssword 用户", 8192), ("x" * 200, "\N{PILE OF POO}" * 50, 16_384)],
)
def test_kafka_believes_users_of_any_name_and_password(
    secure_kafka: SecureKafka, mechanism: str, name: str, password: str, iterations: int
) -> None:
    add_user(secure_kafka, name, mechanism, password, iterations)

    def is_believed() -> bool:
        client = authenticator(mechanism, name, password)
        try:
            with Line(servers(secure_kafka)) as line:
                talk(line, client, client.begin())
        except SaslAuthenticationFailedError:
            # A broker that describes the user may not accept its login yet.
            return False
        return True

    eventually(is_believed, f"{name} cannot log in")


def test_kafkas_scram_has_no_names_beyond_ascii(secure_kafka: SecureKafka) -> None:
    add_user(secure_kafka, "Zoë", "SCRAM-SHA-256", "pencil", 4096)
    client = authenticator("SCRAM-SHA-256", "Zoë", "pencil")
    with (
        Line(servers(secure_kafka)) as line,
        pytest.raises(SaslAuthenticationFailedError, match="user 'Zoë'"),
    ):
        talk(line, client, client.begin())


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("mallory", "alice-5ecret")])
def test_kafka_does_not_believe_wrong_ones(
    secure_kafka: SecureKafka, mechanism: str, user: str, password: str
) -> None:
    client = authenticator(mechanism, user, password)
    with (
        Line(servers(secure_kafka)) as line,
        pytest.raises(
            SaslAuthenticationFailedError, match=f"rejected the {mechanism} authentication"
        ) as caught,
    ):
        talk(line, client, client.begin())
    assert password not in str(caught.value)


def test_mechanism_that_kafka_does_not_enable_is_refused_with_those_that_it_does(
    secure_kafka: SecureKafka,
) -> None:
    class UnsupportedMechanism(SaslMechanism):
        def step(self, challenge: bytes | None) -> bytes | None:
            return b"hello"

    register_sasl_mechanism("UNSUPPORTED", lambda config, host: UnsupportedMechanism(), overwrite=True)
    client = authenticator("UNSUPPORTED")
    with (
        Line(servers(secure_kafka)) as line,
        pytest.raises(UnsupportedSaslMechanismError, match=r"it supports .*'SCRAM-SHA-256'"),
    ):
        talk(line, client, client.begin())


def test_port_without_sasl_is_told_by_its_answer(secure_kafka: SecureKafka) -> None:
    client = authenticator("PLAIN")
    with (
        Line(servers(secure_kafka, "PLAINTEXT")) as line,
        pytest.raises(IllegalSaslStateError, match="does not expect SASL on this port"),
    ):
        talk(line, client, client.begin())


@pytest.fixture
def session(secure_kafka: SecureKafka) -> Iterator[Callable[[], Line]]:
    """Return a function that connects to a listener whose sessions expire."""
    tls = ssl.create_default_context(cafile=secure_kafka.secure.cafile)
    with contextlib.ExitStack() as held:
        yield lambda: held.enter_context(Line(servers(secure_kafka, "REAUTH"), tls=tls))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_client_authenticates_again_before_kafka_ends_the_session(
    session: Callable[[], Line], mechanism: str
) -> None:
    line, client = session(), authenticator(mechanism)
    talk(line, client, client.begin())
    now_ms = SYSTEM_CLOCK.monotonic_ms()
    assert now_ms < client.reauthenticate_at_ms <= now_ms + SESSION_LIFETIMES_MS["REAUTH"] * 0.95
    talk(line, client, client.begin_reauthentication(None))
    assert client.reauthenticate_at_ms > now_ms
    assert line.ask(MetadataRequest(topics=[]), 9).brokers


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_refuses_a_client_that_reauthenticates_twice_within_a_second(
    session: Callable[[], Line], mechanism: str
) -> None:
    line, client = session(), authenticator(mechanism)
    talk(line, client, client.begin())

    def refusal() -> str:
        """Re-authenticate once more, and return the error.

        Kafka accepts it if a slow machine let more than a second pass since the previous one.
        """
        try:
            talk(line, client, client.begin_reauthentication(None))
        except IllegalSaslStateError as error:
            return str(error)
        return ""

    assert "requires more time between two authentications" in eventually(refusal, step=lambda: None)


def test_kafka_lets_nobody_authenticate_again_without_need(secure_kafka: SecureKafka) -> None:
    client = authenticator("PLAIN")
    with Line(servers(secure_kafka)) as line:
        talk(line, client, client.begin())
        with pytest.raises(IllegalSaslStateError, match="rejected the re-authentication"):
            talk(line, client, client.begin_reauthentication(None))


@pytest.mark.kafka("SaslAuthenticatorTest.testCannotReauthenticateWithDifferentPrincipal")
def test_kafka_lets_nobody_take_a_connection_over(session: Callable[[], Line]) -> None:
    line, client = session(), authenticator("SCRAM-SHA-256")
    talk(line, client, client.begin())
    client._config = authenticator("SCRAM-SHA-256", "bob")._config
    with pytest.raises(SaslAuthenticationFailedError, match="Cannot change principals"):
        talk(line, client, client.begin_reauthentication(None))
