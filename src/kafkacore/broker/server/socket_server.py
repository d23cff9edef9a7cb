"""The broker's socket server: accepts connections, passes requests to the APIs and sends responses in order.

One thread, ``kafka-broker-network``, does all of this, including request handling. The behaviour follows
Kafka's ``SocketServer`` and ``Processor``.

As in Kafka, a connection handles one request at a time. The server reads one further request and then mutes
the channel until the first request is done. A client that waits for each response is never muted, and a
disconnect during a long poll is noticed.
"""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from kafkacore.broker.config.listeners import Listener
from kafkacore.broker.handlers.services import RequestContext
from kafkacore.broker.listeners.access import ListenerAccess
from kafkacore.broker.listeners.connection_limits import ConnectionLimits
from kafkacore.broker.purgatory.timer import Timer, TimerTask
from kafkacore.broker.quota import IpConnectionQuota
from kafkacore.broker.replica.replica_manager import ReplicaManager
from kafkacore.broker.requests.long_work import LongOperation
from kafkacore.broker.server._request_pump import Connection, RequestPump
from kafkacore.broker.server.node_listeners import OpenListener, close_listeners
from kafkacore.clock import Clock
from kafkacore.errors import AuthenticationFailedError, InvalidReceiveError, KafkaProtocolError
from kafkacore.logs import logger_of
from kafkacore.metrics import Authentications, Sensor
from kafkacore.network import ChannelState, Selector
from kafkacore.network.other_protocols import spoken_protocol
from kafkacore.protocol import ApiKey

if TYPE_CHECKING:
    from kafkacore.broker.server.kafka_apis import KafkaApis

logger = logger_of(__name__)
T = TypeVar("T")

#: Errors of a file from which records are sent: the file is shorter than expected, or cannot be read.
_FILE_ERRORS = (errno.ENODATA, errno.EIO)
#: Maximum time of one wait, so that a lost wake-up delays a response by at most a second.
MAX_WAIT_MS = 1000.0
#: Maximum number of throttled connections that are open at the same time. Further connections over the limit
#: of their IP address are closed at once.
MAX_THROTTLED = 100


class _Pause(TimerTask):
    """Timer task that ends the throttling of a connection.

    The broker handles no requests of the connection before the task runs.
    """

    __slots__ = ("_connection", "_pump")

    def __init__(self, connection: Connection, pump: Callable[[Connection], int]) -> None:
        super().__init__()
        self._connection = connection
        self._pump = pump

    def run(self) -> None:
        self._connection.pause = None
        self._pump(self._connection)


class _AcceptPause(TimerTask):
    """Timer task that ends a pause during which a listener accepts no connections."""

    __slots__ = ("_opened", "_resume")

    def __init__(self, opened: OpenListener, resume: Callable[[OpenListener], None]) -> None:
        super().__init__()
        self._opened = opened
        self._resume = resume

    def run(self) -> None:
        self._resume(self._opened)


class _ThrottledConnection(TimerTask):
    """A connection that exceeds the rate of its IP address. It is closed when its throttle time is over."""

    __slots__ = ("_held", "_socket")

    def __init__(self, accepted: socket.socket, held: set[_ThrottledConnection]) -> None:
        super().__init__()
        self._socket = accepted
        self._held = held
        held.add(self)

    def run(self) -> None:
        self.close()

    def close(self) -> None:
        self._held.discard(self)
        self._socket.close()


