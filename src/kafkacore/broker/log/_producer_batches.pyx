"""Checks new batches, and keeps the recent batches and the open transaction of each producer (KIP-98).

The code follows Kafka's ``ProducerAppendInfo``, ``ProducerStateEntry`` and the transactions of
``ProducerStateManager``.
"""

from libc.stdint cimport int16_t, int32_t, int64_t

from kafkacore.record._header cimport BatchHeader
from kafkacore.record.layout cimport TRANSACTIONAL_BIT

from collections import OrderedDict, deque

from kafkacore.broker.log.producer_entries import BatchMetadata, ProducerStateEntry
from kafkacore.broker.log.transaction_index import AbortedTransaction
from kafkacore.errors import (
    CorruptRecordError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceNumberError,
    TransactionCoordinatorFencedError,
)

cdef enum:
    MAX_SEQUENCE = 0x7FFFFFFF
    NO_SEQUENCE = -1
    NO_EPOCH = -1
    NO_OFFSET = -1
    # First transaction.version in which each marker increments the producer epoch (KIP-890). A producer epoch
    # with the maximum value stays the same.
    TV_2 = 2
    MAX_EPOCH = 0x7FFF
    # Indexes of fields in a BatchMetadata, which is a tuple.
    FIRST_SEQUENCE_AT = 0
    LAST_SEQUENCE_AT = 1

# Creates a named tuple. Calling the class is slower, because its __new__ is a Python function.
cdef object new_tuple = tuple.__new__


