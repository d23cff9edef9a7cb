"""A producer and a consumer over TLS, with our broker behind a TLS server of configurable behavior."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from eventually import BUDGET_S, eventually
from model.certificates import Authority
from model.tls_front import Manners, TlsFront
from security.tls_files import TlsFiles, server_context, with_names_of_tests

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import KafkaConfigurationError, SslAuthenticationError
from kafkacore.testing import Direction, Ending, FaultProxy
from kafkacore.testing.embedded_broker import EmbeddedBroker


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    return TlsFiles(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def front(files: TlsFiles) -> Iterator[TlsFront]:
    """Start a TLS server with a broker behind it that advertises the server's address."""
    with (
        TlsFront(files.good_context()) as front,
        EmbeddedBroker(advertised_host="localhost", advertised_port=front.port) as broker,
    ):
        front.target = broker.port
        yield front


@pytest.fixture
def behaving(front: TlsFront) -> Iterator[TlsFront]:
    """Return the TLS server, and restore its behavior and context after the test."""
    context, manners = front.context, front.manners
    front.manners = Manners()
    front.met.clear()
    yield front
    front.context, front.manners = context, manners


def produce_and_consume(topic: str, values: list[bytes], settings: dict[str, Any]) -> list[bytes]:
    """Produce the values, and return the values that a consumer reads back."""
    with contextlib.closing(KafkaProducer(**settings, linger_ms=5)) as producer:
        done = [producer.send(topic, value, partition=0) for value in values]
        for each in done:
            each.get(BUDGET_S)
    found: list[bytes] = []
    with contextlib.closing(KafkaConsumer(**settings, auto_offset_reset="earliest")) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        while len(found) < len(values):
            records = consumer.poll(timeout_ms=60_000)
            assert records, f"only {len(found)} of {len(values)} records arrived"
            found += [record.value for each in records.values() for record in each]
    return found


#: Sizes from one byte to more than a TLS record and than a socket buffer can hold.
VALUES = [b"x" * size for size in (1, 100, 16_384, 16_385, 70_000, 900_000)] + [b"y"] * 200


@pytest.mark.kafka(
    "SslTransportLayerTest.testValidEndpointIdentificationSanDns",
    "SslTransportLayerTest.testTlsDefaults",
    "SslTransportLayerTest.testSelectorPollReadSize",
    "SslTransportLayerTest.testNetReadBufferResize",
    "SslTransportLayerTest.testNetWriteBufferResize",
    "SslTransportLayerTest.testApplicationBufferResize",
    "SslTransportLayerTest.testGatheringWrite",
)
@pytest.mark.parametrize(
    "manners",
    [
        Manners(),
        Manners(piece_bytes=1, record_bytes=200),
        Manners(record_bytes=7),
        Manners(piece_bytes=5_000, record_bytes=16_384),
    ],
    ids=["whole", "byte by byte", "tiny records", "half records"],
)
@pytest.mark.parametrize(
    "version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=lambda one: one.name
)
def test_what_was_written_is_read_however_the_stream_is_cut(
    files: TlsFiles, behaving: TlsFront, manners: Manners, version: ssl.TLSVersion
) -> None:
    behaving.context = files.good_context()
    behaving.context.minimum_version = behaving.context.maximum_version = version
    behaving.manners = manners
    values = VALUES if manners.piece_bytes != 1 and manners.record_bytes != 7 else VALUES[:4] + VALUES[6:]
    topic = f"cut-{manners.piece_bytes}-{manners.record_bytes}-{version.name}"
    assert produce_and_consume(topic, values, files.settings(behaving.port)) == values
    assert {met.version for met in behaving.met if met.version} == {version.name.replace("_", ".")}


@pytest.mark.parametrize("farewell", ["notify", "silent", "reset"])
def test_connection_that_ends_between_frames_is_made_again(
    files: TlsFiles, behaving: TlsFront, farewell: str
) -> None:
    topic = f"farewell-{farewell}"
    behaving.manners = Manners(farewell=farewell)
    settings = files.settings(behaving.port)
    with contextlib.closing(KafkaProducer(**settings, reconnect_backoff_ms=1)) as producer:
        first = producer.send(topic, b"1").get(BUDGET_S)
        behaving.end_brokers()
        second = producer.send(topic, b"2").get(BUDGET_S)
    assert (first.offset, second.offset) == (0, 1)


