"""A TLS server with configurable behaviour, which forwards plaintext to a broker or has none.

It uses Python's ``ssl`` on a blocking socket, with a thread for each direction, and records what each
connection did and how it ended.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from dataclasses import dataclass, field
from types import TracebackType

from eventually import BUDGET_S
from model.tls_ends import RECEIVE_BYTES, TlsSocket

LINGER_ZERO = struct.pack("ii", 1, 0)


@dataclass
class Manners:
    """Behaviour of a server towards its clients.

    Attributes
    ----------
    piece_bytes:
        Maximum bytes sent to the socket at once, from the first byte of the handshake on.
    record_bytes:
        Maximum plaintext bytes in a TLS record.
    farewell:
        How to close a connection after the broker has closed its own: ``notify`` sends close_notify,
        ``silent`` only closes the socket, ``reset`` resets it.
    """

    piece_bytes: int | None = None
    record_bytes: int = 16 * 1024
    farewell: str = "notify"


@dataclass
class Met:
    """A connection as recorded by the server.

    Attributes
    ----------
    heard:
        The first 64 KiB of the plaintext from the client.
    heard_bytes, raw_bytes:
        Number of plaintext bytes, and number of bytes from the socket including the handshake.
    server_name:
        Server name that the client requested (SNI).
    certificate:
        Common name of the client certificate's subject, if any.
    version:
        TLS version, such as ``TLSv1.3``, after the handshake.
    error:
        Error of OpenSSL or the operating system.
    is_over:
        Whether the connection has ended.
    """

    heard: bytearray = field(default_factory=bytearray)
    heard_bytes: int = 0
    raw_bytes: int = 0
    server_name: str | None = None
    certificate: str | None = None
    version: str | None = None
    error: Exception | None = None
    is_over: bool = False


class TlsFront:
    """Listens on loopback from its construction until :meth:`close`.

    Parameters
    ----------
    context:
        Server-side context. It may be replaced at any time, for later connections.
    target:
        Port of a plaintext broker on loopback, or ``None`` for no broker.
    """

    def __init__(self, context: ssl.SSLContext, target: int | None = None, manners: Manners | None = None):
        self.context = context
        self.target = target
        self.manners = manners or Manners()
        #: Every connection, in order.
        self.met: list[Met] = []
        self.changed = threading.Condition()
        self._open: set[socket.socket] = set()
        self._brokers: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._is_closed = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._start(self._accept)

    def wait_for(self, count: int = 1) -> list[Met]:
        """Wait until the first ``count`` connections have ended, and return them."""
        with self.changed:
            done = self.changed.wait_for(lambda: sum(each.is_over for each in self.met) >= count, BUDGET_S)
            assert done, f"{self.met} have not ended"
            return self.met[:count]

    def drop_all(self) -> None:
        """Reset all open connections, as if the network had failed."""
        with self.changed:
            for each in self._open:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def end_brokers(self) -> None:
        """End all open connections as if the broker had closed them, with the configured farewell."""
        with self.changed:
            for each in self._brokers:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._is_closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop_all()
        for thread in self._threads:
            thread.join(BUDGET_S)

    def __enter__(self) -> TlsFront:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self, target: object, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            met = Met()
            with self.changed:
                self.met.append(met)
                self._open.add(sock)
            self._start(self._serve, sock, met)

    def _serve(self, sock: socket.socket, met: Met) -> None:
        sock.settimeout(BUDGET_S)
        manners = self.manners

        def on_name(_: ssl.SSLObject, name: str, __: ssl.SSLContext) -> None:
            met.server_name = name

        self.context.sni_callback = on_name
        end = TlsSocket(
            sock,
            self.context,
            is_server=True,
            piece_bytes=manners.piece_bytes,
            record_bytes=manners.record_bytes,
        )
        try:
            end.shake_hands()
            met.certificate, met.version = _common_name(end.engine), end.engine.version()
            self._talk(end, met, manners)
        except (OSError, EOFError) as error:  # ssl.SSLError is an OSError
            met.error = error
        finally:
            sock.close()
            with self.changed:
                self._open.discard(sock)
                met.raw_bytes = end.raw_bytes
                met.is_over = True
                self.changed.notify_all()

    def _talk(self, end: TlsSocket, met: Met, manners: Manners) -> None:
        if self.target is None:
            while heard := end.recv():
                _note(met, heard)
            return
        with socket.create_connection(("127.0.0.1", self.target)) as broker:
            broker.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.changed:
                self._brokers.add(broker)
            self._start(self._answer, end, broker, manners)
            try:
                while heard := end.recv():
                    _note(met, heard)
                    broker.sendall(heard)
            finally:
                with self.changed:
                    self._brokers.discard(broker)
                with contextlib.suppress(OSError):
                    broker.shutdown(socket.SHUT_RDWR)

    def _answer(self, end: TlsSocket, broker: socket.socket, manners: Manners) -> None:
        with contextlib.suppress(OSError):
            while answer := broker.recv(RECEIVE_BYTES):
                end.sendall(answer)
            if manners.farewell == "notify":
                end.say_goodbye()
            if manners.farewell == "reset":
                end.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_ZERO)
                # The thread that reads from the client then sees the end of the stream and closes the
                # connection.
                end.socket.shutdown(socket.SHUT_RD)
            else:
                end.socket.shutdown(socket.SHUT_RDWR)


def _common_name(engine: ssl.SSLObject) -> str | None:
    """Return the common name of the client's certificate."""
    for pairs in (engine.getpeercert() or {}).get("subject", ()):
        for name, value in pairs:  # type: ignore[misc]
            if name == "commonName":
                return str(value)
    return None


def _note(met: Met, heard: bytes) -> None:
    met.heard_bytes += len(heard)
    met.heard += heard[: 65_536 - len(met.heard)]
