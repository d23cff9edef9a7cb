"""Send a lone batch on the thread that appended it.

If records are rare, ``send()`` finds the network thread waiting, and no request in flight. Waking that
thread would take longer than sending the request: a system call, the start of a sleeping thread, and a switch
of the GIL. So the calling thread itself seals the batch and writes its request to the socket. The network
thread only handles the response.

Meanwhile the network thread must not run: if its poll ends, the thread waits. Therefore the code between
``borrow`` and ``give_back`` is compiled and runs no Python bytecode. A signal handler or a finalizer could
run there and wait for the network thread, for example in ``flush()``.

If a request is in flight already, the network thread sends the next batch. A lone batch takes the same few
steps there. But if another thread computes, the network thread gets the GIL only after the switch interval of
5 ms. So while the network thread waits for the GIL, the calling thread also sends batches.
"""

cimport cython

from kafkacore.client._client_request cimport ClientRequest
from kafkacore.network._poller cimport atomic_load
from kafkacore.producer._batch cimport ProducerBatch
from kafkacore.producer._partition_queue cimport PartitionQueue
from kafkacore.producer._produce_codec cimport write_produce_body
from kafkacore.wire._writer cimport Writer

from kafkacore.client.connection_states import ConnectionState
from kafkacore.errors import UnsupportedVersionError
from kafkacore.network import NetworkSend
from kafkacore.producer._lone_batch import LoneBatch
from kafkacore.producer.produce_request import BatchesRequest, produce_version_limit, topic_in_response
from kafkacore.protocol import ZERO_UUID
from kafkacore.protocol.exchange import around_correlation_id

cdef extern from "Python.h":
    # These functions return whether the garbage collector was enabled before.
    int PyGC_Disable()
    int PyGC_Enable()

cdef enum:
    # Larger batches are sealed and written without the GIL, so that other threads could run meanwhile.
    MOST_BYTES = 48 * 1024

READY = ConnectionState.READY


@cython.final
cdef class _Route:
    """How to reach the leader of a partition: valid as long as metadata and connection stay the same."""


