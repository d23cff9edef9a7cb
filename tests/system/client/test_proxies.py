"""Clients that reach their brokers through SOCKS5 and HTTP proxies."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from decode.registry_server import scripted_registry
from eventually import BUDGET_S
from model.proxy_server import NOT_ALLOWED, REFUSED, ProxyServer
from peers.secure_broker import SecureBroker, started_secure_broker
from security.identity_provider import claims, identity_provider, signed

from kafkacore import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.cli.common import CommandError, require_listener
from kafkacore.cli.main import main
from kafkacore.client.addresses import resolve_host
from kafkacore.client.bootstrap import bootstrap_client
from kafkacore.client.config import resolve
from kafkacore.client.proxy import Proxy
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.decode.registry import SchemaRegistry, registry_options
from kafkacore.errors import NoBrokersAvailable
from kafkacore.security.https import ALLOWED_URLS, HttpsOptions, HttpsUnavailableError, fetch
from kafkacore.security.proxy_url import parse_proxy_url
from kafkacore.spark.typed.options import parse_format_options
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


# ---- Other servers than brokers ----------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["socks5h", "http"])
def test_tokens_are_fetched_through_the_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    with identity_provider(tmp_path, (HIDDEN,)) as idp, ProxyServer(hosts={HIDDEN: "127.0.0.1"}) as proxy:
        port = int(idp.address.rpartition(":")[2])
        url = f"https://{HIDDEN}:{port}/token"
        monkeypatch.setenv(ALLOWED_URLS, url)
        idp.will_answer({"access_token": signed(claims(SYSTEM_CLOCK.wall_ms() / 1000))})
        client, _ = bootstrap_client(
            resolve(
                {},
                {
                    "bootstrap_servers": "127.0.0.1:1",
                    "security_protocol": "SASL_SSL",
                    "sasl_mechanism": "OAUTHBEARER",
                    "sasl_oauthbearer_token_endpoint_url": url,
                    "sasl_oauthbearer_client_credentials_client_id": "me",
                    "sasl_oauthbearer_client_credentials_client_secret": "s3cret",
                    "sasl_oauthbearer_https_cafile": idp.cafile,
                    "proxy_url": f"{scheme}://{proxy.address}",
                },
            )
        )
        client.close()
        assert proxy.targets == [(HIDDEN, port)]
        assert [asked.path for asked in idp.asked] == ["/token"]


def test_local_address_of_a_token_endpoint_is_refused_with_socks5(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ProxyServer() as server:
        proxy = Proxy(parse_proxy_url(f"socks5://{server.address}"), resolve_host, SYSTEM_CLOCK)
        here = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 443))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **options: here)
        with pytest.raises(HttpsUnavailableError, match="of this machine, which is allowed only"):
            fetch("https://idp.example/token", HttpsOptions(proxy=proxy))
        assert server.targets == []


@pytest.mark.parametrize("is_secure", [False, True])
@pytest.mark.parametrize("scheme", ["socks5h", "http"])
def test_schema_registry_is_reached_through_the_proxy(tmp_path: Path, scheme: str, is_secure: bool) -> None:
    tls, options = None, {}
    if is_secure:
        authority = trustme.CA()
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(HIDDEN).configure_cert(tls)
        authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
        options["schema.registry.ssl.cafile"] = str(tmp_path / "ca.pem")
    with scripted_registry(tls) as registry, ProxyServer(hosts={HIDDEN: "127.0.0.1"}) as proxy:
        registry.schema(1, {"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}]})
        options["schema.registry.url"] = registry.url.replace("127.0.0.1", HIDDEN)
        # Spark's options of both sides pass the proxy of the brokers to the registry.
        side = parse_format_options(
            {"value.format": "avro", "kafka.proxy.url": f"{scheme}://{proxy.address}", **options}
        ).value
        found = registry_options(side.resolved())
        assert found is not None
        schema, _ = SchemaRegistry(found).schema(1)
        assert schema is not None
        assert {host for host, _ in proxy.targets} == {HIDDEN}


def test_schema_registry_may_be_reached_without_the_proxy_of_the_brokers() -> None:
    options = {"kafka.proxy.url": "socks5://p:1", "schema.registry.url": "http://registry:8081"}
    side = parse_format_options({**options, "schema.registry.proxy.url": ""}).value
    found = registry_options(side.resolved())
    assert found is not None
    assert found.proxy_url is None


class Pauses:
    def __init__(self) -> None:
        self.ms: list[float] = []

    def sleep_ms(self, ms: float) -> None:
        self.ms.append(ms)


def test_listener_check_connects_through_the_proxy(broker: EmbeddedBroker) -> None:
    pauses: Any = Pauses()
    with ProxyServer(hosts={HIDDEN: "127.0.0.1"}) as proxy:
        url = f"socks5h://{proxy.address}"
        require_listener(f"{HIDDEN}:{broker.port}", pauses, proxy_url=url)
        assert proxy.targets == [(HIDDEN, broker.port)]
        proxy.reply = NOT_ALLOWED
        # The client reports other failures than refused connections.
        require_listener(f"{HIDDEN}:1", pauses, proxy_url=url)
        assert pauses.ms == []
        proxy.reply = REFUSED
        refusal = rf"connection refused \(through proxy {proxy.address}\)"
        with pytest.raises(CommandError, match=refusal):
            require_listener(f"{HIDDEN}:1", pauses, proxy_url=url)
    with pytest.raises(CommandError, match=refusal):
        require_listener(f"{HIDDEN}:{broker.port}", pauses, proxy_url=url)


def test_proxy_that_does_not_answer_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"socks5h://127.0.0.1:{silent.getsockname()[1]}"
        proxy = Proxy(parse_proxy_url(url), resolve_host, SYSTEM_CLOCK)
        with pytest.raises(TimeoutError, match=r"did not connect to registry:8081 within 0\.05 s"):
            proxy.connect("registry", 8081, 0.05)


@pytest.mark.parametrize("command", ["bench", "pipeline"])
def test_benchmark_and_pipeline_check_their_brokers_through_the_proxy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    arguments = {
        "bench": ["produce", "--peers", "none", "--records", "1", "--rounds", "1"],
        "pipeline": ["--topic", "t", "--sink", "console", "--format", "string"],
    }[command]
    with ProxyServer() as proxy:
        proxy.reply = REFUSED
        properties = tmp_path / "client.properties"
        properties.write_text(f"proxy.url=socks5h://{proxy.address}\n")
        given = ["--bootstrap", f"{HIDDEN}:9092", "--command-config", str(properties)]
        assert main([command, *arguments, *given]) == 1
        assert set(proxy.targets) == {(HIDDEN, 9092)}
        assert f"connection refused (through proxy {proxy.address})" in capsys.readouterr().err


def test_benchmark_runs_through_the_proxy(
    broker: EmbeddedBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ProxyServer(hosts={HIDDEN: "127.0.0.1"}, piece_bytes=1024) as proxy:
        properties = tmp_path / "client.properties"
        properties.write_text(
            f"bootstrap.servers={HIDDEN}:{broker.port}\nproxy.url=socks5h://{proxy.address}\n"
        )
        arguments = ["produce", "--peers", "none", "--records", "100", "--rounds", "1", "--json"]
        assert main(["bench", *arguments, "--command-config", str(properties)]) == 0
    assert '"void": false' in capsys.readouterr().out
