"""A Produce's batches on their way into the logs: a call in, offsets or errors put into it.

Does not know: what waits until it is safe, how a client is told who leads. Source of the checks: Kafka's
``ProduceRequest.validateRecords`` and ``ReplicaManager.appendRecords``.
"""

from libc.stdint cimport int64_t

from kafkacore.broker._produce_call cimport ProduceCall, ProducePartition, ProduceTopic
from kafkacore.broker._request cimport Request
from kafkacore.record.header cimport BatchHeader
from kafkacore.record.layout cimport COMPRESSION_MASK, CONTROL_BIT, CURRENT_MAGIC, MAGIC_AT, TRANSACTIONAL_BIT

from kafkacore.broker.authorization import require
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.internal_topics import INTERNAL_TOPICS
from kafkacore.broker.log.validation import RefusedRecordsError, RefusedTimestampsError
from kafkacore.errors import (
    InvalidRecordError,
    InvalidRequestError,
    InvalidRequiredAcksError,
    InvalidTopicError,
    NotEnoughReplicasError,
    UnknownTopicOrPartitionError,
    UnsupportedCompressionTypeError,
)
from kafkacore.record import Compression, read_batch_headers
from kafkacore.structs import ACLOperation, ResourceType, TopicPartition

cdef enum:
    ACKS_ALL = -1
    FIRST_VERSION_WITH_ZSTD = 7

cdef int ZSTD = Compression.ZSTD
cdef object WRITE = ACLOperation.WRITE
cdef object TOPIC = ResourceType.TOPIC
# Whoever calls itself so may write to internal topics (Kafka's ``AdminUtils``).
ADMIN_CLIENT_ID = "__admin_client"
# As the class makes it, without the function in between.
cdef object new_tuple = tuple.__new__


cdef class ProduceAppend:
    """What a Produce is answered from.

    Attributes
    ----------
    request, services, call:
        What was asked, and with what it is done.
    first_error:
        A sentence on the first partition that was refused; empty if none was.
    """

    cdef readonly Request request
    cdef readonly object services
    cdef readonly ProduceCall call
    # Text, not the exception: its traceback would hold this object, and the payload with it, in a cycle.
    cdef readonly str first_error
    # Whom to ask first, or nobody.
    cdef object _authorizer

    def __init__(self, Request request not None, services):
        self.request = request
        self.services = services
        self._authorizer = services.authorizer
        self.call = request.message
        self.first_error = ""

    def append_all(self):
        """Append each partition's batch; what is refused is told in its place."""
        cdef ProduceTopic topic
        cdef ProducePartition partition
        for topic in self.call.topics:
            for partition in topic.partitions:
                try:
                    self._append(topic, partition)
                except Exception as error:
                    # It is of one partition; error_code logs surprises.
                    self.first_error = self.first_error or str(error)
                    partition.error_code = error_code(error)
                    partition.error_message = error_message(error)
                    if isinstance(error, (RefusedRecordsError, RefusedTimestampsError)):
                        # It is not the batch as a whole that is to blame.
                        partition.record_errors = list(error.record_errors)

    cdef int _append(self, ProduceTopic topic, ProducePartition partition) except -1:
        cdef int acks = self.call.acks
        cdef int64_t last_offset
        name = topic.name
        if topic.topic_id is not None:
            name = self.services.topics.name_of_bytes(topic.topic_id)
        if self._authorizer is not None:
            require(self.request, self.services, WRITE, TOPIC, name, topic.topic_id)
        if not -1 <= acks <= 1:
            raise InvalidRequiredAcksError(f"acks={acks} is none of -1, 0, 1")
        if name in INTERNAL_TOPICS and self.request.client_id != ADMIN_CLIENT_ID:
            raise InvalidTopicError(f"Cannot append to internal topic {name}")
        check_records(partition.records, self.request.version)
        topic_partition = new_tuple(TopicPartition, (name, partition.index))
        if acks == ACKS_ALL:
            self._check_replicas(topic_partition)
        node_id = self.request.context.node_id
        log, info = self.services.replica_manager.append(topic_partition, partition.records, node_id)
        # They are in the log: their memory need not wait for the disk.
        partition.records = None
        partition.base_offset, last_offset, partition.log_append_time_ms, partition.log_start_offset, _ = info
        if acks == ACKS_ALL and <int64_t> log.high_watermark <= last_offset:
            self._wait_for(partition, topic_partition, log, last_offset + 1)
        return 0

    cdef int _check_replicas(self, topic_partition) except -1:
        """Refuse acks=all where fewer replicas are up than the topic asks for."""
        name = topic_partition[0]
        topic = self.services.topics.get(name)
        if topic is None:
            raise UnknownTopicOrPartitionError(f"Topic '{name}' does not exist.")
        wanted = topic.configs.get("min.insync.replicas")
        if wanted is None:
            wanted = self.services.config.log_defaults.get("min.insync.replicas", "1")
        if wanted != "1" and int(wanted) > (up := len(self.services.cluster.in_sync(topic_partition))):
            raise NotEnoughReplicasError(
                f"Topic '{name}' has min.insync.replicas={wanted}, and {up} of the partition's replicas can "
                "be reached; lower min.insync.replicas, or have more nodes"
            )
        return 0


cdef int check_records(records, int version) except -1:
    """What Kafka asks of a Produce's records before the log sees them.

    Raises
    ------
    InvalidRecordError
        Not exactly one batch of format 2, or a control batch, which only brokers may write.
    UnsupportedCompressionTypeError
        zstd from a client that speaks a version older than zstd (KIP-110).
    InvalidRequestError
        A batch of a transaction.
    CorruptRecordError
        Bytes that are no batch.
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
    if header.attributes & TRANSACTIONAL_BIT:
        raise InvalidRequestError("This broker does not serve transactions")
    if header.attributes & COMPRESSION_MASK == ZSTD and version < FIRST_VERSION_WITH_ZSTD:
        raise UnsupportedCompressionTypeError(
            f"Produce v{version} is not allowed to use ZStandard compression"
        )
    return 0
