"""TLS on a blocking socket, split into records and pieces of any size."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading

RECEIVE_BYTES = 64 * 1024


class TlsSocket:
    """One end of a connection; one thread may receive while another sends.

    Parameters
    ----------
    piece_bytes:
        Maximum bytes sent to the socket at once, from the first byte of the handshake on.
    record_bytes:
        Maximum plaintext bytes in a TLS record.

    Attributes
    ----------
    raw_bytes:
        Bytes received from the socket, including the handshake.
    """

    def __init__(
        self,
        sock: socket.socket,
        context: ssl.SSLContext,
        *,
        is_server: bool = False,
        server_name: str | None = None,
        piece_bytes: int | None = None,
        record_bytes: int = 16 * 1024,
    ) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = sock
        self.raw_bytes = 0
        self._piece_bytes, self._record_bytes = piece_bytes, record_bytes
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._lock = threading.Lock()
        self.engine = context.wrap_bio(self._in, self._out, is_server, server_name)

    def shake_hands(self) -> None:
        """Complete the handshake. On failure, send the alert to the other side, then raise."""
        while True:
            try:
                self.engine.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._flush()
                self._receive()
            except ssl.SSLError:
                self._flush()
                # Otherwise unread data resets the connection, and the other side cannot read the alert.
                self.socket.shutdown(socket.SHUT_WR)
                while self.socket.recv(RECEIVE_BYTES):
                    continue
                raise
        self._flush()

    def recv(self, size: int = RECEIVE_BYTES) -> bytes:
        """Return the next bytes from the other side, or none after its close_notify."""
        while True:
            try:
                with self._lock:
                    return self.engine.read(size)
            except ssl.SSLWantReadError:
                self._receive()
            except ssl.SSLZeroReturnError:
                return b""

    def sendall(self, data: bytes) -> None:
        """Send all bytes, in records and pieces of this end's size."""
        with self._lock:
            for start in range(0, len(data), self._record_bytes):
                self.engine.write(data[start : start + self._record_bytes])
            self._flush()

    def say_goodbye(self) -> None:
        """Send close_notify."""
        with self._lock:
            with contextlib.suppress(ssl.SSLError):
                self.engine.unwrap()
            self._flush()

    def close(self) -> None:
        """Close the socket without a close_notify."""
        self.socket.close()

    def _receive(self) -> None:
        came = self.socket.recv(RECEIVE_BYTES)
        if not came:
            raise EOFError("the other side closed the connection without a close_notify")
        self.raw_bytes += len(came)
        self._in.write(came)

    def _flush(self) -> None:
        said = self._out.read()
        size = self._piece_bytes or len(said) or 1
        for start in range(0, len(said), size):
            self.socket.sendall(said[start : start + size])


def secured(sock: socket.socket, host: str, context: ssl.SSLContext, **cut: int) -> TlsSocket:
    """Return the client's end on a socket connected to the host, after its handshake."""
    end = TlsSocket(sock, context, server_name=host, **cut)
    try:
        end.shake_hands()
    except BaseException:
        sock.close()
        raise
    return end
