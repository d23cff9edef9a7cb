"""PartitionQueue for Cython callers."""

from cpython.pythread cimport PyThread_type_lock

from kafkacore.producer._batch cimport ProducerBatch, SerializedRecord
from kafkacore.producer._future cimport FutureRecordMetadata


cdef class PartitionQueue:
    cdef readonly object topic_partition
    # Deque of ProducerBatch, oldest first.
    cdef object _batches
    # The last batch while it accepts records, or None.
    cdef ProducerBatch _open
    # Whether no batch may be sent, because another batch of the partition is in flight.
    cdef public bint muted
    cdef double _next_place
    # Last snapshot of the metadata, and the partition's leader in it: a node or None.
    cdef object _cluster
    cdef object _leader
    cdef int _leader_epoch
    # Held while a batch is filled without the GIL. `_is_filling` is true in the meantime.
    cdef PyThread_type_lock _lock
    cdef bint _is_filling

    cdef int begin_filling(self) except -1
    cdef int end_filling(self) except -1
    cdef int _await_filling(self) except -1
    cdef void _wait_for_lock(self) noexcept
    cdef int add(self, ProducerBatch batch) except -1
    cdef bint try_append(self, FutureRecordMetadata future, const SerializedRecord* record) except -1
    cdef bint append_new(self, ProducerBatch batch, FutureRecordMetadata future,
                         const SerializedRecord* record) except -1
