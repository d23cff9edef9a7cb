"""Send requests to brokers and receive their responses (Kafka's ``NetworkClient``).

Only one thread may use a client. The client blocks only while the selector waits in
:meth:`NetworkClient.poll`, and while host names are resolved.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, MutableSequence
from typing import TYPE_CHECKING, Any, Protocol

from kafkacore.client import response_handling
from kafkacore.client._client_request import ClientRequest
from kafkacore.client._in_flight_requests import InFlightRequests
from kafkacore.client.addresses import Resolver, is_same_endpoint, resolve_host
from kafkacore.client.api_versions import ApiVersions, api_versions_request
from kafkacore.client.client_metrics import ClientMetrics
from kafkacore.client.connection_errors import ConnectionErrors
from kafkacore.client.connection_states import ClusterConnectionStates
from kafkacore.client.exponential_backoff import ExponentialBackoff
from kafkacore.client.metadata import Metadata
from kafkacore.client.metadata_updater import MetadataUpdater
from kafkacore.client.native_heartbeats import NativeHeartbeats
from kafkacore.client.requests import ClientResponse, Completion, CorrelationIds
from kafkacore.clock import Clock
from kafkacore.errors import AuthenticationFailedError, IllegalStateError, KafkaError, UnsupportedVersionError
from kafkacore.logs import logger_of
from kafkacore.network import ChannelBuilder, NativeHeartbeat, NetworkSend, Selectable
from kafkacore.protocol import ApiKey, Request, encode_request
from kafkacore.structs import Node, printable

if TYPE_CHECKING:
    from kafkacore.client.native_heartbeats import HeartbeatMessage
    from kafkacore.client.proxy import Proxy

logger = logger_of(__name__)


def _unresolved(host: str, port: int) -> list[str]:
    """Return the host name unchanged, because the proxy resolves it."""
    return [host]


class EventWait(Protocol):
    """Polls a selector without blocking the thread."""

    def poll(self, timeout_ms: float, return_on_completed_sends: bool = True) -> None:
        """Do what ``Selector.poll`` does."""

    def close(self) -> None:
        """Stop watching the selector, which is about to be closed."""


class NetworkClient:
    """The connections of one client to its brokers.

    Parameters
    ----------
    selector:
        The selector that owns the sockets. :meth:`close` closes it.
    metadata:
        The metadata of the cluster. :meth:`poll` refreshes it.
    clock:
        The clock of all times that are passed to this client.
    client_id:
        Name of the client in every request header.
    max_in_flight_requests_per_connection:
        Maximum number of requests in flight on one connection.
    reconnect_backoff_ms, reconnect_backoff_max_ms:
        First and longest pause between two attempts to connect to a node.
    send_buffer_bytes, receive_buffer_bytes:
        Sizes of the socket buffers. With -1, the operating system chooses the size.
    request_timeout_ms:
        Timeout of requests that have no timeout of their own. The client closes the connection of a request
        that times out.
    connection_setup_timeout_ms, connection_setup_timeout_max_ms:
        First and longest time that a connection may take to become ready. The time grows with each failure.
    rebootstrap_trigger_ms:
        Time without a successful metadata update, in milliseconds, after which the client starts again from
        the bootstrap servers. Infinity disables this.
    resolver:
        Function that resolves host names. It may block.
    channel_builder:
        Builder of TLS and SASL channels; ``None`` for plaintext connections.
    proxy:
        Proxy through which to connect; ``None`` for direct connections.
    """

    def __init__(
        self,
        selector: Selectable,
        metadata: Metadata,
        *,
        clock: Clock,
        client_id: str | None = "kafkacore",
        max_in_flight_requests_per_connection: int = 5,
        reconnect_backoff_ms: float = 50.0,
        reconnect_backoff_max_ms: float = 1000.0,
        send_buffer_bytes: int = -1,
        receive_buffer_bytes: int = -1,
        request_timeout_ms: float = 30_000.0,
        connection_setup_timeout_ms: float = 10_000.0,
        connection_setup_timeout_max_ms: float = 30_000.0,
        rebootstrap_trigger_ms: float = 300_000.0,
        resolver: Resolver = resolve_host,
        channel_builder: ChannelBuilder | None = None,
        proxy: Proxy | None = None,
    ) -> None:
        self.selector = selector
        self._builder = channel_builder
        self._proxy = proxy
        self.metadata = metadata
        self.clock = clock
        self.client_id = client_id
        self.request_timeout_ms = request_timeout_ms
        self.reconnect_backoff_ms = reconnect_backoff_ms
        self._buffer_bytes = (send_buffer_bytes, receive_buffer_bytes)
        self.states = ClusterConnectionStates(
            ExponentialBackoff(clock, reconnect_backoff_ms, reconnect_backoff_max_ms),
            ExponentialBackoff(clock, connection_setup_timeout_ms, connection_setup_timeout_max_ms),
            resolver if proxy is None or not proxy.resolves_names else _unresolved,
        )
        self.in_flight = InFlightRequests(max_in_flight_requests_per_connection)
        #: Heartbeats that a native thread sends on connections of this client.
        self.native_heartbeats = NativeHeartbeats(self)
        self.api_versions = ApiVersions()
        self.updater = MetadataUpdater(
            self,
            metadata,
            request_timeout_ms=request_timeout_ms,
            reconnect_backoff_ms=reconnect_backoff_ms,
            rebootstrap_trigger_ms=rebootstrap_trigger_ms,
        )
        self._correlation_ids = CorrelationIds()
        #: Why brokers cannot be reached, for the log and for error messages.
        self.connection_errors = ConnectionErrors()
        #: Metrics of requests, responses and connections; ``None`` if they are disabled.
        self.metrics: ClientMetrics | None = None
        self._waited_ms = 0.0
        #: Node id → version of the ApiVersions request that is still to be sent to the node.
        self.wanted_api_versions: dict[int, int] = {}
        #: Responses whose callbacks have not been called. If a request fails outside of poll(), its response
        #: waits here for the next poll.
        self._aborted: deque[Completion] = deque()
        #: Node id → the selector's id of the node's connection, and the selector's id → node id.
        self._connection_ids: dict[int, str] = {}
        self._node_ids: dict[str, int] = {}
        self._bootstrap_connections = 0
        #: The selector's ``completed_receives`` that were handled last. If the selector now has others, its
        #: results are still to be handled: the caller of wait() left them, or Ctrl-C interrupted poll().
        self.handled_receives: object = selector.completed_receives
        #: Object that waits for the events of the selector in another way than by blocking the thread;
        #: ``None`` to block. ``kafkacore.aio`` sets it.
        self.event_wait: EventWait | None = None
        self._is_handling = False
        self._is_closed = False

    # ---- Connections ---------------------------------------------------------------------------------------

    def ready(self, node: Node, now_ms: float) -> bool:
        """Return whether a request can be sent to ``node`` now. Start to connect if it is not connected."""
        if self.is_ready(node, now_ms):
            return True
        if self.can_connect(node, now_ms):
            self.initiate_connect(node, now_ms)
        return False

    def is_ready(self, node: Node, now_ms: float) -> bool:
        """Return whether a request can be sent to ``node`` now.

        No other request can be sent while a metadata update is due, because the Metadata request goes first.
        """
        return not self.updater.is_update_due(now_ms) and self.can_send_request(node.node_id, now_ms)

    def can_send_request(self, node_id: int, now_ms: float) -> bool:
        """Return whether the connection is ready, is not throttled and can accept one more request."""
        return (
            self.states.is_ready(node_id, now_ms)
            and self.selector.is_channel_ready(self.connection_id(node_id))
            and self.in_flight.can_send_more(node_id)
        )

    @property
    def via(self) -> str:
        """The proxy in parentheses, for messages; empty without a proxy."""
        return "" if self._proxy is None else f" (through proxy {self._proxy.endpoint})"

    def can_connect(self, node: Node, now_ms: float) -> bool:
        return self.states.can_connect(node.node_id, now_ms)

    def initiate_connect(self, node: Node, now_ms: float) -> None:
        """Start to connect to ``node``. An immediate failure counts as a disconnection."""
        self.states.connecting(node.node_id, now_ms, node.host, node.port)
        self._name_connection(node.node_id)
        try:
            address = self.states.current_address(node.node_id)
            logger.debug(
                "connecting to node %d at %s:%d%s", node.node_id, printable(address), node.port, self.via
            )
            self.selector.connect(
                self.connection_id(node.node_id),
                (address, node.port) if self._proxy is None else self._proxy.address(),
                *self._buffer_bytes,
                builder=self._builder,
                host=node.host,
                tunnel=None if self._proxy is None else self._proxy.tunnel(address, node.port),
            )
        except OSError as error:
            self._connect_failed(node.node_id, now_ms, error.strerror or str(error), None)
        except AuthenticationFailedError as error:
            self._connect_failed(node.node_id, now_ms, str(error), error)

    def _connect_failed(
        self, node_id: int, now_ms: float, reason: str, error: AuthenticationFailedError | None
    ) -> None:
        self.connection_errors.failed(self.states.endpoint(node_id), reason + self.via)
        if error is None:
            self.states.disconnected(node_id, now_ms)
        else:
            self.states.authentication_failed(node_id, now_ms, error)
        self.forget_connection(node_id)
        self.updater.handle_server_disconnect(node_id, error)

    def connection_delay(self, node: Node, now_ms: float) -> float:
        """Return the milliseconds until the client may connect to ``node``.

        While the client is connecting to the node, return the connection setup timeout. Return infinity if
        the node is connected, because then an event ends the wait.
        """
        return self.states.connection_delay_ms(node.node_id, now_ms)

    def poll_delay_ms(self, node: Node, now_ms: float) -> float:
        """Return the rest of the throttle time if the node is throttled, else :meth:`connection_delay`."""
        return self.states.poll_delay_ms(node.node_id, now_ms)

    def throttle_delay_ms(self, node: Node, now_ms: float) -> float:
        return self.states.throttle_delay_ms(node.node_id, now_ms)

    def connection_failed(self, node: Node) -> bool:
        """Return whether the last attempt to connect failed or the connection was closed."""
        return self.states.is_disconnected(node.node_id)

    def authentication_error(self, node: Node) -> KafkaError | None:
        return self.states.authentication_error(node.node_id)

    def has_ready_nodes(self, now_ms: float) -> bool:
        return self.states.has_ready_nodes(now_ms)

    def is_any_node_preparing(self) -> bool:
        """Return whether a connection to a node of the cluster is being established."""
        return any(self.states.is_preparing(node.node_id) for node in self.updater.nodes)

    def disconnect(self, node_id: int) -> None:
        """Close the connection to a node, if there is one. Its requests fail in the next poll."""
        if self.states.state(node_id) is None or self.states.is_disconnected(node_id):
            return
        now_ms = self.clock.monotonic_ms()
        self.selector.close(self.connection_id(node_id))
        self.cancel_in_flight(node_id, now_ms, self._aborted)
        self.states.disconnected(node_id, now_ms)
        self.forget_connection(node_id)

    def forget_connection(self, node_id: int) -> None:
        """Remove the state of a closed connection."""
        self.api_versions.remove(node_id)
        self.wanted_api_versions.pop(node_id, None)
        connection_id = self._connection_ids.pop(node_id, None)
        if connection_id is not None:
            del self._node_ids[connection_id]
            if self.metrics is not None:
                self.metrics.connection_closed(self.clock.monotonic_ms())

    def least_loaded_node(self, now_ms: float) -> Node | None:
        """Return the best node for a request that any node can answer.

        Prefer a ready node with the fewest requests in flight, then a node that is being connected, then the
        node whose last connection attempt is longest ago. The search starts at a random node.

        Returns
        -------
        Node or None
            ``None`` if every node is backing off, throttled or at its limit of requests in flight.
        """
        nodes = self.updater.nodes
        if not nodes:
            return None
        start = self.clock.random.randrange(len(nodes))
        ready: Node | None = None
        preparing: Node | None = None
        connectable: Node | None = None
        fewest = math.inf
        for node in nodes[start:] + nodes[:start]:
            if self.can_send_request(node.node_id, now_ms):
                count = self.in_flight.count(node.node_id)
                if count == 0:
                    return node
                if count < fewest:
                    ready, fewest = node, count
            elif self.states.is_preparing(node.node_id):
                preparing = preparing or node
            elif self.can_connect(node, now_ms) and (
                connectable is None
                or self.states.last_attempt_ms(node.node_id)
                < self.states.last_attempt_ms(connectable.node_id)
            ):
                connectable = node
        return ready or preparing or connectable

    # ---- Requests ------------------------------------------------------------------------------------------

    def next_correlation_id(self) -> int:
        """Return the correlation id of a new request. Any thread may call this."""
        return self._correlation_ids.next()

    def new_client_request(
        self,
        node_id: int,
        request: Request[Any],
        now_ms: float,
        expect_response: bool = True,
        request_timeout_ms: float | None = None,
        callback: Callable[[ClientResponse], None] | None = None,
        max_version: int | None = None,
    ) -> ClientRequest:
        """Create a request for :meth:`send`; see :class:`ClientRequest`."""
        return ClientRequest(
            node_id,
            request,
            self.next_correlation_id(),
            now_ms,
            request_timeout_ms=self.request_timeout_ms if request_timeout_ms is None else request_timeout_ms,
            expect_response=expect_response,
            callback=callback,
            max_version=max_version,
        )

    def send(self, request: ClientRequest, now_ms: float) -> None:
        """Queue a request; the next polls write it to the socket.

        The request is sent in the newest version that client and broker support. If they have no version in
        common, nothing is sent, and the next poll returns a response with ``version_mismatch``.

        Raises
        ------
        IllegalStateError
            The node is not ready, or the client is closed.
        """
        self._check_open()
        if not self.can_send_request(request.node_id, now_ms):
            raise IllegalStateError(f"node {request.node_id} is not ready: wait until ready() returns True")
        self._send(request, now_ms)

    def send_internal(
        self, node_id: int, message: Request[Any], now_ms: float, max_version: int | None = None
    ) -> None:
        """Send a request whose response this client handles itself."""
        request = self.new_client_request(node_id, message, now_ms, max_version=max_version)
        request.is_internal = True
        self._send(request, now_ms)

    def _send(self, request: ClientRequest, now_ms: float) -> None:
        versions = self.api_versions.get(request.node_id)
        request_class = request.request_class
        newest = request_class.MAX_VERSION if request.max_version is None else request.max_version
        try:
            if versions is not None:
                newest = versions.latest_usable_version(request_class, request.max_version)
            request.version = newest
            pieces = encode_request(request.request, newest, request.correlation_id, self.client_id)
        except UnsupportedVersionError as error:
            logger.debug("failed to send %r: %s", request, error)
            if request.is_internal:
                self.updater.handle_failed_request(now_ms, error)
            else:
                self._aborted.append(ClientResponse(request, now_ms, version_mismatch=error))
            return
        request.send = NetworkSend(self.connection_id(request.node_id), pieces)
        request.sent_ms = now_ms
        self.in_flight.add(request)
        self.selector.send(request.send)
        self.count_sent(request, now_ms)

    def count_sent(self, request: ClientRequest, now_ms: float) -> None:
        """Count a request in the metrics."""
        if self.metrics is not None and request.send is not None:
            self.metrics.requests.request_sent(request.node_id, request.send.size_in_bytes, now_ms)

    def flush(self, now_ms: float) -> None:
        """Write the requests that are queued, as far as the sockets accept them."""
        self._check_open()
        if self.in_flight.unanswered_count or self._has_unhandled_results():
            # A request without a response is complete when a poll reports it as written.
            self.poll(0, now_ms)
        else:
            self.selector.flush()

    def begin_heartbeats(
        self,
        node_id: int,
        heartbeat: NativeHeartbeat,
        request: HeartbeatMessage,
        interval_ms: float,
        session_timeout_ms: float,
        callback: Callable[[ClientResponse], None],
    ) -> bool:
        """Let ``heartbeat`` send its requests on the connection to a node.

        The heartbeat stops sending on any other connection. Its requests do not count as requests in flight.

        Parameters
        ----------
        node_id:
            The group coordinator.
        heartbeat:
            The native heartbeat of a consumer.
        request:
            The request that is sent at each interval.
        interval_ms, session_timeout_ms:
            Arguments of ``NativeHeartbeat.begin``.
        callback:
            Function that :meth:`poll` calls with each response until ``heartbeat.end()``, and when the
            connection is closed.

        Returns
        -------
        bool
            ``False`` if the connection is not ready or does not support native heartbeats.
        """
        self._check_open()
        return self.native_heartbeats.begin(
            node_id, heartbeat, request, interval_ms, session_timeout_ms, callback
        )

    def is_below_in_flight_limit(self, node_id: int) -> bool:
        """Return whether a node has fewer requests in flight than the maximum for a connection."""
        return self.in_flight.is_below_limit(node_id)

    def in_flight_request_count(self, node_id: int | None = None) -> int:
        """Return the number of requests in flight to one node or to all nodes."""
        return self.in_flight.count(node_id)

    def connection_count(self) -> int:
        """Return the number of connections that are open or being established."""
        return len(self._connection_ids)

    def has_in_flight_requests(self) -> bool:
        return self.in_flight.count() > 0

    # ---- Polling -------------------------------------------------------------------------------------------

    def poll(self, timeout_ms: float, now_ms: float, *, has_unsent: bool = True) -> list[Completion]:
        """Do pending I/O, refresh the metadata, and complete requests.

        Parameters
        ----------
        timeout_ms:
            Maximum wait for I/O, in milliseconds.
        now_ms:
            Current time of this client's clock, in milliseconds.
        has_unsent:
            Whether the caller has requests that it could not send yet. The poll then also returns when a
            request is written and its node can accept another one.

        Returns
        -------
        list of Completion
            Results of the requests that are completed. Their callbacks have been called.
        """
        if self.wait(timeout_ms, now_ms, has_unsent=has_unsent):
            self._handle_results()
            self.handled_receives = self.selector.completed_receives
        # Callbacks and metadata updates may have aborted requests, so return the responses of these requests
        # too.
        return self._complete_aborted()

    def wait(self, timeout_ms: float, now_ms: float, *, has_unsent: bool = True) -> bool:
        """Do pending I/O and refresh the metadata like :meth:`poll`, but leave the results in the selector.

        A caller that handles all results itself then sets :attr:`handled_receives` to the selector's
        ``completed_receives``, and calls :meth:`count_wait`. Otherwise the next poll handles them.

        Returns
        -------
        bool
            ``False`` if the results of an earlier call are to be completed first, by a poll.
        """
        self._check_open()
        if self._is_handling:
            self._disconnect_all(now_ms)
        elif self._has_unhandled_results():
            self._handle_results()
            self.handled_receives = self.selector.completed_receives
            return False
        if self._aborted:
            return False
        metadata_ms = self.updater.maybe_update(now_ms)
        timeout_ms = min(timeout_ms, metadata_ms, self._next_deadline_ms(now_ms))
        needs_sends = self.in_flight.needs_completed_sends(has_unsent=has_unsent)
        if self.event_wait is None:
            self.selector.poll(timeout_ms, needs_sends)
            return True
        self.event_wait.poll(timeout_ms, needs_sends)
        # Other code may have polled this client during the wait, and handled the results.
        return self._has_unhandled_results()

    def _has_unhandled_results(self) -> bool:
        """Return whether the last selector poll has results that have not been handled.

        If Ctrl-C interrupted the selector's poll itself, the selector's next poll returns its results.
        """
        selector = self.selector
        return selector.completed_receives is not self.handled_receives and not selector.is_interrupted

    def count_wait(self, now_ms: float) -> None:
        """Count the time of the last selector poll in the metrics."""
        if self.metrics is not None:
            waited_ms = self.selector.waited_ms
            self.metrics.requests.waited(waited_ms - self._waited_ms, now_ms)
            self._waited_ms = waited_ms

    def _handle_results(self) -> None:
        self._is_handling = True
        now_ms = self.clock.monotonic_ms()
        self.count_wait(now_ms)
        response_handling.handle_results(self, now_ms, self._aborted)
        self._is_handling = False

    def _complete_aborted(self) -> list[Completion]:
        if not self._aborted:
            return []
        completed = []
        # Handle only the responses that are queued now. The next poll handles the responses that the
        # callbacks add. A response is removed only after its callback has returned, so that Ctrl-C loses no
        # response.
        for _ in range(len(self._aborted)):
            response_handling.complete(self._aborted[0])
            completed.append(self._aborted.popleft())
        return completed

    def _disconnect_all(self, now_ms: float) -> None:
        """Close all connections, because Ctrl-C interrupted the handling of their results."""
        for node_id in self.states.node_ids():
            self.selector.close(self.connection_id(node_id))
            self.cancel_in_flight(node_id, now_ms, self._aborted)
            self.states.disconnected(node_id, now_ms)
            self.forget_connection(node_id)
        self.updater.forget_request()
        self._is_handling = False

    def _next_deadline_ms(self, now_ms: float) -> float:
        """Return the milliseconds until the next request or connection setup times out."""
        deadline_ms = min(self.in_flight.next_deadline_ms(), self.states.next_setup_deadline_ms())
        return max(min(deadline_ms - now_ms, self.request_timeout_ms), 0.0)

    def wakeup(self) -> None:
        """Make the current or the next :meth:`poll` return immediately. Any thread may call this."""
        self.selector.wakeup()

    def cancel_in_flight(
        self,
        node_id: int,
        now_ms: float,
        responses: MutableSequence[Completion],
        *,
        timed_out: bool = False,
        error: KafkaError | None = None,
    ) -> None:
        """Fail all requests in flight to a node whose connection is closed, in the order of sending."""
        for request in self.in_flight.clear(node_id):
            if not request.is_internal:
                responses.append(
                    ClientResponse(
                        request, now_ms, disconnected=True, timed_out=timed_out, authentication_error=error
                    )
                )
            elif request.api_key == ApiKey.METADATA:
                self.updater.handle_failed_request(now_ms)
        if self.native_heartbeats.by_node:
            self.native_heartbeats.disconnected(node_id, now_ms, responses)

    def send_api_versions(self, now_ms: float) -> None:
        """Send ApiVersions, the first request of a connection, on new connections with a ready channel."""
        for node_id, version in list(self.wanted_api_versions.items()):
            is_ready = self.selector.is_channel_ready(self.connection_id(node_id))
            if is_ready and self.in_flight.can_send_more(node_id):
                del self.wanted_api_versions[node_id]
                self.send_internal(node_id, api_versions_request(version), now_ms, max_version=version)

    # ---- Bootstrap servers ---------------------------------------------------------------------------------

    def adopt_bootstrap_connections(self) -> None:
        """Reuse connections to bootstrap servers as connections to nodes of the cluster.

        If a node listens at the address of a bootstrap server, the connection continues under the id of the
        node, so that one broker needs only one socket. Other idle bootstrap connections are closed.
        """
        cluster = self.metadata.fetch()
        for bootstrap in self.metadata.bootstrap_nodes:
            if self.states.state(bootstrap.node_id) is None:
                continue
            address = self.states.connected_address(bootstrap.node_id)
            for node in cluster.nodes:
                if (
                    address is not None
                    and is_same_endpoint(node, bootstrap, address)
                    and self.states.state(node.node_id) is None
                ):
                    self._rename(bootstrap.node_id, node)
                    break
            else:
                if self.in_flight.count(bootstrap.node_id) == 0:
                    # Close the connection, because no request will use it. Otherwise it would stay open until
                    # it is idle for too long.
                    self.close(bootstrap.node_id)

    def _rename(self, bootstrap_id: int, node: Node) -> None:
        logger.debug("bootstrap server %d is node %d; reusing its connection", bootstrap_id, node.node_id)
        self.states.rename(bootstrap_id, node.node_id, node.host)
        self.in_flight.rename(bootstrap_id, node.node_id)
        self.api_versions.rename(bootstrap_id, node.node_id)
        if bootstrap_id in self.wanted_api_versions:
            self.wanted_api_versions[node.node_id] = self.wanted_api_versions.pop(bootstrap_id)
        connection_id = self._connection_ids.pop(bootstrap_id)
        self._connection_ids[node.node_id] = connection_id
        self._node_ids[connection_id] = node.node_id

    def _name_connection(self, node_id: int) -> None:
        """Choose the selector's id of a new connection.

        Each connection to a bootstrap server gets a new id, because earlier ids may still be in use: a
        connection keeps its id when it becomes the connection of a node.
        """
        if node_id < 0:
            self._bootstrap_connections += 1
            connection_id = f"bootstrap{node_id}.{self._bootstrap_connections}"
        else:
            connection_id = str(node_id)
        self._connection_ids[node_id] = connection_id
        self._node_ids[connection_id] = node_id

    def connection_id(self, node_id: int) -> str:
        """Return the selector's id of the connection to a node."""
        return self._connection_ids.get(node_id) or str(node_id)

    def node_id(self, connection_id: str) -> int | None:
        """Return the node of a connection; ``None`` if this client has closed the connection."""
        return self._node_ids.get(connection_id)

    def rebootstrap(self, now_ms: float) -> None:
        """Close all connections to nodes and start again from the bootstrap servers (KIP-899)."""
        for node in self.updater.nodes:
            self.disconnect(node.node_id)
        self.updater.forget_request()
        self.metadata.rebootstrap()

    # ---- Closing -------------------------------------------------------------------------------------------

    def close(self, node_id: int | None = None) -> None:
        """Close the client: all connections and the metadata. A second call does nothing.

        With a ``node_id``, close only the connection to this node and forget the node. The callbacks of its
        requests are not called.
        """
        if node_id is not None:
            self.selector.close(self.connection_id(node_id))
            self.cancel_in_flight(node_id, self.clock.monotonic_ms(), [])
            self.states.remove(node_id)
            self.forget_connection(node_id)
        elif not self._is_closed:
            self._is_closed = True
            try:
                self.metadata.close()
            finally:
                if self.event_wait is not None:
                    self.event_wait.close()
                self.selector.close_all()
            if self._builder is not None:
                self._builder.close()

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def _check_open(self) -> None:
        if self._is_closed:
            raise IllegalStateError("this client is closed")
