"""Produce: batches as they came into the log, an answer when as safe as ``acks`` asks.

Versions 3 to 13, topics by name (to 12) and by id (from 13). Gaps: no transactions; one batch per
partition, as Kafka demands since version 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from kafkacore.broker._produce_call import (
    ProduceCall,
    ProducePartition,
    ProduceTopic,
    encode_produce,
    read_produce,
)
from kafkacore.broker.current_leader import CurrentLeaders
from kafkacore.broker.delayed_operation import DelayedProduce
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.internal_topics import is_internal
from kafkacore.broker.log.validation import RefusedRecordsError, RefusedTimestampsError
from kafkacore.broker.request import ANSWERED_LATER, ApiHandler, BrokerServices, CloseConnectionError, Request
from kafkacore.errors import (
    InvalidRecordError,
    InvalidRequestError,
    InvalidRequiredAcksError,
    InvalidTopicError,
    KafkaStorageError,
    NotEnoughReplicasError,
    NotLeaderForPartitionError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
    UnsupportedCompressionTypeError,
    for_code,
)
from kafkacore.protocol.generated.produce import ProduceRequest
from kafkacore.record import Compression, read_batch_headers
from kafkacore.structs import TopicPartition

if TYPE_CHECKING:
    from kafkacore.broker.log import UnifiedLog

FIRST_VERSION_WITH_ZSTD = 7
ACKS_ALL = -1
#: Whoever calls itself so may write to internal topics (Kafka's ``AdminUtils``).
ADMIN_CLIENT_ID = "__admin_client"
#: Format of batches, and where they have its number.
_MAGIC, _MAGIC_AT = 2, 16


class _Pending:
    """A partition that is written and waits to be safe."""

    __slots__ = ("_log", "_node_id", "_required", "_services", "partition", "topic_partition")

    def __init__(
        self,
        partition: ProducePartition,
        topic_partition: TopicPartition,
        log: UnifiedLog,
        required: int,
        node_id: int,
        services: BrokerServices,
    ) -> None:
        self.partition = partition
        self.topic_partition = topic_partition
        self._log = log
        self._required = required
        self._node_id = node_id
        self._services = services

    def outcome(self) -> int | None:
        if self._log.high_watermark >= self._required:
            return 0
        try:
            log = self._services.cluster.led_log(self.topic_partition, self._node_id)
        except (UnknownTopicOrPartitionError, NotLeaderForPartitionError, KafkaStorageError) as error:
            return error.errno
        # A topic made anew under the old name has another log.
        return None if log is self._log else UnknownTopicOrPartitionError.errno

    def settle(self) -> None:
        """Put into the answer what has become of it."""
        outcome = self.outcome()
        if outcome != 0:
            error = RequestTimedOutError if outcome is None else for_code(outcome)
            self.partition.error_code = error.errno
            self.partition.error_message = error.message
            self.partition.base_offset = -1


class _Produce:
    """One Produce on its way: what is appended, and what its answer waits for."""

    def __init__(self, request: Request, services: BrokerServices) -> None:
        self.request = request
        self.services = services
        self.call: ProduceCall = request.message
        self.pending: list[_Pending] = []
        # Text, not the exception: its traceback would hold this object, and the payload with it, in a cycle.
        self.first_error = ""

    def append_all(self) -> None:
        for topic in self.call.topics:
            for partition in topic.partitions:
                try:
                    self._append(topic, partition)
                except Exception as error:  # noqa: BLE001 - is of one partition; error_code logs surprises
                    self.first_error = self.first_error or str(error)
                    partition.error_code = error_code(error)
                    partition.error_message = error_message(error)
                    if isinstance(error, (RefusedRecordsError, RefusedTimestampsError)):
                        # It is not the batch as a whole that is to blame.
                        partition.record_errors = list(error.record_errors)

    def _append(self, topic: ProduceTopic, partition: ProducePartition) -> None:
        services, request, acks = self.services, self.request, self.call.acks
        if acks not in (ACKS_ALL, 0, 1):
            raise InvalidRequiredAcksError(f"acks={acks} is none of -1, 0, 1")
        name = topic.name if topic.topic_id is None else services.topics.name_of_bytes(topic.topic_id)
        assert name is not None, "a topic has a name or an id"
        if is_internal(name) and request.client_id != ADMIN_CLIENT_ID:
            raise InvalidTopicError(f"Cannot append to internal topic {name}")
        check_records(partition.records, request.version)
        topic_partition = TopicPartition(name, partition.index)
        if acks == ACKS_ALL:
            self._check_replicas(topic_partition)
        assert partition.records is not None, "checked"
        log, info = services.replica_manager.append(topic_partition, partition.records, request.node_id)
        # They are in the log: their memory need not wait for the disk.
        partition.records = None
        partition.base_offset = info.first_offset
        partition.log_append_time_ms = info.log_append_time_ms
        partition.log_start_offset = info.log_start_offset
        if acks == ACKS_ALL and log.high_watermark <= info.last_offset:
            required, node_id = info.last_offset + 1, request.node_id
            self.pending.append(_Pending(partition, topic_partition, log, required, node_id, services))

    def _check_replicas(self, topic_partition: TopicPartition) -> None:
        """Refuse acks=all where fewer replicas are up than the topic asks for."""
        name = topic_partition.topic
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

    def answer(self) -> None:
        for pending in self.pending:
            pending.settle()
        self.request.respond(self.finished())

    def finished(self) -> ProduceCall:
        """The response, with who leads what this node does not."""
        leaders = CurrentLeaders(self.services.cluster)
        for topic in self.call.topics:
            for partition in topic.partitions:
                if partition.error_code:
                    name = self._name(topic) or ""
                    partition.current_leader = leaders.told_with(
                        partition.error_code, TopicPartition(name, partition.index)
                    )
        self.call.node_endpoints = list(leaders.endpoints())
        return self.call

    def _name(self, topic: ProduceTopic) -> str | None:
        if topic.topic_id is None:
            return topic.name
        return self.services.topics.name_of(UUID(bytes=topic.topic_id))


def handle(request: Request, services: BrokerServices) -> Any:
    call: ProduceCall = request.message
    if call.transactional_id is not None:
        raise CloseConnectionError("Produce of a transaction, which this broker did not open")
    produce = _Produce(request, services)
    produce.append_all()
    if call.acks == 0:
        if produce.first_error:
            # There is no answer to put the error in; hanging up is how Kafka lets such a producer know.
            raise CloseConnectionError(f"Produce with acks=0 failed: {produce.first_error}")
        request.respond(None)
        return ANSWERED_LATER
    if not produce.pending:
        return produce.finished() if produce.first_error else call
    deadline_ms = services.clock.monotonic_ms() + max(call.timeout_ms, 0)
    request.operation = DelayedProduce(deadline_ms, produce.pending, produce.answer)
    services.replica_manager.produce_purgatory.try_complete_else_watch(
        request.operation, [pending.topic_partition for pending in produce.pending]
    )
    return ANSWERED_LATER


def check_records(records: memoryview | None, version: int) -> None:
    """What Kafka asks of a Produce's records before the log sees them (``ProduceRequest.validateRecords``).

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
    if records is not None and len(records) > _MAGIC_AT and records[_MAGIC_AT] < _MAGIC:
        raise InvalidRecordError(
            f"Produce requests with version {version} must have magic {_MAGIC}, not {records[_MAGIC_AT]}"
        )
    headers = list(read_batch_headers(records)) if records is not None else []
    if len(headers) != 1:
        raise InvalidRecordError(
            f"Produce requests with version {version} must have exactly one batch, not {len(headers)}"
        )
    header = headers[0]
    if header.is_control:
        raise InvalidRecordError("Clients are not allowed to write control records")
    if header.is_transactional:
        raise InvalidRequestError("This broker does not serve transactions")
    if header.compression == Compression.ZSTD and version < FIRST_VERSION_WITH_ZSTD:
        raise UnsupportedCompressionTypeError(
            f"Produce v{version} is not allowed to use ZStandard compression"
        )


HANDLER = ApiHandler(ProduceRequest, 3, 13, handle, read_produce, encode_produce)
