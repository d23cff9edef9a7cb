"""Our broker's TLS listeners, with valid, invalid and misbehaving clients."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from eventually import BUDGET_S, eventually
from model.certificates import EXPIRED, Authority, PemFiles
from model.raw_line import Line
from peers.secure_broker import SecureBroker, started_secure_broker

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.broker.process.process import BrokerProcessError
from kafkacore.errors import SslAuthenticationError
from kafkacore.protocol.generated.api_versions import ApiVersionsRequest
from kafkacore.testing.embedded_broker import EmbeddedBroker

CUTS = {
    "whole": {},
    "byte by byte": {"piece_bytes": 1, "record_bytes": 200},
    "tiny records": {"record_bytes": 7},
}


@pytest.fixture(scope="module")
def broker() -> Iterator[SecureBroker]:
    with started_secure_broker() as broker:
        yield broker


class OwnFiles:
    """The TLS files of a broker that is started for one test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority()
        self.cafile = self.authority.write(folder)
        self.files = self.authority.issue().write(folder, "broker")

    def properties(self, **more: str) -> dict[str, str]:
        return {
            "listeners": "SSL://localhost:0",
            "ssl.keystore.location": self.files.both,
            "ssl.truststore.location": self.cafile,
            **{name.replace("_", "."): value for name, value in more.items()},
        }


@pytest.fixture
def own(tmp_path: Path) -> OwnFiles:
    return OwnFiles(tmp_path)


def context_of(cafile: str, own: PemFiles | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=cafile)
    if own is not None:
        context.load_cert_chain(own.certificate, own.key)
    return context


def address(broker: SecureBroker, listener: str) -> str:
    return str(broker.settings(listener)["bootstrap_servers"])


def is_answered(servers: str, context: ssl.SSLContext | None, **cut: int) -> bool:
    """Return whether the broker answers the ApiVersions request of a client with this context."""
    with Line(servers, tls=context, **cut) as line:
        return line.ask(ApiVersionsRequest(), 0).error_code == 0


@pytest.mark.parametrize(("spoken", "other"), [("TLSv1.3", "TLSv1.2"), ("TLSv1.2", "TLSv1.3")])
def test_both_ends_speak_one_version_of_tls_alone_where_they_are_told_so(
    own: OwnFiles, spoken: str, other: str
) -> None:
    with EmbeddedBroker(**own.properties(ssl_enabled_protocols=spoken), flush="os") as broker:
        settings = {**broker.client_settings(), "ssl_cafile": own.cafile}
        for configured in (spoken, f"{spoken},{other}"):
            with KafkaProducer(**settings, ssl_enabled_protocols=configured) as producer:
                assert producer.send("versions", b"v").get(BUDGET_S).partition >= 0
        with pytest.raises(SslAuthenticationError, match="any TLS version that is allowed here"):
            KafkaProducer(**settings, ssl_enabled_protocols=other)


@pytest.mark.kafka(
    "SslTransportLayerTest.testNetReadBufferResize",
    "SslTransportLayerTest.testNetWriteBufferResize",
    "SslTransportLayerTest.testApplicationBufferResize",
)
@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_client_is_served_however_it_cuts_what_it_says(
    broker: SecureBroker, cut: dict[str, int], version: ssl.TLSVersion
) -> None:
    context = context_of(broker.secure.cafile)
    context.minimum_version = context.maximum_version = version
    with Line(address(broker, "SSL"), "x" * 5_000, context, **cut) as line:
        for _ in range(20):
            assert line.ask(ApiVersionsRequest(), 0).error_code == 0


@pytest.mark.kafka(
    "SslTransportLayerTest.testClientEndpointNotValidated",
    "SslTransportLayerTest.testClientAuthenticationRequiredValidProvided",
    "SslTransportLayerTest.testClientAuthenticationRequestedValidProvided",
)
@pytest.mark.parametrize("listener", ["SSL", "MTLS"])
def test_client_with_a_certificate_is_served_whatever_name_is_in_it(
    broker: SecureBroker, tmp_path: Path, listener: str
) -> None:
    for name, names in (("client", []), ("no.such.host", ["no.such.host"])):
        own = broker.secure.authority.issue(name, names).write(tmp_path, "own")
        assert is_answered(address(broker, listener), context_of(broker.secure.cafile, own))


