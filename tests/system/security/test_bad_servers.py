"""Servers that a client must reject, and clients that a server must reject."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eventually import BUDGET_S
from model.certificates import BAD_SERVERS, Authority, BadServer, bad_servers
from model.tls_front import TlsFront
from security.tls_files import TlsFiles, server_context, with_names_of_tests

from kafkacore import KafkaConsumer, KafkaProducer
from kafkacore.errors import AuthenticationFailedError, SslAuthenticationError


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    return TlsFiles(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def servers(files: TlsFiles) -> dict[str, BadServer]:
    return bad_servers(files.authority)


def authentication_error_of(settings: dict[str, Any], times: int = 1) -> AuthenticationFailedError:
    """Ask for the topics ``times`` times, and return the last authentication error."""
    waiting = {"reconnect_backoff_ms": 1, "bootstrap_timeout_ms": 0}
    with contextlib.closing(KafkaConsumer(**settings, **waiting)) as consumer:
        for _ in range(times):
            with pytest.raises(AuthenticationFailedError) as raised:
                consumer.topics()
        return raised.value


def settings_for(bad: BadServer, files: TlsFiles, port: int, folder: Path) -> dict[str, Any]:
    settings = files.settings(port, bad.host)
    if bad.revocation_list is not None:
        settings["ssl_crlfile"] = str(folder / "revoked.pem")
        (folder / "revoked.pem").write_bytes(bad.revocation_list)
    return settings


@pytest.mark.kafka(
    "SslTransportLayerTest.testEndpointIdentificationNoReverseLookup",
    "SslTransportLayerTest.testInvalidEndpointIdentification",
    "SslTransportLayerTest.testEndpointIdentificationDisabled",
)
@pytest.mark.parametrize("name", BAD_SERVERS)
def test_bad_server_is_refused_at_each_connection_before_anything_of_kafka_is_said(
    name: str,
    files: TlsFiles,
    servers: dict[str, BadServer],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_names_of_tests(monkeypatch)
    bad = servers[name]
    with TlsFront(server_context(bad.identity, tmp_path)) as front:
        error = authentication_error_of(settings_for(bad, files, front.port, tmp_path), times=3)
        met = front.wait_for(3)
    assert isinstance(error, SslAuthenticationError)
    assert bad.says in str(error)
    advice = "set ssl_cafile (of a command: --cafile)"
    assert (advice in str(error)) == (name in {"self-signed", "unknown authority"})
    assert [each.heard_bytes for each in met] == [0] * len(met)


def test_producer_says_why_it_sends_nothing_and_sends_nothing(
    files: TlsFiles, servers: dict[str, BadServer], tmp_path: Path
) -> None:
    bad = servers["unknown authority"]
    with TlsFront(server_context(bad.identity, tmp_path)) as front:
        with (
            pytest.raises(SslAuthenticationError, match=bad.says),
            contextlib.closing(KafkaProducer(**files.settings(front.port))) as producer,
        ):
            producer.send("topic", b"value").get(BUDGET_S)
        met = front.wait_for(1)
    assert not any(each.heard_bytes for each in met)


@pytest.fixture
def choosy_server(files: TlsFiles) -> Iterator[TlsFront]:
    """Start a server that requires client certificates of one authority."""
    with TlsFront(files.good_context(asks_clients=True)) as front:
        yield front


@pytest.mark.kafka(
    "SslTransportLayerTest.testClientAuthenticationRequiredNotProvided",
    "SslTransportLayerTest.testPeerNotifiedOfHandshakeFailureWithClientSideDelay",
)
def test_client_without_a_certificate_is_told_so(files: TlsFiles, choosy_server: TlsFront) -> None:
    error = authentication_error_of(files.settings(choosy_server.port))
    assert "none was presented" in str(error)
    assert not any(met.heard_bytes for met in choosy_server.wait_for(1))


@pytest.mark.kafka("SslTransportLayerTest.testClientAuthenticationRequiredUntrustedProvided")
def test_client_with_a_certificate_of_another_authority_is_told_so(
    files: TlsFiles, choosy_server: TlsFront, tmp_path: Path
) -> None:
    other = Authority().issue("client").write(tmp_path, "other")
    error = authentication_error_of(files.settings(choosy_server.port, **files.identity_settings(other)))
    assert "issuer of the presented certificate is not trusted" in str(error)
    assert not any(met.heard_bytes for met in choosy_server.wait_for(1))
