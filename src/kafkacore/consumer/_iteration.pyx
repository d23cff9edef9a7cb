# cython: auto_pickle=False, autotestdict=False
"""The loop ``for record in consumer``: the records of one poll, and how far the loop has read them."""

cimport cython


@cython.final
cdef class RecordIteration:
    """Records that a poll returned and that the loop has not read yet.

    The positions of the consumer are ahead of the loop, so that fetching can continue. :meth:`untaken`
    returns the next unread record of each partition.

    Attributes
    ----------
    has_begun
        Whether :meth:`start` got records and :meth:`end` has not been called since.
    """
    cdef readonly bint has_begun
    cdef list _waiting
    cdef object _partition
    cdef list _records
    cdef Py_ssize_t _taken

    def __cinit__(self):
        self._waiting = []
        self._records = []

    def start(self, records):
        """Iterate over ``records``, a dict of partition → list. A list element is cleared when it is read."""
        self.has_begun = len(records) > 0
        self._waiting = list(records.items())[::-1]
        self._records = []
        self._taken = 0

    def end(self):
        """Drop the records that have not been read."""
        self.start({})

    cpdef object take(self):
        """Return the next record, or ``None`` at the end."""
        while self._taken == len(self._records):
            if not self._waiting:
                return None
            self._partition, self._records = self._waiting.pop()
            self._taken = 0
        record = self._records[self._taken]
        # Drop our reference: once the loop drops its own, the next poll can reuse the record's memory.
        self._records[self._taken] = None
        self._taken += 1
        return record

    def untaken(self):
        """Return the next record of each partition that the loop has not read completely."""
        found = {partition: records[0] for partition, records in self._waiting}
        if self._taken < len(self._records):
            found[self._partition] = self._records[self._taken]
        return found


# With binding(True) the function becomes a method when it is an attribute of KafkaConsumer's class.
@cython.binding(True)
def next_record(consumer):
    """Return the next record; wait up to ``consumer_timeout_ms``. The position advances by one record."""
    cdef RecordIteration iteration = consumer._iteration
    record = iteration.take()
    if record is None:
        record = consumer._poll_for_next()
        if record is None:
            raise StopIteration
    return record
