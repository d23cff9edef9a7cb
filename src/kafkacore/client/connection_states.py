"""How far the connection to each node has come, and when the next try is due.

    disconnected -> connecting -> checking API versions -> ready
         ^______________|___________________|______________|

In: what happened, and when. Out: what may be done. Does not know: sockets, requests. (Kafka's
``ClusterConnectionStates``.)
"""

from __future__ import annotations

import math
from enum import Enum

from kafkacore.client.addresses import MAX_HOST_NAME, Resolver
from kafkacore.client.exponential_backoff import ExponentialBackoff
from kafkacore.errors import KafkaError
from kafkacore.structs import printable


class ConnectionState(Enum):
    DISCONNECTED = "disconnected"
    CONNECTING = "connecting"
    CHECKING_API_VERSIONS = "checking API versions"
    READY = "ready"
    AUTHENTICATION_FAILED = "authentication failed"

    @property
    def is_disconnected(self) -> bool:
        return self in (ConnectionState.DISCONNECTED, ConnectionState.AUTHENTICATION_FAILED)

    @property
    def is_connected(self) -> bool:
        return self in (ConnectionState.CHECKING_API_VERSIONS, ConnectionState.READY)


class NodeConnection:
    """One node's state. Its addresses are asked for when the first is needed, and again when all were
    tried.
    """

    __slots__ = (
        "address_index", "addresses", "authentication_error", "failed_attempts", "failed_connects", "host",
        "last_address", "last_attempt_ms", "port", "reconnect_backoff_ms", "setup_timeout_ms", "state",
        "throttled_until_ms",
    )  # fmt: skip

    def __init__(self, host: str, port: int) -> None:
        self.state = ConnectionState.CONNECTING
        self.host = host
        self.port = port
        self.addresses: list[str] = []
        self.address_index = 0
        #: Tried last.
        self.last_address: str | None = None
        self.last_attempt_ms = -math.inf
        self.failed_attempts = 0
        self.failed_connects = 0
        self.reconnect_backoff_ms = 0.0
        self.setup_timeout_ms = 0.0
        self.throttled_until_ms = -math.inf
        self.authentication_error: KafkaError | None = None

    def move_to_next_address(self) -> None:
        if self.addresses:
            self.address_index = (self.address_index + 1) % len(self.addresses)
            if self.address_index == 0:
                self.addresses = []

    def clear_addresses(self) -> None:
        self.addresses = []
        self.address_index = 0


