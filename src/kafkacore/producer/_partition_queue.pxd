"""PartitionQueue for Cython callers."""

from cpython.pythread cimport PyThread_type_lock

from kafkacore.producer._batch cimport ProducerBatch, SerializedRecord
from kafkacore.producer._future cimport FutureRecordMetadata


cdef class PartitionQueue:
    cdef readonly object topic_partition
    # collections.deque of ProducerBatch, oldest first.
    cdef object _batches
    # The last of them while it takes records.
    cdef ProducerBatch _open
    # A batch of the partition is on its way and no other may be.
    cdef public bint muted
    cdef double _next_place
    # The snapshot of the cluster that has been asked, and its answer: a node or None.
    cdef object _cluster
    cdef object _leader
    cdef int _leader_epoch
    # Held while a batch is filled without the GIL, which `_is_filling` says under it.
    cdef PyThread_type_lock _lock
    cdef bint _is_filling

    cdef int begin_filling(self) except -1
    cdef int end_filling(self) except -1
    cdef int _await_filling(self) except -1
    cdef void _pass(self) noexcept
    cdef int add(self, ProducerBatch batch) except -1
    cdef bint try_append(self, FutureRecordMetadata future, const SerializedRecord* record) except -1
    cdef bint append_new(self, ProducerBatch batch, FutureRecordMetadata future,
                         const SerializedRecord* record) except -1
