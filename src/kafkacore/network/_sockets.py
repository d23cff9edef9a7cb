"""Open and accept the non-blocking sockets of a Selector."""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Iterable
from typing import Any

from kafkacore.clock import Clock
from kafkacore.logs import logger_of
from kafkacore.network._poller import READ, Poller

logger = logger_of(__name__)

SocketOption = tuple[int, int, "int | bytes"]
#: Default socket options. With TCP_NODELAY, a small frame is sent without waiting for more data.
NO_DELAY: tuple[SocketOption, ...] = ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),)
#: Maximum number of connections accepted from one listener in one poll.
MAX_ACCEPTS = 64
#: Milliseconds until a listener accepts again after the process has run out of file descriptors.
ACCEPT_BACKOFF_MS = 100.0
#: Error codes of ``connect`` after which the kernel continues to connect in the background.
_IN_PROGRESS = {errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EINTR}
#: Error codes of ``accept`` that concern a single connection. The next ``accept`` may succeed immediately.
_TRANSIENT = {errno.ECONNABORTED, errno.EPROTO, errno.EPERM, errno.EINTR, errno.ENETDOWN, errno.EHOSTUNREACH}

#: Matches host names and addresses that IDNA does not change: their labels have 1 to 63 ASCII characters.
_PLAIN_HOST = re.compile(r"[0-9A-Za-z_:%-]{1,63}(\.[0-9A-Za-z_:%-]{1,63})*\.?")


def lookup_name(host: str) -> str | bytes:
    """Return the form of a host name or address that ``socket.getaddrinfo`` looks up fastest.

    For a text, the function imports the codec of IDNA, which takes 3 ms, even if the text is an address.
    """
    return host.encode("ascii") if _PLAIN_HOST.fullmatch(host) else host


def open_connection(
    address: tuple[str, int],
    send_buffer_bytes: int,
    receive_buffer_bytes: int,
    socket_options: Iterable[SocketOption] | None = None,
) -> tuple[socket.socket, int]:
    """Create a non-blocking socket and start to connect it to ``address``.

    Parameters
    ----------
    address:
        IP address and port.
    send_buffer_bytes, receive_buffer_bytes:
        Sizes of the socket's buffers in bytes; -1 for the operating system's default.
    socket_options:
        Arguments of ``setsockopt``; ``None`` for :data:`NO_DELAY`.

    Returns
    -------
    (socket, int)
        The socket, and 0 if it is connected, -1 if it is still connecting, or the errno of the failure.

    Raises
    ------
    OSError
        If ``address`` is not an IP address and port, or no socket with these options can be created.
    """
    host, port = address
    if not 0 < port < 65536:
        # Check the port, because getaddrinfo would silently reduce it modulo 65536.
        raise OSError(errno.EADDRNOTAVAIL, f"invalid port {port}: it must be between 1 and 65535")
    # Accept only numeric addresses, because resolving a name would block. Callers resolve names with
    # client.resolve.
    name = lookup_name(host)
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
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
    """The listening sockets that a Selector watches but does not own."""

    def __init__(self, clock: Clock, poller: Poller) -> None:
        self._clock = clock
        self._poller = poller
        self._listeners: dict[int, tuple[str, socket.socket]] = {}
        #: Descriptor of a listener → time at which to accept again.
        self.backing_off: dict[int, float] = {}

    def add(self, listener_id: str, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._poller.set(sock.fileno(), 0, READ)
        self._listeners[sock.fileno()] = (listener_id, sock)

    def remove(self, listener_id: str) -> None:
        """Stop watching a listener. Connections in its backlog are not accepted."""
        for fd, (known_id, _) in list(self._listeners.items()):
            if known_id == listener_id:
                del self._listeners[fd]
                self._poller.set(fd, 0 if self.backing_off.pop(fd, None) is not None else READ, 0)

    def wait_ms(self, timeout_ms: float) -> float:
        """Accept again from listeners whose back-off is over.

        Return the milliseconds until the next back-off is over, at most ``timeout_ms``.
        """
        now_ms = self._clock.monotonic_ms()
        for fd in [fd for fd, until_ms in self.backing_off.items() if until_ms <= now_ms]:
            del self.backing_off[fd]
            self._poller.set(fd, 0, READ)
        return min([timeout_ms, *(until_ms - now_ms for until_ms in self.backing_off.values())])

    def accept(self, fd: int, accepted: list[tuple[str, socket.socket, Any]]) -> None:
        """Accept up to ``MAX_ACCEPTS`` connections from listener ``fd``. An unknown ``fd`` is ignored."""
        if fd not in self._listeners:
            return
        listener_id, listener = self._listeners[fd]
        for _ in range(MAX_ACCEPTS):
            try:
                sock, address = listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _TRANSIENT:
                    continue
                # The process is most likely out of descriptors or memory. The connection stays in the
                # backlog, so without a back-off the poller would report it in a busy loop.
                logger.warning("listener %s: failed to accept a connection: %s", listener_id, error.strerror)
                self._poller.set(fd, READ, 0)
                self.backing_off[fd] = self._clock.monotonic_ms() + ACCEPT_BACKOFF_MS
                return
            accepted.append((listener_id, sock, address))
