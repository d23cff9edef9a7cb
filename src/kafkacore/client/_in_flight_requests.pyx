"""The requests in flight of each node, in the order of sending (Kafka's ``InFlightRequests``)."""

cimport cython
from libc.math cimport INFINITY

from collections import deque


@cython.final
cdef class InFlightRequests:
    """Queues of the requests in flight, one for each node.

    A broker responds in the order of the requests.

    Parameters
    ----------
    max_in_flight
        Maximum number of requests in flight on one connection.

    Attributes
    ----------
    total
        Number of requests in flight to all nodes.
    unanswered_count
        Number of requests that expect no response. Such a request is complete once it is written.
    """

    def __init__(self, int max_in_flight):
        self._max_in_flight = max_in_flight
        self._by_node = {}
        self._no_expiry_before_ms = INFINITY

    cpdef int add(self, request) except -1:
        queue = self._by_node.get(request.node_id)
        if queue is None:
            queue = self._by_node[request.node_id] = deque()
        queue.append(request)
        self.total += 1
        self._open_count += (len(queue) == 1) - (len(queue) == self._max_in_flight)
        self.unanswered_count += not request.expect_response
        self._no_expiry_before_ms = min(
            self._no_expiry_before_ms, <double> request.sent_ms + <double> request.request_timeout_ms
        )
        return 0

    def oldest(self, node_id):
        """Return the request to which the next response belongs; ``None`` if no request is in flight."""
        queue = self._by_node.get(node_id)
        return queue[0] if queue else None

    def complete_next(self, node_id):
        """Remove the oldest request of a node and return it.

        Raises
        ------
        IndexError, KeyError
            The node has no requests in flight.
        """
        queue = self._by_node[node_id]
        return self._removed(queue, queue.popleft())

    def last_sent(self, node_id):
        queue = self._by_node.get(node_id)
        return queue[-1] if queue else None

    def complete_last_sent(self, node_id):
        """Remove the newest request of a node, which expects no response, and return it."""
        queue = self._by_node[node_id]
        return self._removed(queue, queue.pop())

    cdef object _removed(self, queue, request):
        self.total -= 1
        self._open_count += (len(queue) == self._max_in_flight - 1) - (not queue)
        self.unanswered_count -= not request.expect_response
        return request

    def is_below_limit(self, node_id):
        """Return whether a node has fewer than the maximum number of requests in flight."""
        return self.count(node_id) < self._max_in_flight

    def needs_completed_sends(self, *, bint has_unsent):
        """Return whether a poll must return when a request is written.

        A poll must return if the request expects no response, or if the client has unsent requests and the
        node can then accept another one.
        """
        return self.unanswered_count > 0 or (has_unsent and self._open_count > 0)

    def can_send_more(self, node_id):
        """Return whether the last request is completely written and the node is below the limit."""
        queue = self._by_node.get(node_id)
        if not queue:
            return True
        last = queue[-1].send
        return len(queue) < self._max_in_flight and (last is None or last.is_completed)

    def count(self, node_id=None):
        """Return the number of requests in flight to one node or to all nodes."""
        return self.total if node_id is None else len(self._by_node.get(node_id, ()))

    def clear(self, node_id):
        """Remove all requests of a node and return them in the order of sending."""
        cleared = list(self._by_node.pop(node_id, ()))
        self.total -= len(cleared)
        self._open_count -= 0 < len(cleared) < self._max_in_flight
        for request in cleared:
            self.unanswered_count -= not request.expect_response
        return cleared

    def rename(self, node_id, new_node_id):
        """Assign the requests of a node to another node, which must not have any."""
        queue = self._by_node.pop(node_id, None)
        if queue:
            assert not self._by_node.get(new_node_id)
            self._by_node[new_node_id] = queue

    def nodes_with_expired_requests(self, double now_ms):
        """Return the nodes that have a request past its deadline."""
        cdef double next_ms = INFINITY
        cdef double deadline_ms
        cdef list late = []
        if now_ms < self._no_expiry_before_ms:
            return []
        for node_id, queue in self._by_node.items():
            is_late = False
            for request in queue:
                deadline_ms = request.deadline_ms
                next_ms = min(next_ms, deadline_ms)
                is_late = is_late or deadline_ms <= now_ms
            if is_late:
                late.append(node_id)
        self._no_expiry_before_ms = next_ms
        return late

    def next_deadline_ms(self):
        """Return a lower bound of all deadlines; infinity if no request is in flight."""
        return self._no_expiry_before_ms if self.total else INFINITY
