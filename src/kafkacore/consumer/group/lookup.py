"""Finds the coordinator of a group, and finds it again after it was lost.

Of the methods, only :meth:`CoordinatorFinder.ensure` waits for a response. This is the coordinator lookup of
Kafka's ``AbstractCoordinator``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from kafkacore.client import ClientResponse, Metadata
from kafkacore.client.addresses import MAX_HOST_NAME
from kafkacore.client.exponential_backoff import ExponentialBackoff
from kafkacore.client.find_coordinator import GROUP, coordinator_in, coordinator_request
from kafkacore.clock import Clock
from kafkacore.consumer._request_future import RequestFuture
from kafkacore.consumer.consumer_network_client import ConsumerNetworkClient
from kafkacore.consumer.timer import Timer
from kafkacore.errors import (
    CoordinatorNotAvailableError,
    GroupAuthorizationFailedError,
    MalformedMessageError,
    NotCoordinatorError,
    UnsupportedVersionError,
)
from kafkacore.logs import logger_of
from kafkacore.structs import INT32_MAX, Node

logger = logger_of(__name__)

#: The coordinator has a separate connection, so that its requests do not wait behind a fetch. The connection
#: has a node id that no broker has: this number minus the broker's id, as in the Java client.
MAX_NODE_ID = INT32_MAX
#: Errors with which a broker reports that it is not, or is no longer, the coordinator.
MOVED = (CoordinatorNotAvailableError, NotCoordinatorError)


class CoordinatorFinder:
    """Keeps track of the coordinator of a group, and looks it up while it is unknown.

    Parameters
    ----------
    client, metadata, clock:
        Objects that all parts of the consumer share.
    key, key_type:
        Key to look up, such as the group id, and its type.
    backoff:
        Pause between failed lookups.
    on_lost:
        Function that is called when a known coordinator is lost.
    """

    def __init__(
        self,
        client: ConsumerNetworkClient,
        metadata: Metadata,
        clock: Clock,
        key: str,
        backoff: ExponentialBackoff,
        on_lost: Callable[[], None],
        key_type: int = GROUP,
    ) -> None:
        self._client = client
        self._metadata = metadata
        self._clock = clock
        self._key = key
        self._key_type = key_type
        self._backoff = backoff
        self._on_lost = on_lost
        self._node: Node | None = None
        self._search: RequestFuture[None] | None = None
        #: Number of failures since the coordinator last responded.
        self._failures = 0
        self._retry_at_ms = -math.inf
        self._fatal: BaseException | None = None

    # ---- The coordinator ---------------------------------------------------------------------------------
    def node(self) -> Node | None:
        """Return the coordinator, or ``None`` if it is unknown or its connection has failed."""
        if self._node is not None and self._client.is_unavailable(self._node):
            self.failed("the connection failed", disconnected=True)
        return self._node

    def failed(self, cause: str, *, disconnected: bool = False) -> None:
        """Forget the coordinator; see ``GroupMembership.coordinator_failed``."""
        node, self._node = self._node, None
        if node is None:
            return
        _, host, port = _shown(node)
        logger.info("coordinator %r:%d of group %r is unavailable: %s", host, port, self._key, cause)
        if self._failures:
            # The coordinator was found and lost again without a response in between, so back off.
            self._retry_at_ms = self._clock.monotonic_ms() + self._backoff.backoff_ms(self._failures - 1)
        self._failures += 1
        if not disconnected:
            self._client.disconnect_async(node)
        self._on_lost()

    def answered(self) -> None:
        """Reset the failure count, because the coordinator has responded."""
        self._failures = 0

    # ---- Lookup ------------------------------------------------------------------------------------------
    def lookup(self) -> RequestFuture[None]:
        """See ``GroupMembership.lookup_coordinator``."""
        if self.node() is not None:
            return RequestFuture.success(None)
        if self._search is not None:
            return self._search
        node = self._client.client.least_loaded_node(self._clock.monotonic_ms())
        if node is None:
            error = CoordinatorNotAvailableError("no broker is available to look up the coordinator")
            self._try_later(error)
            return RequestFuture.failure(error)
        answer = self._client.send(node, coordinator_request(self._key, self._key_type))
        found = answer.compose(self._on_answer)
        found.add_callbacks(self._on_found, self._on_failure)
        # Set this attribute last. If a Ctrl-C came before the callbacks were added, nothing would reset it.
        self._search = found
        return found

    def _on_answer(self, response: ClientResponse, future: RequestFuture[None]) -> None:
        broker = coordinator_in(response.message, self._key)
        node = Node(MAX_NODE_ID - broker.node_id, broker.host, broker.port)
        logger.info("coordinator of group %r is node %d at %r:%d", self._key, *_shown(broker))
        self._node = node
        self._client.client.ready(node, self._clock.monotonic_ms())
        future.complete(None)

    def _on_found(self, _: None) -> None:
        self._search = None

    def _on_failure(self, error: BaseException) -> None:
        self._search = None
        if isinstance(error, UnsupportedVersionError):
            self._fatal = UnsupportedVersionError(
                f"group_id={self._key!r}: the broker does not support consumer groups ({error})"
            )
        elif isinstance(error, GroupAuthorizationFailedError):
            self._fatal = GroupAuthorizationFailedError(f"not authorized to access group {self._key!r}")
        elif getattr(error, "retriable", False) or isinstance(error, MalformedMessageError):
            self._try_later(error)
        else:
            self._fatal = error

    def _try_later(self, error: BaseException) -> None:
        logger.debug("looking up the coordinator of group %r failed: %s", self._key, error)
        self._retry_at_ms = self._clock.monotonic_ms() + self._backoff.backoff_ms(self._failures)
        self._failures += 1
        self._metadata.request_update()

    def advance(self) -> bool:
        """Start a lookup of the coordinator if one is due; return whether the coordinator is known.

        Raises
        ------
        KafkaError
            If a lookup failed with an error that is not retriable. Each such error is raised only once.
        """
        if self.node() is not None:
            return True
        if self._fatal is not None:
            error, self._fatal = self._fatal, None
            raise error
        if self._search is None and self._clock.monotonic_ms() >= self._retry_at_ms:
            self.lookup()
        return False

    def ensure(self, timer: Timer) -> bool:
        """See ``GroupMembership.ensure_coordinator``. A request is sent even if ``timer`` has expired."""
        while not self.advance():
            wait_ms = min(timer.remaining_ms, self.time_to_next_try_ms(self._clock.monotonic_ms()))
            self._client.poll(Timer(self._clock, wait_ms), self._is_missing)
            if timer.expired:
                return self.advance()
        return True

    def _is_missing(self) -> bool:
        return self._node is None and self._fatal is None

    def time_to_next_try_ms(self, now_ms: float) -> float:
        """Return the milliseconds until the next lookup is due; infinity if no lookup is planned."""
        if self._fatal is not None:
            return 0.0
        if self._node is not None or self._search is not None:
            return math.inf
        return max(self._retry_at_ms - now_ms, 0.0)

    def is_known_as(self, node: Node) -> bool:
        """Return whether ``node`` is still the known coordinator."""
        return self._node == node


def _shown(node: Node) -> tuple[int, str, int]:
    """Return id, host and port for a log line. The host comes from the network, so limit its length."""
    return node.node_id, node.host[:MAX_HOST_NAME], node.port
