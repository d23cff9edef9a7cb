"""Distinguished names in Java's format, and the rules that map them to users."""

from __future__ import annotations

import contextlib
import datetime as dt
import ssl
import tracemalloc

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st
from model.certificates import Authority, der

from kafkacore.broker.listeners.certificate_names import PrincipalRules, distinguished_name
from kafkacore.errors import KafkaConfigurationError, SslAuthenticationError


def certificate(*names: x509.RelativeDistinguishedName) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    now = dt.datetime(2026, 1, 1)
    made = x509.CertificateBuilder(
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "issuer")]),
        x509.Name(names),
        key.public_key(),
        x509.random_serial_number(),
        now,
        now + dt.timedelta(days=1),
    ).sign(key, SHA256())
    return made.public_bytes(Encoding.DER)


ALICE = certificate(x509.RelativeDistinguishedName([x509.NameAttribute(NameOID.COMMON_NAME, "alice")]))


def part(*attributes: tuple[x509.ObjectIdentifier, str]) -> x509.RelativeDistinguishedName:
    return x509.RelativeDistinguishedName([x509.NameAttribute(*each) for each in attributes])


def test_name_begins_with_the_last_part_and_has_rfc_2253s_keywords() -> None:
    der = certificate(
        part((NameOID.COUNTRY_NAME, "DE")),
        part((NameOID.ORGANIZATION_NAME, "Example, Ltd.")),
        part((NameOID.ORGANIZATIONAL_UNIT_NAME, " ops ")),
        part((NameOID.COMMON_NAME, "Zoë")),
    )
    assert distinguished_name(der) == "CN=Zoë,OU=\\ ops\\ ,O=Example\\, Ltd.,C=DE"


def test_part_without_a_keyword_is_its_number_and_bytes() -> None:
    der = certificate(part((NameOID.EMAIL_ADDRESS, "a@b")), part((NameOID.USER_ID, "u")))
    assert distinguished_name(der) == "UID=u,1.2.840.113549.1.9.1=#1603614062"


NAME = der(0x06, bytes.fromhex("550403")) + der(0x0C, b"alice")


@pytest.mark.parametrize(
    "subject",
    [
        der(0x30, b"\x31\x80" + der(0x30, NAME) + b"\0\0"),
        der(0x30, der(0x31, b"\x30\x80" + NAME + b"\0\0")),
        b"\x30\x80" + der(0x31, der(0x30, NAME)) + b"\0\0",
        der(0x30, der(0x31, b"\x30\x81" + bytes([len(NAME)]) + NAME)),
        der(0x30, der(0x31, der(0x30, NAME + b"\x05\0"))),
        der(0x30, der(0x31, der(0x30, NAME)[:-1])),
        der(0x30, der(0x31, NAME)),
        der(0x30, der(0x30, der(0x30, NAME))),
        der(0x30, der(0x31, der(0x30, der(0x04, b"\x55\4\3") + der(0x0C, b"alice")))),
        der(0x30, der(0x31, der(0x30, der(0x06, b"") + der(0x0C, b"alice")))),
        der(0x30, der(0x31, der(0x30, der(0x06, b"\x55\4\3") + b"\x1f\x0c\x05alice"))),
    ],
)
def test_subject_that_is_not_in_der_is_nobodys(subject: bytes) -> None:
    pem, _ = Authority().sign_subject(subject)
    with pytest.raises(SslAuthenticationError, match="the client's certificate is not valid DER: "):
        distinguished_name(ssl.PEM_cert_to_DER_cert(pem.decode()))


def test_subject_of_thousands_of_parts_is_refused_before_it_is_read() -> None:
    """Each part of eleven bytes becomes a string. They once took 28 times the certificate's size."""
    pem, _ = Authority().sign_subject(der(0x30, der(0x31, der(0x30, NAME)) * 2_000))
    long = ssl.PEM_cert_to_DER_cert(pem.decode())
    tracemalloc.start()
    try:
        with pytest.raises(SslAuthenticationError, match="has 32000 bytes, more than the maximum of 8192"):
            distinguished_name(long)
        assert tracemalloc.get_traced_memory()[1] < len(long)
    finally:
        tracemalloc.stop()


@given(st.data())
def test_whatever_a_certificate_has_become_is_a_name_or_refused(data: st.DataObject) -> None:
    damaged = bytearray(ALICE)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(SslAuthenticationError):
        assert isinstance(distinguished_name(bytes(damaged)), str)


@pytest.mark.parametrize(
    ("rules", "name", "user"),
    [
        ("DEFAULT", "CN=alice,O=X", "CN=alice,O=X"),
        ("RULE:^CN=(.*?),O=.*$/$1/", "CN=alice,O=X", "alice"),
        ("RULE:^CN=(.*?),O=.*$/$1@x/U, DEFAULT", "CN=alice,O=X", "ALICE@X"),
        ("RULE:^UID=(.*)$/$1/L,DEFAULT", "CN=Alice", "CN=Alice"),
        ("RULE:^CN=(.*)$/$1/L", "CN=Alice", "alice"),
        ("RULE:^UID=(.*)$/$1/L", "CN=Alice", None),
        ("RULE:^CN=(\\w*)\\/(\\w*)$/$2/", "CN=a/b", "b"),
    ],
)
def test_first_rule_that_fits_the_whole_name_makes_the_user(rules: str, name: str, user: str | None) -> None:
    assert PrincipalRules(rules).user(name) == user


@pytest.mark.parametrize("rules", ["RULE:a/b", "CN=x", "RULE:(/x/", "RULE:a/$1/", "DEFAULT DEFAULT"])
def test_rule_that_is_none_is_refused(rules: str) -> None:
    with pytest.raises(KafkaConfigurationError, match=r"ssl\.principal\.mapping\.rules="):
        PrincipalRules(rules)
