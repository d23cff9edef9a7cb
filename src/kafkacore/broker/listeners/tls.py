"""TLS of a listener: the SSL context for new connections, which is reloaded when a file changes.

The meaning of the settings is that of Kafka's ``DefaultSslEngineFactory``.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from kafkacore.clock import Clock
from kafkacore.errors import KafkaConfigurationError
from kafkacore.security import Secret
from kafkacore.security.tls_contexts import ReloadingContext, private_file, speak_only
from kafkacore.settings.texts import words

_FILES: Final = ("ssl.keystore.location", "ssl.truststore.location")
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_PEM_BEGIN: Final = b"-----BEGIN "
#: First byte of a PKCS12 file.
_SEQUENCE: Final = b"\x30"
_JKS_BEGIN: Final = b"\xfe\xed\xfe\xed"


class _Store(NamedTuple):
    """A private key with certificates, or certificates only, in PEM."""

    pem: Secret
    password: Secret | None


class ListenerTls:
    """TLS of one listener. Only the network thread uses it.

    Parameters
    ----------
    settings:
        The settings of the listener.

    Raises
    ------
    KafkaConfigurationError
        A file, key or certificate is invalid; the message names the item and the reason.
    """

    def __init__(self, settings: Mapping[str, Any], clock: Clock) -> None:
        self._clock = clock
        self._context = self._reloading(settings)

    def context(self) -> ssl.SSLContext:
        """Return the SSL context for the next connection."""
        return self._context()

    def change(self, settings: Mapping[str, Any]) -> None:
        """Use changed settings for future connections. Raises the same errors as the constructor."""
        self._context = self._reloading(settings)

    def _reloading(self, settings: Mapping[str, Any]) -> ReloadingContext:
        files = [str(settings[name]) for name in _FILES if name in settings]
        return ReloadingContext(partial(server_context, settings), files, self._clock)


def server_context(settings: Mapping[str, Any]) -> ssl.SSLContext:
    """Create an SSL context from a listener's settings.

    Raises
    ------
    KafkaConfigurationError
        The settings are invalid.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    speak_only(context, words(settings["ssl.enabled.protocols"]))
    context.options |= ssl.OP_NO_RENEGOTIATION
    _set_ciphers(context, settings.get("ssl.cipher.suites", ""))
    _load_key(context, settings)
    context.verify_mode = _CLIENT_AUTH[settings["ssl.client.auth"]]
    if context.verify_mode != ssl.CERT_NONE:
        # As in Java, each certificate in the trust store is trusted, even if other certificates have the same
        # subject.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        _load_trusted(context, settings)
    return context


def _set_ciphers(context: ssl.SSLContext, text: str) -> None:
    """Set the cipher suites by OpenSSL's or Java's names. TLS 1.3 suites are always enabled."""
    given = [_openssl_name(each) for each in words(text)]
    wanted = [each for each in given if each is not None]
    if not wanted:
        return
    try:
        context.set_ciphers(":".join(wanted))
    except ssl.SSLError:
        raise KafkaConfigurationError(
            f"ssl.cipher.suites={text} contains no cipher suite that OpenSSL knows; use OpenSSL's names, "
            "such as ECDHE-RSA-AES256-GCM-SHA384"
        ) from None


def _openssl_name(name: str) -> str | None:
    if not name.startswith("TLS_"):
        return name
    if "_WITH_" not in name:
        return None
    dashed = name.removeprefix("TLS_").replace("_WITH_", "-").replace("_", "-")
    return re.sub(r"AES-(\d+)", r"AES\1", dashed).replace("POLY1305-SHA256", "POLY1305")


# ---- Keys and certificates -------------------------------------------------------------------------------


def _load_key(context: ssl.SSLContext, settings: Mapping[str, Any]) -> None:
    where, store = _key_store(settings)
    password = b"" if store.password is None else store.password.octets()
    try:
        with private_file(store.pem.octets()) as path:
            # Without a password function OpenSSL would prompt on the terminal.
            context.load_cert_chain(path, password=lambda: password)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise KafkaConfigurationError(f"{where} cannot be used: {_reason(error, store)}") from None