def test_client_says_goodbye_in_tls(files: TlsFiles, behaving: TlsFront) -> None:
    with contextlib.closing(KafkaConsumer(**files.settings(behaving.port))) as consumer:
        consumer.topics()
    assert {met.error for met in behaving.wait_for(len(behaving.met))} == {None}


@pytest.mark.kafka(
    "SslTransportLayerTest.testIOExceptionsDuringHandshakeRead",
    "SslTransportLayerTest.testIOExceptionsDuringHandshakeWrite",
    "SslTransportLayerTest.testUngracefulRemoteCloseDuringHandshakeRead",
    "SslTransportLayerTest.testUngracefulRemoteCloseDuringHandshakeWrite",
    "SslTransportLayerTest.testGracefulRemoteCloseDuringHandshakeRead",
    "SslTransportLayerTest.testGracefulRemoteCloseDuringHandshakeWrite",
)
@pytest.mark.parametrize("after", [0, 1, 5, 300, 1_000])
def test_wire_that_breaks_in_the_handshake_is_no_question_of_trust_and_is_tried_again(
    files: TlsFiles, behaving: TlsFront, after: int
) -> None:
    with FaultProxy(f"127.0.0.1:{behaving.port}", frames=False) as proxy:
        for number, ending in enumerate((Ending.FIN, Ending.RST), start=1):
            proxy.cut(Direction.TO_CLIENT, after, connection=number, ending=ending)
        settings = files.settings(proxy.port, reconnect_backoff_ms=1)
        with contextlib.closing(KafkaConsumer(**settings)) as consumer:
            assert isinstance(consumer.topics(), set)
        assert proxy.counters.connections >= 3


