"""ProducerIdState for Cython callers."""

from libc.stdint cimport int64_t


cdef class ProducerIdState:
    cdef public int64_t producer_id
    cdef public int producer_epoch
    # TopicPartition → PartitionSequences.
    cdef readonly dict sequences
    cdef readonly dict unresolved
