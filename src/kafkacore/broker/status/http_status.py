"""The HTTP server of the status page.

It listens only on the loopback address and answers GET and HEAD. A request must have the Host header of this
machine, which prevents DNS rebinding by web pages. One thread owns all connections and never blocks on a
single connection. Each connection has one deadline for request and response. When the maximum number of
connections is open, a new connection replaces the oldest connection, so that slow clients cannot block the
page.
"""

from __future__ import annotations

import json
import selectors
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol

from kafkacore.broker.listeners.startup_errors import cannot_listen
from kafkacore.broker.status.snapshot import Snapshot
from kafkacore.clock import Clock
from kafkacore.logs import logger_of

logger = logger_of(__name__)

HOST: Final = "127.0.0.1"
#: Maximum number of connections. A further connection replaces the oldest connection.
MAX_CONNECTIONS: Final = 256
#: Maximum time from accepting a connection to the end of the response.
REQUEST_MS: Final = 10_000.0
#: Number of threads that take snapshots of the broker.
WORKERS: Final = 2
#: Maximum size of a request head in bytes, the same as the limit of http.server for one line.
MAX_BYTES: Final = 65_537
#: Pause of the listener after a failed accept, for example because no descriptor is free.
ACCEPT_PAUSE_MS: Final = 100.0
_READ_BYTES: Final = 16_384
_BACKLOG: Final = 128


class Collector(Protocol):
    """The methods of :class:`~kafkacore.broker.status.collector.StatusCollector` that the server uses."""

    def snapshot(self) -> Snapshot | None: ...
    def is_alive(self) -> bool: ...
    def sample(self) -> float:
        """Take a sample for the history if it is due. Return when the next sample is due, in milliseconds."""


def listen(port: int) -> socket.socket:
    """Return a listening socket for :class:`StatusServer`, or raise ``BrokerStartError``."""
    try:
        return socket.create_server((HOST, port), backlog=_BACKLOG)
    except OSError as error:
        raise cannot_listen("the status page", HOST, port, "--status-port 0", error) from error


class _Connection:
    """A client's connection: it reads the request, waits for a worker, and writes the response."""

    __slots__ = ("address", "answer", "deadline_ms", "is_asked", "is_finished", "request", "socket")

    def __init__(self, accepted: socket.socket, address: object, deadline_ms: float) -> None:
        self.socket = accepted
        self.address = address
        self.deadline_ms = deadline_ms
        self.request = bytearray()
        #: Whether the request has been passed to a worker.
        self.is_asked = False
        self.answer = memoryview(b"")
        #: Whether the response is written. The server still reads bytes from the client, because unread bytes
        #: would reset the connection and lose the response.
        self.is_finished = False


