"""Checks the sequence numbers of new batches, and keeps the recent batches of each producer (KIP-98).

Follows Kafka's ``ProducerAppendInfo`` and ``ProducerStateEntry``.
"""

from libc.stdint cimport int64_t

from kafkacore.record._header cimport BatchHeader

from kafkacore.broker.log.producer_entries import BatchMetadata, ProducerStateEntry
from kafkacore.errors import InvalidProducerEpochError, OutOfOrderSequenceNumberError

cdef enum:
    MAX_SEQUENCE = 0x7FFFFFFF
    NO_SEQUENCE = -1
    NO_EPOCH = -1
    # Indexes of fields in a BatchMetadata, which is a tuple.
    FIRST_SEQUENCE_AT = 0
    LAST_SEQUENCE_AT = 1

# Creates a named tuple without the Python call of its own __new__.
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
    """

    cdef public dict entries
    cdef public int64_t map_end_offset
    cdef readonly str _name

    def __init__(self, str name not None):
        self._name = name
        self.entries = {}

    def check(self, BatchHeader header not None):
        """Check whether a batch from a client may be appended.

        Parameters
        ----------
        header:
            Header of the batch.

        Returns
        -------
        BatchMetadata, None
            The batch in the log of which this one is a duplicate, or ``None`` if it is new.

        Raises
        ------
        InvalidProducerEpochError
            The producer is fenced: a batch with a newer epoch is in the log.
        OutOfOrderSequenceNumberError
            The first sequence number is not the expected one, and the batch does not repeat one of the last
            five batches.
        """
        cdef int64_t epoch
        cdef int64_t last_sequence = NO_SEQUENCE
        cdef bint is_next
        entry = self.entries.get(header.producer_id)
        if entry is None:
            # A new producer, or a producer whose state has expired, may start at any sequence number.
            return None
        epoch = entry.producer_epoch
        batches = entry.batches
        if header.producer_epoch == epoch:
            for batch in batches:
                if is_repeated(header, checked(batch)):
                    return batch
            if batches:
                last_sequence = checked(batches[-1])[LAST_SEQUENCE_AT]
            is_next = header.base_sequence == (0 if last_sequence == MAX_SEQUENCE else last_sequence + 1)
        elif header.producer_epoch < epoch:
            raise InvalidProducerEpochError(
                f"Epoch of producer {header.producer_id} in {self._name} is {header.producer_epoch}, "
                f"which is smaller than the last seen epoch {epoch}"
            )
        else:
            is_next = header.base_sequence == 0 or epoch == NO_EPOCH
        if not is_next:
            raise OutOfOrderSequenceNumberError(
                f"Out of order sequence number for producer {header.producer_id} in {self._name}: "
                f"{header.base_sequence} (incoming seq. number), "
                f"{last_sequence} (current end sequence number)"
            )
        return None

    def update(self, BatchHeader header not None, int64_t base_offset, int64_t timestamp):
        """Add a batch that was appended.

        Parameters
        ----------
        header:
            Header of the batch.
        base_offset:
            Offset of its first record in the log.
        timestamp:
            Its largest timestamp, in milliseconds since the epoch.
        """
        self.map_end_offset = base_offset + header.last_offset_delta + 1
        if header.producer_id < 0:
            return
        entry = self.entries.get(header.producer_id)
        if entry is None or entry.producer_epoch != header.producer_epoch:
            entry = ProducerStateEntry(header.producer_id, header.producer_epoch, timestamp)
            self.entries[header.producer_id] = entry
        entry.last_timestamp = timestamp
        if header.base_sequence >= 0:
            entry.batches.append(batch_metadata(header, base_offset, timestamp))


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
