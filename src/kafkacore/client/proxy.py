"""Connect to brokers through a SOCKS5 or HTTP proxy, with the handshake of python-socks.

python-socks works with blocking sockets or asyncio, but a client must not block. The handshake of
python-socks therefore runs on a stand-in for the proxy's socket, which raises :class:`_Blocked` where a
blocking socket would wait. When the socket is ready, the handshake starts again, and the stand-in repeats the
bytes that were already received and skips the bytes that were already sent. A handshake has at most four
steps.
"""

from __future__ import annotations

import select
import socket
from typing import TYPE_CHECKING, Final, cast

from kafkacore.client.addresses import Resolver
from kafkacore.clock import Clock
from kafkacore.errors import KafkaConfigurationError, KafkaConnectionError
from kafkacore.network._poller import READ, WRITE
from kafkacore.security import Secret
from kafkacore.security.proxy_url import ProxyUrl, parse_proxy_url
from kafkacore.structs import printable

if TYPE_CHECKING:
    from python_socks.sync import Proxy as SocksProxy

#: Maximum size of the response of an HTTP proxy, in bytes.
MAX_RESPONSE_BYTES: Final = 65_536
#: SOCKS5's reply that the destination refuses the connection (RFC 1928).
_SOCKS_REFUSED: Final = 5
#: Maximum number of characters of the proxy's error text that a message contains.
_MAX_REASON: Final = 200
_MISSING: Final = "proxy_url needs python-socks 3 or newer: install kafkacore[proxy]"
_END_OF_HEADERS: Final = b"\r\n\r\n"


class Proxy:
    """The proxy of a client.

    Parameters
    ----------
    url:
        Address and credentials of the proxy.
    resolver:
        Function that resolves the proxy's host name.
    clock:
        Source of the random choice between the proxy's addresses.

    Raises
    ------
    KafkaConfigurationError
        python-socks is not installed, or older than version 3, which added chains of proxies.
    """

    def __init__(self, url: ProxyUrl, resolver: Resolver, clock: Clock) -> None:
        try:
            import python_socks.sync
        except ImportError:
            raise KafkaConfigurationError(_MISSING) from None
        self._url = url
        self._resolver = resolver
        self._clock = clock
        kind = python_socks.ProxyType.HTTP if url.scheme == "http" else python_socks.ProxyType.SOCKS5

        def handshake_on(stand_in: _StandIn) -> SocksProxy:
            return python_socks.sync.Proxy(
                kind,
                url.host,
                url.port,
                url.username,
                url.password.text(),
                rdns=True,
                # python-socks treats this as a chain of two proxies. The stand-in is the first proxy. Its
                # connect() returns the connection to the second proxy.
                forward=cast("SocksProxy", stand_in),
            )

        try:
            handshake_on(_StandIn(None))
        except TypeError:
            raise KafkaConfigurationError(_MISSING) from None
        self._handshake_on = handshake_on
        self._errors = (python_socks.ProxyError, OSError, ValueError)

    @property
    def endpoint(self) -> str:
        """Host and port of the proxy, for messages."""
        return self._url.endpoint

    @property
    def resolves_names(self) -> bool:
        """Whether the proxy resolves the host names of brokers. If not, the client resolves them."""
        return self._url.resolves_names

    def address(self) -> tuple[str, int]:
        """Return one of the IP addresses of the proxy, chosen at random, and its port.

        Raises
        ------
        OSError
            The host name cannot be resolved.
        """
        found = self._resolver(self._url.host, self._url.port)
        return self._clock.random.choice(found), self._url.port

    def tunnel(self, host: str, port: int) -> ProxyTunnel:
        """Return the handshake for a new connection to ``host``, which is a name or an IP address."""
        stand_in = _StandIn(_END_OF_HEADERS if self._url.scheme == "http" else None)
        return ProxyTunnel(self._handshake_on(stand_in), stand_in, host, port, self._errors)

    def connect(self, host: str, port: int, timeout_s: float) -> socket.socket:
        """Return a blocking socket that is connected to ``host`` through the proxy.

        Clients connect to brokers without blocking, with :meth:`tunnel`. This method is for other servers.

        Parameters
        ----------
        host, port:
            Destination. The client resolves the host name unless :attr:`resolves_names` is true.
        timeout_s:
            Maximum time, in seconds, and the timeout of the socket.

        Raises
        ------
        ConnectionRefusedError
            The proxy refuses the connection, or a SOCKS5 proxy reports that the destination refuses it.
        OSError
            The connection fails for another reason, or is not complete in time.
        """
        deadline_ms = self._clock.monotonic_ms() + timeout_s * 1000
        address = host if self.resolves_names else self._resolver(host, port)[0]
        try:
            sock = socket.create_connection(self.address(), timeout_s)
        except OSError as error:
            raise _os_error(
                f"cannot connect to the proxy {self.endpoint}: {error}",
                is_refusal=isinstance(error, ConnectionRefusedError),
            ) from error
        try:
            sock.setblocking(False)
            tunnel = self.tunnel(address, port)
            while events := tunnel.proceed(sock):
                left_ms = deadline_ms - self._clock.monotonic_ms()
                if left_ms <= 0 or not _is_ready(sock, events, left_ms):
                    raise TimeoutError(
                        f"the proxy {self.endpoint} did not connect to {printable(host)}:{port} within "
                        f"{timeout_s:g} s"
                    )
            sock.settimeout(timeout_s)
        except KafkaConnectionError as error:
            sock.close()
            raise _os_error(
                f"{error} (through proxy {self.endpoint})",
                is_refusal=getattr(error.__cause__, "error_code", None) == _SOCKS_REFUSED,
            ) from error
        except BaseException:
            sock.close()
            raise
        return sock


