"""SenderWakeup for Cython callers."""

from kafkacore.client._in_flight_requests cimport InFlightRequests
from kafkacore.producer._partition_queue cimport PartitionQueue


cdef class SenderWakeup:
    # Function that wakes the sender.
    cdef public object wakeup
    cdef public InFlightRequests in_flight
    cdef bint _is_pending
    cdef double _sleeps_until_ms
    # Ids of nodes that accept no further request until they have responded.
    cdef object _busy_nodes

    cdef bint _is_of_use(self, PartitionQueue queue) except -1
    cdef bint collects(self, PartitionQueue queue) except -1
    cdef int batch_is_full(self, PartitionQueue queue) except -1
    cdef int batch_is_due(self, PartitionQueue queue, double due_ms) except -1
    cpdef int wake(self) except -1
