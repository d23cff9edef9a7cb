"""TLS of a listener: the meaning of its properties, changed files, and unusable files."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12
from model.certificates import Authority, Identity, self_signed

from kafkacore.broker.config.listener_keys import LISTENER_KEYS
from kafkacore.broker.listeners.tls import ListenerTls, server_context
from kafkacore.errors import KafkaConfigurationError
from kafkacore.security import Secret
from kafkacore.testing import VirtualClock

DEFAULTS = {key.name: key.default for key in LISTENER_KEYS.values() if key.default is not None}
AUTHORITY = Authority()
SERVER = AUTHORITY.issue("server")


def settings(**given: Any) -> dict[str, Any]:
    return DEFAULTS | {name.replace("_", "."): value for name, value in given.items()}


def refusal(**given: Any) -> str:
    with pytest.raises(KafkaConfigurationError) as refused:
        server_context(settings(**given))
    return str(refused.value)


def handshake(
    context: ssl.SSLContext, client: Identity | None = None, folder: Path | None = None, **limits: Any
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Return a client and a server after a TLS handshake in memory. The client trusts the authority."""
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    theirs.load_verify_locations(cadata=AUTHORITY.pem.decode())
    for name, value in limits.items():
        setattr(theirs, name, value)
    if client is not None:
        assert folder is not None
        theirs.load_cert_chain(client.write(folder, "client").both)
    one, two = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [theirs.wrap_bio(one, two, False, "localhost"), context.wrap_bio(two, one, True)]
    waiting = list(ends)
    for _ in range(10):
        for end in list(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                continue
        if not waiting:
            return ends[0], ends[1]
    raise AssertionError("no handshake")


def shown_name(client: ssl.SSLObject) -> str:
    certificate = client.getpeercert()
    assert certificate is not None
    return dict(part[0] for part in certificate["subject"])["commonName"]  # type: ignore[misc, index]


# ---- Meaning of the properties ---------------------------------------------------------------------------


@pytest.mark.parametrize("password", [None, "secret"])
def test_key_store_is_one_pem_file_with_key_and_certificates(tmp_path: Path, password: str | None) -> None:
    given = {"ssl_keystore_location": SERVER.write(tmp_path, "server", password).both}
    if password is not None:
        given["ssl_key_password"] = Secret(password)  # type: ignore[assignment]
    assert shown_name(handshake(server_context(settings(**given)))[0]) == "server"


@pytest.mark.parametrize("between", [" ", "\n", "\r\n"], ids=["a blank", "lines", "lines of DOS"])
def test_key_store_may_be_the_text_itself_on_one_line_or_several(between: str) -> None:
    context = server_context(
        settings(
            ssl_keystore_key=Secret(SERVER.key_pem().decode().replace("\n", between)),
            ssl_keystore_certificate_chain=SERVER.certificate_pem.decode().replace("\n", between),
        )
    )
    assert shown_name(handshake(context)[0]) == "server"


def test_key_store_may_be_a_pkcs12(tmp_path: Path) -> None:
    path = tmp_path / "server.p12"
    encryption = BestAvailableEncryption(b"secret")
    content = pkcs12.serialize_key_and_certificates(b"s", SERVER.key, SERVER.certificate, None, encryption)  # type: ignore[arg-type]
    path.write_bytes(content)
    context = server_context(
        settings(ssl_keystore_location=str(path), ssl_keystore_password=Secret("secret"))
    )
    assert shown_name(handshake(context)[0]) == "server"
    words = refusal(ssl_keystore_location=str(path), ssl_keystore_password=Secret("canary"))
    assert "ssl.keystore.password is wrong" in words
    assert "canary" not in words


def test_trusted_clients_may_have_the_same_subject(tmp_path: Path) -> None:
    """By default, OpenSSL finds the issuer of a self-signed certificate by its subject only."""
    clients = [self_signed("client") for _ in range(2)]
    context = server_context(
        settings(
            ssl_keystore_location=SERVER.write(tmp_path, "server").both,
            ssl_truststore_certificates=b"".join(each.certificate_pem for each in clients).decode(),
            ssl_client_auth="required",
        )
    )
    for each in clients:
        assert handshake(context, each, tmp_path)[1].getpeercert() is not None


def test_client_that_shows_no_certificate_is_refused_where_one_is_required(tmp_path: Path) -> None:
    given = {
        "ssl_keystore_location": SERVER.write(tmp_path, "server").both,
        "ssl_truststore_location": AUTHORITY.write(tmp_path),
    }
    required = server_context(settings(**given, ssl_client_auth="required"))
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        handshake(required)
    alice = AUTHORITY.issue("alice", ())
    assert handshake(required, alice, tmp_path)[1].getpeercert(True)
    requested = server_context(settings(**given, ssl_client_auth="requested"))
    assert handshake(requested)[1].getpeercert(True) is None
    stranger = Authority().issue("alice", ())
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        handshake(requested, stranger, tmp_path)


def test_versions_and_ciphers_are_those_that_are_given(tmp_path: Path) -> None:
    context = server_context(
        settings(
            ssl_keystore_location=SERVER.write(tmp_path, "server").both,
            ssl_enabled_protocols="TLSv1.2",
            ssl_cipher_suites="TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TLS_AES_128_GCM_SHA256",
        )
    )
    client, _ = handshake(context)
    assert (client.version(), client.cipher()[0]) == ("TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384")  # type: ignore[index]
    with pytest.raises(ssl.SSLError):
        handshake(context, minimum_version=ssl.TLSVersion.TLSv1_3)


# ---- Unusable files --------------------------------------------------------------------------------------


def test_file_that_cannot_be_used_is_named_with_what_to_do(tmp_path: Path) -> None:
    files = SERVER.write(tmp_path, "server", "secret")
    other = AUTHORITY.issue("other").write(tmp_path, "other")
    mixed = tmp_path / "mixed.pem"
    mixed.write_bytes(Path(other.key).read_bytes() + SERVER.certificate_pem)
    java = tmp_path / "server.jks"
    text = tmp_path / "text"
    text.write_text("nothing of the kind")
    java.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    assert "cannot be read: No such file" in refusal(ssl_keystore_location="/nowhere.pem")
    assert "it contains no private key" in refusal(ssl_keystore_location=files.certificate)
    assert "it contains no certificate" in refusal(ssl_keystore_location=other.key)
    assert "its private key does not belong to its first certificate" in refusal(
        ssl_keystore_location=str(mixed)
    )
    assert "ssl.key.password is not set" in refusal(ssl_keystore_location=files.both)
    wrong = refusal(ssl_keystore_location=files.both, ssl_key_password=Secret("canary"))
    assert "ssl.key.password is wrong" in wrong
    assert "canary" not in wrong
    assert "keytool -importkeystore" in refusal(ssl_keystore_location=str(java))
    assert "neither PEM nor PKCS12" in refusal(ssl_keystore_location=str(text))
    assert "is not PKCS12" in refusal(ssl_keystore_location=files.both, ssl_keystore_type="PKCS12")
    assert "no cipher suite that OpenSSL knows" in refusal(
        ssl_keystore_location=other.both, ssl_cipher_suites="NONSENSE"
    )
    assert "ssl.truststore.location=" in refusal(
        ssl_keystore_location=other.both, ssl_client_auth="required", ssl_truststore_location=other.key
    )


# ---- Changed files ---------------------------------------------------------------------------------------


def test_file_that_has_changed_is_read_for_the_next_connection(tmp_path: Path) -> None:
    clock = VirtualClock()
    path = SERVER.write(tmp_path, "server").both
    tls = ListenerTls(settings(ssl_keystore_location=path), clock)
    first = tls.context()
    AUTHORITY.issue("renewed").write(tmp_path, "server")
    assert tls.context() is first, "the file is checked once a second"
    clock.advance(1_000)
    assert shown_name(handshake(tls.context())[0]) == "renewed"


def test_file_that_has_become_unusable_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = VirtualClock()
    path = Path(SERVER.write(tmp_path, "server").both)
    tls = ListenerTls(settings(ssl_keystore_location=str(path)), clock)
    path.write_text(path.read_text()[:100])
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            clock.advance(1_000)
            assert shown_name(handshake(tls.context())[0]) == "server"
    (record,) = caplog.records
    assert f"keeping the previous certificates: ssl.keystore.location={path}" in record.getMessage()


def test_properties_are_changed_for_the_next_connection_or_not_at_all(tmp_path: Path) -> None:
    tls = ListenerTls(settings(ssl_keystore_location=SERVER.write(tmp_path, "server").both), VirtualClock())
    with pytest.raises(KafkaConfigurationError):
        tls.change(settings(ssl_keystore_location="/nowhere.pem"))
    assert shown_name(handshake(tls.context())[0]) == "server"
    tls.change(settings(ssl_keystore_location=AUTHORITY.issue("changed").write(tmp_path, "changed").both))
    assert shown_name(handshake(tls.context())[0]) == "changed"
