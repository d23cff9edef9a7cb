"""Certificates for tests: an authority, the certificates it issues, and servers that a client must reject.

Keys use the elliptic curve P-256, which is fast to generate.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID as Usage
from cryptography.x509.oid import NameOID

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

HOUR = dt.timedelta(hours=1)
DAY = dt.timedelta(days=1)
#: Start and end of the validity, relative to now.
Validity = tuple[dt.timedelta, dt.timedelta]
VALID: Validity = (-HOUR, DAY)
EXPIRED: Validity = (-2 * DAY, -DAY)
NOT_YET_VALID: Validity = (DAY, 2 * DAY)
#: Names of a server on this machine.
LOOPBACK = ("localhost", "127.0.0.1")
ANY_USAGE = (Usage.SERVER_AUTH, Usage.CLIENT_AUTH)


class PemFiles(NamedTuple):
    """Paths of a certificate with its chain, its key, and a file with both, which Java needs."""

    certificate: str
    key: str
    both: str


@dataclass(frozen=True)
class Identity:
    """A certificate, the authorities between it and the root, and its key."""

    certificate: x509.Certificate
    key: Key
    between: tuple[x509.Certificate, ...] = ()

    @property
    def certificate_pem(self) -> bytes:
        """Return the certificate followed by its issuers, without the root, as PEM."""
        return b"".join(_pem(one) for one in (self.certificate, *self.between))

    def key_pem(self, password: str | None = None) -> bytes:
        """Return the key in PKCS #8, encrypted if a password is given."""
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(password.encode())
            if password
            else serialization.NoEncryption(),
        )

    def write(self, folder: Path, name: str, password: str | None = None) -> PemFiles:
        """Write ``<name>.crt``, ``<name>.key`` and ``<name>.pem`` with both. Existing files are replaced."""
        files = PemFiles(*(str(folder / f"{name}.{end}") for end in ("crt", "key", "pem")))
        key = self.key_pem(password)
        Path(files.certificate).write_bytes(self.certificate_pem)
        Path(files.key).write_bytes(key)
        Path(files.both).write_bytes(key + self.certificate_pem)
        return files


class Authority:
    """A certificate authority with a revocation list. The authority ``under`` signs its certificate."""

    def __init__(self, name: str = "An authority of tests", under: Authority | None = None) -> None:
        self._key = _new_key("ec")
        self._under = under
        self._revoked: list[x509.Certificate] = []
        builder = (
            _begun(name, self._key, VALID)
            .issuer_name(under.certificate.subject if under else _named(name))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
        )
        self.certificate = (under or self)._sign(builder, self._key)

    @property
    def pem(self) -> bytes:
        """Return the certificate that clients add to their trust store, as PEM."""
        return _pem(self.certificate)

    def write(self, folder: Path, name: str = "authority") -> str:
        """Write the certificate and return the path of ``<name>.crt``."""
        path = folder / f"{name}.crt"
        path.write_bytes(self.pem)
        return str(path)

    def issue(
        self,
        common_name: str = "server",
        names: Sequence[str] = LOOPBACK,
        *,
        valid: Validity = VALID,
        usages: Sequence[x509.ObjectIdentifier] = ANY_USAGE,
        key: str = "ec",
    ) -> Identity:
        """Issue a certificate for these host names and addresses; without any, it has no subjectAltName."""
        own_key = _new_key(key)
        builder = _leaf(common_name, names, own_key, valid, usages).issuer_name(self.certificate.subject)
        between = (self.certificate,) if self._under else ()
        return Identity(self._sign(builder, own_key), own_key, between)

    def sign_subject(self, subject: bytes) -> tuple[bytes, bytes]:
        """Sign a certificate for an arbitrary subject, and return it and its key as PEM.

        The subject may be malformed. It is not checked, as OpenSSL's tools do not check that of a request.
        """
        identity = self.issue("whose subject is replaced", ())
        own = identity.certificate
        _, fields = _header_and_content(own.tbs_certificate_bytes)
        fields = fields.replace(own.subject.public_bytes(), subject)
        signed = der(0x30, fields)
        assert isinstance(self._key, ec.EllipticCurvePrivateKey)
        signature = self._key.sign(signed, ec.ECDSA(hashes.SHA256()))
        algorithm = der(0x30, der(0x06, bytes.fromhex("2a8648ce3d040302")))
        whole = der(0x30, signed + algorithm + der(0x03, b"\0" + signature))
        return ssl.DER_cert_to_PEM_cert(whole).encode(), identity.key_pem()

    def revoke(self, identity: Identity) -> None:
        """Include the certificate in each following :meth:`revocation_list`."""
        self._revoked.append(identity.certificate)

    def revocation_list(self) -> bytes:
        """Return the list of all revoked certificates, as PEM."""
        now = dt.datetime.now(dt.UTC)
        builder = x509.CertificateRevocationListBuilder().issuer_name(self.certificate.subject)
        builder = builder.last_update(now - HOUR).next_update(now + DAY)
        for certificate in self._revoked:
            entry = x509.RevokedCertificateBuilder().serial_number(certificate.serial_number)
            builder = builder.add_revoked_certificate(entry.revocation_date(now - HOUR).build())
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def _sign(self, builder: x509.CertificateBuilder, key: Key) -> x509.Certificate:
        own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(own, critical=False).add_extension(signer, critical=False)
        return builder.sign(self._key, hashes.SHA256())


