"""Clients that reach their brokers through SOCKS5 and HTTP proxies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eventually import BUDGET_S
from model.proxy_server import NOT_ALLOWED, ProxyServer
from peers.secure_broker import SecureBroker, started_secure_broker

from kafkacore import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.cli.main import main
from kafkacore.errors import NoBrokersAvailable
from kafkacore.testing import EmbeddedBroker

#: Host name that only the proxy can resolve.
HIDDEN = "broker.inside.invalid"


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(advertised_host=HIDDEN) as broker:
        yield broker


@pytest.fixture(scope="module")
def secure_broker() -> Iterator[SecureBroker]:
    with started_secure_broker() as broker:
        yield broker


def write_and_read(topic: str, **settings: Any) -> None:
    """Write records that are larger than a socket's buffer, and read them."""
    values = [b"x" * 500_000, b"y"]
    with KafkaProducer(**settings) as producer:
        for value in values:
            producer.send(topic, value, partition=0).get(BUDGET_S)
    with KafkaConsumer(**settings, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert [next(consumer).value for _ in values] == values


@pytest.mark.parametrize("scheme", ["socks5h", "http"])
@pytest.mark.parametrize("credentials", [None, ("alice", "s/cret")])
def test_proxy_resolves_the_names_of_brokers(
    broker: EmbeddedBroker, scheme: str, credentials: tuple[str, str] | None
) -> None:
    user = "" if credentials is None else "alice:s%2Fcret@"
    with ProxyServer(credentials, {HIDDEN: "127.0.0.1"}) as proxy:
        write_and_read(
            "proxied",
            bootstrap_servers=f"{HIDDEN}:{broker.port}",
            proxy_url=f"{scheme}://{user}{proxy.address}",
        )
        assert set(proxy.targets) == {(HIDDEN, broker.port)}


@pytest.mark.parametrize("mechanism", [None, "SCRAM-SHA-256"])
def test_tls_and_sasl_work_through_a_proxy(secure_broker: SecureBroker, mechanism: str | None) -> None:
    settings = secure_broker.settings("SASL_SSL" if mechanism else "SSL", mechanism)
    with ProxyServer() as proxy:
        write_and_read("proxied", **settings, proxy_url=f"socks5://{proxy.address}")
        assert {host for host, _ in proxy.targets} <= {"127.0.0.1", "::1"}


def test_rejected_connection_is_in_the_error(broker: EmbeddedBroker) -> None:
    with ProxyServer() as proxy:
        proxy.reply = NOT_ALLOWED
        with pytest.raises(
            NoBrokersAvailable,
            match=rf"the proxy does not connect to 127\.0\.0\.1:{broker.port}: Connection not allowed "
            rf"by ruleset \(through proxy {proxy.address}\)",
        ):
            KafkaAdminClient(
                bootstrap_servers=f"127.0.0.1:{broker.port}",
                proxy_url=f"socks5://{proxy.address}",
                bootstrap_timeout_ms=1000,
            )


def test_command_uses_the_proxy_of_its_properties(
    broker: EmbeddedBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ProxyServer(hosts={HIDDEN: "127.0.0.1"}) as proxy:
        properties = tmp_path / "client.properties"
        properties.write_text(
            f"bootstrap.servers={HIDDEN}:{broker.port}\nproxy.url=socks5h://{proxy.address}\n"
        )
        assert main(["topics", "list", "--command-config", str(properties)]) == 0
        assert (HIDDEN, broker.port) in proxy.targets
    assert "Traceback" not in capsys.readouterr().err


def test_unreachable_proxy_is_in_the_error(broker: EmbeddedBroker) -> None:
    with ProxyServer() as proxy:
        address = proxy.address
    with pytest.raises(NoBrokersAvailable, match=rf"refused \(through proxy {address}\)"):
        KafkaAdminClient(
            bootstrap_servers=broker.bootstrap_servers,
            proxy_url=f"socks5h://{address}",
            bootstrap_timeout_ms=1000,
        )
