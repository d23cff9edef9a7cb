"""Append the batches of a Produce request to their logs, and write offsets or errors into the response.

The checks are those of Kafka's ``ProduceRequest.validateRecords`` and ``ReplicaManager.appendRecords``.
"""

from libc.stdint cimport int64_t

from kafkacore.broker.replica._produce_call cimport ProduceCall, ProducePartition, ProduceTopic
from kafkacore.broker.requests._request cimport Request
from kafkacore.broker.log._validation cimport ValidationBudget
from kafkacore.record._header cimport BatchHeader
from kafkacore.record.layout cimport COMPRESSION_MASK, CONTROL_BIT, CURRENT_MAGIC, MAGIC_AT, TRANSACTIONAL_BIT

from kafkacore.broker.requests.authorization import require
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.topics.internal_topics import INTERNAL_TOPICS
from kafkacore.broker.log._validation import RefusedRecordsError, RefusedTimestampsError
from kafkacore.errors import (
    CorruptRecordError,
    InvalidRecordError,
    InvalidRequiredAcksError,
    InvalidTopicError,
    NotEnoughReplicasError,
    TransactionalIdAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    UnsupportedCompressionTypeError,
    for_code,
)
from kafkacore.record import read_batch_headers
from kafkacore.record.compression import CODECS as _CODECS
from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.structs import TopicPartition, partition_name

cdef enum:
    ACKS_ALL = -1

# First version of Produce that supports a codec, by the codec's bits.
cdef int MIN_VERSION[COMPRESSION_MASK + 1]
for _code in range(COMPRESSION_MASK + 1):
    MIN_VERSION[_code] = _CODECS[_code].min_produce_version if _code in _CODECS else 0
cdef object WRITE = ACLOperation.WRITE
cdef object TOPIC = ResourceType.TOPIC
# A client with this client ID may write to internal topics (Kafka's ``AdminUtils``).
ADMIN_CLIENT_ID = "__admin_client"
# Creates a TopicPartition without the overhead of its generated __new__ function.
cdef object new_tuple = tuple.__new__


