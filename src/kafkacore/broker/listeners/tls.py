"""TLS of a listener: its properties in; the next connection's context out, anew when a file has changed.

Does not know: connections, frames. Source of the properties' meaning: Kafka's ``DefaultSslEngineFactory``.
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
#: What a PKCS12 begins with.
_SEQUENCE: Final = b"\x30"
_JKS_BEGIN: Final = b"\xfe\xed\xfe\xed"


class _Store(NamedTuple):
    """Key and certificates, or certificates alone, in PEM."""

    pem: Secret
    password: Secret | None


class ListenerTls:
    """Of one listener. Used by the network thread alone.

    Parameters
    ----------
    settings:
        Its properties.

    Raises
    ------
    KafkaConfigurationError
        A file, a key or a certificate cannot be used; the message says which and why.
    """

    def __init__(self, settings: Mapping[str, Any], clock: Clock) -> None:
        self._clock = clock
        self._context = self._reloading(settings)

    def context(self) -> ssl.SSLContext:
        """For the next connection."""
        return self._context()

    def change(self, settings: Mapping[str, Any]) -> None:
        """Use other properties from the next connection on. Raises as the constructor."""
        self._context = self._reloading(settings)

    def _reloading(self, settings: Mapping[str, Any]) -> ReloadingContext:
        files = [str(settings[name]) for name in _FILES if name in settings]
        return ReloadingContext(partial(server_context, settings), files, self._clock)


def server_context(settings: Mapping[str, Any]) -> ssl.SSLContext:
    """What TLS is spoken with, as a listener's properties say.

    Raises
    ------
    KafkaConfigurationError
        They cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    speak_only(context, words(settings["ssl.enabled.protocols"]))
    context.options |= ssl.OP_NO_RENEGOTIATION
    _set_ciphers(context, settings.get("ssl.cipher.suites", ""))
    _load_key(context, settings)
    context.verify_mode = _CLIENT_AUTH[settings["ssl.client.auth"]]
    if context.verify_mode != ssl.CERT_NONE:
        _load_trusted(context, settings)
    return context


def _set_ciphers(context: ssl.SSLContext, text: str) -> None:
    """By OpenSSL's names or Java's; those of TLS 1.3 are always there."""
    given = [_openssl_name(each) for each in words(text)]
    wanted = [each for each in given if each is not None]
    if not wanted:
        return
    try:
        context.set_ciphers(":".join(wanted))
    except ssl.SSLError:
        raise KafkaConfigurationError(
            f"ssl.cipher.suites={text} has nothing that OpenSSL knows; write its names, "
            "as ECDHE-RSA-AES256-GCM-SHA384"
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
            # Without a function OpenSSL would ask for a password on the terminal.
            context.load_cert_chain(path, password=lambda: password)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise KafkaConfigurationError(f"{where} cannot be used: {_why(error, store)}") from None


def _why(error: Exception, store: _Store) -> str:
    reason = getattr(error, "reason", None) or error.__class__.__name__
    pem = store.pem.octets()
    if b"PRIVATE KEY" not in pem:
        return "there is no private key in it; it must have the broker's key and its certificates"
    if b"BEGIN CERTIFICATE" not in pem:
        return "there is no certificate in it; it must have the broker's key and its certificates"
    if reason == "KEY_VALUES_MISMATCH":
        return "its key is not that of its first certificate"
    if b"ENCRYPTED" in pem:
        given = "is not the right one" if store.password else "is not given"
        return f"its key is encrypted, and ssl.key.password {given}"
    return f"OpenSSL says {reason}"


def _key_store(settings: Mapping[str, Any]) -> tuple[str, _Store]:
    """Where it is from, and what is in it."""
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
    return where, _Store(Secret(_opened(where, content, "ssl.keystore.password", store_password)), None)


def _pem_text(text: str) -> str:
    """PEM on one line, as Kafka allows it in a file of properties, on several; without empty ones, which
    OpenSSL refuses in a block.
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
            pem = _opened(where, pem, "ssl.truststore.password", settings.get("ssl.truststore.password"))
    try:
        context.load_verify_locations(cadata=pem.decode("ascii", "replace"))
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None) or str(error)
        raise KafkaConfigurationError(f"{where} has no certificates that can be used: {reason}") from None


def _content(where: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise KafkaConfigurationError(f"{where} cannot be read: {error.strerror}") from None


def _is_pem(where: str, content: bytes, kind: str | None) -> bool:
    """Whether it is PEM; it may be PKCS12 otherwise, and nothing else."""
    is_pem = _PEM_BEGIN in content
    if content.startswith(_JKS_BEGIN):
        raise KafkaConfigurationError(
            f"{where} is a key store of Java (JKS); make it a PKCS12: keytool -importkeystore -srckeystore "
            "FILE.jks -destkeystore FILE.p12 -deststoretype PKCS12"
        )
    if not is_pem and not content.startswith(_SEQUENCE):
        raise KafkaConfigurationError(f"{where} is neither PEM nor PKCS12; name a file that is")
    if kind is not None and (kind == "PEM") != is_pem:
        raise KafkaConfigurationError(f"{where} is no {kind}; leave its type out, or name another file")
    return is_pem


def _opened(where: str, content: bytes, password_name: str, password: Any) -> bytes:
    """A PKCS12 as PEM."""
    try:
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12
    except ImportError:
        raise KafkaConfigurationError(
            f"{where} is a PKCS12, for which the package cryptography is needed: pip install "
            "'kafkacore[certificates]'; or make it PEM: openssl pkcs12 -in FILE.p12 -out FILE.pem -nodes"
        ) from None
    try:
        store = pkcs12.load_pkcs12(content, None if password is None else Secret(password).octets())
    except ValueError:
        raise KafkaConfigurationError(
            f"{where} cannot be opened: it is no PKCS12, or {password_name} is not its password"
        ) from None
    pem = b""
    if store.key is not None:
        pem += store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    certificates = ([] if store.cert is None else [store.cert]) + list(store.additional_certs)
    return pem + b"".join(each.certificate.public_bytes(Encoding.PEM) for each in certificates)