def _os_error(text: str, *, is_refusal: bool) -> OSError:
    return ConnectionRefusedError(text) if is_refusal else OSError(text)


def _is_ready(sock: socket.socket, events: int, timeout_ms: float) -> bool:
    poll = select.poll()
    poll.register(sock, select.POLLIN if events == READ else select.POLLOUT)
    return bool(poll.poll(timeout_ms))


class ProxyTunnel:
    """The handshake in which the proxy connects to a broker; implements ``network.Tunnel``."""

    def __init__(
        self,
        handshake: SocksProxy,
        stand_in: _StandIn,
        host: str,
        port: int,
        errors: tuple[type[Exception], ...],
    ) -> None:
        self._handshake = handshake
        self._stand_in = stand_in
        self._host = host
        self._port = port
        self._errors = errors

    def proceed(self, sock: socket.socket) -> int:
        """Continue the handshake: return 0 if it is complete, else the events to wait for."""
        self._stand_in.rewind(sock)
        try:
            self._handshake.connect(self._host, self._port)
        except _Blocked as blocked:
            return blocked.events
        except self._errors as error:
            raise self._failed(str(error) or type(error).__name__) from error
        if self._stand_in.has_unread:
            raise self._failed("it sent more bytes than its response contains")
        return 0

    def _failed(self, reason: str) -> KafkaConnectionError:
        target = printable(f"{self._host}:{self._port}")[: 2 * _MAX_REASON]
        return KafkaConnectionError(
            f"the proxy does not connect to {target}: {printable(reason)[:_MAX_REASON]}"
        )


class _Blocked(Exception):
    """Raised when the handshake must wait for an event of the socket."""

    def __init__(self, events: int) -> None:
        super().__init__(events)
        self.events = events


class _StandIn:
    """Takes the place of the proxy's blocking socket; see the docstring of the module.

    Parameters
    ----------
    end:
        The bytes with which a response ends; ``None`` if the handshake knows the size of the response.
    """

    def __init__(self, end: bytes | None) -> None:
        self._end = end
        self._sock: socket.socket | None = None
        self._received = bytearray()
        self._sent = 0
        self._read_at = 0
        self._written_at = 0

    def rewind(self, sock: socket.socket) -> None:
        """Prepare to run the handshake on ``sock`` from the beginning."""
        self._sock = sock
        self._read_at = self._written_at = 0

    @property
    def has_unread(self) -> bool:
        """Whether bytes were received that the handshake has not read."""
        return self._read_at < len(self._received)

    def connect(self, *_address: object, **_options: object) -> _StandIn:
        """Return this object, which python-socks uses as the connection to the second proxy of the chain."""
        return self

    def sendall(self, data: bytes) -> None:
        """Write the part of ``data`` that no earlier run of the handshake has written."""
        rest = memoryview(data)[max(self._sent - self._written_at, 0) :]
        self._written_at += len(data)
        while rest:
            try:
                count = self._connected.send(rest)
            except BlockingIOError:
                raise _Blocked(WRITE) from None
            self._sent += count
            rest = rest[count:]

    def recv(self, size: int) -> bytes:
        """Return up to ``size`` bytes, or none at the end of the stream."""
        if self._end is None:
            if not self.has_unread:
                self._received += self._receive(size)
            stop = self._read_at + size
        else:
            while self._end not in self._received and len(self._received) < MAX_RESPONSE_BYTES:
                data = self._receive(size)
                if not data:
                    break
                self._received += data
            stop = self._received.find(self._end)
            stop = len(self._received) if stop < 0 else stop + len(self._end)
        data = bytes(self._received[self._read_at : stop])
        self._read_at += len(data)
        return data

    def _receive(self, size: int) -> bytes:
        try:
            return self._connected.recv(size)
        except BlockingIOError:
            raise _Blocked(READ) from None

    @property
    def _connected(self) -> socket.socket:
        assert self._sock is not None, "rewind() comes first"
        return self._sock

    def close(self) -> None:
        """Do nothing, because the channel owns the socket."""


def client_proxy(url: Secret, resolver: Resolver, clock: Clock) -> Proxy:
    """Create the proxy of a client from the setting ``proxy_url``."""
    return Proxy(parse_proxy_url(url.text()), resolver, clock)
