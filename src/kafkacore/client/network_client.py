"""Requests to nodes in, responses out; connections come and go on the way. One thread uses it.

Nothing here blocks but the selector's wait inside :meth:`NetworkClient.poll`. Does not know: what requests
are for, but for ApiVersions and the metadata that it keeps fresh. Source of the behaviour: Kafka's
``NetworkClient``.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, MutableSequence
from typing import Any

from kafkacore.client import response_handling
from kafkacore.client.addresses import Resolver, is_same_endpoint, resolve_host
from kafkacore.client.api_versions import ApiVersions, api_versions_request
from kafkacore.client.client_metrics import ClientMetrics
from kafkacore.client.connection_errors import ConnectionErrors
from kafkacore.client.connection_states import ClusterConnectionStates
from kafkacore.client.exponential_backoff import ExponentialBackoff
from kafkacore.client.in_flight_requests import InFlightRequests
from kafkacore.client.metadata import Metadata
from kafkacore.client.metadata_updater import MetadataUpdater
from kafkacore.client.native_heartbeats import NativeHeartbeats
from kafkacore.client.requests import ClientRequest, ClientResponse, CorrelationIds
from kafkacore.clock import Clock
from kafkacore.errors import AuthenticationFailedError, IllegalStateError, KafkaError, UnsupportedVersionError
from kafkacore.network import ChannelBuilder, NativeHeartbeat, NetworkSend, Selectable
from kafkacore.protocol import ApiKey, Request, encode_request
from kafkacore.protocol.generated.heartbeat import HeartbeatRequest
from kafkacore.structs import Node

logger = logging.getLogger(__name__)


class NetworkClient:
    """The connections of one client.

    Parameters
    ----------
    selector:
        Owned and closed by this client.
    metadata:
        Kept fresh from within :meth:`poll`.
    client_id:
        Sent with every request.
    max_in_flight_requests_per_connection:
        Requests to one node that wait for their answers.
    reconnect_backoff_ms, reconnect_backoff_max_ms:
        Between tries to connect to one node, growing.
    send_buffer_bytes, receive_buffer_bytes:
        Of the sockets; -1 leaves them to the operating system.
    request_timeout_ms:
        Of requests that do not say otherwise. A connection that lets a request wait longer is closed.
    connection_setup_timeout_ms, connection_setup_timeout_max_ms:
        For a connection to become ready, growing with failures.
    rebootstrap_trigger_ms:
        Without any node to ask for longer, begin with the bootstrap addresses again; infinity for never.
    resolver:
        Asks DNS; blocks.
    channel_builder:
        Makes connections secure; ``None`` if they are in the clear.
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
    ) -> None:
        self.selector = selector
        self._builder = channel_builder
        self.metadata = metadata
        self.clock = clock
        self.client_id = client_id
        self.request_timeout_ms = request_timeout_ms
        self.reconnect_backoff_ms = reconnect_backoff_ms
        self._buffer_bytes = (send_buffer_bytes, receive_buffer_bytes)
        self.states = ClusterConnectionStates(
            ExponentialBackoff(clock, reconnect_backoff_ms, reconnect_backoff_max_ms),
            ExponentialBackoff(clock, connection_setup_timeout_ms, connection_setup_timeout_max_ms),
            resolver,
        )
        self.in_flight = InFlightRequests(max_in_flight_requests_per_connection)
        #: Who beats by himself on one of the connections.
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
        #: Brokers that cannot be had.
        self.connection_errors = ConnectionErrors()
        #: Told of requests, answers and connections; ``None`` if nobody counts.
        self.metrics: ClientMetrics | None = None
        self._waited_ms = 0.0
        #: Connections whose first request is still to be sent, and its highest version.
        self.wanted_api_versions: dict[int, int] = {}
        #: Ended, and their callbacks not yet called; those that ended outside of poll wait for the next one.
        self._aborted: deque[ClientResponse] = deque()
        #: The selector's names of the connections that there are, and back.
        self._connection_ids: dict[int, str] = {}
        self._node_ids: dict[str, int] = {}
        self._bootstrap_connections = 0
        #: The selector's answers that have been handled last; others there are have been missed by Ctrl-C.
        self._handled: object = selector.completed_receives
        self._is_handling = False
        self._is_closed = False

    # ---- Connections ---------------------------------------------------------------------------------------

    def ready(self, node: Node, now_ms: float) -> bool:
        """Whether a request may be sent to ``node`` now; if not for want of a connection, begin one."""
        if self.is_ready(node, now_ms):
            return True
        if self.can_connect(node, now_ms):
            self.initiate_connect(node, now_ms)
        return False

    def is_ready(self, node: Node, now_ms: float) -> bool:
        """Whether a request may be sent to ``node`` now. A request for metadata that is due goes first."""
        return not self.updater.is_update_due(now_ms) and self.can_send_request(node.node_id, now_ms)

    def can_send_request(self, node_id: int, now_ms: float) -> bool:
        """Whether the connection is ready, not throttled, and has room for one more request."""
        return (
            self.states.is_ready(node_id, now_ms)
            and self.selector.is_channel_ready(self.connection_id(node_id))
            and self.in_flight.can_send_more(node_id)
        )

    def can_connect(self, node: Node, now_ms: float) -> bool:
        return self.states.can_connect(node.node_id, now_ms)

    def initiate_connect(self, node: Node, now_ms: float) -> None:
        """Begin to connect; a failure at once counts as a disconnection."""
        self.states.connecting(node.node_id, now_ms, node.host, node.port)
        self._name_connection(node.node_id)
        try:
            address = self.states.current_address(node.node_id)
            logger.debug("connecting to node %d at %s:%d", node.node_id, address, node.port)
            self.selector.connect(
                self.connection_id(node.node_id),
                (address, node.port),
                *self._buffer_bytes,
                builder=self._builder,
                host=node.host,
            )
        except OSError as error:
            self._connect_failed(node.node_id, now_ms, error.strerror or str(error), None)
        except AuthenticationFailedError as error:
            self._connect_failed(node.node_id, now_ms, str(error), error)

    def _connect_failed(
        self, node_id: int, now_ms: float, reason: str, error: AuthenticationFailedError | None
    ) -> None:
        self.connection_errors.failed(self.states.endpoint(node_id), reason)
        if error is None:
            self.states.disconnected(node_id, now_ms)
        else:
            self.states.authentication_failed(node_id, now_ms, error)
        self.forget_connection(node_id)
        self.updater.handle_server_disconnect(node_id, error)

    def connection_delay(self, node: Node, now_ms: float) -> float:
        """Milliseconds until a try to connect may be made, or is decided; infinity when the news will wake
        us.
        """
        return self.states.connection_delay_ms(node.node_id, now_ms)

    def poll_delay_ms(self, node: Node, now_ms: float) -> float:
        """As :meth:`connection_delay`, and the rest of a throttle time."""
        return self.states.poll_delay_ms(node.node_id, now_ms)

    def throttle_delay_ms(self, node: Node, now_ms: float) -> float:
        return self.states.throttle_delay_ms(node.node_id, now_ms)

    def connection_failed(self, node: Node) -> bool:
        """Whether the last try failed, or the connection has ended."""
        return self.states.is_disconnected(node.node_id)

    def authentication_error(self, node: Node) -> KafkaError | None:
        return self.states.authentication_error(node.node_id)

    def has_ready_nodes(self, now_ms: float) -> bool:
        return self.states.has_ready_nodes(now_ms)

    def is_any_node_preparing(self) -> bool:
        """Whether a connection to one of the cluster's nodes is on its way."""
        return any(self.states.is_preparing(node.node_id) for node in self.updater.nodes)

    def disconnect(self, node_id: int) -> None:
        """Close the connection; its requests fail in the next poll. Nothing if it is closed already."""
        if self.states.state(node_id) is None or self.states.is_disconnected(node_id):
            return
        now_ms = self.clock.monotonic_ms()
        self.selector.close(self.connection_id(node_id))
        self.cancel_in_flight(node_id, now_ms, self._aborted)
        self.states.disconnected(node_id, now_ms)
        self.forget_connection(node_id)

    def forget_connection(self, node_id: int) -> None:
        """A connection has ended: the next one begins anew."""
        self.api_versions.remove(node_id)
        self.wanted_api_versions.pop(node_id, None)
        connection_id = self._connection_ids.pop(node_id, None)
        if connection_id is not None:
            del self._node_ids[connection_id]
            if self.metrics is not None:
                self.metrics.connection_closed(self.clock.monotonic_ms())

    def least_loaded_node(self, now_ms: float) -> Node | None:
        """The node to ask what any can answer.

        From a random start: a ready one without requests, or with the fewest; else one whose connection is on
        its way; else, of those that may be tried, the one whose last try is longest ago.

        Returns
        -------
        Node or None
            ``None`` when all back off, are throttled, or have no room.
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
        """A request that can be sent; see :class:`ClientRequest`."""
        return ClientRequest(
            node_id,
            request,
            self._correlation_ids.next(),
            now_ms,
            request_timeout_ms=self.request_timeout_ms if request_timeout_ms is None else request_timeout_ms,
            expect_response=expect_response,
            callback=callback,
            max_version=max_version,
        )

    def send(self, request: ClientRequest, now_ms: float) -> None:
        """Hand over a request; it is written by later polls.

        A version that both sides know is chosen here. Without one nothing is sent, and the response with
        ``version_mismatch`` comes with the next poll.

        Raises
        ------
        IllegalStateError
            When the node is not ready.
        """
        self._check_open()
        if not self.can_send_request(request.node_id, now_ms):
            raise IllegalStateError(f"node {request.node_id} is not ready; send when ready() says so")
        self._send(request, now_ms)

    def send_internal(
        self, node_id: int, message: Request[Any], now_ms: float, max_version: int | None = None
    ) -> None:
        """Send a request whose answer this client handles itself."""
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
            logger.debug("%r cannot be sent: %s", request, error)
            if request.is_internal:
                self.updater.handle_failed_request(now_ms, error)
            else:
                self._aborted.append(ClientResponse(request, now_ms, version_mismatch=error))
            return
        request.send = NetworkSend(self.connection_id(request.node_id), pieces)
        request.sent_ms = now_ms
        self.in_flight.add(request)
        self.selector.send(request.send)
        if self.metrics is not None:
            self.metrics.requests.request_sent(request.node_id, request.send.size_in_bytes, now_ms)

    def begin_heartbeats(
        self,
        node_id: int,
        line: NativeHeartbeat,
        request: HeartbeatRequest,
        interval_ms: float,
        session_timeout_ms: float,
        callback: Callable[[ClientResponse], None],
    ) -> bool:
        """Have ``line`` beat on a node's connection, and on no other; no request in flight is made of that.

        Parameters
        ----------
        request:
            What every beat says.
        interval_ms, session_timeout_ms:
            As of ``NativeHeartbeat.begin``.
        callback:
            Told of each answer until ``line.end()``, and of the connection's end, inside :meth:`poll`.

        Returns
        -------
        bool
            ``False`` if the connection is not ready, or cannot carry a line.
        """
        self._check_open()
        return self.native_heartbeats.begin(node_id, line, request, interval_ms, session_timeout_ms, callback)

    def has_room(self, node_id: int) -> bool:
        """Whether less than ``max_in_flight_requests_per_connection`` wait for the node's answers."""
        return self.in_flight.has_room(node_id)

    def in_flight_request_count(self, node_id: int | None = None) -> int:
        """Requests sent and not answered, to one node or to all."""
        return self.in_flight.count(node_id)

    def connection_count(self) -> int:
        """Connections that there are, or that are on their way."""
        return len(self._connection_ids)

    def has_in_flight_requests(self) -> bool:
        return self.in_flight.count() > 0

    # ---- Polling -------------------------------------------------------------------------------------------

    def poll(self, timeout_ms: float, now_ms: float) -> list[ClientResponse]:
        """Do all the I/O there is to do, wait for some if there is none, and complete what has ended.

        Parameters
        ----------
        timeout_ms:
            The longest wait.
        now_ms:
            By this client's clock.

        Returns
        -------
        list of ClientResponse
            Their callbacks have been called already.
        """
        self._check_open()
        if self._is_handling:
            self._disconnect_all(now_ms)
        elif self.selector.completed_receives is not self._handled and not self.selector.is_interrupted:
            self._handle_missed()
        if self._aborted:
            return self._complete_aborted()
        metadata_ms = self.updater.maybe_update(now_ms)
        timeout_ms = min(timeout_ms, metadata_ms, self._next_deadline_ms(now_ms))
        self.selector.poll(timeout_ms, self.in_flight.may_follow_a_send)
        self._handle_results()
        self._handled = self.selector.completed_receives
        # A callback of the last poll, or an update, may have ended requests too.
        return self._complete_aborted()

    def _handle_results(self) -> None:
        self._is_handling = True
        now_ms = self.clock.monotonic_ms()
        if self.metrics is not None:
            waited_ms = self.selector.waited_ms
            self.metrics.requests.waited(waited_ms - self._waited_ms, now_ms)
            self._waited_ms = waited_ms
        response_handling.handle_results(self, now_ms, self._aborted)
        self._is_handling = False

    def _handle_missed(self) -> None:
        """Ctrl-C came when the selector's poll had just returned. What one that it has interrupted had found
        out is told by the next.
        """
        self._handle_results()
        if self.selector.completed_receives or self.selector.disconnected or self.selector.connected:
            self._handled = self.selector.completed_receives

    def _complete_aborted(self) -> list[ClientResponse]:
        if not self._aborted:
            return []
        completed = []
        # Those that callbacks add are for the next poll. Each leaves the list only when its callback has
        # returned, so that Ctrl-C loses none.
        for _ in range(len(self._aborted)):
            response_handling.complete(self._aborted[0])
            completed.append(self._aborted.popleft())
        return completed

    def _disconnect_all(self, now_ms: float) -> None:
        """Close all connections, because a Ctrl-C interrupted the handling of their results."""
        for node_id in self.states.node_ids():
            self.selector.close(self.connection_id(node_id))
            self.cancel_in_flight(node_id, now_ms, self._aborted)
            self.states.disconnected(node_id, now_ms)
            self.forget_connection(node_id)
        self.updater.forget_request()
        self._is_handling = False

    def _next_deadline_ms(self, now_ms: float) -> float:
        """How long the selector may wait before a request or a connection has taken too long."""
        deadline_ms = min(self.in_flight.next_deadline_ms(), self.states.next_setup_deadline_ms())
        return max(min(deadline_ms - now_ms, self.request_timeout_ms), 0.0)

    def wakeup(self) -> None:
        """End the poll that runs, or the next one, at once. From any thread."""
        self.selector.wakeup()

    def cancel_in_flight(
        self,
        node_id: int,
        now_ms: float,
        responses: MutableSequence[ClientResponse],
        *,
        timed_out: bool = False,
        error: KafkaError | None = None,
    ) -> None:
        """End all requests to a node whose connection has ended, in the order of sending."""
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
        """Begin what must come first on every connection: ask what the broker speaks."""
        for node_id, version in list(self.wanted_api_versions.items()):
            is_there = self.selector.is_channel_ready(self.connection_id(node_id))
            if is_there and self.in_flight.can_send_more(node_id):
                del self.wanted_api_versions[node_id]
                self.send_internal(node_id, api_versions_request(version), now_ms, max_version=version)

    # ---- Bootstrap servers ---------------------------------------------------------------------------------

    def adopt_bootstrap_connections(self) -> None:
        """Make a bootstrap server's connection that of the node which it has turned out to be.

        The cluster says where its nodes listen. A connection that leads there is kept under the node's id, so
        that one broker costs one socket and not two.
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
                    # Its name is not used any more: it would only lie there until it expires.
                    self.close(bootstrap.node_id)

    def _rename(self, bootstrap_id: int, node: Node) -> None:
        logger.debug("the connection to bootstrap server %d is that of node %d", bootstrap_id, node.node_id)
        self.states.rename(bootstrap_id, node.node_id, node.host)
        self.in_flight.rename(bootstrap_id, node.node_id)
        self.api_versions.rename(bootstrap_id, node.node_id)
        if bootstrap_id in self.wanted_api_versions:
            self.wanted_api_versions[node.node_id] = self.wanted_api_versions.pop(bootstrap_id)
        connection_id = self._connection_ids.pop(bootstrap_id)
        self._connection_ids[node.node_id] = connection_id
        self._node_ids[connection_id] = node.node_id

    def _name_connection(self, node_id: int) -> None:
        """Give the connection that begins its name; no two to bootstrap servers have the same, since one may
        live on under another node's id.
        """
        if node_id < 0:
            self._bootstrap_connections += 1
            connection_id = f"bootstrap{node_id}.{self._bootstrap_connections}"
        else:
            connection_id = str(node_id)
        self._connection_ids[node_id] = connection_id
        self._node_ids[connection_id] = node_id

    def connection_id(self, node_id: int) -> str:
        """The selector's name of a node's connection."""
        return self._connection_ids.get(node_id) or str(node_id)

    def node_id(self, connection_id: str) -> int | None:
        """The node of a connection; ``None`` if it has been closed here meanwhile."""
        return self._node_ids.get(connection_id)

    def rebootstrap(self, now_ms: float) -> None:
        """Close all connections to the cluster's nodes and begin with the bootstrap addresses again
        (KIP-899).
        """
        for node in self.updater.nodes:
            self.disconnect(node.node_id)
        self.updater.forget_request()
        self.metadata.rebootstrap()

    # ---- The end -------------------------------------------------------------------------------------------

    def close(self, node_id: int | None = None) -> None:
        """Close all connections, and the metadata; twice is once.

        With a ``node_id`` only its connection, and forget the node with its requests: nobody hears of them
        again.
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
                self.selector.close_all()
            if self._builder is not None:
                self._builder.close()

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def _check_open(self) -> None:
        if self._is_closed:
            raise IllegalStateError("this client is closed")
