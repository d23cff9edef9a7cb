"""The numbers of one partition's batches: given, on their way, acknowledged.

Numbers count records from 0 to 2^31 - 1, and on from 0. Source: KIP-98; Apache Kafka's
``TxnPartitionEntry``. Does not know: the producer's other partitions, errors.
"""

from __future__ import annotations

from kafkacore.producer._batch import ProducerBatch
from kafkacore.structs import INT32_MAX

NO_SEQUENCE = -1
MAX_SEQUENCE = INT32_MAX


def sequence_after(sequence: int, count: int = 1) -> int:
    """The number ``count`` places on; after -1, which is none, comes 0."""
    return (sequence + count) & MAX_SEQUENCE


class PartitionSequences:
    """Of one producer in one partition.

    Attributes
    ----------
    producer_id, producer_epoch:
        Whose numbers these are.
    next:
        Number of the next new batch's first record.
    last_acknowledged:
        Number of the last record that the broker has; -1 before.
    known_by_id:
        Producer id under which the broker has taken something, whatever the epoch: from then on it insists on
        the order of the numbers. -1 before.
    known_at_ms:
        Since when the broker has heard nothing new of it, by the producer's clock.
    last_offset:
        Its offset, -1 if it is not known.
    in_flight:
        Numbered batches whose outcome is open, on their way or waiting to go again, in the order of their
        numbers. That is also the order of ``batch.place``, by which their queue has them.
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
        """Know of no batch any more."""
        self.producer_id = -1
        self.producer_epoch = -1
        self.next = 0
        self.last_acknowledged = NO_SEQUENCE
        self.in_flight: list[ProducerBatch] = []

    def is_of(self, producer_id: int, producer_epoch: int) -> bool:
        return self.producer_epoch == producer_epoch and self.producer_id == producer_id

    @property
    def expected(self) -> int:
        """The number after the last acknowledged one."""
        return sequence_after(self.last_acknowledged)

    @staticmethod
    def is_later(sequence: int, other: int) -> bool:
        """Whether ``sequence`` comes after ``other``, both being near each other."""
        return 0 < (sequence - other) & MAX_SEQUENCE <= MAX_SEQUENCE // 2

    def number(self, batch: ProducerBatch, is_transactional: bool) -> None:
        """Give the next numbers to a new batch, which takes no more records."""
        batch.set_producer_state(self.producer_id, self.producer_epoch, self.next, is_transactional)
        self.next = sequence_after(self.next, batch.record_count)
        self.in_flight.append(batch)

    def is_first(self, batch: ProducerBatch) -> bool:
        return bool(self.in_flight) and self.in_flight[0] is batch

    def remove(self, batch: ProducerBatch) -> bool:
        """Forget a batch; whether it was known."""
        in_flight = self.in_flight
        if in_flight and in_flight[0] is batch:
            del in_flight[0]
            return True
        if batch not in in_flight:
            return False
        in_flight.remove(batch)
        return True

    def replace(self, batch: ProducerBatch, halves: list[ProducerBatch]) -> None:
        """Put ``halves``, which have the numbers of ``batch``, in its place."""
        if batch in self.in_flight:
            at = self.in_flight.index(batch)
            self.in_flight[at : at + 1] = halves

    def acknowledge(self, batch: ProducerBatch, base_offset: int, now_ms: float) -> None:
        """The broker has the batch. Nothing moves back where answers come in another order."""
        self.remove(batch)
        producer_id = batch.producer_id
        if producer_id < 0 or not self.is_of(producer_id, batch.producer_epoch):
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
        """Number what is in flight from 0, as a new epoch begins."""
        self.producer_id, self.producer_epoch = producer_id, producer_epoch
        self.next = 0
        self.last_acknowledged = NO_SEQUENCE
        for batch in self.in_flight:
            batch.set_producer_state(producer_id, producer_epoch, self.next, batch.is_transactional)
            self.next = sequence_after(self.next, batch.record_count)
