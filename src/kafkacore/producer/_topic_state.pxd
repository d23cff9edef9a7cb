"""TopicState for Cython callers."""

from libc.stdint cimport int64_t


cdef class TopicState:
    cdef readonly str name
    # list of PartitionQueue, by partition.
    cdef list _queues
    # Partitions that have a leader, among which records without a key are spread; all if there are none.
    cdef readonly tuple available
    cdef tuple _candidates
    cdef bint _is_adaptive
    # Running sums of the candidates' weights, and for how many more choices they are good.
    cdef int64_t* _sums
    cdef Py_ssize_t _choices_left
    cdef int _sticky_partition
    cdef Py_ssize_t _sticky_bytes

    cdef int rotate(self, random) except -1
    cdef int weigh(self) except -1


cdef Py_ssize_t drawn(const int64_t* sums, Py_ssize_t count, int64_t chance) noexcept nogil
