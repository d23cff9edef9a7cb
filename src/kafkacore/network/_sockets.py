"""Sockets as a Selector needs them: opened without blocking, accepted. Does not know: channels, frames."""

from __future__ import annotations

import errno
import logging
import socket
from collections.abc import Iterable
from typing import Any

from kafkacore.clock import Clock
from kafkacore.network._poller import READ, Poller

logger = logging.getLogger(__name__)

SocketOption = tuple[int, int, "int | bytes"]
#: What a connection has if nothing is said: a frame is not held back for the next.
NO_DELAY: tuple[SocketOption, ...] = ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),)
#: Connections taken from one listener in one poll.
MAX_ACCEPTS = 64
#: How long a listener rests when there is no descriptor left for another connection.
ACCEPT_BACKOFF_MS = 100.0
#: ``connect`` goes on by itself.
_IN_PROGRESS = {errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EINTR}
#: accept() can fail so without a fault of the listener; the next one may succeed at once.
_PASSING = {errno.ECONNABORTED, errno.EPROTO, errno.EPERM, errno.EINTR, errno.ENETDOWN, errno.EHOSTUNREACH}


def open_connection(
    address: tuple[str, int],
    send_buffer_bytes: int,
    receive_buffer_bytes: int,
    socket_options: Iterable[SocketOption] | None = None,
) -> tuple[socket.socket, int]:
    """A non-blocking socket on its way to ``address``.

    Parameters
    ----------
    address:
        IP address and port.
    send_buffer_bytes, receive_buffer_bytes:
        -1 leaves them to the operating system.
    socket_options:
        Arguments of ``setsockopt``; ``None`` for :data:`NO_DELAY`.

    Returns
    -------
    (socket, int)
        With 0 if it is connected already, -1 if it will be known later, else the errno of the failure.

    Raises
    ------
    OSError
        When ``address`` is no IP address and port, or no socket with these options could be made.
    """
    host, port = address
    if not 0 < port < 65536:
        # getaddrinfo would quietly take what is left of it modulo 65536.
        raise OSError(errno.EADDRNOTAVAIL, f"{port} is no port")
    # Numbers only: a name would block in the resolver. Whoever has a name asks client.resolve first.
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    family, kind, protocol, _, resolved = found[0]
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if send_buffer_bytes > 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
        if receive_buffer_bytes > 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        for option in NO_DELAY if socket_options is None else socket_options:
            sock.setsockopt(*option)
        error = sock.connect_ex(resolved)
    except BaseException:
        sock.close()
        raise
    return sock, -1 if error in _IN_PROGRESS else error


class ListenerSet:
    """Listening sockets of a Selector. They stay their owner's."""

    def __init__(self, clock: Clock, poller: Poller) -> None:
        self._clock = clock
        self._poller = poller
        self._listeners: dict[int, tuple[str, socket.socket]] = {}
        #: fd → when it may be watched again.
        self._resting: dict[int, float] = {}

    def add(self, listener_id: str, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._poller.set(sock.fileno(), 0, READ)
        self._listeners[sock.fileno()] = (listener_id, sock)

    def remove(self, listener_id: str) -> None:
        """Watch it no longer; connections that wait at it are nobody's."""
        for fd, (known_id, _) in list(self._listeners.items()):
            if known_id == listener_id:
                del self._listeners[fd]
                self._poller.set(fd, 0 if self._resting.pop(fd, None) is not None else READ, 0)

    def wait_ms(self, timeout_ms: float) -> float:
        """Wake the listeners that have rested long enough; how long may be waited for the others."""
        if not self._resting:
            return timeout_ms
        now_ms = self._clock.monotonic_ms()
        for fd in [fd for fd, until_ms in self._resting.items() if until_ms <= now_ms]:
            del self._resting[fd]
            self._poller.set(fd, 0, READ)
        return min([timeout_ms, *(until_ms - now_ms for until_ms in self._resting.values())])

    def accept(self, fd: int, accepted: list[tuple[str, socket.socket, Any]]) -> None:
        """Take the connections that wait at listener ``fd``, some at a time; no listener, nothing to do."""
        if fd not in self._listeners:
            return
        listener_id, listener = self._listeners[fd]
        for _ in range(MAX_ACCEPTS):
            try:
                sock, address = listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _PASSING:
                    continue
                # Out of descriptors or memory, most likely: the connection still waits, and would be reported
                # again at once and for ever.
                logger.warning("listener %s cannot accept: %s", listener_id, error.strerror)
                self._poller.set(fd, READ, 0)
                self._resting[fd] = self._clock.monotonic_ms() + ACCEPT_BACKOFF_MS
                return
            accepted.append((listener_id, sock, address))