cdef class ProduceAppend:
    """The append of one Produce request.

    Attributes
    ----------
    request, services, call:
        The request, the services of the broker, and the decoded request, which is also the response.
    first_error:
        Error message of the first partition that was refused; empty without an error.
    unvalidated:
        Batches whose validation may take too long for the network thread, as arguments of
        :meth:`append_validated`.
    refused:
        Error code of each partition that could not become part of the producer's transaction.
    waiting:
        ``(partition, topic_partition, log, required)`` of appended batches that are acknowledged when the
        high watermark of their log reaches ``required``.
    """

    cdef readonly Request request
    cdef readonly object services
    cdef readonly ProduceCall call
    # The error is stored as text, because the traceback of an exception would form a reference cycle with
    # this object, and would keep the payload in memory.
    cdef readonly str first_error
    cdef readonly list unvalidated
    cdef public dict refused
    cdef readonly list waiting
    cdef ValidationBudget _budget
    # Authorizer of the broker; None if every client may write to every topic.
    cdef object _authorizer

    def __init__(self, Request request not None, services):
        self.request = request
        self.services = services
        self._authorizer = services.authorizer
        self.call = request.message
        self.first_error = ""
        self.unvalidated = []
        self.refused = {}
        self.waiting = []
        self._budget = ValidationBudget()

    def refuse_all(self, error not None):
        """Write the same error into the response of each partition."""
        cdef ProduceTopic topic
        for topic in self.call.topics:
            for partition in topic.partitions:
                self._refuse(partition, error)

    def transactional(self):
        """Return partition, producer id, epoch and first sequence number of each transactional batch.

        Batches that :meth:`append_all` will refuse may be left out.
        """
        cdef ProduceTopic topic
        cdef ProducePartition partition
        cdef BatchHeader header
        cdef list found = []
        for topic in self.call.topics:
            name = topic.name
            if topic.topic_id is not None:
                name = self.services.topics.existing_name(topic.topic_id)
            for partition in topic.partitions:
                try:
                    headers = read_batch_headers(partition.records or b"")
                except CorruptRecordError:
                    continue
                if len(headers) == 1 and (<BatchHeader> headers[0]).attributes & TRANSACTIONAL_BIT:
                    header = headers[0]
                    place = new_tuple(TopicPartition, (name, partition.index))
                    found.append((place, header.producer_id, header.producer_epoch, header.base_sequence))
        return found

    def append_all(self):
        """Append the batch of each partition; errors are written into the response."""
        cdef ProduceTopic topic
        cdef ProducePartition partition
        for topic in self.call.topics:
            for partition in topic.partitions:
                try:
                    self._append(topic, partition)
                except Exception as error:
                    self._refuse(partition, error)

    cdef int _refuse(self, ProducePartition partition, error) except -1:
        """Write the error of one partition into the response; ``error_code()`` logs unexpected errors."""
        self.first_error = self.first_error or str(error)
        partition.error_code = error_code(error)
        partition.error_message = error_message(error)
        if isinstance(error, (RefusedRecordsError, RefusedTimestampsError)):
            # Report which records of the batch are invalid.
            partition.record_errors = list(error.record_errors)
        return 0

    def validate(self, list some not None, list outcomes not None):
        """Validate some batches of `unvalidated`; append each validated batch, or its error, to `outcomes`.

        This method is called on another thread.
        """
        now_ms = self.services.clock.wall_ms()
        for partition, _, log in some:
            try:
                outcomes.append(log.validate((<ProducePartition> partition).records, now_ms=now_ms))
            except Exception as error:
                outcomes.append(error)

    def append_validated(self, ProducePartition partition not None, topic_partition, log, outcome):
        """Append one batch of `unvalidated`, given the outcome of its validation."""
        try:
            if isinstance(outcome, Exception):
                raise outcome
            self._check_not_refused(topic_partition)
            node_id = self.request.context.node_id
            info = self.services.replica_manager.append_validated(topic_partition, log, outcome, node_id)
            self._appended(partition, topic_partition, log, info)
        except Exception as error:
            self._refuse(partition, error)

    cdef int _append(self, ProduceTopic topic, ProducePartition partition) except -1:
        cdef int acks = self.call.acks
        name = topic.name
        if topic.topic_id is not None:
            name = self.services.topics.existing_name(topic.topic_id)
        if self._authorizer is not None:
            require(self.request, self.services, WRITE, TOPIC, name, topic.topic_id)
        topic_partition = new_tuple(TopicPartition, (name, partition.index))
        known = self.services.topics.get(name)
        # As in Kafka, an unknown partition is reported before invalid records.
        if known is None or not 0 <= partition.index < <int> known.partition_count:
            raise UnknownTopicOrPartitionError(f"Partition {partition_name(topic_partition)} does not exist")
        check_records(partition.records, self.request.version, self.call.transactional_id is not None)
        self._check_not_refused(topic_partition)
        if not -1 <= acks <= 1:
            raise InvalidRequiredAcksError(f"acks={acks} is not -1, 0 or 1")
        if name in INTERNAL_TOPICS and self.request.client_id != ADMIN_CLIENT_ID:
            raise InvalidTopicError(f"Cannot append to internal topic {name}")
        if acks == ACKS_ALL:
            self._check_replicas(known, topic_partition)
        node_id = self.request.context.node_id
        log, info = self.services.replica_manager.append_within(
            topic_partition, partition.records, node_id, self._budget
        )
        if info is None:
            self.unvalidated.append((partition, topic_partition, log))
            return 0
        return self._appended(partition, topic_partition, log, info)

    cdef int _check_not_refused(self, topic_partition) except -1:
        if self.refused and topic_partition in self.refused:
            raise for_code(self.refused[topic_partition])
        return 0

    cdef int _appended(self, ProducePartition partition, topic_partition, log, info) except -1:
        cdef int64_t last_offset
        # The records are in the log, so free their memory without waiting for the sync.
        partition.records = None
        partition.base_offset, last_offset, partition.log_append_time_ms, partition.log_start_offset, _ = info
        # Wait with acks=1 too: an acknowledged record must be visible to the next request, and readers
        # do not see records above the high watermark. A duplicate batch may have to wait until the original
        # is flushed.
        if self.call.acks != 0 and <int64_t> log.high_watermark <= last_offset:
            self.waiting.append((partition, topic_partition, log, last_offset + 1))
        return 0

    cdef int _check_replicas(self, topic, topic_partition) except -1:
        """Refuse acks=all if fewer replicas are alive than ``min.insync.replicas`` requires."""
        wanted = topic.configs.get("min.insync.replicas")
        if wanted is None:
            wanted = self.services.config.log_defaults.get("min.insync.replicas", "1")
        if wanted != "1" and int(wanted) > (up := len(self.services.cluster.in_sync(topic_partition))):
            raise NotEnoughReplicasError(
                f"Topic '{topic_partition[0]}' has min.insync.replicas={wanted}, but the partition has {up} "
                "in-sync replicas: lower min.insync.replicas or add nodes"
            )
        return 0


cdef int check_records(records, int version, bint has_transactional_id) except -1:
    """Check the records of one partition before the log reads them.

    Raises
    ------
    InvalidRecordError
        The records are not exactly one batch of format 2, or the batch is a control batch, which only
        brokers may write.
    UnsupportedCompressionTypeError
        The version does not support the codec, such as zstd before version 7 (KIP-110).
    TransactionalIdAuthorizationFailedError
        The batch is part of a transaction, and the request has no transactional ID.
    CorruptRecordError
        The bytes are not a batch.
    """
    cdef BatchHeader header
    cdef list headers = []
    if records is not None:
        if len(records) > MAGIC_AT and <int> records[MAGIC_AT] < CURRENT_MAGIC:
            raise InvalidRecordError(
                f"Produce requests with version {version} must have magic {CURRENT_MAGIC}, "
                f"not {records[MAGIC_AT]}"
            )
        headers = read_batch_headers(records)
    if len(headers) != 1:
        raise InvalidRecordError(
            f"Produce requests with version {version} must have exactly one batch, not {len(headers)}"
        )
    header = headers[0]
    if header.attributes & CONTROL_BIT:
        raise InvalidRecordError("Clients are not allowed to write control records")
    if header.attributes & TRANSACTIONAL_BIT and not has_transactional_id:
        raise TransactionalIdAuthorizationFailedError(
            "the batch is part of a transaction, but the request has no transactional ID"
        )
    if version < MIN_VERSION[header.attributes & COMPRESSION_MASK]:
        title = _CODECS[header.attributes & COMPRESSION_MASK].title
        raise UnsupportedCompressionTypeError(f"Produce v{version} is not allowed to use {title} compression")
    return 0
