"""TopicState for Cython callers."""

from libc.stdint cimport int64_t


cdef class TopicState:
    cdef readonly str name
    # List of PartitionQueue, indexed by partition.
    cdef list _queues
    # Partitions that have a leader. Records without a key are sent to these partitions, or to all partitions
    # if no partition has a leader.
    cdef readonly tuple available
    cdef tuple _candidates
    cdef bint _is_adaptive
    # Cumulative sums of the candidates' weights, and the number of choices until the sums are recomputed.
    cdef int64_t* _sums
    cdef Py_ssize_t _choices_left
    cdef int _sticky_partition
    cdef Py_ssize_t _sticky_bytes

    cdef int rotate(self, random) except -1
    cdef int weigh(self) except -1


cdef Py_ssize_t weighted_index(const int64_t* sums, Py_ssize_t count, int64_t random_number) noexcept nogil