class ClusterConnectionStates:
    """The connections of a client.

    Parameters
    ----------
    reconnect_backoff:
        Between two tries of one node.
    setup_timeout:
        How long one try may take.
    resolver:
        Asks DNS.
    """

    def __init__(
        self, reconnect_backoff: ExponentialBackoff, setup_timeout: ExponentialBackoff, resolver: Resolver
    ) -> None:
        self._reconnect_backoff = reconnect_backoff
        self._setup_timeout = setup_timeout
        self._resolver = resolver
        self._nodes: dict[int, NodeConnection] = {}
        #: Nodes whose connection is on its way: mostly none, and then there is nothing to watch the time for.
        self._preparing: set[int] = set()

    # ---- What happened -------------------------------------------------------------------------------------

    def connecting(self, node_id: int, now_ms: float, host: str, port: int) -> None:
        """A try begins; of a node that was tried before, with its next address."""
        self._preparing.add(node_id)
        node = self._nodes.get(node_id)
        if node is not None and (node.host, node.port) == (host, port):
            node.last_attempt_ms = now_ms
            node.state = ConnectionState.CONNECTING
            node.move_to_next_address()
            return
        node = NodeConnection(host, port)
        node.last_attempt_ms = now_ms
        node.setup_timeout_ms = self._setup_timeout.backoff_ms(0)
        self._nodes[node_id] = node

    def current_address(self, node_id: int) -> str:
        """The IP address to try now; :class:`OSError` when the name has none."""
        node = self._nodes[node_id]
        if not node.addresses:
            node.addresses = self._resolver(node.host, node.port)
            # Not first the one that has just failed, or whose connection has just ended: it may be down.
            is_last_again = len(node.addresses) > 1 and node.addresses[0] == node.last_address
            node.address_index = 1 if is_last_again else 0
        node.last_address = node.addresses[node.address_index]
        return node.last_address

    def checking_api_versions(self, node_id: int) -> None:
        self._nodes[node_id].state = ConnectionState.CHECKING_API_VERSIONS
        self._preparing.add(node_id)

    def ready(self, node_id: int) -> None:
        node = self._nodes[node_id]
        node.state = ConnectionState.READY
        self._preparing.discard(node_id)
        node.authentication_error = None
        node.failed_attempts = node.failed_connects = 0
        node.reconnect_backoff_ms = self._reconnect_backoff.backoff_ms(0)
        node.setup_timeout_ms = self._setup_timeout.backoff_ms(0)

    def disconnected(self, node_id: int, now_ms: float) -> None:
        """The connection has ended, or never came; nothing for one that has ended before."""
        node = self._nodes.get(node_id)
        if node is None or node.state.is_disconnected:
            return
        node.last_attempt_ms = now_ms
        node.reconnect_backoff_ms = self._reconnect_backoff.backoff_ms(node.failed_attempts)
        node.failed_attempts += 1
        if node.state is ConnectionState.CONNECTING:
            node.failed_connects += 1
            node.setup_timeout_ms = self._setup_timeout.backoff_ms(node.failed_connects)
        else:
            node.failed_connects = 0
            node.setup_timeout_ms = self._setup_timeout.backoff_ms(0)
            # It was there: if it is not any more, it may have moved.
            node.clear_addresses()
        node.state = ConnectionState.DISCONNECTED
        self._preparing.discard(node_id)

    def authentication_failed(self, node_id: int, now_ms: float, error: KafkaError) -> None:
        self.disconnected(node_id, now_ms)
        node = self._nodes[node_id]
        node.authentication_error = error
        node.state = ConnectionState.AUTHENTICATION_FAILED

    def throttle(self, node_id: int, until_ms: float) -> None:
        """Nothing may be sent before; an earlier end than one that is known already changes nothing."""
        node = self._nodes.get(node_id)
        if node is not None:
            node.throttled_until_ms = max(node.throttled_until_ms, until_ms)

    def remove(self, node_id: int) -> None:
        self._nodes.pop(node_id, None)
        self._preparing.discard(node_id)

    def rename(self, node_id: int, new_node_id: int, host: str) -> None:
        """The connection of one node turns out to be that of another."""
        node = self._nodes.pop(node_id)
        node.host = host
        self._nodes[new_node_id] = node
        if node_id in self._preparing:
            self._preparing.remove(node_id)
            self._preparing.add(new_node_id)

    # ---- What may be done ----------------------------------------------------------------------------------

    def is_ready(self, node_id: int, now_ms: float) -> bool:
        """Whether requests may be sent now."""
        node = self._nodes.get(node_id)
        return node is not None and node.state is ConnectionState.READY and node.throttled_until_ms <= now_ms

    def can_connect(self, node_id: int, now_ms: float) -> bool:
        """Whether there is no connection, and none is on its way or too early."""
        node = self._nodes.get(node_id)
        return node is None or (node.state.is_disconnected and self._backoff_left_ms(node, now_ms) <= 0)

    def is_backing_off(self, node_id: int, now_ms: float) -> bool:
        node = self._nodes.get(node_id)
        return node is not None and node.state.is_disconnected and self._backoff_left_ms(node, now_ms) > 0

    def is_disconnected(self, node_id: int) -> bool:
        node = self._nodes.get(node_id)
        return node is not None and node.state.is_disconnected

    def is_preparing(self, node_id: int) -> bool:
        """Whether a connection is on its way and not ready."""
        return node_id in self._preparing

    def endpoint(self, node_id: int) -> str:
        """Where the node listens, as ``host:port``."""
        node = self._nodes.get(node_id)
        # A broker may say that another one is called anything.
        return f"node {node_id}" if node is None else f"{printable(node.host[:MAX_HOST_NAME])}:{node.port}"

    def node_ids(self) -> list[int]:
        return list(self._nodes)

    def state(self, node_id: int) -> ConnectionState | None:
        node = self._nodes.get(node_id)
        return None if node is None else node.state

    def connection_delay_ms(self, node_id: int, now_ms: float) -> float:
        """How long until something may change: the rest of the back-off or of the set-up, or until news
        comes.
        """
        node = self._nodes.get(node_id)
        if node is None:
            return 0.0
        if node.state.is_disconnected:
            return max(self._backoff_left_ms(node, now_ms), 0.0)
        return node.setup_timeout_ms if node.state is ConnectionState.CONNECTING else math.inf

    def poll_delay_ms(self, node_id: int, now_ms: float) -> float:
        """As :meth:`connection_delay_ms`, and the rest of a throttle time."""
        throttle_ms = self.throttle_delay_ms(node_id, now_ms)
        node = self._nodes.get(node_id)
        if node is not None and node.state.is_connected and throttle_ms > 0:
            return throttle_ms
        return self.connection_delay_ms(node_id, now_ms)

    def throttle_delay_ms(self, node_id: int, now_ms: float) -> float:
        node = self._nodes.get(node_id)
        return 0.0 if node is None else max(node.throttled_until_ms - now_ms, 0.0)

    def last_attempt_ms(self, node_id: int) -> float:
        """When it was last tried; minus infinity if never."""
        node = self._nodes.get(node_id)
        return -math.inf if node is None else node.last_attempt_ms

    def setup_deadline_ms(self, node_id: int) -> float:
        """When a connection that is on its way has taken too long; infinity if none is."""
        if not self.is_preparing(node_id):
            return math.inf
        node = self._nodes[node_id]
        return node.last_attempt_ms + node.setup_timeout_ms

    def next_setup_deadline_ms(self) -> float:
        if not self._preparing:
            return math.inf
        return min(map(self.setup_deadline_ms, self._preparing))

    def nodes_with_setup_timeout(self, now_ms: float) -> list[int]:
        """Connections that took too long to become ready."""
        return [node_id for node_id in self._preparing if self.setup_deadline_ms(node_id) <= now_ms]

    def authentication_error(self, node_id: int) -> KafkaError | None:
        node = self._nodes.get(node_id)
        return None if node is None else node.authentication_error

    def has_ready_nodes(self, now_ms: float) -> bool:
        return any(self.is_ready(node_id, now_ms) for node_id in self._nodes)

    def connected_address(self, node_id: int) -> str | None:
        """The IP address of the connection that stands, if one does."""
        node = self._nodes.get(node_id)
        if node is None or not node.state.is_connected or not node.addresses:
            return None
        return node.addresses[node.address_index]

    def _backoff_left_ms(self, node: NodeConnection, now_ms: float) -> float:
        return node.last_attempt_ms + node.reconnect_backoff_ms - now_ms
