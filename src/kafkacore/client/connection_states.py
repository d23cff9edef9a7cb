"""The state of the connection to each node, and when to connect again (Kafka's ``ClusterConnectionStates``).

disconnected -> connecting -> checking API versions -> ready
     ^______________|___________________|______________|
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
    """State of the connection to one node.

    The host name is resolved when an address is first needed, and again after all addresses have been tried.
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
        #: IP address of the last attempt to connect.
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
    """The states of all connections of a client.

    Parameters
    ----------
    reconnect_backoff:
        Pause between two attempts to connect to a node.
    setup_timeout:
        Maximum duration of one attempt.
    resolver:
        Function that resolves host names.
    """

    def __init__(
        self, reconnect_backoff: ExponentialBackoff, setup_timeout: ExponentialBackoff, resolver: Resolver
    ) -> None:
        self._reconnect_backoff = reconnect_backoff
        self._setup_timeout = setup_timeout
        self.resolver = resolver
        self._nodes: dict[int, NodeConnection] = {}
        #: Nodes whose connections are being established. The set makes it cheap to check the timeouts of
        #: these connections.
        self._preparing: set[int] = set()

    def connection(self, node_id: int) -> NodeConnection | None:
        """Return the state of the connection to a node, or ``None`` if there was none yet."""
        return self._nodes.get(node_id)

    # ---- Transitions ---------------------------------------------------------------------------------------

    def connecting(self, node_id: int, now_ms: float, host: str, port: int) -> None:
        """Record the start of an attempt to connect. The attempt uses the next address of a known node."""
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
        """Return the IP address to connect to.

        Raises
        ------
        OSError
            The host name cannot be resolved.
        """
        node = self._nodes[node_id]
        if not node.addresses:
            node.addresses = self.resolver(node.host, node.port)
            # Do not start with the address that was used last: its host may be down.
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
        """Record that a connection was closed or could not be established."""
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
            # Resolve the host name again: the broker may have another address since the connection was
            # established.
            node.clear_addresses()
        node.state = ConnectionState.DISCONNECTED
        self._preparing.discard(node_id)

    def authentication_failed(self, node_id: int, now_ms: float, error: KafkaError) -> None:
        self.disconnected(node_id, now_ms)
        node = self._nodes[node_id]
        node.authentication_error = error
        node.state = ConnectionState.AUTHENTICATION_FAILED

    def throttle(self, node_id: int, until_ms: float) -> None:
        """Send nothing to a node before ``until_ms``. An earlier throttle that lasts longer remains valid."""
        node = self._nodes.get(node_id)
        if node is not None:
            node.throttled_until_ms = max(node.throttled_until_ms, until_ms)

    def remove(self, node_id: int) -> None:
        self._nodes.pop(node_id, None)
        self._preparing.discard(node_id)

    def rename(self, node_id: int, new_node_id: int, host: str) -> None:
        """Assign the connection of a node to another node id."""
        node = self._nodes.pop(node_id)
        node.host = host
        self._nodes[new_node_id] = node
        if node_id in self._preparing:
            self._preparing.remove(node_id)
            self._preparing.add(new_node_id)

    # ---- Queries -------------------------------------------------------------------------------------------

    def is_ready(self, node_id: int, now_ms: float) -> bool:
        """Return whether the connection is ready and not throttled."""
        node = self._nodes.get(node_id)
        return node is not None and node.state is ConnectionState.READY and node.throttled_until_ms <= now_ms

    def can_connect(self, node_id: int, now_ms: float) -> bool:
        """Return whether the node is disconnected and its back-off has passed."""
        node = self._nodes.get(node_id)
        return node is None or (node.state.is_disconnected and self._backoff_left_ms(node, now_ms) <= 0)

    def is_backing_off(self, node_id: int, now_ms: float) -> bool:
        node = self._nodes.get(node_id)
        return node is not None and node.state.is_disconnected and self._backoff_left_ms(node, now_ms) > 0

    def is_disconnected(self, node_id: int) -> bool:
        node = self._nodes.get(node_id)
        return node is not None and node.state.is_disconnected

    def is_preparing(self, node_id: int) -> bool:
        """Return whether a connection is being established and is not ready yet."""
        return node_id in self._preparing

    def endpoint(self, node_id: int) -> str:
        """Return the address of a node as ``host:port``."""
        node = self._nodes.get(node_id)
        # The host name comes from a broker and may contain any characters.
        return f"node {node_id}" if node is None else f"{printable(node.host[:MAX_HOST_NAME])}:{node.port}"

    def node_ids(self) -> list[int]:
        return list(self._nodes)

    def state(self, node_id: int) -> ConnectionState | None:
        node = self._nodes.get(node_id)
        return None if node is None else node.state

    def connection_delay_ms(self, node_id: int, now_ms: float) -> float:
        """Return the milliseconds until the client may connect to a node.

        While the client is connecting to the node, return the connection setup timeout. Return infinity if
        the node is connected.
        """
        node = self._nodes.get(node_id)
        if node is None:
            return 0.0
        if node.state.is_disconnected:
            return max(self._backoff_left_ms(node, now_ms), 0.0)
        return node.setup_timeout_ms if node.state is ConnectionState.CONNECTING else math.inf

    def poll_delay_ms(self, node_id: int, now_ms: float) -> float:
        """Return the rest of the throttle time if the node is throttled, else :meth:`connection_delay_ms`."""
        throttle_ms = self.throttle_delay_ms(node_id, now_ms)
        node = self._nodes.get(node_id)
        if node is not None and node.state.is_connected and throttle_ms > 0:
            return throttle_ms
        return self.connection_delay_ms(node_id, now_ms)

    def throttle_delay_ms(self, node_id: int, now_ms: float) -> float:
        node = self._nodes.get(node_id)
        return 0.0 if node is None else max(node.throttled_until_ms - now_ms, 0.0)

    def last_attempt_ms(self, node_id: int) -> float:
        """Return the time of the last attempt to connect; minus infinity if there was none."""
        node = self._nodes.get(node_id)
        return -math.inf if node is None else node.last_attempt_ms

    def setup_deadline_ms(self, node_id: int) -> float:
        """Return the time at which the connection setup times out; infinity if no setup is in progress."""
        if not self.is_preparing(node_id):
            return math.inf
        node = self._nodes[node_id]
        return node.last_attempt_ms + node.setup_timeout_ms

    def next_setup_deadline_ms(self) -> float:
        if not self._preparing:
            return math.inf
        return min(map(self.setup_deadline_ms, self._preparing))

    def nodes_with_setup_timeout(self, now_ms: float) -> list[int]:
        """Return the nodes whose connection setup has timed out."""
        return [node_id for node_id in self._preparing if self.setup_deadline_ms(node_id) <= now_ms]

    def authentication_error(self, node_id: int) -> KafkaError | None:
        node = self._nodes.get(node_id)
        return None if node is None else node.authentication_error

    def has_ready_nodes(self, now_ms: float) -> bool:
        return any(self.is_ready(node_id, now_ms) for node_id in self._nodes)

    def connected_address(self, node_id: int) -> str | None:
        """Return the IP address of the open connection, if there is one."""
        node = self._nodes.get(node_id)
        if node is None or not node.state.is_connected or not node.addresses:
            return None
        return node.addresses[node.address_index]

    def _backoff_left_ms(self, node: NodeConnection, now_ms: float) -> float:
        return node.last_attempt_ms + node.reconnect_backoff_ms - now_ms
