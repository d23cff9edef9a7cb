"""A topic that has been sent to: its partitions, and where records without a key go. Knows nothing."""

cimport cython


@cython.final
cdef class TopicState:
    """What is known of a topic that has been sent to."""

    def __init__(self, str name not None, list queues not None, tuple available not None):
        self.name = name
        self._queues = queues
        self.available = available
        self._sticky_partition = -1

    @property
    def partition_count(self):
        return len(self._queues)
