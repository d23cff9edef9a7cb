"""DirectSender for Cython callers."""

from kafkacore.client._client_request cimport ClientRequest
from kafkacore.client._in_flight_requests cimport InFlightRequests
from kafkacore.network._poller cimport Poller
from kafkacore.producer._batch cimport ProducerBatch
from kafkacore.producer._partition_queue cimport PartitionQueue
from kafkacore.producer._producer_id_state cimport ProducerIdState
from kafkacore.producer._sender_wakeup cimport SenderWakeup


cdef class _Route:
    cdef object cluster
    cdef int node_id
    cdef str connection_id
    # The topic as in the response, and its id.
    cdef object topic, topic_id
    # NodeConnection with the state of the connection, and the NodeApiVersions of its broker.
    cdef object connection, versions
    # Version of the Produce request, and its header before and after the correlation id.
    cdef int version
    cdef bytes before, after


cdef class DirectSender:
    cdef object _sender, _client, _clock, _manager, _selector
    cdef int _acks, _timeout_ms
    cdef double _delivery_timeout_ms
    # BatchCompletion of the Sender.
    cdef object _outcomes
    cdef dict _active
    cdef ProducerIdState _id_state
    cdef InFlightRequests _in_flight
    cdef Poller _poller
    cdef SenderWakeup _wakeup
    # Node id → NodeApiVersions of the open connections.
    cdef dict _versions
    # PartitionQueue → _Route, for this snapshot of the metadata.
    cdef object _cluster
    cdef dict _routes

    cdef bint send(self, PartitionQueue queue, ProducerBatch batch) except -1
    cdef bint _is_useful(self) except -1
    cdef _Route _route(self, PartitionQueue queue)
    cdef bint _is_valid(self, _Route route) except -1
    cdef _Route _new_route(self, PartitionQueue queue)
    cdef int _count(self, ClientRequest request, ProducerBatch batch, double now_ms) except -1
    cdef bint _may_be_sent(self, _Route route, PartitionQueue queue, ProducerBatch batch,
                           double now_ms) except -1
    cdef ClientRequest _new_request(self, _Route route, ProducerBatch batch, double now_ms)
    cdef int _put_in_flight(self, _Route route, PartitionQueue queue, ProducerBatch batch,
                            ClientRequest request) except -1
