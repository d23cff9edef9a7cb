"""TLS contexts of clients, from certificates and keys in PEM.

A context is created again when one of its files has changed. TLS 1.2 is the minimum, and the broker's
certificate is always verified. Kafka's equivalent is ``DefaultSslEngineFactory``.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from kafkacore.clock import Clock
from kafkacore.errors import KafkaConfigurationError
from kafkacore.logs import logger_of
from kafkacore.security.secret import Secret
from kafkacore.security.settings import TLS_VERSION_NAMES

logger = logger_of(__name__)

#: Supported versions, by Kafka's names.
TLS_VERSIONS: Final = {name: ssl.TLSVersion[name.replace(".", "_")] for name in TLS_VERSION_NAMES}
_PEM_TEXT: Final = "-----BEGIN "
#: Minimum time between two checks whether files have changed, in milliseconds.
CHECK_EVERY_MS: Final = 1000.0


@dataclass(frozen=True)
class TlsSettings:
    """The TLS settings of a client. Certificates, keys and lists are paths of PEM files, or PEM text.

    Attributes
    ----------
    trusted:
        Certificates of trusted authorities; ``None`` for the authorities that the system trusts.
    certificate:
        The client's certificate with its chain, and possibly with its key.
    key:
        The certificate's private key, if :attr:`certificate` does not contain it.
    key_password:
        Password of the key, if the key is encrypted.
    revocation_list:
        Certificate revocation list of the issuer of the brokers' certificates.
    ciphers:
        Cipher suites for TLS 1.2, in OpenSSL's syntax.
    versions:
        Allowed versions, as names of :data:`TLS_VERSIONS`. If the list is empty, all versions are allowed.
    """

    trusted: str | None = None
    certificate: str | None = None
    key: Secret | None = None
    key_password: Secret | None = None
    revocation_list: str | None = None
    ciphers: str | None = None
    versions: tuple[str, ...] = ()

    def files(self) -> list[str]:
        """Return the paths of the files that the settings refer to."""
        key = None if self.key is None else self.key.text()
        given = (self.trusted, self.certificate, key, self.revocation_list)
        return [each for each in given if each is not None and not _is_text(each)]


def client_context(settings: TlsSettings, *, checks_host: bool = True) -> ssl.SSLContext:
    """Create a context for connections to brokers.

    Parameters
    ----------
    checks_host:
        Whether a broker's certificate must be valid for the host name or address of the connection.

    Raises
    ------
    KafkaConfigurationError
        A file cannot be read, or settings contradict each other. The message names the file or the settings.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = checks_host
    # The host must match a subjectAltName. The common name in the subject is ignored.
    context.hostname_checks_common_name = False
    if settings.trusted is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    _configure(context, settings)
    return context


def _configure(context: ssl.SSLContext, settings: TlsSettings) -> None:
    speak_only(context, settings.versions or TLS_VERSIONS)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    if settings.ciphers is not None:
        advice = "they must be in OpenSSL's syntax, such as ECDHE+AESGCM"
        with _explained(f"the ciphers {settings.ciphers!r}", advice):
            context.set_ciphers(settings.ciphers)
    if settings.trusted is not None:
        _trust(context, settings.trusted, "the trusted certificates")
    if settings.revocation_list is not None:
        _trust(context, settings.revocation_list, "the revocation list")
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    if settings.certificate is not None:
        _load_certificate(context, settings.certificate, settings.key, settings.key_password)
    elif settings.key is not None:
        raise KafkaConfigurationError("a private key is given without its certificate")


def speak_only(context: ssl.SSLContext, versions: Iterable[str]) -> None:
    """Restrict a context to some of :data:`TLS_VERSIONS`."""
    numbers = [TLS_VERSIONS[each] for each in versions]
    context.minimum_version, context.maximum_version = min(numbers), max(numbers)