@pytest.mark.kafka(
    "SslTransportLayerTest.testListenerConfigOverride",
    "SslTransportLayerTest.testClientAuthenticationRequiredNotProvided",
    "SslTransportLayerTest.testClientAuthenticationRequestedNotProvided",
)
def test_client_without_a_certificate_is_served_only_where_none_is_required(broker: SecureBroker) -> None:
    context = context_of(broker.secure.cafile)
    assert is_answered(address(broker, "SSL"), context)
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"):
        is_answered(address(broker, "MTLS"), context)


@pytest.mark.kafka(
    "SslTransportLayerTest.testClientAuthenticationRequiredUntrustedProvided",
    "SslTransportLayerTest.testPeerNotifiedOfHandshakeFailure",
)
@pytest.mark.parametrize("listener", ["SSL", "MTLS"])
def test_client_that_is_not_believed_is_told_why_where_certificates_are_asked_for(
    broker: SecureBroker, tmp_path: Path, listener: str
) -> None:
    stranger = Authority().issue("client").write(tmp_path, "stranger")
    with pytest.raises(ssl.SSLError, match="UNKNOWN_CA"):
        is_answered(address(broker, listener), context_of(broker.secure.cafile, stranger))
    late = broker.secure.authority.issue("client", valid=EXPIRED).write(tmp_path, "late")
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_EXPIRED"):
        is_answered(address(broker, listener), context_of(broker.secure.cafile, late))


@pytest.mark.kafka(
    "SslTransportLayerTest.testTlsDefaults",
    "SslTransportLayerTest.testUnsupportedCiphers",
)
def test_old_tls_and_unknown_ciphers_are_refused_with_an_alert(broker: SecureBroker) -> None:
    old = context_of(broker.secure.cafile)
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION"):
        is_answered(address(broker, "SSL"), old)
    odd = context_of(broker.secure.cafile)
    odd.maximum_version = ssl.TLSVersion.TLSv1_2
    odd.set_ciphers("RSA+AES128")  # the broker has an elliptic-curve key
    with pytest.raises(ssl.SSLError, match="HANDSHAKE_FAILURE"):
        is_answered(address(broker, "SSL"), odd)


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\n\r\n", b"\x00\x00\x00\x12\x00\x12\x00\x03" + bytes(14)])
def test_what_is_not_tls_is_hung_up_on_and_the_log_says_what_it_was(
    broker: SecureBroker, said: bytes
) -> None:
    host, port = address(broker, "SSL").split(":")
    with socket.create_connection((host, int(port)), BUDGET_S) as sock:
        sock.sendall(said)
        received = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := sock.recv(1024):
                received += piece
    assert len(received) < 100
    spoken = "speaks HTTP" if said.startswith(b"GET") else "speaks plaintext"
    eventually(lambda: spoken in broker.log_path.read_text())


def test_tls_to_a_port_without_it_is_hung_up_on_and_the_log_says_so(broker: SecureBroker) -> None:
    with pytest.raises((ssl.SSLError, EOFError, ConnectionResetError)):
        is_answered(address(broker, "PLAINTEXT"), context_of(broker.secure.cafile))
    eventually(lambda: "it uses TLS" in broker.log_path.read_text())
    assert is_answered(address(broker, "PLAINTEXT"), None)


@pytest.mark.kafka("SslTransportLayerTest.testCloseSsl", "SslTransportLayerTest.testClosePlaintext")
def test_requests_before_a_goodbye_are_all_done(broker: SecureBroker) -> None:
    settings = broker.settings("SSL")
    with contextlib.closing(KafkaProducer(**settings, acks=0, linger_ms=0)) as producer:
        for number in range(20):
            producer.send("goodbye", b"%d" % number, partition=0)
    with contextlib.closing(KafkaConsumer(**settings, auto_offset_reset="earliest")) as consumer:
        consumer.assign([TopicPartition("goodbye", 0)])
        found: list[bytes] = []
        while len(found) < 20:
            records = consumer.poll(timeout_ms=60_000)
            assert records, found
            found += [record.value for each in records.values() for record in each]
    assert found == [b"%d" % number for number in range(20)]


@pytest.mark.kafka("SslTransportLayerTest.testClientAuthenticationDisabledUntrustedProvided")
def test_nobody_looks_at_certificates_that_were_not_asked_for(own: OwnFiles) -> None:
    stranger = Authority().issue("client").write(own.folder, "stranger")
    with EmbeddedBroker(**own.properties()) as broker:
        assert is_answered(broker.bootstrap_servers, context_of(own.cafile, stranger))


