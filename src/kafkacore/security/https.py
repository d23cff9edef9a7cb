"""HTTPS requests to URLs that the operator has allowed.

A URL may come from a configuration that another person wrote, so it is not trusted (CVE-2025-27817). It must
be equal to an entry of the environment variable :data:`ALLOWED_URLS`, and redirects are not followed. Kafka's
equivalent is the system property ``org.apache.kafka.sasl.oauthbearer.allowed.urls``.
"""

from __future__ import annotations

import http.client
import ipaddress
import os
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.errors import KafkaConfigurationError, KafkaError, RetriableError
from kafkacore.security.loopback import is_loopback
from kafkacore.text import shown

#: Environment variable with the allowed URLs, separated by commas.
ALLOWED_URLS: Final = "KAFKACORE_SASL_OAUTHBEARER_ALLOWED_URLS"
#: Maximum size of a response's body, in bytes. Key sets and tokens are smaller.
MAX_BODY_BYTES: Final = 1 << 20
#: Status codes after which a retry is useless, as in Kafka's ``HttpJwtRetriever``.
_FINAL_STATUSES: Final = frozenset(
    {400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 413, 414, 415, 501, 505}
)
_HTTPS_PORT: Final = 443


class HttpsError(KafkaError):
    """A request failed, and retrying it is useless."""


class HttpsUnavailableError(HttpsError, RetriableError):
    """A request failed, and a retry may succeed."""


class HttpsProxy(Protocol):
    """Interface of the proxy through which requests connect to servers."""

    @property
    def resolves_names(self) -> bool:
        """Whether the proxy resolves the host names of servers. Otherwise the client does."""

    def connect(self, host: str, port: int, timeout_s: float) -> socket.socket:
        """Return a blocking socket that is connected to ``host``, or raise ``OSError``."""


@dataclass(frozen=True, kw_only=True)
class HttpsOptions:
    """Timeouts of a request, the authorities that it trusts, and its proxy.

    Attributes
    ----------
    connect_timeout_ms, read_timeout_ms:
        How long connecting may take, and how long to wait for the response, in milliseconds.
    cafile:
        PEM file with the certificates of trusted authorities; ``None`` for the authorities that the system
        trusts.
    proxy:
        Proxy through which to connect; ``None`` for a direct connection.
    """

    connect_timeout_ms: float = 10_000.0
    read_timeout_ms: float = 10_000.0
    cafile: str | None = None
    proxy: HttpsProxy | None = None


def checked_url(url: str, setting: str, schemes: tuple[str, ...] = ("https",)) -> str:
    """Return a URL after checking that it is well formed and allowed.

    Parameters
    ----------
    url:
        The URL.
    setting:
        Name of the setting that contains the URL, for the message.
    schemes:
        Allowed schemes: ``https``, and ``file`` for settings that only an operator can change.

    Raises
    ------
    KafkaConfigurationError
        The URL is malformed or not allowed.
    """
    problem = _problem_of(url, schemes)
    if problem:
        raise KafkaConfigurationError(f"{setting}={url!r}: {problem}")
    allowed = {entry.strip() for entry in os.environ.get(ALLOWED_URLS, "").split(",")}
    if url not in allowed:
        raise KafkaConfigurationError(
            f"{setting}={url!r} is not allowed in this process: add it to the environment variable "
            f"{ALLOWED_URLS}, which lists the allowed URLs separated by commas"
        )
    return url


def _problem_of(url: str, schemes: tuple[str, ...]) -> str:
    if (
        not isinstance(url, str)
        or not url.isascii()
        or not url.isprintable()
        or set(url) & set(' \\"<>^`{|}')
    ):
        return "it must be ASCII text without spaces, quotes or other characters that a URL cannot contain"
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
        return "it must not contain a user or a password"
    if not parts.hostname or port == 0:
        return "it must contain a host, and no port 0"
    return "it must not contain a fragment (#)" if parts.fragment else ""


