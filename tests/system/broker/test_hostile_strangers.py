"""A thousand connections that do not authenticate, on listeners that require authentication.

The broker limits their memory and their time, and a well-behaved client is served as before.
"""

from __future__ import annotations

import resource
import ssl
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from eventually import eventually
from model.dose import note
from model.hostile_connections import MIB, Good, connect, frame, is_closed, memory_of, p99

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.protocol import encode_request
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.security import Secret
from kafkacore.security.client_authenticator import SaslClientAuthenticator
from kafkacore.security.sasl import SaslConfig
from kafkacore.testing.embedded_broker import EmbeddedBroker

CONNECTIONS = 1000
MOST_GROWTH = 16 * MIB
SETUP_MS = 4_000
#: Default of ``sasl.server.max.receive.size``, in bytes.
MOST_BEFORE = 524_288


@pytest.fixture(scope="module", params=["SASL_PLAINTEXT", "SASL_SSL"])
def broker(request: pytest.FixtureRequest) -> Iterator[EmbeddedBroker]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    given = {"security_protocol": request.param, "users": {"alice": "her password"}}
    with EmbeddedBroker(connection_setup_timeout_ms=SETUP_MS, **given) as started:
        yield started
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def is_tls(broker: EmbeddedBroker) -> bool:
    return broker.client_settings()["security_protocol"] == "SASL_SSL"


def known_client(broker: EmbeddedBroker, stack: ExitStack) -> Good:
    """Return an authenticated client. On a slow machine this can take several attempts."""

    def attempt() -> Good | None:
        try:
            return authenticated(broker, stack)
        except (AssertionError, OSError):
            # The broker closed the connection, because the attempt took longer than SETUP_MS.
            return None

    return eventually(attempt)


def authenticated(broker: EmbeddedBroker, stack: ExitStack) -> Good:
    tls = None
    if is_tls(broker):
        tls = ssl.create_default_context(cafile=broker.client_settings()["ssl_cafile"])
    good = stack.enter_context(Good(broker.bootstrap_servers, tls=tls))
    config = SaslConfig(mechanism="SCRAM-SHA-256", username="alice", password=Secret("her password"))
    who = SaslClientAuthenticator(config, "127.0.0.1", "raw", SYSTEM_CLOCK)
    pieces = who.begin()
    while pieces is not None:
        good.say_bytes(b"".join(bytes(piece) for piece in pieces))
        pieces = who.receive(memoryview(good.hear_bytes()))
    assert who.is_complete
    return good


def request(message: MetadataRequest, version: int) -> bytes:
    payload = b"".join(bytes(piece) for piece in encode_request(message, version, 7, "client"))
    return frame(len(payload), payload)


#: First bytes that the broker rejects on a connection that is not authenticated.
REFUSED = {
    "2 GiB": frame(2**31 - 1, b"x" * 10),
    "a negative size": frame(-1, b"x" * 10),
    "one byte above the limit": frame(MOST_BEFORE + 1, b"x" * 10),
    "metadata": request(MetadataRequest(), 9),
    "a TLS record that is too long": b"\x16\x03\x01\xff\xff" + bytes(100),
    "junk": b"\x99" * 64,
}
#: First bytes after which the broker waits for more until the connection setup times out.
SLOW = {
    "exactly the limit": frame(MOST_BEFORE, b"x" * 10),
    "half a TLS record": b"\x16\x03\x01\x02\x00\x01\x00\x01",
}


def check_connections(broker: EmbeddedBroker, what: str, first_bytes: bytes) -> None:
    """Check that the broker closes all connections in time, without growing, while it serves a client."""
    with ExitStack() as stack:
        good = known_client(broker, stack)
        before_ms = good.times()
        memory = memory_of(broker.pid)
        hostile = [stack.enter_context(connect(broker)) for _ in range(CONNECTIONS)]
        for each in hostile:
            each.sendall(first_bytes)
        after_ms = good.times()
        grown = memory_of(broker.pid) - memory
        assert all(is_closed(each) for each in hostile)
        assert len(good.times(50)) == 50
    note(
        f"{CONNECTIONS} unknown clients that send {what}{' without TLS' if is_tls(broker) else ''}",
        grown_by=f"{grown / MIB:.1f} MiB", p99_before=p99(before_ms), p99_beside_them=p99(after_ms),
    )  # fmt: skip
    assert grown <= MOST_GROWTH


@pytest.mark.parametrize("what", REFUSED)
def test_thousand_strangers_that_say_what_they_may_not_take_little_and_stop_nobody(
    broker: EmbeddedBroker, what: str
) -> None:
    check_connections(broker, what, REFUSED[what])


@pytest.mark.parametrize("what", SLOW)
def test_thousand_strangers_that_take_their_time_are_closed_and_stop_nobody(
    broker: EmbeddedBroker, what: str
) -> None:
    check_connections(broker, what, SLOW[what])
