"""Checks whether a client's batch is new, and keeps the last batches of each producer.

Source: Kafka's ``ProducerAppendInfo`` and ``ProducerStateEntry``; KIP-98.
"""

from libc.stdint cimport int64_t

from kafkacore.record._header cimport BatchHeader

from kafkacore.broker.log.producer_entries import BatchMetadata, ProducerStateEntry
from kafkacore.errors import InvalidProducerEpochError, OutOfOrderSequenceNumberError

cdef enum:
    MAX_SEQUENCE = 0x7FFFFFFF
    NO_SEQUENCE = -1
    NO_EPOCH = -1
    # Places in a BatchMetadata, which is a tuple.
    FIRST_SEQUENCE_AT = 0
    LAST_SEQUENCE_AT = 1

# As the class makes it, without the function in between.
cdef object new_tuple = tuple.__new__


cdef class ProducerBatches:
    """The producers of one partition. Used under the lock of its log.

    Parameters
    ----------
    name:
        The partition's, for errors.

    Attributes
    ----------
    entries:
        Producer id → ``ProducerStateEntry``.
    map_end_offset:
        Offset up to which batches have been taken in.
    """

    cdef public dict entries
    cdef public int64_t map_end_offset
    cdef readonly str _name

    def __init__(self, str name not None):
        self._name = name
        self.entries = {}

    def check(self, BatchHeader header not None):
        """Whether a client's batch may be appended.

        Returns
        -------
        BatchMetadata, None
            The batch in the log that it repeats, if it does.

        Raises
        ------
        InvalidProducerEpochError
            A newer incarnation of the producer has written already.
        OutOfOrderSequenceNumberError
            There is a gap to its last batch, or it overlaps with earlier ones without being one of the
            last five.
        """
        cdef int64_t epoch
        cdef int64_t last_sequence = NO_SEQUENCE
        cdef bint is_next
        entry = self.entries.get(header.producer_id)
        if entry is None:
            # Not known any more, or never: whatever sequence it is at becomes the start.
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
        """Take in a batch that has been appended at ``base_offset``."""
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
    # A checked cast would refuse the named tuple.
    if not isinstance(batch, tuple):
        raise TypeError(f"a batch of a producer is a BatchMetadata, not {batch!r}")
    return <tuple> batch


cdef bint is_repeated(BatchHeader header, tuple batch) except -1:
    return (
        <int64_t> batch[FIRST_SEQUENCE_AT] == header.base_sequence
        and <int64_t> batch[LAST_SEQUENCE_AT] == header.sequence_end()
    )


cpdef batch_metadata(BatchHeader header, int64_t base_offset, int64_t timestamp):
    """What is kept of a batch that lies at ``base_offset``."""
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
