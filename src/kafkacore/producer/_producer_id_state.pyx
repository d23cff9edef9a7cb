"""Producer id, epoch and sequence numbers of one idempotent or transactional producer.

See KIP-98 and KIP-360, and Apache Kafka's ``ProducerIdAndEpoch`` and ``TxnPartitionMap``.
"""

cimport cython
from libc.stdint cimport int64_t

from kafkacore.producer._batch cimport ProducerBatch
from kafkacore.producer._partition_sequences cimport PartitionSequences


from kafkacore.logs import logger_of
from kafkacore.producer._partition_sequences import sequence_after

logger = logger_of("kafkacore.producer")

NO_PRODUCER_ID = -1
NO_EPOCH = -1
# The last epoch of a producer id. To increase the epoch further, a new producer id is needed.
LAST_EPOCH = 2**15 - 1
# Number of batches that a broker remembers per producer and partition. At most this many batches of a
# partition may be in flight.
MAX_IN_FLIGHT = 5
# How long, in milliseconds, this client assumes that a broker remembers an idle producer. By default a
# broker remembers an idle producer for a day (``producer.id.expiration.ms``).
KNOWN_FOR_MS = 3_600_000.0


@cython.final
cdef class ProducerIdState:
    """The producer id and epoch, and the sequence numbers of every partition.

    Only the network thread uses this object.

    Attributes
    ----------
    producer_id, producer_epoch:
        Current producer id and epoch; -1 until a broker has assigned them.
    sequences:
        Topic-partition → sequence numbers of its batches.
    unresolved:
        Topic-partition → sequence number after the last batch of the partition that failed without a
        response. Only the response to a later batch shows whether the broker has written the failed batch.
    """

    def __cinit__(self):
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = NO_EPOCH
        self.sequences = {}
        self.unresolved = {}

    # ---- Producer id and epoch -----------------------------------------------------------------------------

    def set_producer_id_and_epoch(self, int64_t producer_id, int producer_epoch):
        """Use the producer id and epoch that a broker assigned."""
        self.producer_id, self.producer_epoch = producer_id, producer_epoch

    def bump_epoch(self):
        """Start the next epoch without a request to the broker (KIP-360).

        Returns
        -------
        bool
            ``False`` after the last epoch. In this case the producer id is dropped, and a new id is needed.
        """
        if self.producer_epoch == LAST_EPOCH:
            self.producer_id, self.producer_epoch = NO_PRODUCER_ID, NO_EPOCH
            return False
        self.producer_epoch += 1
        return True

    # ---- Batches -------------------------------------------------------------------------------------------

    def may_drain(self, ProducerBatch batch not None, double now_ms):
        """Return whether the sequence numbers allow the first batch of a queue to be drained now."""
        cdef PartitionSequences sequences = self.sequences.get(batch.topic_partition)
        cdef list in_flight
        if sequences is None:
            return True
        in_flight = sequences.in_flight
        if batch.base_sequence >= 0:
            # A retried batch is sent only if no earlier batch is in flight. This keeps the batches in order.
            return not in_flight or in_flight[0] is batch
        if batch.topic_partition in self.unresolved:
            return False
        if not in_flight:
            return True
        # A broker without state for the producer accepts any first sequence number. Until such a broker has
        # accepted a batch, the broker could therefore accept the second batch before the first. In addition,
        # sequence number 0 of a new epoch must not overtake batches of the previous epoch.
        return (
            sequences.known_by_id == self.producer_id
            and now_ms - sequences.known_at_ms < KNOWN_FOR_MS
            and len(in_flight) < MAX_IN_FLIGHT
            and sequences.is_of(self.producer_id, self.producer_epoch)
        )

    def assign(self, ProducerBatch batch not None, bint is_transactional):
        """Assign sequence numbers to a batch that is drained for the first time.

        A retried batch keeps its numbers. By these numbers, the broker recognizes duplicates.
        """
        cdef PartitionSequences sequences
        if batch.base_sequence >= 0:
            return
        sequences = self.sequences.get(batch.topic_partition)
        if sequences is None:
            sequences = self.sequences[batch.topic_partition] = PartitionSequences()
        if not sequences.in_flight and not sequences.is_of(self.producer_id, self.producer_epoch):
            sequences.start_at_beginning(self.producer_id, self.producer_epoch)
        sequences.number(batch, is_transactional)

    def acknowledge(self, ProducerBatch batch not None, base_offset, double now_ms):
        """Record that the broker has written the batch, even if the batch failed before the response arrived.

        Parameters
        ----------
        base_offset:
            Offset of the first record, or -1 if it is unknown because the batch is a duplicate.
        """
        cdef PartitionSequences sequences = self.sequences.get(batch.topic_partition)
        if sequences is not None:
            sequences.acknowledge(batch, base_offset, now_ms)

    def is_next(self, ProducerBatch batch not None):
        """Return whether ``batch`` follows the last acknowledged or the last failed batch.

        If such a batch gets OUT_OF_ORDER_SEQUENCE_NUMBER, the broker lacks earlier records that no retry will
        send. If any other batch gets this error, the missing records are in flight.
        """
        sequences = self.sequences.get(batch.topic_partition)
        if sequences is None or batch.sequence_has_been_reset or not sequences.is_first(batch):
            return False
        given_up = self.unresolved.get(batch.topic_partition)
        return batch.base_sequence in (sequences.expected, given_up)

    def give_up(self, ProducerBatch batch not None):
        """Remove a failed batch and mark its partition as unresolved.

        Returns
        -------
        bool
            ``False`` if the batch was not in flight. In this case nothing changes.
        """
        sequences = self.sequences.get(batch.topic_partition)
        if sequences is None or not batch.has_sequence or not sequences.remove(batch):
            return False
        following = sequence_after(batch.last_sequence)
        given_up = self.unresolved.get(batch.topic_partition)
        if given_up is None or sequences.is_later(following, given_up):
            self.unresolved[batch.topic_partition] = following
        logger.debug("%s failed: a later response will show whether the batch was written", batch)
        return True

    def take_back(self, ProducerBatch batch not None):
        """Remove a failed batch that was not written, and reuse its sequence numbers for the next batch.

        Returns
        -------
        bool
            ``False`` if reusing the numbers could cause a gap or a duplicate. In this case nothing changes.
        """
        sequences = self.sequences.get(batch.topic_partition)
        if sequences is None or batch.possibly_persisted or sequences.in_flight != [batch]:
            return False
        sequences.remove(batch)
        sequences.next = batch.base_sequence
        return True

    def split(self, ProducerBatch batch not None, list halves not None):
        """Replace ``batch`` by ``halves``, which have the same sequence numbers."""
        sequences = self.sequences.get(batch.topic_partition)
        if sequences is not None:
            sequences.replace(batch, halves)

    # ---- Partitions ----------------------------------------------------------------------------------------

    def resolve(self):
        """Clear the unresolved partitions in which the failed batch or a later batch was acknowledged.

        Returns
        -------
        list of TopicPartition
            Partitions that stay unresolved although no batch is in flight, so that no response will resolve
            them.
        """
        unresolvable = []
        for topic_partition, following in list(self.unresolved.items()):
            sequences = self.sequences[topic_partition]
            if not sequences.is_later(following, sequences.expected):
                del self.unresolved[topic_partition]
            elif not sequences.in_flight:
                unresolvable.append(topic_partition)
        return unresolvable

    def start_at_beginning(self, topic_partition):
        """Renumber the partition's batches from 0, with the current producer id and epoch."""
        sequences = self.sequences.get(topic_partition)
        if sequences is not None:
            sequences.start_at_beginning(self.producer_id, self.producer_epoch)
        self.unresolved.pop(topic_partition, None)

    def reset_sequences(self):
        """Start every partition at sequence 0 and forget the batches in flight."""
        for sequences in self.sequences.values():
            sequences.forget()
        self.unresolved.clear()
