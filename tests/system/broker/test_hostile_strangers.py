"""A thousand connections to listeners that ask who one is, none of which says so: they are held to little
memory and little time, and a good client beside them is answered as before.
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
#: ``sasl.server.max.receive.size``
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
    """One that has shown who it is; on a slow machine, after more attempts than one."""

    def attempt() -> Good | None:
        try:
            return authenticated(broker, stack)
        except (AssertionError, OSError):
            # The broker hung up, because the attempt took longer than SETUP_MS.
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


#: First bytes, none of which anybody may go on with before it is known who it is.
REFUSED = {
    "2 GiB": frame(2**31 - 1, b"x" * 10),
    "less than nothing": frame(-1, b"x" * 10),
    "a byte more than may be": frame(MOST_BEFORE + 1, b"x" * 10),
    "metadata": request(MetadataRequest(), 9),
    "a record of TLS that is too long": b"\x16\x03\x01\xff\xff" + bytes(100),
    "junk": b"\x99" * 64,
}
#: Those that do not come to the point.
SLOW = {
    "as much as may be": frame(MOST_BEFORE, b"x" * 10),
    "half a TLS record": b"\x16\x03\x01\x02\x00\x01\x00\x01",
}


def measured(broker: EmbeddedBroker, what: str, first_bytes: bytes) -> None:
    """All are closed in time, the broker's memory is what it was, and a good client is answered meanwhile."""
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
        f"{CONNECTIONS} strangers that send {what}{' inside no TLS' if is_tls(broker) else ''}",
        grown_by=f"{grown / MIB:.1f} MiB", p99_before=p99(before_ms), p99_beside_them=p99(after_ms),
    )  # fmt: skip
    assert grown <= MOST_GROWTH


@pytest.mark.parametrize("what", REFUSED)
def test_thousand_strangers_that_say_what_they_may_not_take_little_and_stop_nobody(
    broker: EmbeddedBroker, what: str
) -> None:
    measured(broker, what, REFUSED[what])


@pytest.mark.parametrize("what", SLOW)
def test_thousand_strangers_that_take_their_time_are_closed_and_stop_nobody(
    broker: EmbeddedBroker, what: str
) -> None:
    measured(broker, what, SLOW[what])