class StatusServer:
    """Serves the status page from :meth:`start` until :meth:`close`.

    Parameters
    ----------
    listener:
        A socket that :func:`listen` has returned. :meth:`close` closes it.
    """

    def __init__(self, listener: socket.socket, collector: Collector, clock: Clock) -> None:
        self.port: int = listener.getsockname()[1]
        self._listener = listener
        self._collector = collector
        self._clock = clock
        self._is_stopping = False
        listener.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = socket.socketpair()
        self._wake_read.setblocking(False)
        self._wake_write.setblocking(False)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        self._selector.register(listener, selectors.EVENT_READ)
        #: Open connections in the order of their deadlines.
        self._connections: dict[_Connection, None] = {}
        self._paused_until_ms: float | None = None
        self._sample_due_ms = 0.0
        #: Responses of the workers, for the thread that owns the connections.
        self._done: list[tuple[_Connection, bytes]] = []
        self._workers = ThreadPoolExecutor(WORKERS, "kafka-status-worker")
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """URL of the page."""
        return f"http://{HOST}:{self.port}/"

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._serve, name="kafka-status")
        self._thread.start()

    def close(self) -> None:
        """Stop the server and wait for its threads."""
        self._is_stopping = True
        self._wake()
        if self._thread is not None:
            self._thread.join()
        self._workers.shutdown(cancel_futures=True)
        for connection in list(self._connections):
            self._close(connection)
        self._selector.close()
        for each in (self._listener, self._wake_read, self._wake_write):
            each.close()

    def _serve(self) -> None:
        while not self._is_stopping:
            self.poll()

    def poll(self, max_wait_ms: float | None = None) -> None:
        """Wait for events for at most ``max_wait_ms``, and handle them.

        The server's thread calls this; tests may call it instead.
        """
        now_ms = self._clock.monotonic_ms()
        due_ms = self._sample_due_ms
        if self._connections:
            due_ms = min(due_ms, next(iter(self._connections)).deadline_ms)
        if self._paused_until_ms is not None:
            due_ms = min(due_ms, self._paused_until_ms)
        wait_ms = max(due_ms - now_ms, 0.0)
        ready = self._selector.select((wait_ms if max_wait_ms is None else min(wait_ms, max_wait_ms)) / 1000)
        for key, events in ready:
            if key.fileobj is self._listener:
                self._accept()
            elif key.fileobj is self._wake_read:
                self._wake_read.recv(_READ_BYTES)
            else:
                self._on_event(key.data, events)
        while self._done:
            connection, answer = self._done.pop()
            if connection in self._connections:
                self._begin_answer(connection, answer)
        self._on_time()

    def _on_time(self) -> None:
        now_ms = self._clock.monotonic_ms()
        while self._connections and (first := next(iter(self._connections))).deadline_ms <= now_ms:
            self._close(first)
        if self._paused_until_ms is not None and self._paused_until_ms <= now_ms:
            self._paused_until_ms = None
            self._selector.register(self._listener, selectors.EVENT_READ)
        if self._sample_due_ms <= now_ms:
            self._sample_due_ms = self._collector.sample()

    # ---- Connections ---------------------------------------------------------------------------------

    def _accept(self) -> None:
        try:
            accepted, address = self._listener.accept()
        except BlockingIOError:
            return
        except OSError as error:
            logger.debug("the status page could not accept a connection: %s", error)
            self._close_oldest()
            self._selector.unregister(self._listener)
            self._paused_until_ms = self._clock.monotonic_ms() + ACCEPT_PAUSE_MS
            return
        if len(self._connections) >= MAX_CONNECTIONS:
            self._close_oldest()
        accepted.setblocking(False)
        connection = _Connection(accepted, address, self._clock.monotonic_ms() + REQUEST_MS)
        self._connections[connection] = None
        self._selector.register(accepted, selectors.EVENT_READ, connection)

    def _close_oldest(self) -> None:
        """Close the oldest connection that no worker serves, or else the oldest of all connections."""
        for connection in self._connections:
            if not connection.is_asked:
                self._close(connection)
                return
        if self._connections:
            self._close(next(iter(self._connections)))

    def _close(self, connection: _Connection) -> None:
        if connection.socket in self._selector.get_map():
            self._selector.unregister(connection.socket)
        connection.socket.close()
        del self._connections[connection]

    def _on_event(self, connection: _Connection, events: int) -> None:
        if connection not in self._connections:
            return
        try:
            if events & selectors.EVENT_WRITE:
                self._write(connection)
            elif connection.is_finished:
                if not connection.socket.recv(_READ_BYTES):
                    self._close(connection)
            else:
                self._read(connection)
        except BlockingIOError:
            return
        except OSError as error:
            logger.debug("the status page lost the connection to %s: %s", connection.address, error)
            self._close(connection)

    def _read(self, connection: _Connection) -> None:
        data = connection.socket.recv(_READ_BYTES)
        request = connection.request
        request += data
        # Only the head is needed: GET and HEAD requests have only a head, and other methods are rejected.
        is_whole = b"\r\n\r\n" in request or b"\n\n" in request or len(request) >= MAX_BYTES
        if not data and not request:
            self._close(connection)
        elif is_whole or not data:
            connection.is_asked = True
            self._selector.unregister(connection.socket)
            self._workers.submit(self._work, connection)

    def _begin_answer(self, connection: _Connection, answer: bytes) -> None:
        connection.answer = memoryview(answer)
        self._selector.register(connection.socket, selectors.EVENT_WRITE, connection)

    def _write(self, connection: _Connection) -> None:
        sent = connection.socket.send(connection.answer)
        connection.answer = connection.answer[sent:]
        if not connection.answer:
            connection.is_finished = True
            connection.socket.shutdown(socket.SHUT_WR)
            self._selector.modify(connection.socket, selectors.EVENT_READ, connection)

    # ---- Workers -------------------------------------------------------------------------------------

    def _work(self, connection: _Connection) -> None:
        # Import the handler here, because importing http.server would slow down the start of the broker.
        from kafkacore.broker.status.handler import answer

        try:
            if self._clock.monotonic_ms() < connection.deadline_ms:
                self._done.append((connection, answer(bytes(connection.request), self._collector)))
                self._wake()
        except Exception:
            logger.exception("the status page failed to handle a request")

    def _wake(self) -> None:
        try:
            self._wake_write.send(b"x")
        except BlockingIOError:
            return  # The socket is full of earlier wake-ups, so the thread wakes up.


def as_json(value: object) -> bytes:
    """Return a value as one line of JSON."""
    return json.dumps(value, separators=(",", ":"), default=str).encode() + b"\n"
