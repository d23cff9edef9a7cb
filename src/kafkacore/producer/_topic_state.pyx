# cython: boundscheck=False, wraparound=False, cdivision=True
"""The partitions of a topic, and the current partition of records without a key."""

cimport cython
from libc.stdint cimport int64_t

from kafkacore.producer._partition_queue cimport PartitionQueue
from kafkacore.wire.memory cimport free, malloc

cdef enum:
    # The weights are recomputed from all queues after (number of partitions / PARTITIONS_PER_CHOICE) choices.
    # A choice therefore costs the same for a thousand partitions as for a few partitions.
    PARTITIONS_PER_CHOICE = 16


cdef Py_ssize_t weighted_index(const int64_t* sums, Py_ssize_t count, int64_t random_number) noexcept nogil:
    """Return the index of the first sum above ``random_number``, or the last index if no sum is above it."""
    cdef Py_ssize_t low = 0
    cdef Py_ssize_t high = count - 1
    cdef Py_ssize_t middle
    while low < high:
        middle = (low + high) // 2
        if sums[middle] > random_number:
            high = middle
        else:
            low = middle + 1
    return low


cdef PartitionQueue checked_queue(PartitionQueue queue):
    if queue is None:
        raise TypeError("the queues of a topic must be PartitionQueue objects, not None")
    return queue


@cython.final
cdef class TopicState:
    """The state of a topic in use.

    Parameters
    ----------
    name
        Name of the topic.
    queues
        Queues of all partitions.
    available
        Partitions that may be chosen for records without a key.
    is_adaptive
        Whether a partition with a longer queue is chosen less often (KIP-794).
    """

    def __cinit__(self, str name not None, list queues not None, tuple available not None,
                  bint is_adaptive=False):
        # Copy and check the arguments once, because the loops index the copies without checks.
        self._queues = [checked_queue(queue) for queue in queues]
        for partition in available:
            if not 0 <= <int> partition < len(self._queues):
                raise ValueError(f"{name}: available partition {partition} is not below {len(self._queues)}")
        if len(available) > len(self._queues):
            raise ValueError(
                f"{name}: {len(available)} available partitions, but only {len(self._queues)} partitions"
            )
        self.name = name
        self.available = available
        self._candidates = available or tuple(range(len(self._queues)))
        self._is_adaptive = is_adaptive and len(self._candidates) > 1
        self._sticky_partition = -1
        self._sums = <int64_t*>malloc(max(len(self._candidates), 1) * sizeof(int64_t))
        if self._sums is NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self._sums)

    @property
    def partition_count(self):
        return len(self._queues)

    cdef int rotate(self, random) except -1:
        """Choose another partition for records without a key."""
        cdef Py_ssize_t count = len(self._candidates)
        if count == 0:
            raise ValueError(f"topic {self.name!r} has no partitions")
        if self._choices_left == 0:
            self.weigh()
            self._choices_left = max(count // PARTITIONS_PER_CHOICE, 1)
        self._choices_left -= 1
        # Another thread may recompute the weights during the call. In this case the choice uses the new
        # weights.
        self._sticky_partition = self._candidates[
            weighted_index(self._sums, count, random.randrange(self._sums[count - 1]))
        ]
        self._sticky_bytes = 0
        return 0

    cdef int weigh(self) except -1:
        """Set the weight of each candidate.

        The weight is 1 plus the number of batches by which the queue is shorter than the longest queue.
        """
        cdef Py_ssize_t count = len(self._candidates)
        cdef Py_ssize_t at
        cdef int64_t longest = 0
        cdef int64_t total = 0
        for at in range(count):
            self._sums[at] = 0
            if self._is_adaptive:
                self._sums[at] = len((<PartitionQueue>self._queues[<int>self._candidates[at]])._batches)
            longest = max(longest, self._sums[at])
        for at in range(count):
            total += longest + 1 - self._sums[at]
            self._sums[at] = total
        return 0
