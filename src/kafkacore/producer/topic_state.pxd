"""TopicState for Cython callers."""

cdef class TopicState:
    cdef readonly str name
    # list of PartitionQueue, by partition.
    cdef list _queues
    # Partitions that have a leader, among which records without a key are spread.
    cdef readonly tuple available
    cdef int _sticky_partition
    cdef Py_ssize_t _sticky_bytes