def der(tag: int, content: bytes) -> bytes:
    """Return one DER element."""
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    octets = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes([tag, 0x80 + len(octets)]) + octets + content


def _header_and_content(element: bytes) -> tuple[bytes, bytes]:
    begin = 2 + (element[1] - 0x80 if element[1] >= 0x80 else 0)
    return element[:begin], element[begin:]


def self_signed(common_name: str = "server", names: Sequence[str] = LOOPBACK) -> Identity:
    """Return a self-signed certificate."""
    key = _new_key("ec")
    builder = _leaf(common_name, names, key, VALID, ANY_USAGE).issuer_name(_named(common_name))
    return Identity(builder.sign(key, hashes.SHA256()), key)


@dataclass(frozen=True)
class BadServer:
    """A server that a client must reject.

    Attributes
    ----------
    identity:
        Certificate that the server presents.
    says:
        A part of OpenSSL's error message.
    host:
        Name by which the client connects.
    revocation_list:
        Revocation list of the client, if any.
    """

    identity: Identity
    says: str
    host: str = "localhost"
    revocation_list: bytes | None = None


#: Names of the ten servers of :func:`bad_servers`. The other two of the twelve cases are bad clients.
BAD_SERVERS = (
    "expired", "not yet valid", "wrong name", "name in CN only", "self-signed", "unknown authority",
    "revoked", "wrong address", "wildcard for one level", "not for servers",
)  # fmt: skip


def bad_servers(authority: Authority) -> dict[str, BadServer]:
    """Return the servers, by name, that a client trusting ``authority`` must reject."""
    revoked = authority.issue()
    authority.revoke(revoked)
    kinds = (
        BadServer(authority.issue(valid=EXPIRED), "certificate has expired"),
        BadServer(authority.issue(valid=NOT_YET_VALID), "certificate is not yet valid"),
        BadServer(authority.issue(names=["kafka.example"]), "Hostname mismatch"),
        BadServer(authority.issue("localhost", names=[]), "Hostname mismatch"),
        BadServer(self_signed(), "self-signed certificate"),
        BadServer(Authority().issue(), "unable to get local issuer certificate"),
        BadServer(revoked, "certificate revoked", revocation_list=authority.revocation_list()),
        BadServer(authority.issue(names=["127.0.0.2"]), "IP address mismatch", host="127.0.0.1"),
        BadServer(authority.issue(names=["*.kafka.test"]), "Hostname mismatch", host="a.b.kafka.test"),
        BadServer(authority.issue(usages=[Usage.CLIENT_AUTH]), "unsuitable certificate purpose"),
    )
    return dict(zip(BAD_SERVERS, kinds, strict=True))


def _new_key(kind: str) -> Key:
    if kind == "rsa":
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return ec.generate_private_key(ec.SECP256R1())


def _named(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _begun(common_name: str, key: Key, valid: Validity) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder().subject_name(_named(common_name)).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now + valid[0]).not_valid_after(now + valid[1])


def _leaf(
    common_name: str,
    names: Sequence[str],
    key: Key,
    valid: Validity,
    usages: Sequence[x509.ObjectIdentifier],
) -> x509.CertificateBuilder:
    builder = (
        _begun(common_name, key, valid)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    )
    if names:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([_general(name) for name in names]), critical=False
        )
    return builder


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=not signs_certificates,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
