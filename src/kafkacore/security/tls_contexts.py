"""TLS contexts of clients: certificates, keys, rules in, an ``ssl.SSLContext`` out; anew when files change.

Certificates and keys are PEM, in files or as text; what lies in files is read again when it has changed.
TLS 1.2 at least; a broker's certificate is always verified. Does not know: sockets, settings' names.
Source of the rules: Kafka's ``DefaultSslEngineFactory``, and kafka-python's settings.
"""

from __future__ import annotations

import contextlib
import logging
import os
import ssl
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from kafkacore.clock import Clock
from kafkacore.errors import KafkaConfigurationError
from kafkacore.security.secret import Secret

logger = logging.getLogger(__name__)

#: Names as Kafka has them. Older ones are not spoken.
TLS_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_PEM_TEXT: Final = "-----BEGIN "
#: Files are looked at no more often than this.
CHECK_EVERY_MS: Final = 1000.0


@dataclass(frozen=True)
class TlsSettings:
    """What a client may say.

    Attributes
    ----------
    trusted:
        Certificates of those whose signature is believed: the path of a PEM file, or PEM text; ``None`` for
        those that the system trusts.
    certificate:
        Our own, with its chain, and perhaps with its key: path or text.
    key:
        Its key, where that is not beside the certificate: path or text.
    key_password:
        Of the key, if it is encrypted.
    revocation_list:
        Certificates that are believed no more: path or text of a PEM list of the issuer.
    ciphers:
        Of TLS 1.2, in OpenSSL's syntax.
    versions:
        Names among :data:`TLS_VERSIONS`; all of them if there are none.
    """

    trusted: str | None = None
    certificate: str | None = None
    key: Secret | None = None
    key_password: Secret | None = None
    revocation_list: str | None = None
    ciphers: str | None = None
    versions: tuple[str, ...] = ()

    def files(self) -> list[str]:
        """Those of it that may change."""
        key = None if self.key is None else self.key.text()
        given = (self.trusted, self.certificate, key, self.revocation_list)
        return [each for each in given if each is not None and not _is_text(each)]


def client_context(settings: TlsSettings, *, checks_host: bool = True) -> ssl.SSLContext:
    """For connections to brokers.

    Parameters
    ----------
    checks_host:
        Whether a broker's certificate must be for the name or address that it is reached by.

    Raises
    ------
    KafkaConfigurationError
        Something of it cannot be read or does not fit together; says what.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = checks_host
    # A name that is in the subject alone is for people.
    context.hostname_checks_common_name = False
    if settings.trusted is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    _fill(context, settings)
    return context


def _fill(context: ssl.SSLContext, settings: TlsSettings) -> None:
    speak_only(context, settings.versions or TLS_VERSIONS)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    if settings.ciphers is not None:
        with _said(f"the ciphers {settings.ciphers!r}", "must be in OpenSSL's syntax, such as ECDHE+AESGCM"):
            context.set_ciphers(settings.ciphers)
    if settings.trusted is not None:
        _trust(context, settings.trusted, "the trusted certificates")
    if settings.revocation_list is not None:
        _trust(context, settings.revocation_list, "the revocation list")
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    if settings.certificate is not None:
        _show(context, settings.certificate, settings.key, settings.key_password)
    elif settings.key is not None:
        raise KafkaConfigurationError("there is a key, and no certificate that it is of")


def speak_only(context: ssl.SSLContext, versions: Iterable[str]) -> None:
    """These of :data:`TLS_VERSIONS`."""
    numbers = [TLS_VERSIONS[each] for each in versions]
    context.minimum_version, context.maximum_version = min(numbers), max(numbers)


def _trust(context: ssl.SSLContext, given: str, what: str) -> None:
    with _said(_named(what, given), "must be PEM certificates that can be read"):
        if _is_text(given):
            context.load_verify_locations(cadata=given)
        else:
            context.load_verify_locations(cafile=given)


def _show(context: ssl.SSLContext, certificate: str, key: Secret | None, password: Secret | None) -> None:
    """Load our own certificate. OpenSSL reads it from files alone; text becomes one that nobody else sees."""
    # Without one OpenSSL would ask at the terminal.
    secret = b"" if password is None else password.octets()
    advice = (
        "the password does not fit the key, or there is none in it"
        if password is not None
        else "must be a PEM certificate and its key; if that is encrypted, say its password"
    )
    with contextlib.ExitStack() as held, _said(_named("the certificate", certificate), advice):
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
    """The path of a file that only this process has, for a library that reads nothing else."""
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
def _said(what: str, advice: str) -> Iterator[None]:
    """What OpenSSL or the file system says of what is wrong with ``what``, in a sentence without secrets."""
    try:
        yield
    except ssl.SSLError as error:
        # Python's own have no reason.
        reason = getattr(error, "reason", None)
        raise KafkaConfigurationError(
            f"{what} cannot be used: {advice}" + (f" ({reason})" if reason else "")
        ) from None
    except FileNotFoundError:
        raise KafkaConfigurationError(f"{what}: there is no such file") from None
    except OSError as error:
        raise KafkaConfigurationError(f"{what} cannot be read: {error.strerror}") from None
    except ValueError:
        raise KafkaConfigurationError(f"{what} cannot be used: {advice}") from None


def _is_text(given: str) -> bool:
    return _PEM_TEXT in given


def _named(what: str, given: str) -> str:
    return f"{what} given as text" if _is_text(given) else f"{what} {given}"


class ReloadingContext:
    """Gives the context for the next connection: made anew when one of its files has changed.

    What cannot be read then is logged, and the context that there was goes on: half a file is found while
    somebody writes it.

    Parameters
    ----------
    make:
        Makes the context. Called once here, which raises what is wrong from the beginning.
    files:
        What to look at.
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
            logger.error("TLS goes on with what it had: %s", error)
        else:
            logger.info("TLS has read its changed files: %s", ", ".join(self._files))

    def _look(self) -> list[tuple[int, int, int] | None]:
        return [_mark(path) for path in self._files]


def _mark(path: str) -> tuple[int, int, int] | None:
    """Another one whenever the file is another one."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
