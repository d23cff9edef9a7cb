"""Sequence numbers of one producer's batches in one partition.

Sequence numbers count records from 0 to 2^31 - 1 and then start again at 0. See KIP-98 and Apache Kafka's
``TxnPartitionEntry``.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t

from kafkacore.producer._batch cimport ProducerBatch

MAX_SEQUENCE = 0x7FFFFFFF


def sequence_after(int64_t sequence, int64_t count=1):
    """Return the number ``count`` records after ``sequence``, which is -1 before the first record."""
    return _sequence_after(sequence, count)


cdef int32_t _sequence_after(int64_t sequence, int64_t count) noexcept:
    return <int32_t> ((sequence + count) & 0x7FFFFFFF)


cdef bint _is_later(int64_t sequence, int64_t other) noexcept:
    return 0 < ((sequence - other) & 0x7FFFFFFF) <= 0x7FFFFFFF // 2


@cython.final
cdef class PartitionSequences:
    """The sequence numbers of one producer in one partition.

    Attributes
    ----------
    producer_id, producer_epoch:
        The producer id and epoch to which the sequence numbers belong.
    next:
        Sequence number of the first record of the next new batch.
    last_acknowledged:
        Sequence number of the last acknowledged record, or -1.
    known_by_id:
        Producer id with which the broker has acknowledged a batch, even in an earlier epoch; -1 before the
        first acknowledgement. After the first acknowledgement, the broker enforces the order of sequence
        numbers.
    known_at_ms:
        Time of the last acknowledgement, by the producer's clock.
    last_offset:
        Offset of the last acknowledged record; -1 if unknown.
    in_flight:
        Incomplete batches that have sequence numbers, in the order of these numbers. Each batch was sent or
        waits for a retry. ``batch.place`` gives these batches the same order in the queue.
    """

    def __cinit__(self):
        self.known_by_id = -1
        self.known_at_ms = 0.0
        self.last_offset = -1
        self.forget()

    def forget(self):
        """Drop the producer id, the sequence numbers and the batches in flight."""
        self.producer_id = -1
        self.producer_epoch = -1
        self.next = 0
        self.last_acknowledged = -1
        self.in_flight = []

    cpdef bint is_of(self, int64_t producer_id, int producer_epoch) noexcept:
        return self.producer_epoch == producer_epoch and self.producer_id == producer_id

    @property
    def expected(self):
        """The sequence number after ``last_acknowledged``."""
        return _sequence_after(self.last_acknowledged, 1)

    @staticmethod
    def is_later(int64_t sequence, int64_t other):
        """Return whether ``sequence`` is later than ``other``, for numbers modulo 2^31."""
        return _is_later(sequence, other)

    cpdef int number(self, ProducerBatch batch, bint is_transactional) except -1:
        """Assign the next sequence numbers to a batch that accepts no more records."""
        batch.set_producer_state(self.producer_id, self.producer_epoch, self.next, is_transactional)
        self.next = _sequence_after(self.next, batch.record_count)
        self.in_flight.append(batch)
        return 0

    def is_first(self, ProducerBatch batch not None):
        return bool(self.in_flight) and self.in_flight[0] is batch

    cpdef bint remove(self, ProducerBatch batch) except -1:
        """Remove a batch from ``in_flight``; return whether it was in flight."""
        cdef list in_flight = self.in_flight
        if in_flight and in_flight[0] is batch:
            del in_flight[0]
            return True
        if batch not in in_flight:
            return False
        in_flight.remove(batch)
        return True

    def replace(self, ProducerBatch batch not None, list halves not None):
        """Replace ``batch`` by ``halves``, which have the same sequence numbers."""
        if batch in self.in_flight:
            at = self.in_flight.index(batch)
            self.in_flight[at : at + 1] = halves

    cpdef int acknowledge(self, ProducerBatch batch, base_offset, double now_ms) except -1:
        """Record that the broker has written the batch. Responses may arrive in any order."""
        cdef int32_t last = batch.last_sequence
        self.remove(batch)
        if batch.producer_id < 0 or not self.is_of(batch.producer_id, batch.producer_epoch):
            return 0
        self.known_by_id = batch.producer_id
        self.known_at_ms = now_ms
        if self.last_acknowledged == -1 or _is_later(last, self.last_acknowledged):
            self.last_acknowledged = last
        # These are Python integers, because the sum may exceed 64 bits if a broker responds with nonsense.
        if base_offset >= 0:
            self.last_offset = max(self.last_offset, base_offset + batch.record_count - 1)
        return 0

    cpdef int start_at_beginning(self, int64_t producer_id, int producer_epoch) except -1:
        """Renumber the batches in flight from 0, with a new producer id or epoch."""
        cdef ProducerBatch batch
        self.producer_id, self.producer_epoch = producer_id, producer_epoch
        self.next = 0
        self.last_acknowledged = -1
        for batch in self.in_flight:
            batch.set_producer_state(producer_id, producer_epoch, self.next, batch.is_transactional)
            self.next = _sequence_after(self.next, batch.record_count)
        return 0