def _reason(error: Exception, store: _Store) -> str:
    reason = getattr(error, "reason", None) or error.__class__.__name__
    pem = store.pem.octets()
    if b"PRIVATE KEY" not in pem:
        return "it contains no private key; it must contain the broker's private key and its certificates"
    if b"BEGIN CERTIFICATE" not in pem:
        return "it contains no certificate; it must contain the broker's private key and its certificates"
    if reason == "KEY_VALUES_MISMATCH":
        return "its private key does not belong to its first certificate"
    if b"ENCRYPTED" in pem:
        given = "is wrong" if store.password else "is not set"
        return f"its private key is encrypted, and ssl.key.password {given}"
    return f"OpenSSL reports {reason}"


def _key_store(settings: Mapping[str, Any]) -> tuple[str, _Store]:
    """Return the key store's source, for error messages, and its content."""
    password = settings.get("ssl.key.password")
    if "ssl.keystore.key" in settings:
        chain = _pem_text(Secret(settings["ssl.keystore.certificate.chain"]).text())
        key = _pem_text(Secret(settings["ssl.keystore.key"]).text())
        return "ssl.keystore.key", _Store(Secret(f"{key}\n{chain}\n"), password)
    where = f"ssl.keystore.location={settings['ssl.keystore.location']}"
    content = _content(where, settings["ssl.keystore.location"])
    if _is_pem(where, content, settings.get("ssl.keystore.type")):
        return where, _Store(Secret(content), password)
    store_password = settings.get("ssl.keystore.password")
    return where, _Store(
        Secret(_pkcs12_as_pem(where, content, "ssl.keystore.password", store_password)), None
    )


def _pem_text(text: str) -> str:
    """Put the BEGIN and END markers of PEM text on lines of their own, without empty lines between.

    Kafka allows PEM on one line in a properties file. OpenSSL rejects empty lines within a block.
    """
    return re.sub(r"\s*(-----(?:BEGIN|END) [A-Z0-9 ]+-----)\s*", r"\n\1\n", text).strip()


def _load_trusted(context: ssl.SSLContext, settings: Mapping[str, Any]) -> None:
    if "ssl.truststore.certificates" in settings:
        where, pem = (
            "ssl.truststore.certificates",
            _pem_text(Secret(settings["ssl.truststore.certificates"]).text()).encode(),
        )
    else:
        where = f"ssl.truststore.location={settings['ssl.truststore.location']}"
        pem = _content(where, settings["ssl.truststore.location"])
        if not _is_pem(where, pem, settings.get("ssl.truststore.type")):
            pem = _pkcs12_as_pem(
                where, pem, "ssl.truststore.password", settings.get("ssl.truststore.password")
            )
    try:
        context.load_verify_locations(cadata=pem.decode("ascii", "replace"))
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None) or str(error)
        raise KafkaConfigurationError(f"{where} contains no valid certificates: {reason}") from None


def _content(where: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise KafkaConfigurationError(f"{where} cannot be read: {error.strerror}") from None


def _is_pem(where: str, content: bytes, kind: str | None) -> bool:
    """Return true for PEM and false for PKCS12. Raise an error for other formats."""
    is_pem = _PEM_BEGIN in content
    if content.startswith(_JKS_BEGIN):
        raise KafkaConfigurationError(
            f"{where} is a Java key store (JKS); convert it to PKCS12: keytool -importkeystore "
            "-srckeystore FILE.jks -destkeystore FILE.p12 -deststoretype PKCS12"
        )
    if not is_pem and not content.startswith(_SEQUENCE):
        raise KafkaConfigurationError(f"{where} is neither PEM nor PKCS12")
    if kind is not None and (kind == "PEM") != is_pem:
        raise KafkaConfigurationError(f"{where} is not {kind}; remove the type, or name another file")
    return is_pem


def _pkcs12_as_pem(where: str, content: bytes, password_name: str, password: Any) -> bytes:
    """Return a PKCS12 file as PEM."""
    try:
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12
    except ImportError:
        raise KafkaConfigurationError(
            f"{where} is a PKCS12 file, which requires the package cryptography: pip install "
            "'kafkacore[certificates]'. Or convert it: openssl pkcs12 -in FILE.p12 -out FILE.pem -nodes"
        ) from None
    try:
        store = pkcs12.load_pkcs12(content, None if password is None else Secret(password).octets())
    except ValueError:
        raise KafkaConfigurationError(
            f"{where} cannot be opened: it is not a PKCS12 file, or {password_name} is wrong"
        ) from None
    pem = b""
    if store.key is not None:
        pem += store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    certificates = ([] if store.cert is None else [store.cert]) + list(store.additional_certs)
    return pem + b"".join(each.certificate.public_bytes(Encoding.PEM) for each in certificates)