@cython.final
cdef class DirectSender:
    """Sends a batch that is the only waiting one, with few steps.

    The thread that appended it sends it if no request is in flight. Otherwise the network thread does.

    Parameters
    ----------
    sender
        The Sender, which the network thread runs.
    client
        The NetworkClient of the Sender.
    clock
        Clock of the client.
    accumulator
        RecordAccumulator of the batches.
    manager
        The IdempotenceManager, or ``None`` without idempotence.
    """

    def __init__(self, sender not None, client not None, clock not None, accumulator not None,
                 manager):
        self._sender = sender
        self._client = client
        self._clock = clock
        self._active = accumulator.active
        self._wakeup = accumulator.sender_wakeup
        self._delivery_timeout_ms = accumulator.delivery_timeout_ms
        self._acks = sender.acks
        self._timeout_ms = sender.request_timeout_ms
        self._id_state = None if manager is None else manager.id_state
        self._manager = manager
        self._selector = client.selector
        self._poller = client.selector.poller
        self._in_flight = client.in_flight
        self._versions = client.api_versions.by_node
        self._outcomes = sender.outcomes
        self._routes = {}

    cdef bint send(self, PartitionQueue queue, ProducerBatch batch) except -1:
        """Send a batch that was just created. Return whether no wake-up of the network thread is needed."""
        cdef double now_ms
        cdef _Route route
        cdef ClientRequest request
        cdef bint is_written = False
        cdef bint is_sent = False
        cdef int collects
        if len(self._active) != 1 or not self._is_useful():
            return False
        route = self._route(queue)
        if route is None:
            return False
        now_ms = self._clock.monotonic_ms()
        request = self._new_request(route, batch, now_ms)
        collects = PyGC_Disable()
        try:
            if not self._selector.borrow(route.connection_id):
                return False
            try:
                is_sent = (
                    self._is_useful() and self._in_flight.can_send_more(route.node_id)
                    and self._may_be_sent(route, queue, batch, now_ms)
                )
                if is_sent:
                    self._put_in_flight(route, queue, batch, request)
                    is_written = self._selector.send_now(request.send)
            finally:
                self._selector.give_back()
        finally:
            if collects:
                PyGC_Enable()
        if is_sent:
            self._count(request, batch, now_ms)
        return is_written

    cdef bint _is_useful(self) except -1:
        """Return whether nothing is in flight, or the network thread waits for the GIL.

        Otherwise the records of a moment are better sent together, in the next turn of the network thread.
        """
        return self._in_flight.total == 0 or atomic_load(&self._poller.awaits_gil) != 0

    def send_waiting(self, double now_ms, bint at_once=False):
        """Send the only waiting batch. The caller is the network thread, and no poll is running.

        Parameters
        ----------
        now_ms
            Current time of the client's clock.
        at_once
            Whether to write the request now, instead of in the next poll.

        Returns
        -------
        int
            Id of the node, or -1 if there is not exactly one batch or it cannot be sent now.
        """
        cdef PartitionQueue queue
        cdef ProducerBatch batch
        cdef _Route route
        cdef ClientRequest request
        cdef int collects
        if len(self._active) != 1:
            return -1
        queue = next(iter(self._active), None)
        if queue is None or len(queue._batches) != 1:
            return -1
        batch = queue._batches[0]
        route = self._route(queue)
        if (
            route is None or not self._in_flight.can_send_more(route.node_id)
            or not self._selector.is_channel_ready(route.connection_id)
            or not batch.is_full and self._wakeup.collects(queue)
            or at_once and not self._selector.can_send_now(route.connection_id)
        ):
            return -1
        request = self._new_request(route, batch, now_ms)
        # No other thread may run between the check and the removal of the batch.
        collects = PyGC_Disable()
        try:
            if not self._may_be_sent(route, queue, batch, now_ms):
                return -1
            self._put_in_flight(route, queue, batch, request)
        finally:
            if collects:
                PyGC_Enable()
        if at_once:
            self._selector.send_now(request.send)
        else:
            self._selector.send(request.send)
        self._count(request, batch, now_ms)
        return route.node_id

    cdef int _count(self, ClientRequest request, ProducerBatch batch, double now_ms) except -1:
        self._sender.metrics.sent([batch], now_ms)
        self._client.count_sent(request, now_ms)
        return 0

    cdef ClientRequest _new_request(self, _Route route, ProducerBatch batch, double now_ms):
        """Return the request of a batch, with all fields but the frame."""
        cdef ClientRequest request
        topics = [(batch.topic_partition[0], route.topic_id, [batch])]
        message = BatchesRequest(self._acks, self._timeout_ms, topics)
        correlation_id = self._client.next_correlation_id()
        request = ClientRequest(
            route.node_id, message, correlation_id, now_ms, request_timeout_ms=self._timeout_ms
        )
        request.version = route.version
        request.sent_ms = now_ms
        request.callback = request.usual_response = LoneBatch(
            self._sender, self._clock, batch, message, route.topic, correlation_id, route.version
        )
        return request

    cdef _Route _route(self, PartitionQueue queue):
        cdef _Route route
        if self._cluster is not self._sender.cluster:
            # Do not keep old snapshots of the metadata alive.
            self._routes.clear()
            self._cluster = self._sender.cluster
        route = self._routes.get(queue)
        if route is not None and self._is_valid(route):
            return route
        route = self._new_route(queue)
        if route is None:
            self._routes.pop(queue, None)
        else:
            self._routes[queue] = route
        return route

    cdef bint _is_valid(self, _Route route) except -1:
        return route.cluster is self._sender.cluster and self._versions.get(route.node_id) is route.versions

    cdef _Route _new_route(self, PartitionQueue queue):
        """Return the route to the leader of a partition, or ``None`` if the network thread has to find it."""
        cdef _Route route = _Route()
        route.cluster = self._sender.cluster
        leader = None if route.cluster is None else route.cluster.leader_for(queue.topic_partition)
        if leader is None:
            return None
        route.node_id = leader.node_id
        route.versions = self._versions.get(route.node_id)
        route.connection = self._client.states.connection(route.node_id)
        if route.versions is None or route.connection is None:
            return None
        route.connection_id = self._client.connection_id(route.node_id)
        topic = queue.topic_partition[0]
        route.topic_id = route.cluster.topic_id(topic) or ZERO_UUID
        limit = produce_version_limit(route.cluster, [topic])
        try:
            route.version = route.versions.latest_usable_version(BatchesRequest, limit)
        except UnsupportedVersionError:
            return None
        route.topic = topic_in_response(topic, route.topic_id, route.version)
        route.before, route.after = around_correlation_id(
            BatchesRequest.API_KEY, route.version, self._client.client_id
        )
        return route

    # ---- Without Python code -------------------------------------------------------------------------------

    cdef bint _may_be_sent(self, _Route route, PartitionQueue queue, ProducerBatch batch,
                           double now_ms) except -1:
        """Return whether the batch is the only one and may be sent now, for the first time."""
        if (
            len(self._active) != 1 or not self._is_valid(route)
            or route.connection.state is not READY or <double> route.connection.throttled_until_ms > now_ms
            or queue.muted or queue._is_filling or len(queue._batches) != 1 or queue._batches[0] is not batch
            or batch.result.done or batch.attempts > 0 or batch.payload is not None
            or <Py_ssize_t> batch.size_in_bytes > MOST_BYTES
        ):
            return False
        if self._id_state is None:
            return True
        return (
            self._manager.error is None and self._manager.abortable_error is None
            and not self._manager.wants_turn and self._id_state.producer_id >= 0
            and self._id_state.may_drain(batch, now_ms)
        )

    cdef int _put_in_flight(self, _Route route, PartitionQueue queue, ProducerBatch batch,
                            ClientRequest request) except -1:
        """Seal the batch, build its frame, and move it from the queue to the batches in flight.

        Until the batch is removed from its queue, an error changes nothing that hinders the network thread
        from sending the batch, as after a failed attempt.
        """
        cdef Writer writer = Writer()
        cdef double deadline_ms = batch.created_ms + self._delivery_timeout_ms
        queue._open = None
        if self._id_state is not None:
            self._id_state.assign(batch, False)
        batch.seal()
        writer.write_buffer(route.before)
        writer.write_int32(request.correlation_id)
        writer.write_buffer(route.after)
        write_produce_body(
            writer, route.version, self._acks, self._timeout_ms, request.request.topics, None
        )
        request.send = NetworkSend(route.connection_id, writer.pieces())
        self._outcomes.in_flight[batch] = None
        if deadline_ms < <double> self._outcomes.no_expiry_before_ms:
            self._outcomes.no_expiry_before_ms = deadline_ms
        self._in_flight.add(request)
        batch.in_flight = True
        queue._batches.popleft()
        if len(queue._batches) == 0:
            self._active.pop(queue, None)
        return 0
