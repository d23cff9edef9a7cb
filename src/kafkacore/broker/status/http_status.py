"""The status page's server: requests of browsers and of Prometheus in, pages out; thread ``kafka-status``.

Listens on this machine's own address alone, answers nothing but GET and HEAD, and only if the Host header is
this machine's: a page of the web whose name has been made to point here gets nothing. Few connections at a
time, none for long. Does not know: what is shown.
"""

from __future__ import annotations

import json
import logging
import os
import select
import socket
import threading
from typing import TYPE_CHECKING, Any, Final

from kafkacore.broker.start_errors import cannot_listen
from kafkacore.broker.status.collector import StatusCollector

if TYPE_CHECKING:
    from http.server import BaseHTTPRequestHandler

logger = logging.getLogger(__name__)

HOST: Final = "127.0.0.1"
MOST_CONNECTIONS: Final = 16
#: How long a connection may say nothing.
SILENCE_S: Final = 5.0
JOIN_S: Final = 10.0


def listen(port: int) -> socket.socket:
    """A socket for :class:`StatusServer`; raises ``BrokerStartError`` with a sentence."""
    try:
        return socket.create_server((HOST, port), backlog=MOST_CONNECTIONS)
    except OSError as error:
        raise cannot_listen("the status page", HOST, port, "--status-port 0", error) from error


class StatusServer:
    """Serves from :meth:`start` until :meth:`close`.

    Parameters
    ----------
    listener:
        Of :func:`listen`; closed by :meth:`close`.
    """

    def __init__(self, listener: socket.socket, collector: StatusCollector) -> None:
        self.port: int = listener.getsockname()[1]
        self._listener = listener
        self._collector = collector
        self._wake_read, self._wake_write = os.pipe()
        self._lock = threading.Lock()
        self._connections: dict[threading.Thread, socket.socket] = {}
        self._thread = threading.Thread(target=self._serve, name="kafka-status")

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.port}/"

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Serve no more; returns when nobody is being served."""
        os.write(self._wake_write, b"x")
        self._thread.join()
        self._listener.close()
        with self._lock:
            open_connections = dict(self._connections)
        for thread, connection in open_connections.items():
            _hang_up(connection)
            thread.join(JOIN_S)
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _serve(self) -> None:
        # What a start would wait for and nobody needs yet.
        from kafkacore.broker.status.handler import StatusHandler

        while True:
            watched: list[Any] = [self._listener, self._wake_read]
            readable, _, _ = select.select(watched, [], [])
            if self._wake_read in readable:
                return
            try:
                connection, address = self._listener.accept()
            except OSError as error:
                logger.debug("the status page missed a connection: %s", error)
                continue
            self._take(connection, address, StatusHandler)

    def _take(self, connection: socket.socket, address: Any, handler: type[BaseHTTPRequestHandler]) -> None:
        def serve() -> None:
            try:
                connection.settimeout(SILENCE_S)
                handler(connection, address, self)  # type: ignore[arg-type]
            except OSError as error:
                logger.debug("the status page lost %s: %s", address, error)
            except Exception:
                logger.exception("the status page could not answer")
            finally:
                with self._lock:
                    self._connections.pop(threading.current_thread(), None)
                _hang_up(connection)
                connection.close()

        thread = threading.Thread(target=serve, name="kafka-status-connection", daemon=True)
        with self._lock:
            if len(self._connections) >= MOST_CONNECTIONS:
                connection.close()
                return
            self._connections[thread] = connection
        thread.start()

    # ---- What the handler shows ----------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any] | None:
        return self._collector.snapshot()

    def is_alive(self) -> bool:
        return self._collector.is_alive()


def as_json(value: object) -> bytes:
    """One line of JSON."""
    return json.dumps(value, separators=(",", ":"), default=str).encode() + b"\n"


def _hang_up(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError as error:
        logger.debug("it has hung up before: %s", error)
