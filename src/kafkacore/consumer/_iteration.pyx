# cython: auto_pickle=False, autotestdict=False
"""``for record in consumer``: one record of a poll after the other, and where the loop is."""

cimport cython


@cython.final
cdef class RecordIteration:
    """Records that a poll has given and the loop has not yet taken.

    The consumer's own positions are ahead of the loop, which lets it fetch on; :meth:`untaken` says where the
    loop is.
    """
    cdef list _waiting
    cdef object _partition
    cdef list _records
    cdef Py_ssize_t _taken

    def __cinit__(self):
        self._waiting = []
        self._records = []

    def start(self, records):
        """Go through ``records``: partition → list of records, which is used up."""
        self._waiting = list(records.items())[::-1]
        self._records = []
        self._taken = 0

    def end(self):
        """Forget what was not taken."""
        self.start({})

    cpdef object take(self):
        """The next record, ``None`` at the end."""
        while self._taken == len(self._records):
            if not self._waiting:
                return None
            self._partition, self._records = self._waiting.pop()
            self._taken = 0
        record = self._records[self._taken]
        # The loop alone holds it from here on: its memory serves the records of the next poll.
        self._records[self._taken] = None
        self._taken += 1
        return record

    def untaken(self):
        """Partitions of which the loop has not taken all, and the record that is next."""
        found = {partition: records[0] for partition, records in self._waiting}
        if self._taken < len(self._records):
            found[self._partition] = self._records[self._taken]
        return found


# Bound, so that KafkaConsumer can have it as its method.
@cython.binding(True)
def next_record(consumer):
    """The next record; waits ``consumer_timeout_ms`` for it. The position follows record by record."""
    cdef RecordIteration iteration = consumer._iteration
    record = iteration.take()
    if record is None:
        record = consumer._poll_for_next()
        if record is None:
            raise StopIteration
    return record