def _trust(context: ssl.SSLContext, given: str, what: str) -> None:
    with _explained(_named(what, given), "must be PEM"):
        if _is_text(given):
            context.load_verify_locations(cadata=given)
        else:
            context.load_verify_locations(cafile=given)


def _load_certificate(
    context: ssl.SSLContext, certificate: str, key: Secret | None, password: Secret | None
) -> None:
    """Load the client's certificate. OpenSSL reads only files, so PEM text is written to a private file."""
    # Without a password, OpenSSL would ask for one on the terminal.
    secret = b"" if password is None else password.octets()
    advice = (
        "the password is wrong, or the key is missing"
        if password is not None
        else "must be a PEM certificate with its key; an encrypted key needs a password"
    )
    with contextlib.ExitStack() as held, _explained(_named("the certificate", certificate), advice):
        path = held.enter_context(_as_file(certificate))
        key_path = None if key is None else held.enter_context(_as_file(key.text()))
        context.load_cert_chain(path, key_path, password=lambda: secret)


@contextlib.contextmanager
def _as_file(given: str) -> Iterator[str]:
    if not _is_text(given):
        yield given
        return
    with private_file(given.encode()) as path:
        yield path


@contextlib.contextmanager
def private_file(content: bytes) -> Iterator[str]:
    """Yield the path of a file that only this process can read, for a library that accepts only paths."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("kafkacore-key-store", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        with tempfile.NamedTemporaryFile(prefix="kafkacore-", suffix=".pem") as file:  # mode 0600
            file.write(content)
            file.flush()
            yield file.name


@contextlib.contextmanager
def _explained(what: str, advice: str) -> Iterator[None]:
    """Turn errors of OpenSSL and the file system into messages about ``what``, without secrets."""
    try:
        yield
    except ssl.SSLError as error:
        # If Python itself raised the SSLError, the error may have no attribute ``reason``.
        reason = getattr(error, "reason", None)
        raise KafkaConfigurationError(
            f"{what} cannot be used: {advice}" + (f" ({reason})" if reason else "")
        ) from None
    except FileNotFoundError:
        raise KafkaConfigurationError(f"{what}: file not found") from None
    except OSError as error:
        raise KafkaConfigurationError(f"{what} cannot be read: {error.strerror}") from None
    except ValueError:
        raise KafkaConfigurationError(f"{what} cannot be used: {advice}") from None


def _is_text(given: str) -> bool:
    return _PEM_TEXT in given


def _named(what: str, given: str) -> str:
    return f"{what} given as text" if _is_text(given) else f"{what} {given}"


class ReloadingContext:
    """A callable that returns the TLS context for the next connection.

    It creates the context again when one of the files has changed. If that fails, it logs the error and keeps
    the previous context, because a file may be incomplete while it is being written.

    Parameters
    ----------
    make:
        Creates the context. The constructor calls it once and raises its error.
    files:
        Paths of the files to watch.
    """

    def __init__(self, make: Callable[[], ssl.SSLContext], files: list[str], clock: Clock) -> None:
        self._make = make
        self._files = files
        self._clock = clock
        self._seen = self._look()
        self._context = make()
        self._next_look_ms = clock.monotonic_ms() + CHECK_EVERY_MS

    def __call__(self) -> ssl.SSLContext:
        now_ms = self._clock.monotonic_ms()
        if self._files and now_ms >= self._next_look_ms:
            self._next_look_ms = now_ms + CHECK_EVERY_MS
            seen = self._look()
            if seen != self._seen:
                self._seen = seen
                self._replace()
        return self._context

    def _replace(self) -> None:
        try:
            self._context = self._make()
        except KafkaConfigurationError as error:
            logger.error("failed to reload TLS files, keeping the previous certificates: %s", error)
        else:
            logger.info("reloaded changed TLS files: %s", ", ".join(self._files))

    def _look(self) -> list[tuple[int, int, int] | None]:
        return [_mark(path) for path in self._files]


def _mark(path: str) -> tuple[int, int, int] | None:
    """Return a value that changes when the file is replaced or changed."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