def test_trailing_dot_is_no_part_of_the_name(
    files: TlsFiles, behaving: TlsFront, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_names_of_tests(monkeypatch)
    # "localhost" is the name that the broker advertises.
    behaving.context = server_context(files.authority.issue(names=["kafka.test", "localhost"]), files.folder)
    with contextlib.closing(KafkaConsumer(**files.settings(behaving.port, "kafka.test."))) as consumer:
        consumer.topics()
    assert behaving.met[0].server_name == "kafka.test"


@pytest.mark.kafka("SslTransportLayerTest.testValidEndpointIdentificationSanIp")
def test_address_in_the_certificate_is_as_good_as_a_name(files: TlsFiles, behaving: TlsFront) -> None:
    behaving.context = server_context(files.authority.issue(names=["127.0.0.1", "localhost"]), files.folder)
    with contextlib.closing(KafkaConsumer(**files.settings(behaving.port, "127.0.0.1"))) as consumer:
        assert isinstance(consumer.topics(), set)


@pytest.mark.kafka("SslTransportLayerTest.testEndpointIdentificationDisabled")
def test_name_is_told_though_it_is_not_checked(files: TlsFiles, behaving: TlsFront) -> None:
    behaving.context = server_context(files.authority.issue(names=["other.example"]), files.folder)
    settings = files.settings(behaving.port)
    with contextlib.closing(KafkaConsumer(**settings, ssl_check_hostname=False)) as consumer:
        consumer.topics()
    assert "localhost" in {met.server_name for met in behaving.met}


@pytest.mark.kafka(
    "SslTransportLayerTest.testECKeyPair",
    "SslTransportLayerTest.testPemFiles",
    "SslTransportLayerTest.testPemFilesWithoutClientKeyPassword",
)
@pytest.mark.parametrize("password", [None, "open sesame"])
@pytest.mark.parametrize("key", ["ec", "rsa"])
def test_client_shows_its_certificate(
    files: TlsFiles, behaving: TlsFront, tmp_path: Path, key: str, password: str | None
) -> None:
    behaving.context = files.good_context(asks_clients=True)
    own = files.authority.issue("reader", names=[], key=key).write(tmp_path, "client", password)
    settings = files.settings(behaving.port, **files.identity_settings(own, password))
    with contextlib.closing(KafkaConsumer(**settings)) as consumer:
        consumer.topics()
    assert {met.certificate for met in behaving.met} == {"reader"}


@pytest.mark.kafka(
    "SslTransportLayerTest.testInvalidKeystorePassword",
    "SslTransportLayerTest.testInvalidKeyPassword",
)
def test_key_that_cannot_be_read_is_told_when_the_client_is_made(files: TlsFiles, tmp_path: Path) -> None:
    own = files.authority.issue("reader").write(tmp_path, "client", "open sesame")
    for password, said in (
        ("wrong", r"client\.crt cannot be used: the password is wrong, or the key is missing$"),
        (None, r"client\.crt cannot be used: .*; an encrypted key needs a password"),
    ):
        with pytest.raises(KafkaConfigurationError, match=said):
            KafkaConsumer(**files.settings(9, **files.identity_settings(own, password)))
    with pytest.raises(KafkaConfigurationError, match=r"missing\.pem: file not found"):
        KafkaConsumer(**files.settings(9) | {"ssl_cafile": str(tmp_path / "missing.pem")})


@pytest.mark.kafka("SslTransportLayerTest.testUnsupportedCiphers")
def test_cipher_that_both_know_is_needed(files: TlsFiles, behaving: TlsFront) -> None:
    behaving.context = files.good_context()
    behaving.context.maximum_version = ssl.TLSVersion.TLSv1_2
    behaving.context.set_ciphers("ECDHE+AESGCM+AES256")
    settings = files.settings(behaving.port)
    with pytest.raises(SslAuthenticationError, match="HANDSHAKE_FAILURE"):
        KafkaConsumer(**settings, ssl_ciphers="ECDHE+AESGCM+AES128")


@pytest.mark.kafka("SslTransportLayerTest.testTlsDefaults")
def test_old_versions_of_tls_are_refused(files: TlsFiles, behaving: TlsFront) -> None:
    behaving.context = files.good_context()
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        behaving.context.minimum_version = behaving.context.maximum_version = ssl.TLSVersion.TLSv1_1
    behaving.context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises(SslAuthenticationError, match="any TLS version"):
        KafkaConsumer(**files.settings(behaving.port))


def ready_made(context: ssl.SSLContext) -> Callable[[int], dict[str, Any]]:
    return lambda port: {
        "bootstrap_servers": f"localhost:{port}",
        "security_protocol": "SSL",
        "ssl_context": context,
    }


@pytest.mark.kafka("SslTransportLayerTest.testCustomClientSslEngineFactory")
def test_context_of_the_user_is_taken_as_it_is(files: TlsFiles, behaving: TlsFront) -> None:
    trusting = ready_made(ssl.create_default_context(cafile=files.cafile))(behaving.port)
    with contextlib.closing(KafkaConsumer(**trusting)) as consumer:
        consumer.topics()
    doubting = ready_made(ssl.create_default_context(cadata=Authority().pem.decode()))(behaving.port)
    with pytest.raises(SslAuthenticationError, match="local issuer"):
        KafkaConsumer(**doubting)


def is_answered(consumer: KafkaConsumer) -> bool:
    """Return whether the client, which checks its files once a second, has loaded valid ones by now."""
    try:
        consumer.topics()
    except SslAuthenticationError:
        SYSTEM_CLOCK.sleep_ms(50)
        return False
    return True


def test_certificates_are_read_again_when_their_files_change(
    files: TlsFiles, behaving: TlsFront, tmp_path: Path
) -> None:
    first, second = Authority(), Authority()
    cafile = first.write(tmp_path)
    own = first.issue("first").write(tmp_path, "client")
    behaving.context = server_context(first.issue(), tmp_path, clients_of=first)
    settings = {
        **files.settings(behaving.port),
        "ssl_cafile": cafile,
        **files.identity_settings(own),
        "reconnect_backoff_ms": 1,
    }
    with contextlib.closing(KafkaConsumer(**settings)) as consumer:
        consumer.topics()
        second.write(tmp_path)
        second.issue("second").write(tmp_path, "client")
        behaving.context = server_context(second.issue(), tmp_path, clients_of=second)
        behaving.drop_all()
        behaving.met.clear()
        eventually(lambda: is_answered(consumer), "they have not been read")
    assert {met.certificate for met in behaving.met if met.version} == {"second"}