cdef class ProducerBatches:
    """The producers of one partition. Callers hold the lock of the log.

    Parameters
    ----------
    name:
        Name of the partition, for messages.

    Attributes
    ----------
    entries:
        Producer id → ``ProducerStateEntry``.
    map_end_offset:
        Offset after the last batch that the entries include.
    first_unstable_offset:
        First offset of the first transaction that is open, or whose marker is not below the high watermark
        yet. ``None`` if there is no such transaction. This attribute may be read without the lock.
    """

    cdef public dict entries
    cdef public int64_t map_end_offset
    cdef readonly object first_unstable_offset
    cdef readonly str _name
    # Producer id → (epoch, lowest sequence number), for producers without an entry. The first batch of a
    # producer in this epoch must not have a higher sequence number.
    cdef dict _lowest_sequences
    # First offset → producer id of the open transactions, ordered by offset. This is an OrderedDict, like
    # _unstable, because a dict takes quadratic time if its first item is removed again and again.
    cdef object _open
    cdef Py_ssize_t _open_count
    # First offsets of open transactions, and of ended transactions whose marker is not below the high
    # watermark yet.
    cdef object _unstable
    # (offset of the marker, first offset) of the transactions whose marker is not below the high watermark
    # yet, in the order of the markers.
    cdef object _ended

    def __init__(self, str name not None):
        self._name = name
        self.restore((), 0)

    def restore(self, entries, int64_t map_end_offset):
        """Replace the state by ``entries``, which include all batches below ``map_end_offset``.

        Raises
        ------
        CorruptRecordError
            The first offset of an open transaction is not below ``map_end_offset``, or occurs twice. The
            state has not changed.
        """
        cdef int64_t first
        started = {}
        for entry in entries:
            first = entry.current_txn_first_offset
            if first < 0:
                continue
            if first >= map_end_offset or first in started:
                raise CorruptRecordError(
                    f"producer {entry.producer_id} has an open transaction with the invalid first offset "
                    f"{first}"
                )
            started[first] = entry.producer_id
        self.entries = {entry.producer_id: entry for entry in entries}
        self._lowest_sequences = {}
        self.map_end_offset = map_end_offset
        self._open = OrderedDict(sorted(started.items()))
        self._open_count = len(started)
        self._unstable = OrderedDict.fromkeys(self._open)
        self._ended = deque()
        self.first_unstable_offset = next(iter(self._unstable), None)

    # ---- Batches --------------------------------------------------------------------------------------

    def check(self, BatchHeader header not None):
        """Check whether a batch of a client, or of the group coordinator, may be appended.

        A batch of the group coordinator has no sequence number, so only its epoch is checked.

        Parameters
        ----------
        header:
            Header of the batch.

        Returns
        -------
        BatchMetadata, None
            The earlier batch that this batch duplicates, or ``None`` if this batch is new.

        Raises
        ------
        InvalidProducerEpochError
            The producer is fenced: a batch with a newer epoch is in the log.
        OutOfOrderSequenceNumberError
            The first sequence number is not the expected number, and the batch does not repeat one of the
            last five batches. The error is also raised if the producer has no entry and an earlier batch of
            the producer still waits for the transaction coordinator.
        InvalidTxnStateError
            The producer has an open transaction, but the batch is not transactional.
        """
        cdef int64_t epoch
        cdef int64_t last_sequence = NO_SEQUENCE
        cdef bint is_next
        entry = self.entries.get(header.producer_id)
        if entry is None:
            if header.producer_id in self._lowest_sequences:
                self._check_first(header)
            # A producer that is new, or whose state has expired, may start at any sequence number.
            return None
        epoch = entry.producer_epoch
        batches = entry.batches
        if header.base_sequence < 0:
            if header.producer_epoch < epoch:
                raise self.fenced(header.producer_id, header.producer_epoch, epoch)
            return None
        if header.producer_epoch == epoch:
            for batch in batches:
                if is_repeated(header, checked(batch)):
                    return batch
            if batches:
                last_sequence = checked(batches[-1])[LAST_SEQUENCE_AT]
            is_next = header.base_sequence == (0 if last_sequence == MAX_SEQUENCE else last_sequence + 1)
        elif header.producer_epoch < epoch:
            raise self.fenced(header.producer_id, header.producer_epoch, epoch)
        else:
            is_next = header.base_sequence == 0 or epoch == NO_EPOCH
        if not is_next:
            raise OutOfOrderSequenceNumberError(
                f"Out of order sequence number for producer {header.producer_id} in {self._name}: "
                f"{header.base_sequence} (incoming seq. number), "
                f"{last_sequence} (current end sequence number)"
            )
        if (
            self._open_count
            and header.attributes & TRANSACTIONAL_BIT == 0
            and <int64_t> entry.current_txn_first_offset >= 0
        ):
            raise InvalidTxnStateError(
                f"Expected transactional write from producer {header.producer_id} in {self._name}"
            )
        return None

    def update_lowest_sequence(self, int64_t producer_id, int16_t producer_epoch, int32_t sequence):
        """Remember the lowest sequence number of the batches that wait for the transaction coordinator.

        The coordinator may reject the first batch of a transaction with a retriable error and accept the
        second batch. If the second batch were appended, the retried first batch would be out of order. If the
        producer has an entry, nothing is stored, because the entry has the last sequence number.

        Parameters
        ----------
        producer_id, producer_epoch:
            Producer of the batch.
        sequence:
            First sequence number of the batch, or 0 if the transaction must start at 0 in this partition.
        """
        if producer_id in self.entries:
            return
        lowest = self._lowest_sequences.get(producer_id)
        if lowest is None or (-producer_epoch, sequence) < (-lowest[0], lowest[1]):
            self._lowest_sequences[producer_id] = (producer_epoch, sequence)

    cdef object _check_first(self, BatchHeader header):
        epoch, lowest = self._lowest_sequences[header.producer_id]
        if header.producer_epoch == epoch and header.base_sequence > lowest:
            raise OutOfOrderSequenceNumberError(
                f"Out of order sequence number for producer {header.producer_id} in {self._name}: "
                f"{header.base_sequence} (incoming seq. number), {lowest} (earliest seen sequence)"
            )

    def forget_lowest_sequences(self):
        """Forget all sequence numbers that :meth:`update_lowest_sequence` has stored."""
        self._lowest_sequences.clear()

    cdef object fenced(self, int64_t producer_id, int64_t epoch, int64_t current):
        return InvalidProducerEpochError(
            f"Epoch of producer {producer_id} in {self._name} is {epoch}, "
            f"which is smaller than the last seen epoch {current}"
        )

    def update(self, BatchHeader header not None, int64_t base_offset, int64_t timestamp):
        """Add a batch that was appended.

        Parameters
        ----------
        header:
            Header of the batch.
        base_offset:
            Offset of the batch's first record in the log.
        timestamp:
            Largest timestamp of the batch, in milliseconds since the epoch.
        """
        self.map_end_offset = base_offset + header.last_offset_delta + 1
        if header.producer_id < 0:
            return
        entry = self.entry_in_epoch(header.producer_id, header.producer_epoch)
        entry.last_timestamp = timestamp
        if header.base_sequence < 0:
            # Only a coordinator writes batches without sequence numbers. A coordinator never sends a batch
            # again, so only the last batch is kept.
            entry.batches.clear()
        entry.batches.append(batch_metadata(header, base_offset, timestamp))
        if header.attributes & TRANSACTIONAL_BIT and <int64_t> entry.current_txn_first_offset < 0:
            entry.current_txn_first_offset = base_offset
            self._open[base_offset] = header.producer_id
            self._open_count += 1
            self._unstable[base_offset] = None
            if self.first_unstable_offset is None:
                self.first_unstable_offset = base_offset

    cdef object entry_in_epoch(self, int64_t producer_id, int16_t producer_epoch):
        """Return the entry of a producer.

        If the epoch is new, remove the producer's batches from the entry, but keep its open transaction.
        """
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerStateEntry(producer_id, producer_epoch, NO_OFFSET)
            self._lowest_sequences.pop(producer_id, None)
        elif <int64_t> entry.producer_epoch != producer_epoch:
            entry.producer_epoch = producer_epoch
            entry.batches.clear()
        return entry

    # ---- Transactions ---------------------------------------------------------------------------------

    def has_open_transaction(self, int64_t producer_id, int64_t producer_epoch):
        """Whether a producer has an open transaction, and ``producer_epoch`` is its current epoch."""
        entry = self.entries.get(producer_id)
        return (
            entry is not None
            and entry.current_txn_first_offset >= 0
            and entry.producer_epoch == producer_epoch
        )

    def check_marker(self, int64_t producer_id, int64_t producer_epoch, int64_t coordinator_epoch,
                     int64_t transaction_version):
        """Check whether the marker of a transaction may be appended.

        Parameters
        ----------
        producer_id, producer_epoch:
            Producer of the transaction.
        coordinator_epoch:
            Epoch of the transaction coordinator that sends the marker.
        transaction_version:
            Value of ``transaction.version`` for the transaction. From version 2 on, the marker has a higher
            epoch than the transaction, unless the transaction has the largest possible epoch.

        Raises
        ------
        InvalidProducerEpochError
            The producer is fenced, or the marker belongs to a transaction before the open transaction.
        TransactionCoordinatorFencedError
            A marker of a newer coordinator is in the log.
        """
        cdef int64_t epoch, coordinator
        entry = self.entries.get(producer_id)
        if entry is None:
            return
        epoch, coordinator = entry.producer_epoch, entry.coordinator_epoch
        if producer_epoch < epoch:
            raise self.fenced(producer_id, producer_epoch, epoch)
        if (
            transaction_version >= TV_2
            and producer_epoch == epoch
            and producer_epoch != MAX_EPOCH
            and entry.current_txn_first_offset >= 0
        ):
            raise InvalidProducerEpochError(
                f"Epoch of producer {producer_id} in {self._name} is {producer_epoch}, which is not above "
                f"the epoch {epoch} of its open transaction"
            )
        if coordinator_epoch < coordinator:
            raise TransactionCoordinatorFencedError(
                f"Invalid coordinator epoch for producer {producer_id} in {self._name}: "
                f"{coordinator_epoch} (zombie), {coordinator} (current)"
            )

    def aborted_by(self, int64_t producer_id, int64_t marker_offset):
        """Return the transaction that a marker aborts, or ``None`` if the producer has no open transaction.

        Call this before :meth:`end_transaction`.
        """
        cdef int64_t stable = marker_offset + 1
        entry = self.entries.get(producer_id)
        if entry is None or entry.current_txn_first_offset < 0:
            return None
        # Find the first open transaction of another producer. A producer has at most one open transaction, so
        # the loop runs at most twice.
        for first, other in self._open.items():
            if <int64_t> other != producer_id:
                stable = first
                break
        return AbortedTransaction(entry.current_txn_first_offset, marker_offset, producer_id, stable)

    def end_transaction(self, int64_t producer_id, int16_t producer_epoch, int32_t coordinator_epoch,
                        int64_t marker_offset, int64_t timestamp):
        """Add a marker that was appended, and end the open transaction of its producer if there is one.

        Parameters
        ----------
        producer_id, producer_epoch, coordinator_epoch:
            Content of the marker.
        marker_offset:
            Offset of the marker.
        timestamp:
            Timestamp of the marker, in milliseconds since the epoch.
        """
        cdef int64_t first
        self.map_end_offset = marker_offset + 1
        entry = self.entry_in_epoch(producer_id, producer_epoch)
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp = timestamp
        first = entry.current_txn_first_offset
        if first >= 0:
            entry.current_txn_first_offset = NO_OFFSET
            del self._open[first]
            self._open_count -= 1
            self._ended.append((marker_offset, first))

    def on_high_watermark(self, int64_t high_watermark):
        """Mark the transactions whose marker is below the new high watermark as stable."""
        ended = self._ended
        while ended and <int64_t> ended[0][0] < high_watermark:
            del self._unstable[ended.popleft()[1]]
        self.first_unstable_offset = next(iter(self._unstable), None)


cdef tuple checked(batch):
    # Cython's checked cast <tuple?> rejects subclasses such as named tuples.
    if not isinstance(batch, tuple):
        raise TypeError(f"the batch of a producer must be a BatchMetadata, not {batch!r}")
    return <tuple> batch


cdef bint is_repeated(BatchHeader header, tuple batch) except -1:
    return (
        <int64_t> batch[FIRST_SEQUENCE_AT] == header.base_sequence
        and <int64_t> batch[LAST_SEQUENCE_AT] == header.sequence_end()
    )


cpdef batch_metadata(BatchHeader header, int64_t base_offset, int64_t timestamp):
    """Return the metadata of a batch that is stored at ``base_offset``."""
    return new_tuple(
        BatchMetadata,
        (
            header.base_sequence,
            header.sequence_end(),
            base_offset,
            base_offset + header.last_offset_delta,
            timestamp,
        ),
    )
