"""Requests that have been sent and not answered, by node, in the order of sending.

Requests in; the oldest, the last and the late out. Does not know: sockets, what is asked. (Kafka's
``InFlightRequests``.)
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

from kafkacore.client.requests import ClientRequest


class InFlightRequests:
    """A queue a node: a broker answers in the order of the requests.

    Parameters
    ----------
    max_in_flight:
        Requests on one connection that wait for their answers.
    """

    def __init__(self, max_in_flight: int) -> None:
        self._max_in_flight = max_in_flight
        self._by_node: dict[int, deque[ClientRequest]] = {}
        self._count = 0
        #: No request expires earlier. Answers leave it as it is: it is seldom reached, and then looked into.
        self._no_expiry_before_ms = math.inf
        #: Requests that are over when they have been written.
        self.unanswered_count = 0
        #: Nodes of which something is asked and more may be.
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
        """The request that the next answer must be to; ``None`` if nothing was asked."""
        queue = self._by_node.get(node_id)
        return queue[0] if queue else None

    def complete_next(self, node_id: int) -> ClientRequest:
        """Take out the oldest; :class:`IndexError` or :class:`KeyError` if there is none."""
        return self._taken(self._by_node[node_id], deque.popleft)

    def last_sent(self, node_id: int) -> ClientRequest | None:
        queue = self._by_node.get(node_id)
        return queue[-1] if queue else None

    def complete_last_sent(self, node_id: int) -> ClientRequest:
        """Take out the youngest; it wants no answer."""
        return self._taken(self._by_node[node_id], deque.pop)

    def _taken(
        self, queue: deque[ClientRequest], take: Callable[[deque[ClientRequest]], ClientRequest]
    ) -> ClientRequest:
        request = take(queue)
        self._count -= 1
        self._open_count += (len(queue) == self._max_in_flight - 1) - (not queue)
        self.unanswered_count -= not request.expect_response
        return request

    def has_room(self, node_id: int) -> bool:
        """Whether one more may wait for its answer."""
        return self.count(node_id) < self._max_in_flight

    @property
    def may_follow_a_send(self) -> bool:
        """Whether it matters that one has been written whole: it is over then, or another may go."""
        return self.unanswered_count > 0 or self._open_count > 0

    def can_send_more(self, node_id: int) -> bool:
        """Whether the last request has been written whole and one more may wait for its answer."""
        queue = self._by_node.get(node_id)
        if not queue:
            return True
        last = queue[-1].send
        return len(queue) < self._max_in_flight and (last is None or last.is_completed)

    def count(self, node_id: int | None = None) -> int:
        """Requests on their way to one node, or to all."""
        return self._count if node_id is None else len(self._by_node.get(node_id, ()))

    def clear(self, node_id: int) -> list[ClientRequest]:
        """Take out all of a node, in the order of sending."""
        cleared = list(self._by_node.pop(node_id, ()))
        self._count -= len(cleared)
        self._open_count -= 0 < len(cleared) < self._max_in_flight
        self.unanswered_count -= sum(not request.expect_response for request in cleared)
        return cleared

    def rename(self, node_id: int, new_node_id: int) -> None:
        """The connection of one node turns out to be another's, which has none of its own."""
        queue = self._by_node.pop(node_id, None)
        if queue:
            assert not self._by_node.get(new_node_id)
            self._by_node[new_node_id] = queue

    def nodes_with_expired_requests(self, now_ms: float) -> list[int]:
        """Nodes that owe an answer for longer than their request allows."""
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
        """None expires earlier; :data:`math.inf` if none is on its way."""
        return self._no_expiry_before_ms if self._count else math.inf
