"""Kerberos tickets and signed tokens with Apache Kafka: our client, and our broker's checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from model.raw_line import Line
from peers.ticketed_kafka import (
    TOKEN_RULES,
    TicketedListener,
    started_ticketed_kafka,
    ticketed_listener,
)
from security.identity_provider import EC_KEY, OTHER_RSA_KEY, RSA_KEY, claims, signed

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import SaslAuthenticationFailedError
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.security.client_authenticator import SaslClientAuthenticator
from kafkacore.security.https import ALLOWED_URLS
from kafkacore.security.sasl import SaslConfig
from kafkacore.security.sasl.oauth_messages import build_initial_response
from kafkacore.security.sasl.oauthbearer import AbstractTokenProvider
from kafkacore.security.sasl.server_oauthbearer import OAuthBearerServer
from kafkacore.security.sasl.unsecured_tokens import UnsecuredTokenProvider
from kafkacore.security.secret import Secret


@pytest.fixture(scope="module")
def listener() -> Iterator[TicketedListener]:
    with ticketed_listener() as listener, pytest.MonkeyPatch.context() as patch:
        for name, value in listener.realm.environment.items():
            patch.setenv(name, value)
        patch.setenv(ALLOWED_URLS, listener.keys_url)
        yield listener


@pytest.fixture(scope="module")
def kafka(listener: TicketedListener) -> Iterator[TicketedListener]:
    """Start Apache Kafka behind the listener, and yield the listener."""
    with started_ticketed_kafka(listener):
        yield listener


class Given(AbstractTokenProvider):
    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token


def authenticate(kafka: TicketedListener, **settings: Any) -> SaslClientAuthenticator:
    """Authenticate our client to Kafka, then send a request."""
    config = SaslConfig.from_client_config({"security_protocol": "SASL_PLAINTEXT"} | settings)
    client = SaslClientAuthenticator(config, "localhost", "raw", SYSTEM_CLOCK)
    with Line(kafka.servers) as line:
        frame = client.begin()
        while frame is not None:
            line.say_bytes(b"".join(frame))
            frame = client.receive(memoryview(line.hear_bytes()))
        assert line.ask(MetadataRequest(topics=[]), 9).brokers
    return client


def show_token(kafka: TicketedListener, token: str) -> SaslClientAuthenticator:
    return authenticate(kafka, sasl_mechanism="OAUTHBEARER", sasl_oauth_token_provider=Given(token))


def test_kafka_believes_our_ticket(kafka: TicketedListener) -> None:
    client = authenticate(
        kafka,
        sasl_mechanism="GSSAPI",
        sasl_kerberos_principal="alice",
        sasl_kerberos_keytab=str(kafka.realm.folder / "alice.keytab"),
    )
    assert client.is_complete


def now_s() -> int:
    return SYSTEM_CLOCK.wall_ms() // 1000


def test_both_brokers_believe_a_signed_token_as_long_as_it_lives(kafka: TicketedListener) -> None:
    for token in (
        signed(claims(now_s())),
        signed(claims(now_s(), aud=["x", "kafka"]), EC_KEY, "ES256", "ec"),
    ):
        begun_ms = SYSTEM_CLOCK.monotonic_ms()
        client = show_token(kafka, token)
        # Bounded by the times before and after the login, however long that takes.
        assert begun_ms + 240_000 < client.reauthenticate_at_ms < SYSTEM_CLOCK.monotonic_ms() + 300_000
        assert ours(kafka, token) == ""


#: Fault → function that makes a token with it.
BAD_TOKENS = {
    "unsigned": lambda: UnsecuredTokenProvider("alice").token(),
    "a stranger signed it": lambda: signed(claims(now_s()), OTHER_RSA_KEY),
    "an unknown key": lambda: signed(claims(now_s()), key_id="2"),
    "another algorithm's key": lambda: signed(claims(now_s()), RSA_KEY, key_id="ec"),
    "a secret": lambda: signed(claims(now_s()), "x" * 64, "HS256"),
    "another issuer": lambda: signed(claims(now_s(), iss="https://evil.example")),
    "no issuer": lambda: signed(claims(now_s(), iss=None)),
    "another audience": lambda: signed(claims(now_s(), aud="mail")),
    "no audience": lambda: signed(claims(now_s(), aud=None)),
    "expired": lambda: signed(claims(now_s() - 3600)),
    "never expires": lambda: signed(claims(now_s(), exp=None)),
    "not yet valid": lambda: signed(claims(now_s(), nbf=now_s() + 600)),
    "never issued": lambda: signed(claims(now_s(), iat=None)),
    "not a valid name": lambda: signed(claims(now_s(), sub=None)),
    "names nothing": lambda: signed(claims(now_s(), sub=" ")),
    "no token": lambda: "a.b.c",
}


@pytest.mark.parametrize("what", BAD_TOKENS)
def test_token_that_kafka_refuses_is_refused_by_our_broker(kafka: TicketedListener, what: str) -> None:
    token = BAD_TOKENS[what]()
    with pytest.raises(SaslAuthenticationFailedError, match="rejected the OAUTHBEARER authentication: "):
        show_token(kafka, token)
    assert "the token was rejected" in ours(kafka, token)


def ours(kafka: TicketedListener, token: str) -> str:
    """Return the reason why our broker rejects the token, or "" if it does not."""
    server = OAuthBearerServer(TOKEN_RULES | {"sasl.oauthbearer.jwks.endpoint.url": kafka.keys_url})
    mechanism = server()
    try:
        if not mechanism.step(build_initial_response(Secret(token), {})):
            return ""
        mechanism.step(b"\x01")
    except SaslAuthenticationFailedError as error:
        return str(error)
    finally:
        server.close()
    raise AssertionError("neither accepted nor rejected")
