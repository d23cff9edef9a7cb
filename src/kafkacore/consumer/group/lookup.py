"""Which broker coordinates our group: a key in, a node out; found, lost, and looked for again.

Nothing waits here but :meth:`CoordinatorFinder.ensure`. Does not know: what the coordinator is asked.
(Discovery of Kafka's ``AbstractCoordinator``.)
"""

from __future__ import annotations

import logging
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
from kafkacore.structs import INT32_MAX, Node

logger = logging.getLogger(__name__)

#: A coordinator has a connection of its own, lest its requests wait behind a fetch: under a node id that no
#: broker has, as Java's client numbers it.
MAX_NODE_ID = INT32_MAX
#: Answers by which the one that was asked is no coordinator, or not any more.
MOVED = (CoordinatorNotAvailableError, NotCoordinatorError)


class CoordinatorFinder:
    """Knows the coordinator, or looks for it.

    Parameters
    ----------
    client, metadata, clock:
        Shared with the rest of the consumer.
    key, key_type:
        What is coordinated: the group's id.
    backoff:
        Between tries.
    on_lost:
        Called when a coordinator that was known is one no more, whoever has noticed it.
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
        #: Failures since a coordinator last answered.
        self._failures = 0
        self._retry_at_ms = -math.inf
        self._fatal: BaseException | None = None

    # ---- The coordinator ---------------------------------------------------------------------------------
    def node(self) -> Node | None:
        """The coordinator, unless it is not known or its connection has failed."""
        if self._node is not None and self._client.is_unavailable(self._node):
            self.failed("its connection failed", disconnected=True)
        return self._node

    def failed(self, cause: str, *, disconnected: bool = False) -> None:
        """It cannot be had, or is no coordinator any more; see ``GroupMembership.coordinator_failed``."""
        node, self._node = self._node, None
        if node is None:
            return
        _, host, port = _shown(node)
        logger.info("coordinator %r:%d of group %r is given up: %s", host, port, self._key, cause)
        if self._failures:
            # Found and lost without a word: not again at once.
            self._retry_at_ms = self._clock.monotonic_ms() + self._backoff.backoff_ms(self._failures - 1)
        self._failures += 1
        if not disconnected:
            self._client.disconnect_async(node)
        self._on_lost()

    def answered(self) -> None:
        """The coordinator has answered as one: failures before count no more."""
        self._failures = 0

    # ---- Looking for it ----------------------------------------------------------------------------------
    def lookup(self) -> RequestFuture[None]:
        """See ``GroupMembership.lookup_coordinator``."""
        if self.node() is not None:
            return RequestFuture.success(None)
        if self._search is not None:
            return self._search
        asked = self._client.client.least_loaded_node(self._clock.monotonic_ms())
        if asked is None:
            error = CoordinatorNotAvailableError("no broker can be asked for it now")
            self._try_later(error)
            return RequestFuture.failure(error)
        answer = self._client.send(asked, coordinator_request(self._key, self._key_type))
        self._search = found = answer.compose(self._on_answer)
        found.add_callbacks(self._on_found, self._on_failure)
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
                f"group_id={self._key!r}: the broker does not serve consumer groups ({error})"
            )
        elif isinstance(error, GroupAuthorizationFailedError):
            self._fatal = GroupAuthorizationFailedError(f"no permission to be in group {self._key!r}")
        elif getattr(error, "retriable", False) or isinstance(error, MalformedMessageError):
            self._try_later(error)
        else:
            self._fatal = error

    def _try_later(self, error: BaseException) -> None:
        logger.debug("coordinator of group %r not found: %s", self._key, error)
        self._retry_at_ms = self._clock.monotonic_ms() + self._backoff.backoff_ms(self._failures)
        self._failures += 1
        self._metadata.request_update()

    def advance(self) -> bool:
        """Begin to look for it if it is time. Whether it is known.

        Raises
        ------
        KafkaError
            Why it will never be found; once.
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
        """See ``GroupMembership.ensure_coordinator``. With no time left the request is still sent."""
        while not self.advance():
            wait_ms = min(timer.remaining_ms, self.time_to_next_try_ms(self._clock.monotonic_ms()))
            self._client.poll(Timer(self._clock, wait_ms), self._is_missing)
            if timer.expired:
                return self.advance()
        return True

    def _is_missing(self) -> bool:
        return self._node is None and self._fatal is None

    def time_to_next_try_ms(self, now_ms: float) -> float:
        """Milliseconds until :meth:`advance` may do something; infinity while an answer is awaited."""
        if self._fatal is not None:
            return 0.0
        if self._node is not None or self._search is not None:
            return math.inf
        return max(self._retry_at_ms - now_ms, 0.0)

    def is_known_as(self, node: Node) -> bool:
        """Whether ``node`` is still taken for the coordinator."""
        return self._node == node


def _shown(node: Node) -> tuple[int, str, int]:
    """Id, host and port for a line of a log: the host may be anything."""
    return node.node_id, node.host[:MAX_HOST_NAME], node.port
