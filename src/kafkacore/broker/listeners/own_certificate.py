"""Self-made certificates for development, which the broker creates for TLS listeners without a key store.

The key of the certificate authority is not stored, so the authority can never issue another certificate.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.config.listeners import EVERY_ADDRESS, Listener
from kafkacore.broker.storage.disk import replace_file
from kafkacore.clock import Clock
from kafkacore.errors import KafkaConfigurationError

if TYPE_CHECKING:
    from cryptography import x509

_VALID: Final = timedelta(days=365)
#: If a certificate expires within this time after the start of the broker, the broker creates a new
#: certificate.
_LEFT: Final = timedelta(days=30)
_FOLDER, _STORE, _AUTHORITY = "tls", "server.pem", "ca.pem"


def authority_path(data_dir: Path) -> Path:
    """Return the path of the CA certificate that clients must trust."""
    return data_dir / _FOLDER / _AUTHORITY


def with_certificates(config: BrokerConfig, clock: Clock) -> list[Listener]:
    """Return the listeners of a node; a TLS listener without a key store gets a self-made certificate.

    Raises
    ------
    KafkaConfigurationError, OSError
        Raised by :func:`own_certificate`.
    """
    hosts = {host for each in config.node_listeners for host in (each.host, each.advertised_host)}
    hosts -= set(EVERY_ADDRESS)
    return [
        _with_store(each, own_certificate(config.data_dir, hosts, clock)) if lacks_certificate(each) else each
        for each in config.node_listeners
    ]


def _with_store(listener: Listener, path: Path) -> Listener:
    return replace(listener, settings={**listener.settings, "ssl.keystore.location": str(path)})


def own_authority(config: BrokerConfig) -> Path | None:
    """Return the path of the CA certificate if a listener uses a self-made certificate, else ``None``."""
    return authority_path(config.data_dir) if any(map(lacks_certificate, config.node_listeners)) else None


def lacks_certificate(listener: Listener) -> bool:
    """Whether the listener uses TLS and has no key store."""
    stores = ("ssl.keystore.location", "ssl.keystore.key")
    return listener.has_tls and not any(name in listener.settings for name in stores)


def own_certificate(data_dir: Path, hosts: Iterable[str], clock: Clock) -> Path:
    """Return the path of a PEM file with a key and certificates for ``hosts`` and this machine's names.

    A new certificate is created if the existing certificate lacks a host or expires soon.

    Raises
    ------
    KafkaConfigurationError
        The package ``cryptography`` is not installed.
    OSError
        A file cannot be written.
    """
    try:
        from cryptography import x509
    except ImportError:
        raise KafkaConfigurationError(
            "self.made.certificate=true requires the package cryptography: pip install "
            "'kafkacore[certificates]', or set ssl.keystore.location to a file with a key and certificates"
        ) from None
    folder = data_dir / _FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    store, authority = folder / _STORE, folder / _AUTHORITY
    for path in (folder, store, authority):
        if path.is_symlink():
            raise KafkaConfigurationError(
                f"{path} is a symbolic link, which the broker does not follow inside its data folder: "
                "remove the link"
            )
    wanted = [_name(host) for host in sorted({*hosts, "localhost", "127.0.0.1", "::1"})]
    now = datetime.fromtimestamp(clock.wall_ms() / 1000.0, UTC)
    if store.exists() and authority.exists():
        first = x509.load_pem_x509_certificates(store.read_bytes())[0]
        names = first.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        if set(wanted) <= set(names) and first.not_valid_after_utc - now > _LEFT:
            return store
    key_and_chain, issued_by = _issue(wanted, now)
    # The CA certificate is written last. If it is missing at the next start, both files are created again.
    authority.unlink(missing_ok=True)
    replace_file(store, key_and_chain)
    replace_file(authority, issued_by)
    return store


def _name(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _issue(names: list[x509.GeneralName], now: datetime) -> tuple[bytes, bytes]:
    """Create a key and its certificate chain, and return them with the CA certificate alone."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID

    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority_name = _subject("kafkacore's own authority for development")
    authority = (
        _certificate_builder(authority_name, authority_name, authority_key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(is_authority=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, _hash())
    )
    issuer_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    certificate = (
        _certificate_builder(_subject("kafkacore broker"), authority_name, key, now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(is_authority=False), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(issuer_id, critical=False)
        .sign(authority_key, _hash())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    issued_by = authority.public_bytes(pem)
    return private + certificate.public_bytes(pem) + issued_by, issued_by


def _certificate_builder(
    subject: x509.Name, issuer: x509.Name, key: Any, now: datetime
) -> x509.CertificateBuilder:
    from cryptography import x509

    return x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        # A client's clock may be behind.
        not_valid_before=now - timedelta(days=1),
        not_valid_after=now + _VALID,
    )


def _subject(text: str) -> x509.Name:
    from cryptography import x509

    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def _hash() -> Any:
    from cryptography.hazmat.primitives.hashes import SHA256

    return SHA256()


def _key_usage(*, is_authority: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )
