"""The requests in flight of each node, in the order of sending (Kafka's ``InFlightRequests``)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

from kafkacore.client.requests import ClientRequest


class InFlightRequests:
    """Queues of the requests in flight, one for each node.

    A broker responds in the order of the requests.

    Parameters
    ----------
    max_in_flight:
        Maximum number of requests in flight on one connection.
    """

    def __init__(self, max_in_flight: int) -> None:
        self._max_in_flight = max_in_flight
        self._by_node: dict[int, deque[ClientRequest]] = {}
        self._count = 0
        #: Lower bound of the deadlines of all requests. Responses do not update the bound. It is computed
        #: again only when this time is reached, which is rare.
        self._no_expiry_before_ms = math.inf
        #: Number of requests that expect no response. Such a request is complete once it is written.
        self.unanswered_count = 0
        #: Number of nodes that have requests in flight and are below the limit.
        self._open_count = 0

    def add(self, request: ClientRequest) -> None:
        queue = self._by_node.get(request.node_id)
        if queue is None:
            queue = self._by_node[request.node_id] = deque()
        queue.append(request)
        self._count += 1
        self._open_count += (len(queue) == 1) - (len(queue) == self._max_in_flight)
        self.unanswered_count += not request.expect_response
        deadline_ms = request.sent_ms + request.request_timeout_ms
        if deadline_ms < self._no_expiry_before_ms:
            self._no_expiry_before_ms = deadline_ms

    def oldest(self, node_id: int) -> ClientRequest | None:
        """Return the request to which the next response belongs; ``None`` if no request is in flight."""
        queue = self._by_node.get(node_id)
        return queue[0] if queue else None

    def complete_next(self, node_id: int) -> ClientRequest:
        """Remove the oldest request of a node and return it.

        Raises
        ------
        IndexError, KeyError
            The node has no requests in flight.
        """
        return self._remove(self._by_node[node_id], deque.popleft)

    def last_sent(self, node_id: int) -> ClientRequest | None:
        queue = self._by_node.get(node_id)
        return queue[-1] if queue else None

    def complete_last_sent(self, node_id: int) -> ClientRequest:
        """Remove the newest request of a node, which expects no response, and return it."""
        return self._remove(self._by_node[node_id], deque.pop)

    def _remove(
        self, queue: deque[ClientRequest], take: Callable[[deque[ClientRequest]], ClientRequest]
    ) -> ClientRequest:
        request = take(queue)
        self._count -= 1
        self._open_count += (len(queue) == self._max_in_flight - 1) - (not queue)
        self.unanswered_count -= not request.expect_response
        return request

    def is_below_limit(self, node_id: int) -> bool:
        """Return whether a node has fewer than the maximum number of requests in flight."""
        return self.count(node_id) < self._max_in_flight

    def needs_completed_sends(self, *, has_unsent: bool) -> bool:
        """Return whether a poll must return when a request is written.

        A poll must return if the request expects no response, or if the client has unsent requests and the
        node can then accept another one.
        """
        return self.unanswered_count > 0 or (has_unsent and self._open_count > 0)

    def can_send_more(self, node_id: int) -> bool:
        """Return whether the last request is completely written and the node is below the limit."""
        queue = self._by_node.get(node_id)
        if not queue:
            return True
        last = queue[-1].send
        return len(queue) < self._max_in_flight and (last is None or last.is_completed)

    def count(self, node_id: int | None = None) -> int:
        """Return the number of requests in flight to one node or to all nodes."""
        return self._count if node_id is None else len(self._by_node.get(node_id, ()))

    def clear(self, node_id: int) -> list[ClientRequest]:
        """Remove all requests of a node and return them in the order of sending."""
        cleared = list(self._by_node.pop(node_id, ()))
        self._count -= len(cleared)
        self._open_count -= 0 < len(cleared) < self._max_in_flight
        self.unanswered_count -= sum(not request.expect_response for request in cleared)
        return cleared

    def rename(self, node_id: int, new_node_id: int) -> None:
        """Assign the requests of a node to another node, which must not have any."""
        queue = self._by_node.pop(node_id, None)
        if queue:
            assert not self._by_node.get(new_node_id)
            self._by_node[new_node_id] = queue

    def nodes_with_expired_requests(self, now_ms: float) -> list[int]:
        """Return the nodes that have a request past its deadline."""
        if now_ms < self._no_expiry_before_ms:
            return []
        late = [
            node_id
            for node_id, queue in self._by_node.items()
            if any(request.deadline_ms <= now_ms for request in queue)
        ]
        deadlines = (request.deadline_ms for queue in self._by_node.values() for request in queue)
        self._no_expiry_before_ms = min(deadlines, default=math.inf)
        return late

    def next_deadline_ms(self) -> float:
        """Return a lower bound of all deadlines; :data:`math.inf` if no request is in flight."""
        return self._no_expiry_before_ms if self._count else math.inf
