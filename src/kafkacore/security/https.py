"""Documents from HTTPS addresses that the operator has allowed: an address in, a bounded body out.

Does not know: tokens, keys, what a document says.

An address may come from a configuration that somebody else filled in, so it is not believed
(CVE-2025-27817): it must be one of those that the environment of the process allows, letter by letter, and no
answer of a server leads elsewhere. (Kafka's system property
``org.apache.kafka.sasl.oauthbearer.allowed.urls``.)
"""

from __future__ import annotations

import http.client
import ipaddress
import os
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.errors import KafkaConfigurationError, KafkaError, RetriableError
from kafkacore.security.loopback import is_loopback
from kafkacore.text import shown

#: Environment variable: the addresses that may be asked, with commas between them.
ALLOWED_URLS: Final = "KAFKACORE_SASL_OAUTHBEARER_ALLOWED_URLS"
#: Longer than any set of keys or token; what is longer is not read.
MAX_BODY_BYTES: Final = 1 << 20
#: Answers that asking again does not change. (Those of Kafka's ``HttpJwtRetriever``.)
_FINAL_STATUSES: Final = frozenset(
    {400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 413, 414, 415, 501, 505}
)
_HTTPS_PORT: Final = 443


class HttpsError(KafkaError):
    """The document was refused, and will be when it is asked for again."""


class HttpsUnavailableError(HttpsError, RetriableError):
    """The document could not be had just now."""


@dataclass(frozen=True, kw_only=True)
class HttpsOptions:
    """How long to wait, in milliseconds, and whom to trust.

    Attributes
    ----------
    cafile:
        Certificates, as PEM, of who may sign the server's; ``None`` for those of the system.
    """

    connect_timeout_ms: float = 10_000.0
    read_timeout_ms: float = 10_000.0
    cafile: str | None = None


def checked_url(url: str, setting: str, schemes: tuple[str, ...] = ("https",)) -> str:
    """The address, if it is well formed and allowed.

    Parameters
    ----------
    setting:
        Where it was configured, for the message.
    schemes:
        ``https``, and ``file`` for what an operator configures.

    Raises
    ------
    KafkaConfigurationError
        It is neither.
    """
    wrong = _what_is_wrong(url, schemes)
    if wrong:
        raise KafkaConfigurationError(f"{setting}={url!r}: {wrong}")
    allowed = {entry.strip() for entry in os.environ.get(ALLOWED_URLS, "").split(",")}
    if url not in allowed:
        raise KafkaConfigurationError(
            f"{setting}={url!r} is not allowed in this process: set the environment variable "
            f"{ALLOWED_URLS} to the addresses that may be asked, with commas between them"
        )
    return url


def _what_is_wrong(url: str, schemes: tuple[str, ...]) -> str:
    if (
        not isinstance(url, str)
        or not url.isascii()
        or not url.isprintable()
        or set(url) & set(' \\"<>^`{|}')
    ):
        return "an address is of plain ASCII without spaces"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme not in schemes:
        return f"it must begin with {' or '.join(scheme + '://' for scheme in schemes)}"
    if parts.scheme == "file":
        return (
            ""
            if parts.path.startswith("/") and not parts.netloc
            else "it must name a file as file:///folder/name"
        )
    if parts.username is not None or parts.password is not None or "@" in parts.netloc:
        return "it must not have a user or a password in it"
    if not parts.hostname or port == 0:
        return "it has no host, or port 0"
    return "it must not have a fragment (#)" if parts.fragment else ""


def fetch(
    url: str,
    options: HttpsOptions,
    *,
    body: str | None = None,
    headers: Mapping[str, str] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> bytes:
    """The document at a :func:`checked_url`; what a POST of ``body`` is answered, if there is one. Blocks.

    Raises
    ------
    HttpsError
        The server refused, redirects elsewhere, or sent more than :data:`MAX_BODY_BYTES`.
    HttpsUnavailableError
        It could not be reached in time, is not who it should be, or has trouble of its own.
    """
    parts = urlsplit(url)
    host = parts.hostname
    assert host is not None, "the address was checked"
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    deadline_ms = clock.monotonic_ms() + options.connect_timeout_ms + options.read_timeout_ms
    connection = _Connection(host, parts.port or _HTTPS_PORT, options)
    try:
        connection.request(
            "GET" if body is None else "POST",
            target,
            body=body,
            headers={"Accept": "application/json", "Connection": "close", **(headers or {})},
        )
        connected = connection.sock
        connected.settimeout(options.read_timeout_ms / 1000.0)
        response = connection.getresponse()
        content = _read_body(response, connected, deadline_ms, clock)
    except (OSError, http.client.HTTPException) as error:
        raise HttpsUnavailableError(
            f"{url} could not be asked: {shown(str(error) or type(error).__name__)}"
        ) from error
    finally:
        connection.close()
    if response.status in (200, 201):
        return content
    raise _refusal(url, response.status, content)


def _read_body(
    response: http.client.HTTPResponse, sock: socket.socket, deadline_ms: float, clock: Clock
) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        left_ms = deadline_ms - clock.monotonic_ms()
        if left_ms <= 0:
            raise TimeoutError("the answer did not end in time")
        sock.settimeout(left_ms / 1000.0)
        part = response.read1(65_536)
        if not part:
            return b"".join(parts)
        size += len(part)
        if size > MAX_BODY_BYTES:
            raise HttpsError(f"the answer has more than {MAX_BODY_BYTES} bytes")
        parts.append(part)


def _refusal(url: str, status: int, content: bytes) -> HttpsError:
    if 300 <= status < 400:
        return HttpsError(f"{url} answered {status}, a redirect, which is not followed: configure its target")
    message = f"{url} answered {status}: {shown(content.decode('utf-8', 'replace'))}"
    return HttpsError(message) if status in _FINAL_STATUSES else HttpsUnavailableError(message)


class _Connection(http.client.HTTPSConnection):
    """To an address that was looked at after the name was resolved: a name may be given another."""

    def __init__(self, host: str, port: int, options: HttpsOptions) -> None:
        try:
            self._tls = ssl.create_default_context(cafile=options.cafile)
        except OSError as error:
            raise KafkaConfigurationError(
                f"{options.cafile} cannot be read as certificates: {error}"
            ) from error
        super().__init__(host, port, context=self._tls)
        self._timeout_s = options.connect_timeout_ms / 1000.0

    def connect(self) -> None:
        error: OSError | None = None
        for family, kind, protocol, _, address in socket.getaddrinfo(
            self.host, self.port, type=socket.SOCK_STREAM
        ):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(self._timeout_s)
                refuse_address(self.host, str(address[0]))
                sock.connect(address)
                self.sock = self._tls.wrap_socket(sock, server_hostname=self.host)
                return
            except OSError as failed:
                error = failed
                sock.close()
        raise error or OSError(f"{self.host} has no address")


def refuse_address(host: str, address: str) -> None:
    """Raise OSError where no identity provider can be: at link-local addresses, where clouds keep the
    credentials of their machines, and, for a name that does not say so, on this machine itself."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    if ip.is_link_local or ip.is_multicast or ip.is_unspecified:
        raise OSError(f"{host} has the address {address}, which is not asked")
    if ip.is_loopback and not is_loopback(host):
        raise OSError(f"{host} has the address {address} of this machine, which is not asked by that name")
