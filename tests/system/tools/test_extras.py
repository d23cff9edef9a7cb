"""Each extra for users installs packages that exist here, and its main path runs with them."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest
from missing_tools import find_tool
from packaging.requirements import Requirement
from security.identity_provider import AUDIENCE, ISSUER, RSA_KEY, claims, key_set, public_jwk, signed

from kafkacore import KafkaConsumer, KafkaProducer
from kafkacore.cli.main import main
from kafkacore.testing import EmbeddedBroker, VirtualClock

PROJECT = Path(__file__).resolve().parents[3]
# Scripts of tools/ import modules next to them.
sys.path.append(str(PROJECT / "tools"))
PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS: dict[str, list[str]] = PYPROJECT["project"]["optional-dependencies"]
NOW_S = 1_000_000_000


def arrow(servers: str, folder: Path) -> None:
    import pyarrow as pa

    with KafkaProducer(bootstrap_servers=servers) as producer:
        producer.send_arrow("arrow", pa.table({"value": [b"a", b"b"]}))
    with KafkaConsumer("arrow", bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        (columns,) = consumer.poll_arrow(timeout_ms=30_000).values()
        assert pa.record_batch(columns)["value"].to_pylist() == [b"a", b"b"]


def spark(servers: str, folder: Path) -> None:
    from pyspark_kafkacore import DefaultSource

    source = DefaultSource({"kafka.bootstrap.servers": servers, "subscribe": "spark"})
    schema = source.schema()
    assert "timestampType" in (schema if isinstance(schema, str) else schema.simpleString())


def delta(servers: str, folder: Path) -> None:
    import pyarrow as pa

    from kafkacore.spark.pipeline.config import DeltaSink
    from kafkacore.spark.pipeline.delta import DeltaWriter

    writer = DeltaWriter(DeltaSink(str(folder / "table")))
    writer.write(pa.table({"value": [1]}), "query", 0)
    assert writer.is_written("query", 0)


def fsspec(servers: str, folder: Path) -> None:
    import fsspec as files

    from kafkacore.spark.log_files.files import Storage

    name = "/extras/orders-0/00000000000000000000.log"
    files.filesystem("memory").pipe_file(name, b"12345")
    assert Storage({}).find(["memory://extras"]) == [(f"memory:/{name}", 5)]


def prometheus(servers: str, folder: Path) -> None:
    from kafkacore.metrics.prometheus import KafkaMetricsCollector

    with KafkaProducer(bootstrap_servers=servers) as producer:
        names = {family.name for family in KafkaMetricsCollector(producer).collect()}
    assert "kafkacore_producer_record_send_rate" in names


def aio(servers: str, folder: Path) -> None:
    import asyncio

    from kafkacore.aio import AIOKafkaProducer

    async def send() -> int:
        async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
            sent = await producer.send_and_wait("aio", b"value")
            return int(sent.offset)

    assert asyncio.run(send()) == 0


def otel(servers: str, folder: Path) -> None:
    from kafkacore.otel import traced_producer

    with traced_producer(bootstrap_servers=servers) as producer:
        assert producer.send("otel", b"value").get(timeout=30).offset == 0


def gssapi(servers: str, folder: Path) -> None:
    find_tool("krb5-config", package="libkrb5-dev")
    from kafkacore.errors import KafkaConfigurationError
    from kafkacore.security.sasl.gssapi import GssapiServer

    with pytest.raises(KafkaConfigurationError, match="cannot load the key"):
        GssapiServer("kafka/localhost@EXAMPLE.COM", str(folder / "no.keytab"))


def aws(servers: str, folder: Path) -> None:
    from datetime import UTC, datetime

    from kafkacore.security import Secret
    from kafkacore.security.sasl.aws_msk_iam import AwsKeys, signed_payload

    keys = AwsKeys("AKID", Secret("secret"), None)
    payload = signed_payload(keys, "b-1.kafka.eu-west-1.amazonaws.com", "eu-west-1", datetime.now(UTC))
    assert b'"x-amz-signature"' in payload


def oauth(servers: str, folder: Path) -> None:
    from kafkacore.security.sasl.jwks import FileKeys
    from kafkacore.security.sasl.jwt_validation import JwtRules, JwtValidator

    (folder / "keys.json").write_bytes(key_set(public_jwk(RSA_KEY, "1", use="sig", alg="RS256")))
    rules = JwtRules(issuer=ISSUER, audience=frozenset({AUDIENCE}), required_scope=frozenset())
    clock = VirtualClock(NOW_S * 1000.0)
    validator = JwtValidator(rules, FileKeys(folder / "keys.json", clock), clock)
    assert validator.validate(signed(claims(NOW_S)))[0] == "alice"


def proxy(servers: str, folder: Path) -> None:
    from kafkacore.client.proxy import Proxy
    from kafkacore.security.proxy_url import parse_proxy_url

    url = parse_proxy_url("socks5h://127.0.0.1:1080")
    assert Proxy(url, lambda host, port: ["127.0.0.1"], VirtualClock()).endpoint == "127.0.0.1:1080"


def re2(servers: str, folder: Path) -> None:
    from kafkacore.broker.config.patterns import matcher_of

    matches = matcher_of("orders-[0-9]+")
    assert matches("orders-12")
    assert not matches("orders-x")


def certificates(servers: str, folder: Path) -> None:
    from kafkacore.broker.listeners.own_certificate import own_certificate

    assert b"PRIVATE KEY" in own_certificate(folder, ["kafka.example"], VirtualClock()).read_bytes()


def cli(servers: str, folder: Path) -> None:
    assert main(["completion", "bash"]) == 0


def demo(servers: str, folder: Path) -> None:
    from kafkacore.cli.demo import _require_extras
    from kafkacore.cli.flights import records

    _require_extras("SASL_SSL")
    assert [key for key, _ in records(2)] == [b"UA", b"UA"]


def bench(servers: str, folder: Path) -> None:
    from kafkacore.bench.machine import DISTRIBUTIONS, missing_for_arrow, missing_peer

    assert [missing_peer(peer) for peer in DISTRIBUTIONS] == [None] * len(DISTRIBUTIONS)
    assert missing_for_arrow() is None


#: The main path of each extra, which takes the address of a broker and an empty folder.
MAIN_PATHS: dict[str, Callable[[str, Path], None]] = {
    path.__name__: path
    for path in (
        *(arrow, spark, delta, fsspec, prometheus, aio, otel, gssapi, aws, oauth, proxy, re2, certificates),
        *(cli, demo, bench),
    )
}


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """Start a broker for the extras of clients."""
    with EmbeddedBroker() as broker:
        yield broker.bootstrap_servers


def test_each_extra_has_a_main_path() -> None:
    assert set(EXTRAS) == {*MAIN_PATHS, "all"}


@pytest.mark.parametrize("extra", sorted(MAIN_PATHS))
def test_main_path_of_extra_runs(extra: str, servers: str, tmp_path: Path) -> None:
    MAIN_PATHS[extra](servers, tmp_path)


@pytest.mark.parametrize("extra", sorted(MAIN_PATHS))
def test_requirements_of_extra_are_installed_and_importable(extra: str) -> None:
    from project_requirements import requirements

    if extra == "gssapi":
        find_tool("krb5-config", package="libkrb5-dev")
    for text in requirements(PYPROJECT, [extra], base=False):
        required = Requirement(text)
        distribution = metadata.distribution(required.name)
        assert distribution.version in required.specifier
        modules = {
            file.parts[0].removesuffix(".py")
            for file in distribution.files or ()
            if file.suffix == ".py"
            and ".." not in file.parts
            and file.parts[0].removesuffix(".py").isidentifier()
        }
        assert any(find_spec(module) for module in modules), text


def test_extra_all_has_every_feature_that_installs_without_a_compiler() -> None:
    (text,) = EXTRAS["all"]
    assert Requirement(text).extras == set(EXTRAS) - {"all", "demo", "bench", "gssapi"}


def test_page_of_the_installation_lists_every_extra() -> None:
    page = (PROJECT / "docs" / "start" / "install.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `kafkacore\[(\w+)\]`", page, re.MULTILINE)) == set(EXTRAS)