class _Call(Generic[T]):
    """A call from another thread, with its result."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self.result: T | None = None
        self.is_done = threading.Event()

    def run(self) -> None:
        try:
            self.result = self._function()
        except Exception:
            logger.exception("a call on the network thread failed")
        finally:
            self.is_done.set()


class SocketServer:
    """The server of all listeners. It runs in the thread that calls :meth:`run`.

    Other threads may call only :meth:`stop` and :meth:`call`.

    Parameters
    ----------
    listeners:
        The open listeners; :meth:`close` closes their sockets.
    access:
        Authentication and limits by listener name.
    selector:
        Selector of all sockets. This server closes it.
    apis:
        Object that passes the requests to their handlers.
    replica_manager:
        Replica manager whose delayed operations this thread completes.
    timer:
        Timer that this thread advances after each wait.
    limits:
        Connection limits. A connection beyond a limit is accepted and closed immediately.
    """

    def __init__(
        self,
        listeners: Sequence[OpenListener],
        access: Mapping[str, ListenerAccess],
        selector: Selector,
        apis: KafkaApis,
        replica_manager: ReplicaManager,
        timer: Timer,
        *,
        clock: Clock,
        limits: ConnectionLimits,
        ip_quota: IpConnectionQuota | None = None,
    ) -> None:
        self._listeners: dict[str, OpenListener] = {}
        self._access = access
        self._selector = selector
        self._apis = apis
        self._connections: dict[str, Connection] = {}
        self._requests = RequestPump(self._connections, selector, apis, replica_manager, timer, clock, self)
        self._replica_manager = replica_manager
        self._timer = timer
        self._clock = clock
        self.limits = limits
        self._ip_quota = ip_quota
        self._throttled: set[_ThrottledConnection] = set()
        self.accepted_count = 0
        self.refused_count = 0
        self.failed_authentication_count = 0
        self.authentications = Authentications(Sensor)
        selector.on_authenticated = self.authentications.note
        self.expired_count = 0
        self.throttled_count = 0
        self.throttled_ms = 0.0
        self._is_stopping = False
        #: Listeners that exceed their connection rate and do not accept connections for a while.
        self._paused_listeners: dict[str, _AcceptPause] = {}
        self.open_node(listeners)

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    def stop(self) -> None:
        """Ask :meth:`run` to return. Any thread and any signal handler may call this."""
        self._is_stopping = True
        self._selector.wakeup()

    def call(self, function: Callable[[], T], timeout_s: float) -> T | None:
        """Run ``function`` on the network thread between two requests and return its result.

        Any other thread may call this. The function must be fast, because it blocks all clients. The result
        is ``None`` if the network thread has stopped or has not run the function within ``timeout_s``
        seconds.
        """
        call = _Call(function)
        self._replica_manager.call_soon(call.run)
        return call.result if call.is_done.wait(timeout_s) else None

    def contexts(self) -> list[RequestContext]:
        """Return the context of every connection. Call this on the network thread."""
        return [connection.context for connection in self._connections.values()]

    def run(self) -> None:
        """Serve until :meth:`stop` is called."""
        poll = self._requests.poll
        while not self._is_stopping:
            poll(MAX_WAIT_MS)

    def poll(self, timeout_ms: float) -> None:
        """Wait up to ``timeout_ms`` for the sockets, then handle everything that is ready."""
        self._requests.poll(timeout_ms)

    def close(self) -> None:
        """Close all connections and listeners. Call it after :meth:`run` has returned."""
        for connection in list(self._connections.values()):
            self.forget(connection)
        for throttled in list(self._throttled):
            throttled.cancel()
            throttled.close()
        self._selector.close_all()
        close_listeners(self._listeners.values())
        for access in self._access.values():
            access.close()

    # ---- Nodes ----------------------------------------------------------------------------------------

    def close_node(self, node_id: int) -> None:
        """Close the listeners and the connections of a node."""
        for opened in [each for each in self._listeners.values() if each.node_id == node_id]:
            self._selector.unregister_listener(opened.id)
            del self._listeners[opened.id]
            opened.socket.close()
        for connection in list(self._connections.values()):
            if connection.context.node_id == node_id:
                self.close_connection(connection)

    def open_node(self, listeners: Iterable[OpenListener]) -> None:
        """Accept connections on these listeners."""
        for opened in listeners:
            self._listeners[opened.id] = opened
            self._selector.register_listener(opened.id, opened.socket)

    def change_listeners(self, listeners: Iterable[Listener]) -> None:
        """Apply changed settings of listeners to future connections."""
        for listener in listeners:
            self._access[listener.name].change(listener)

    # ---- Events ---------------------------------------------------------------------------------------

    def on_accepted(self, listener_id: str, accepted: socket.socket, address: object) -> None:
        """Serve a new connection, unless it exceeds a limit. The pump calls this."""
        opened = self._listeners[listener_id]
        host, port = address[:2] if isinstance(address, tuple) else (str(address), 0)
        access = self._access[opened.listener.name]
        if self._is_throttled(accepted, host, port):
            return
        self._pause_if_too_fast(opened, access)
        refusal = self.limits.admit(host, access.limit)
        if refusal is not None:
            self.refused_count += 1
            logger.warning("refused %s:%d: %s", host, port, refusal)
            accepted.close()
            return
        self.accepted_count += 1
        connection_id = f"{host}:{port}-{self.accepted_count}"
        try:
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            logger.debug("%s disconnected before it was served: %s", connection_id, error)
            self.limits.release(host, access.limit)
            accepted.close()
            return
        context = RequestContext(
            connection_id, opened.node_id, host, opened.listener.name, opened.listener.protocol
        )
        builder = None
        if not access.is_open:
            builder = access.builder(partial(self._apis.answer_before_authentication, context))
        try:
            self._selector.register(connection_id, accepted, builder)
        except OSError as error:
            logger.debug("%s disconnected before it was served: %s", connection_id, error)
            self.limits.release(host, access.limit)
            accepted.close()
            return
        self._connections[connection_id] = Connection(context, self._requests, builder is None)

    def _is_throttled(self, accepted: socket.socket, host: str, port: int) -> bool:
        """Return whether a connection exceeds the rate of its IP address; if so, close it after a delay.

        As in Kafka, the delay slows down a client that reconnects immediately after each disconnect.
        """
        now_ms = self._clock.monotonic_ms()
        throttle_ms = 0.0
        if self._ip_quota is not None:
            throttle_ms = self._ip_quota.count_and_get_throttle_ms(host, now_ms)
        if throttle_ms <= 0:
            return False
        self.refused_count += 1
        logger.warning(
            "refused %s:%d: its IP address exceeds its limit of connections per second "
            "(connection_creation_rate)",
            host,
            port,
        )
        if len(self._throttled) < MAX_THROTTLED:
            self._timer.add(now_ms + throttle_ms, _ThrottledConnection(accepted, self._throttled))
        else:
            accepted.close()
        return True

    def _pause_if_too_fast(self, opened: OpenListener, access: ListenerAccess) -> None:
        """Pause a listener that exceeds its connection rate."""
        now_ms = self._clock.monotonic_ms()
        wait_ms = access.rate.count(now_ms)
        if wait_ms > 0 and opened.id not in self._paused_listeners:
            self._selector.unregister_listener(opened.id)
            self._paused_listeners[opened.id] = _AcceptPause(opened, self._resume)
            self._timer.add(now_ms + wait_ms, self._paused_listeners[opened.id])

    def _resume(self, opened: OpenListener) -> None:
        del self._paused_listeners[opened.id]
        if self._listeners.get(opened.id) is opened:
            self._selector.register_listener(opened.id, opened.socket)

    def on_disconnected(self, connection_id: str, state: ChannelState) -> None:
        """Log why a connection was closed, and remove it. The pump calls this."""
        connection = self._connections.get(connection_id)
        if connection is None:
            return
        if isinstance(state.error, AuthenticationFailedError):
            self.failed_authentication_count += 1
            logger.warning("refused %s: %s", connection_id, ascii(state.reason)[1:-1])
        elif isinstance(state.error, OSError) and state.error.errno in _FILE_ERRORS:
            logger.error(
                "closed %s: the records of a response could not be read from disk: %s",
                connection_id,
                state.error.strerror,
            )
        elif isinstance(state.error, KafkaProtocolError):
            logger.warning("closed %s: %s", connection_id, _what_is_wrong(state, connection_id))
        else:
            logger.debug("%s disconnected: %s", connection_id, state.reason)
        request = connection.request
        if request is not None and isinstance(request.operation, LongOperation):
            connection.is_draining = True
        else:
            self.forget(connection)

    # ---- Authentication -------------------------------------------------------------------------------

    def identify(self, connection: Connection) -> bool:
        """Determine the principal of a connection whose channel is ready; return whether to serve it."""
        channel = self._selector.channel(connection.id)
        if channel is None:
            # The connection was closed in the same poll.
            return False
        try:
            principal = self._access[connection.context.listener_name].principal(channel)
        except AuthenticationFailedError as error:
            self.failed_authentication_count += 1
            logger.warning("refused %s: %s", connection.id, ascii(str(error))[1:-1])
            self.close_connection(connection)
            return False
        connection.context.principal = principal
        connection.is_known = True
        connection.authenticator = channel.authenticator
        return True

    def is_held_back(self, connection: Connection, payload: memoryview) -> bool:
        """Return whether a frame must not be passed to the API handlers.

        The frame may start a re-authentication, arrive after the session has expired, or arrive before the
        re-authentication is complete.
        """
        assert connection.authenticator is not None
        if not connection.authenticator.is_complete:
            # The frame arrived together with the SaslHandshake, which may have been refused.
            logger.warning(
                "closing %s: it sent a request before its authentication was complete", connection.id
            )
            self.close_connection(connection)
            return True
        if int.from_bytes(payload[:2]) == ApiKey.SASL_HANDSHAKE:
            if connection.is_disconnected:
                logger.debug("%s disconnected before it re-authenticated", connection.id)
            elif connection.pending:
                logger.warning(
                    "closing %s: it sent a request before its authentication was complete", connection.id
                )
                self.close_connection(connection)
            else:
                self._selector.reauthenticate(connection.id, payload)
            return True
        if self._clock.monotonic_ms() > connection.authenticator.expires_at_ms:
            self.expired_count += 1
            logger.info("closing %s: its session has expired without re-authentication", connection.id)
            self.close_connection(connection)
            return True
        return False

    # ---- Requests -------------------------------------------------------------------------------------

    def on_failure(self, connection: Connection, error: Exception) -> None:
        logger.error("closing %s: failed to handle a request", connection.id, exc_info=error)
        self.close_connection(connection)

    def throttle(self, connection: Connection, throttle_ms: float) -> None:
        """Handle no further requests of a connection for ``throttle_ms`` (KIP-219)."""
        connection.pause = _Pause(connection, self._requests.pump)
        self.throttled_count += 1
        self.throttled_ms += throttle_ms
        self._timer.add(self._clock.monotonic_ms() + throttle_ms, connection.pause)

    def close_connection(self, connection: Connection) -> None:
        self.forget(connection)
        self._selector.close(connection.id)

    def forget(self, connection: Connection) -> None:
        if self._connections.pop(connection.id, None) is not None:
            self.limits.release(connection.context.host, self._access[connection.context.listener_name].limit)
        connection.pending.clear()
        if connection.pause is not None:
            connection.pause.cancel()
            connection.pause = None
        request, connection.request = connection.request, None
        if request is not None and request.operation is not None:
            self._replica_manager.produce_purgatory.cancel(request.operation)
            self._replica_manager.fetch_purgatory.cancel(request.operation)
            # Request and operation refer to each other. Clearing one reference frees the payload without a
            # garbage collection.
            request.operation = None


def _what_is_wrong(state: ChannelState, connection_id: str) -> str:
    """Return a connection's error message without the connection id, which the log line already contains."""
    spoken = spoken_protocol(state.error.frame_size) if isinstance(state.error, InvalidReceiveError) else None
    if spoken == "TLS":
        return "it uses TLS, but this listener does not: set security.protocol=PLAINTEXT in the client"
    if spoken is not None:
        return f"it speaks {spoken}, but this port expects Kafka's protocol"
    return state.reason.removeprefix(f"{connection_id}: ")