@pytest.mark.kafka(
    "SaslAuthenticatorTest.testSslClientAuthRequestedForSaslSslListener",
    "SaslAuthenticatorTest.testSslClientAuthRequiredForSaslSslListener",
    "SaslAuthenticatorTest.testSslClientAuthRequestedOverriddenForSaslSslListener",
    "SaslAuthenticatorTest.testSslClientAuthRequiredOverriddenForSaslSslListener",
)
@pytest.mark.parametrize("asked", ["requested", "required"])
def test_certificate_and_mechanism_are_both_wanted_where_both_are_configured(
    own: OwnFiles, asked: str
) -> None:
    properties = own.properties(listeners="SASL_SSL://localhost:0")
    properties["listener.name.sasl_ssl.ssl.client.auth"] = asked
    with EmbeddedBroker(**properties, users={"alice": "secret"}) as broker:
        settings = {
            "bootstrap_servers": broker.bootstrap_servers,
            "security_protocol": "SASL_SSL",
            "ssl_cafile": own.cafile,
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": "alice",
            "sasl_plain_password": "secret",
        }
        shown = own.authority.issue("stranger").write(own.folder, "client")
        both = settings | {"ssl_certfile": shown.certificate, "ssl_keyfile": shown.key}
        with contextlib.closing(KafkaConsumer(**both)) as consumer:
            assert isinstance(consumer.topics(), set)
        if asked == "required":
            with pytest.raises(SslAuthenticationError):
                KafkaConsumer(**settings)
        else:
            with contextlib.closing(KafkaConsumer(**settings)) as consumer:
                assert isinstance(consumer.topics(), set)


# ---- Files -------------------------------------------------------------------------------------------------


@pytest.mark.kafka(
    "SslTransportLayerTest.testClientAuthenticationDisabledNotProvided",
    "SslTransportLayerTest.testECKeyPair",
    "SslTransportLayerTest.testPemFiles",
    "SslTransportLayerTest.testPemFilesWithoutServerKeyPassword",
)
@pytest.mark.parametrize("password", [None, "open sesame"])
@pytest.mark.parametrize("key", ["ec", "rsa"])
def test_broker_reads_keys_of_every_kind(own: OwnFiles, key: str, password: str | None) -> None:
    own.authority.issue(key=key).write(own.folder, "broker", password)
    more = {"ssl_key_password": password} if password else {}
    with EmbeddedBroker(**own.properties(**more)) as broker:
        assert is_answered(broker.bootstrap_servers, context_of(own.cafile))


@pytest.mark.kafka(
    "SslTransportLayerTest.testInvalidKeystorePassword",
    "SslTransportLayerTest.testInvalidKeyPassword",
)
@pytest.mark.parametrize("password", ["wrong", None])
def test_broker_whose_key_cannot_be_read_does_not_start_and_says_what_to_change(
    own: OwnFiles, password: str | None
) -> None:
    own.authority.issue().write(own.folder, "broker", "open sesame")
    more = {"ssl_key_password": password} if password else {}
    with (
        pytest.raises(BrokerProcessError, match=r"ssl\.key\.password"),
        EmbeddedBroker(own.folder / "data", **own.properties(**more)),
    ):
        pass


@pytest.mark.kafka(
    "SslTransportLayerTest.testServerKeystoreDynamicUpdate",
    "SslTransportLayerTest.testServerTruststoreDynamicUpdate",
)
def test_broker_takes_new_files_for_new_connections_and_keeps_old_ones(own: OwnFiles) -> None:
    before = context_of(own.cafile, own.authority.issue("client").write(own.folder, "client"))
    with EmbeddedBroker(**own.properties(ssl_client_auth="required")) as broker:
        servers = broker.bootstrap_servers
        with Line(servers, tls=before) as standing:
            assert standing.ask(ApiVersionsRequest(), 0).error_code == 0
            other = Authority("Another one")
            other.write(own.folder)
            other.issue().write(own.folder, "broker")
            after = context_of(own.cafile, other.issue("client").write(own.folder, "client"))
            eventually(lambda: answers_or_refuses(servers, after))
            with pytest.raises(ssl.SSLCertVerificationError):
                is_answered(servers, before)
            assert standing.ask(ApiVersionsRequest(), 0).error_code == 0
        Path(own.files.both).write_text("no certificate any more")
        eventually(lambda: "broker.pem" in broker.log_path.read_text() or not is_answered(servers, after))
        assert is_answered(servers, after)


def answers_or_refuses(servers: str, context: ssl.SSLContext) -> bool:
    try:
        return is_answered(servers, context)
    except ssl.SSLError:
        return False
