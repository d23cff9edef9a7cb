"""PLAIN: client and server, and when a client may send its password."""

from __future__ import annotations

import pytest
from security.credentials import Users

from kafkacore.errors import KafkaConfigurationError, SaslAuthenticationFailedError
from kafkacore.security import Secret
from kafkacore.security.sasl import SaslConfig, make_mechanism, plain
from kafkacore.security.sasl.plain import PlainServer


@pytest.fixture(scope="module")
def users() -> Users:
    return Users({"alice": "pencil", "Zoë, =": "pässword", "x": "y" * 1000})


def test_user_with_the_password_is_believed(users: Users) -> None:
    for user, password in users.passwords.items():
        client = make_mechanism(SaslConfig(mechanism="PLAIN", username=user, password=password), "host")
        server = PlainServer(users)
        assert server.step(client.step(None)) == b""
        assert client.is_complete
        assert server.is_complete
        assert server.principal == ("User", user)


def test_client_sends_no_authorization_id() -> None:
    client = make_mechanism(
        SaslConfig(mechanism="PLAIN", username="alice", password=Secret("pencil")), "host"
    )
    assert client.step(None) == b"\0alice\0pencil"
    with pytest.raises(SaslAuthenticationFailedError, match="which PLAIN does not have"):
        client.step(b"who are you?")


def test_kafka_pythons_authorization_id_is_the_user(users: Users) -> None:
    server = PlainServer(users)
    server.step(b"alice\0alice\0pencil")
    assert server.authorization_id == "alice"


@pytest.mark.kafka(
    "SaslAuthenticatorTest.testInvalidPasswordSaslPlain",
    "SaslAuthenticatorTest.testMissingUsernameSaslPlain",
    "SaslAuthenticatorTest.testMissingPasswordSaslPlain",
)
@pytest.mark.parametrize(
    ("message", "text"),
    [
        (b"", "1 parts"),
        (b"alice\0pencil", "2 parts"),
        (b"\0alice\0pencil\0", "4 parts"),
        (b"\0\0pencil", "no user or no password"),
        (b"\0alice\0", "no user or no password"),
        (b"\0alice\0pencil2", "wrong password"),
        (b"\0alice\0penci", "wrong password"),
        (b"\0bob\0pencil", "wrong password"),
        (b"bob\0alice\0pencil", "identity of another user"),
        (b"\0ali\xff\0pencil", "not UTF-8"),
        (b"\0a\x1b[31m\n\0pencil", r"'a\\x1b\[31m\\n'"),
    ],
)
def test_server_refuses(users: Users, message: bytes, text: str) -> None:
    server = PlainServer(users)
    with pytest.raises(SaslAuthenticationFailedError, match=text) as caught:
        server.step(message)
    assert not server.is_complete
    assert "pencil" not in str(caught.value)


def test_server_ends_when_the_client_goes_on(users: Users) -> None:
    server = PlainServer(users)
    server.step(b"\0alice\0pencil")
    with pytest.raises(SaslAuthenticationFailedError, match="was complete"):
        server.step(b"\0alice\0pencil")


@pytest.mark.kafka("SaslAuthenticatorTest.testInvalidUsernameSaslPlain")
def test_user_that_there_is_not_is_refused_in_the_same_words(users: Users) -> None:
    texts = set()
    for user in ("alice", "bob"):
        with pytest.raises(SaslAuthenticationFailedError) as caught:
            PlainServer(users).step(f"\0{user}\0guess".encode())
        texts.add(str(caught.value).replace(user, ""))
    assert len(texts) == 1


def test_user_that_there_is_not_has_no_password_at_all(users: Users) -> None:
    with pytest.raises(SaslAuthenticationFailedError, match="wrong password"):
        PlainServer(users).step(b"\0bob\0" + plain._UNKNOWN_USERS_PASSWORD.octets())


def test_password_goes_over_plaintext_only_when_asked_for() -> None:
    settings = {
        "mechanism": "PLAIN",
        "username": "alice",
        "password": Secret("pencil"),
        "is_encrypted": False,
    }
    with pytest.raises(KafkaConfigurationError, match="sasl_allow_plain_over_plaintext=True"):
        make_mechanism(SaslConfig(**settings), "localhost")
    client = make_mechanism(SaslConfig(**settings, allow_plain_over_plaintext=True), "localhost")
    assert client.step(None) == b"\0alice\0pencil"
