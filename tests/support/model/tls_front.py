"""A broker's TLS end that behaves as it is told: before a broker of plaintext, or before nothing at all.

TLS of clients in, the plaintext of it to a broker, and back; what each connection did and how it ended is
kept. Python's ``ssl`` on a blocking socket, a thread for each direction. Does not know: Kafka.
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
    """How a front treats what it says to its clients.

    Attributes
    ----------
    piece_bytes:
        Most of the stream that is sent at once, from the first byte of the handshake on.
    record_bytes:
        Most plaintext in a TLS record.
    farewell:
        How a connection is ended whose broker has ended: ``notify`` says so in TLS, ``silent`` closes the
        socket alone, ``reset`` resets it.
    """

    piece_bytes: int | None = None
    record_bytes: int = 16 * 1024
    farewell: str = "notify"


@dataclass
class Met:
    """A connection as the front has seen it.

    Attributes
    ----------
    heard:
        What the client has said inside TLS, the first 64 KiB of it.
    heard_bytes, raw_bytes:
        How much that was, and how much came by the socket, the handshake counted.
    server_name:
        What the client has asked for (SNI).
    certificate:
        The subject's common name of the client's certificate, if there is one.
    version:
        ``TLSv1.3`` or so, once the handshake is over.
    error:
        What OpenSSL or the system did not like.
    is_over:
        Nothing more will come.
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
    """Listens on loopback once it is made, until :meth:`close`.

    Parameters
    ----------
    context:
        Of the server's side. May be replaced at any time, for the connections that come then.
    target:
        Port of a broker on loopback that speaks without TLS; ``None``: nobody answers.
    """

    def __init__(self, context: ssl.SSLContext, target: int | None = None, manners: Manners | None = None):
        self.context = context
        self.target = target
        self.manners = manners or Manners()
        #: Every connection there was, in order.
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
        """The first ``count`` connections, when they are over."""
        with self.changed:
            done = self.changed.wait_for(lambda: sum(each.is_over for each in self.met) >= count, BUDGET_S)
            assert done, f"{self.met} have not ended"
            return self.met[:count]

    def drop_all(self) -> None:
        """End all connections that stand, as if their wire had been cut."""
        with self.changed:
            for each in self._open:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def end_brokers(self) -> None:
        """End all connections that stand, as if the broker had: the farewell is said."""
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
                # Who hears the client is told of it by no more than an end, and closes.
                end.socket.shutdown(socket.SHUT_RD)
            else:
                end.socket.shutdown(socket.SHUT_RDWR)


def _common_name(engine: ssl.SSLObject) -> str | None:
    """Of the client's certificate."""
    for pairs in (engine.getpeercert() or {}).get("subject", ()):
        for name, value in pairs:  # type: ignore[misc]
            if name == "commonName":
                return str(value)
    return None


def _note(met: Met, heard: bytes) -> None:
    met.heard_bytes += len(heard)
    met.heard += heard[: 65_536 - len(met.heard)]