def fetch(
    url: str,
    options: HttpsOptions,
    *,
    body: str | None = None,
    headers: Mapping[str, str] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> bytes:
    """Send a GET request, or a POST request with ``body``, and return the response's body.

    This blocks until the response is complete.

    Parameters
    ----------
    url:
        A URL that :func:`checked_url` has returned.

    Raises
    ------
    HttpsError
        The server refused the request, redirected it, or sent more than :data:`MAX_BODY_BYTES`.
    HttpsUnavailableError
        The server did not respond in time, its certificate was not accepted, or it reported a temporary
        error.
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
            f"request to {url} failed: {shown(str(error) or type(error).__name__)}"
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
            raise TimeoutError("the response was not complete in time")
        sock.settimeout(left_ms / 1000.0)
        part = response.read1(65_536)
        if not part:
            return b"".join(parts)
        size += len(part)
        if size > MAX_BODY_BYTES:
            raise HttpsError(f"the response has more than {MAX_BODY_BYTES} bytes")
        parts.append(part)


def _refusal(url: str, status: int, content: bytes) -> HttpsError:
    if 300 <= status < 400:
        return HttpsError(
            f"{url} answered {status}, a redirect, which is not followed: configure its target URL"
        )
    message = f"{url} answered {status}: {shown(content.decode('utf-8', 'replace'))}"
    return HttpsError(message) if status in _FINAL_STATUSES else HttpsUnavailableError(message)


class _Connection(http.client.HTTPSConnection):
    """An HTTPS connection that checks each resolved address before it connects to that address.

    Checking the host name beforehand is not enough, because it may resolve to another address later. If a
    proxy resolves the name, the client does not know the address and checks only the certificate of the
    server.
    """

    def __init__(self, host: str, port: int, options: HttpsOptions) -> None:
        try:
            self._tls = ssl.create_default_context(cafile=options.cafile)
        except OSError as error:
            raise KafkaConfigurationError(
                f"cannot read certificates from {options.cafile}: {error}"
            ) from error
        super().__init__(host, port, context=self._tls)
        self._timeout_s = options.connect_timeout_ms / 1000.0
        self._proxy = options.proxy

    def connect(self) -> None:
        if self._proxy is not None and self._proxy.resolves_names:
            self._encrypt(self._proxy.connect(self.host, self.port, self._timeout_s))
            return
        error: OSError | None = None
        for family, kind, protocol, _, address in socket.getaddrinfo(
            self.host, self.port, type=socket.SOCK_STREAM
        ):
            try:
                refuse_address(self.host, str(address[0]))
                if self._proxy is not None:
                    sock = self._proxy.connect(str(address[0]), self.port, self._timeout_s)
                else:
                    sock = self._connected(socket.socket(family, kind, protocol), address)
                self._encrypt(sock)
                return
            except OSError as failed:
                error = failed
        raise error or OSError(f"{self.host} resolves to no address")

    def _connected(self, sock: socket.socket, address: tuple[Any, ...]) -> socket.socket:
        try:
            sock.settimeout(self._timeout_s)
            sock.connect(address)
        except OSError:
            sock.close()
            raise
        return sock

    def _encrypt(self, sock: socket.socket) -> None:
        try:
            self.sock = self._tls.wrap_socket(sock, server_hostname=self.host)
        except OSError:
            sock.close()
            raise


def refuse_address(host: str, address: str) -> None:
    """Raise :class:`OSError` if ``address`` cannot belong to an identity provider.

    Link-local addresses are refused because clouds serve the credentials of a machine at such an address.
    Loopback addresses are refused unless ``host`` is ``localhost`` or a loopback address.
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    if ip.is_link_local or ip.is_multicast or ip.is_unspecified:
        raise OSError(f"{host} resolves to {address}, an address that is not allowed")
    if ip.is_loopback and not is_loopback(host):
        raise OSError(
            f"{host} resolves to {address} of this machine, which is allowed only with the host localhost"
        )
