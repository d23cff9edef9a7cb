"""Sequence numbers of one producer's batches in one partition.

Sequence numbers count records from 0 to 2^31 - 1 and then start again at 0. See KIP-98 and Apache Kafka's
``TxnPartitionEntry``.
"""

from __future__ import annotations

from kafkacore.producer._batch import ProducerBatch
from kafkacore.structs import INT32_MAX

NO_SEQUENCE = -1
MAX_SEQUENCE = INT32_MAX


def sequence_after(sequence: int, count: int = 1) -> int:
    """Return the number ``count`` records after ``sequence``, which is -1 before the first record."""
    return (sequence + count) & MAX_SEQUENCE


class PartitionSequences:
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

    __slots__ = (
        "in_flight", "known_at_ms", "known_by_id", "last_acknowledged", "last_offset", "next",
        "producer_epoch", "producer_id",
    )  # fmt: skip

    def __init__(self) -> None:
        self.known_by_id = -1
        self.known_at_ms = 0.0
        self.last_offset = -1
        self.forget()

    def forget(self) -> None:
        """Drop the producer id, the sequence numbers and the batches in flight."""
        self.producer_id = -1
        self.producer_epoch = -1
        self.next = 0
        self.last_acknowledged = NO_SEQUENCE
        self.in_flight: list[ProducerBatch] = []

    def is_of(self, producer_id: int, producer_epoch: int) -> bool:
        return self.producer_epoch == producer_epoch and self.producer_id == producer_id

    @property
    def expected(self) -> int:
        """The sequence number after ``last_acknowledged``."""
        return sequence_after(self.last_acknowledged)

    @staticmethod
    def is_later(sequence: int, other: int) -> bool:
        """Return whether ``sequence`` is later than ``other``, for numbers modulo 2^31."""
        return 0 < (sequence - other) & MAX_SEQUENCE <= MAX_SEQUENCE // 2

    def number(self, batch: ProducerBatch, is_transactional: bool) -> None:
        """Assign the next sequence numbers to a batch that accepts no more records."""
        batch.set_producer_state(self.producer_id, self.producer_epoch, self.next, is_transactional)
        self.next = sequence_after(self.next, batch.record_count)
        self.in_flight.append(batch)

    def is_first(self, batch: ProducerBatch) -> bool:
        return bool(self.in_flight) and self.in_flight[0] is batch

    def remove(self, batch: ProducerBatch) -> bool:
        """Remove a batch from ``in_flight``; return whether it was in flight."""
        in_flight = self.in_flight
        if in_flight and in_flight[0] is batch:
            del in_flight[0]
            return True
        if batch not in in_flight:
            return False
        in_flight.remove(batch)
        return True

    def replace(self, batch: ProducerBatch, halves: list[ProducerBatch]) -> None:
        """Replace ``batch`` by ``halves``, which have the same sequence numbers."""
        if batch in self.in_flight:
            at = self.in_flight.index(batch)
            self.in_flight[at : at + 1] = halves

    def acknowledge(self, batch: ProducerBatch, base_offset: int, now_ms: float) -> None:
        """Record that the broker has written the batch. Responses may arrive in any order."""
        self.remove(batch)
        producer_id = batch.producer_id
        # Repeat the condition of is_of(). A call would be slow, because this method runs for every
        # acknowledged batch.
        if producer_id < 0 or producer_id != self.producer_id or batch.producer_epoch != self.producer_epoch:
            return
        self.known_by_id = producer_id
        self.known_at_ms = now_ms
        last = batch.last_sequence
        if self.last_acknowledged == NO_SEQUENCE or self.is_later(last, self.last_acknowledged):
            self.last_acknowledged = last
        last_offset = base_offset + batch.record_count - 1
        if base_offset >= 0 and last_offset > self.last_offset:
            self.last_offset = last_offset

    def start_at_beginning(self, producer_id: int, producer_epoch: int) -> None:
        """Renumber the batches in flight from 0, with a new producer id or epoch."""
        self.producer_id, self.producer_epoch = producer_id, producer_epoch
        self.next = 0
        self.last_acknowledged = NO_SEQUENCE
        for batch in self.in_flight:
            batch.set_producer_state(producer_id, producer_epoch, self.next, batch.is_transactional)
            self.next = sequence_after(self.next, batch.record_count)
