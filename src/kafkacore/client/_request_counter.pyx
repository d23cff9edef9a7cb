"""Counts requests and responses: each is recorded in a handful of sensors by one call."""

cimport cython

from kafkacore.metrics._sensor cimport Sensor


@cython.final
cdef class ConnectionSensors:
    """Of the connections to one node, or of all.

    Parameters
    ----------
    sent, received
        Bytes of requests, and of answers.
    latency, throttle
        Milliseconds until an answer came, and for which its broker wants to be left alone.
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
    """Count the requests of one client.

    Parameters
    ----------
    register_node
        Called with the id of a node at its first request; returns its ConnectionSensors.
    waits
        Milliseconds that the thread waited for the network.
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
        """A request of ``size`` bytes, its frame's own included, is on its way."""
        self._node(node_id).sent.record(size, now_ms)

    def response_received(self, int node_id, double size, double latency_ms, double throttle_ms,
                          double now_ms):
        """Its answer is there, and the broker wants to be left alone for ``throttle_ms``."""
        cdef ConnectionSensors node = self._node(node_id)
        node.received.record(size, now_ms)
        node.latency.record(latency_ms, now_ms)
        node.throttle.record(throttle_ms, now_ms)

    def waited(self, double duration_ms, double now_ms):
        """The thread waited for the network, or looked at it without waiting."""
        self._waits.record(duration_ms, now_ms)
