"""PartitionSequences for Cython callers."""

from libc.stdint cimport int32_t, int64_t

from kafkacore.producer._batch cimport ProducerBatch


cdef class PartitionSequences:
    cdef public int64_t producer_id, known_by_id
    cdef public int producer_epoch
    cdef public int32_t next, last_acknowledged
    cdef public double known_at_ms
    cdef public object last_offset
    cdef public list in_flight

    cpdef bint is_of(self, int64_t producer_id, int producer_epoch) noexcept
    cpdef int number(self, ProducerBatch batch, bint is_transactional) except -1
    cpdef bint remove(self, ProducerBatch batch) except -1
    cpdef int acknowledge(self, ProducerBatch batch, base_offset, double now_ms) except -1
    cpdef int start_at_beginning(self, int64_t producer_id, int producer_epoch) except -1
