"""A proxy on loopback for SOCKS5 (RFC 1928, RFC 1929) and HTTP CONNECT, which records its requests."""

from __future__ import annotations

import base64
import contextlib
import socket
import struct
import threading
from types import TracebackType

from eventually import BUDGET_S

SUCCEEDED, NOT_ALLOWED, REFUSED = 0, 2, 5


class ProxyServer:
    """Listens from its construction until :meth:`close`.

    Parameters
    ----------
    credentials:
        User name and password that clients must have; ``None`` for no authentication.
    hosts:
        Host name → address, for names that only the proxy can resolve.
    piece_bytes:
        Maximum bytes of a response that are sent at once.

    Attributes
    ----------
    targets:
        Host and port of each request, in order.
    reply:
        Reply code of SOCKS5, or status of HTTP if it is above 255, instead of a connection; 0 connects.
    """

    def __init__(
        self,
        credentials: tuple[str, str] | None = None,
        hosts: dict[str, str] | None = None,
        piece_bytes: int = 1,
    ) -> None:
        self.credentials = credentials
        self.hosts = hosts or {}
        self.piece_bytes = piece_bytes
        self.targets: list[tuple[str, int]] = []
        self.reply = SUCCEEDED
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> ProxyServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._end(self._listener)
        for each in list(self._sockets):
            self._end(each)
        for thread in list(self._threads):
            thread.join(BUDGET_S)

    def _start(self, target: object, *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    @staticmethod
    def _end(sock: socket.socket) -> None:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        sock.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._sockets.append(client)
                self._start(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError, EOFError):
            upstream = self._socks(client) if client.recv(1, socket.MSG_PEEK) == b"\5" else self._http(client)
            if upstream is not None:
                self._sockets.append(upstream)
                self._start(self._pump, upstream, client)
                self._pump(client, upstream)
        self._end(client)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                sink.sendall(data)
        self._end(sink)

    def _send(self, client: socket.socket, data: bytes) -> None:
        for at in range(0, len(data), self.piece_bytes):
            client.sendall(data[at : at + self.piece_bytes])

    @staticmethod
    def _read(client: socket.socket, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = client.recv(size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def _connect(self, host: str, port: int) -> socket.socket | None:
        self.targets.append((host, port))
        return None if self.reply else socket.create_connection((self.hosts.get(host, host), port))

    def _socks(self, client: socket.socket) -> socket.socket | None:
        _, count = self._read(client, 2)
        methods = self._read(client, count)
        wanted = 0 if self.credentials is None else 2
        self._send(client, bytes((5, wanted if wanted in methods else 255)))
        if wanted not in methods:
            return None
        if self.credentials is not None:
            self._read(client, 1)
            given = tuple(self._read(client, self._read(client, 1)[0]).decode() for _ in range(2))
            self._send(client, bytes((1, given != self.credentials)))
            if given != self.credentials:
                return None
        *_, kind = self._read(client, 4)
        if kind == 3:
            host = self._read(client, self._read(client, 1)[0]).decode()
        else:
            family, size = (socket.AF_INET, 4) if kind == 1 else (socket.AF_INET6, 16)
            host = socket.inet_ntop(family, self._read(client, size))
        (port,) = struct.unpack(">H", self._read(client, 2))
        upstream = self._connect(host, port)
        self._send(client, bytes((5, self.reply, 0, 1, 127, 0, 0, 1, 0, 0)))
        return upstream

    def _http(self, client: socket.socket) -> socket.socket | None:
        request = b""
        while not request.endswith(b"\r\n\r\n"):
            request += self._read(client, 1)
        first, *headers = request.decode().split("\r\n")
        method, target, _ = first.split(" ")
        assert method == "CONNECT", first
        if self.credentials is not None:
            basic = base64.b64encode(":".join(self.credentials).encode()).decode()
            if f"Proxy-Authorization: Basic {basic}" not in headers:
                self._send(client, b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
                return None
        host, _, port = target.rpartition(":")
        upstream = self._connect(host.strip("[]"), int(port))
        status = b"200 Connection established" if upstream else b"403 Forbidden"
        self._send(client, b"HTTP/1.1 " + status + b"\r\nVia: 1.1 test\r\n\r\n")
        return upstream
