"""Record each request and response in several sensors with one call."""

cimport cython

from kafkacore.metrics._sensor cimport Sensor


@cython.final
cdef class ConnectionSensors:
    """Sensors of the connection to one node, or of all connections.

    Parameters
    ----------
    sent, received
        Sizes of requests and of responses, in bytes.
    latency
        Time from the request to the response, in milliseconds.
    throttle
        Throttle time of the responses, in milliseconds.
    """

    cdef readonly Sensor sent, received, latency, throttle

    def __init__(self, Sensor sent not None, Sensor received not None, Sensor latency not None,
                 Sensor throttle not None):
        self.sent = sent
        self.received = received
        self.latency = latency
        self.throttle = throttle


@cython.final
cdef class RequestCounter:
    """Recorder of the requests of one client.

    Parameters
    ----------
    register_node
        Function that returns the ConnectionSensors of a node. It is called at the first request to the node.
    waits
        Sensor of the times that the client waited for network I/O, in milliseconds.
    """

    cdef object _register_node
    cdef dict _nodes
    cdef Sensor _waits

    def __init__(self, register_node, Sensor waits not None):
        self._register_node = register_node
        self._nodes = {}
        self._waits = waits

    cdef ConnectionSensors _node(self, int node_id):
        cdef ConnectionSensors node = self._nodes.get(node_id)
        if node is None:
            node = self._nodes[node_id] = self._register_node(node_id)
        return node

    def request_sent(self, int node_id, double size, double now_ms):
        """Record a request of ``size`` bytes, including the length field of its frame."""
        self._node(node_id).sent.record(size, now_ms)

    def response_received(self, int node_id, double size, double latency_ms, double throttle_ms,
                          double now_ms):
        """Record a response with its size in bytes, its latency and its throttle time."""
        cdef ConnectionSensors node = self._node(node_id)
        node.received.record(size, now_ms)
        node.latency.record(latency_ms, now_ms)
        node.throttle.record(throttle_ms, now_ms)

    def waited(self, double duration_ms, double now_ms):
        """Record a poll for network I/O that waited for ``duration_ms``, which may be 0."""
        self._waits.record(duration_ms, now_ms)
