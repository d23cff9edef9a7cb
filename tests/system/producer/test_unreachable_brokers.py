"""Brokers that are unreachable at the start or for a while.

The producer logs one warning, raises a typed error in time, and continues when the broker is back.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from eventually import BUDGET_MS, BUDGET_S, eventually

from kafkacore import KafkaProducer
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import KafkaTimeoutError, NoBrokersAvailable, SslAuthenticationError
from kafkacore.testing import EmbeddedBroker, FaultProxy

#: Time for many attempts, or for at least one on a slow machine.
BOOTSTRAP_MS = 2_500
FAST = {"reconnect_backoff_ms": 20, "reconnect_backoff_max_ms": 50}


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """Start a server that sends ``answer`` after the first bytes of a client and closes the connection."""
    server = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(BUDGET_S)
                connection.recv(4096)
                connection.sendall(answer)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield f"127.0.0.1:{server.getsockname()[1]}"
    finally:
        # close() alone would not wake accept().
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(BUDGET_S)


@contextmanager
def closed_port() -> Iterator[str]:
    """Reserve a port on which no server listens."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{reserved.getsockname()[1]}"


@contextmanager
def unknown_name() -> Iterator[str]:
    yield "no-such-host.invalid:9092"


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        (closed_port(), "Connection refused"),
        (unknown_name(), "not known"),
        (answering(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "the server speaks HTTP"),
        (answering(b""), "if the port expects TLS"),
    ],
    ids=["closed port", "unknown name", "HTTP", "hangs up"],
)
def test_who_is_no_broker_is_said_once_and_ends_in_a_typed_error_in_time(
    place: Iterator[str], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    threads = threading.active_count()
    with place as servers:  # type: ignore[attr-defined]
        started_ms = SYSTEM_CLOCK.monotonic_ms()
        with pytest.raises(NoBrokersAvailable, match=reason) as raised:
            KafkaProducer(bootstrap_servers=servers, bootstrap_timeout_ms=BOOTSTRAP_MS, **FAST)
        took_ms = SYSTEM_CLOCK.monotonic_ms() - started_ms
    assert isinstance(raised.value, KafkaTimeoutError)
    assert servers in str(raised.value)
    assert BOOTSTRAP_MS <= took_ms < BUDGET_MS
    (said,) = warnings_in(caplog)
    assert servers in said
    assert reason in said
    assert threading.active_count() <= threads


def test_a_port_that_speaks_tls_is_told_at_once_to_a_client_in_the_clear(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with (
        answering(b"\x15\x03\x01\x00\x02\x02\x28") as servers,
        pytest.raises(SslAuthenticationError, match="the port expects TLS: set security_protocol='SSL'"),
    ):
        KafkaProducer(bootstrap_servers=servers, bootstrap_timeout_ms=60_000, **FAST)
    (said,) = warnings_in(caplog)
    assert "retrying" not in said


def test_a_port_in_the_clear_is_told_to_a_client_with_tls_after_some_tries() -> None:
    """Raise SslAuthenticationError only after some attempts, because a stopping broker looks the same."""
    with (
        answering(b"") as servers,
        pytest.raises(SslAuthenticationError, match="at the start of the TLS handshake"),
    ):
        KafkaProducer(bootstrap_servers=servers, bootstrap_timeout_ms=60_000, security_protocol="SSL", **FAST)


@pytest.fixture
def proxy() -> Iterator[FaultProxy]:
    with FaultProxy() as made, EmbeddedBroker(advertised_port=made.port) as broker:
        made.target = broker.bootstrap_servers
        yield made


def wait_until_said(caplog: pytest.LogCaptureFixture, what: str) -> None:
    eventually(lambda: any(what in said for said in warnings_in(caplog)))


def test_producer_that_waits_for_its_first_broker_goes_on_when_it_comes_up(
    proxy: FaultProxy, caplog: pytest.LogCaptureFixture
) -> None:
    proxy.set_refusing()
    made: list[KafkaProducer] = []
    config = FAST | {"bootstrap_servers": proxy.bootstrap_servers, "bootstrap_timeout_ms": float("inf")}
    thread = threading.Thread(target=lambda: made.append(KafkaProducer(**config)))
    thread.start()
    wait_until_said(caplog, "no connection to")
    assert not made
    proxy.set_refusing(False)
    thread.join(BUDGET_S)
    with made[0] as producer:
        producer.send("ub-later", b"v").get(BUDGET_S)
    assert len([said for said in warnings_in(caplog) if "Connection refused" in said]) == 1
    assert warnings_in(caplog)[-1] == f"{proxy.bootstrap_servers} can be reached now"


def test_producer_that_is_told_the_brokers_version_is_made_without_a_broker(proxy: FaultProxy) -> None:
    proxy.set_refusing()
    config = FAST | {
        "bootstrap_servers": proxy.bootstrap_servers,
        "api_version": (2, 8),
        "max_block_ms": 2_000,
    }
    with KafkaProducer(**config) as producer:
        with pytest.raises(KafkaTimeoutError, match="Connection refused"):
            producer.send("ub-told", b"v")
        assert not producer.bootstrap_connected()
        producer._topics.max_block_ms = BUDGET_MS
        proxy.set_refusing(False)
        producer.send("ub-told", b"v").get(BUDGET_S)
        assert producer.bootstrap_connected()


def test_broker_that_is_killed_and_comes_back_is_said_once_each_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with (
        EmbeddedBroker() as broker,
        KafkaProducer(bootstrap_servers=broker.bootstrap_servers, **FAST) as producer,
    ):
        producer.send("ub-killed", b"first").get(BUDGET_S)
        for _ in range(2):
            caplog.clear()
            broker.kill()
            future = producer.send("ub-killed", b"v")
            wait_until_said(caplog, "Connection refused")
            with pytest.raises(KafkaTimeoutError):
                future.get(0.5)
            broker.restart()
            future.get(BUDGET_S)
            refused = [said for said in warnings_in(caplog) if "Connection refused" in said]
            assert len(refused) == 1
            assert warnings_in(caplog)[-1] == f"{broker.bootstrap_servers} can be reached now"
