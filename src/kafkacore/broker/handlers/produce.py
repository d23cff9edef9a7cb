"""Produce: batches as they came into the log, an answer when as safe as ``acks`` asks.

Versions 3 to 13, topics by name (to 12) and by id (from 13). Gaps: no transactions; one batch per
partition, as Kafka demands since version 3.
"""

from __future__ import annotations

from typing import Any

from kafkacore.broker.delayed_operation import DelayedProduce
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.log.validation import RefusedRecordsError, RefusedTimestampsError
from kafkacore.broker.request import ANSWERED_LATER, ApiHandler, BrokerServices, CloseConnectionError, Request
from kafkacore.errors import (
    InvalidRecordError,
    InvalidRequestError,
    InvalidRequiredAcksError,
    KafkaStorageError,
    NotEnoughReplicasError,
    NotLeaderForPartitionError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
    UnsupportedCompressionTypeError,
    for_code,
)
from kafkacore.protocol.generated.produce import ProduceRequest, ProduceResponse
from kafkacore.record import Compression, read_batch_headers
from kafkacore.structs import TopicPartition

FIRST_VERSION_BY_ID = 13
FIRST_VERSION_WITH_ZSTD = 7
ACKS_ALL = -1
#: Format of batches, and where they have its number.
_MAGIC, _MAGIC_AT = 2, 16

_PartitionResponse = ProduceResponse.PartitionProduceResponse
_TopicResponse = ProduceResponse.TopicProduceResponse
_RecordError = ProduceResponse.BatchIndexAndErrorMessage


class _Pending:
    """A partition that is written and waits to be safe; what its answer will be is in ``answer``."""

    def __init__(
        self,
        answer: Any,
        topic_partition: TopicPartition,
        log: Any,
        required: int,
        node_id: int,
        services: BrokerServices,
    ) -> None:
        self.answer = answer
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


class _Produce:
    """One Produce on its way: the answers so far, and what the rest of them waits for."""

    def __init__(self, request: Request, services: BrokerServices) -> None:
        self.request = request
        self.services = services
        self.response = ProduceResponse()
        self.pending: list[_Pending] = []
        # Text, not the exception: its traceback would hold this object, and the payload with it, in a cycle.
        self.first_error = ""

    def append_all(self) -> None:
        by_id = self.request.version >= FIRST_VERSION_BY_ID
        for topic in self.request.message.topic_data:
            answers = [self._append(topic, partition, by_id) for partition in topic.partition_data]
            self.response.responses.append(
                _TopicResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)
            )

    def _append(self, topic: Any, partition: Any, by_id: bool) -> Any:
        try:
            return self._appended(topic, partition, by_id)
        except Exception as error:  # noqa: BLE001 - a partition's failure is its own; error_code logs surprises
            self.first_error = self.first_error or str(error)
            return _PartitionResponse(
                index=partition.index,
                error_code=error_code(error),
                base_offset=-1,
                record_errors=_record_errors(error),
                error_message=error_message(error),
            )

    def _appended(self, topic: Any, partition: Any, by_id: bool) -> Any:
        acks = self.request.message.acks
        if acks not in (ACKS_ALL, 0, 1):
            raise InvalidRequiredAcksError(f"acks={acks} is none of -1, 0, 1")
        name = self.services.topics.resolve(topic.name, topic.topic_id, by_id)
        check_records(partition.records, self.request.version)
        self._check_replicas(name, acks)
        topic_partition = TopicPartition(name, partition.index)
        log, info = self.services.replica_manager.append(
            topic_partition, partition.records, self.request.node_id
        )
        answer = _PartitionResponse(
            index=partition.index,
            base_offset=info.first_offset,
            log_append_time_ms=info.log_append_time_ms,
            log_start_offset=info.log_start_offset,
        )
        if acks == ACKS_ALL:
            required, node_id = info.last_offset + 1, self.request.node_id
            self.pending.append(_Pending(answer, topic_partition, log, required, node_id, self.services))
        return answer

    def _check_replicas(self, name: str, acks: int) -> None:
        """This node is the whole in-sync set, so a topic that asks for two of them cannot have acks=all."""
        topic = self.services.topics.get(name)
        if topic is None:
            raise UnknownTopicOrPartitionError(f"Topic '{name}' does not exist.")
        wanted = topic.configs.get("min.insync.replicas")
        if wanted is None:
            wanted = self.services.config.log_defaults.get("min.insync.replicas", "1")
        if acks == ACKS_ALL and int(wanted) > 1:
            raise NotEnoughReplicasError(
                f"min.insync.replicas of {name} is {wanted}, this cluster has one node"
            )

    def answer(self) -> None:
        for pending in self.pending:
            outcome = pending.outcome()
            if outcome != 0:
                error = RequestTimedOutError if outcome is None else for_code(outcome)
                pending.answer.error_code = error.errno
                pending.answer.error_message = error.message
                pending.answer.base_offset = -1
        self.request.respond(self.response)


def _record_errors(error: Exception) -> list[Any]:
    """Which records of the batch are to blame, where it is not the batch as a whole."""
    if not isinstance(error, (RefusedRecordsError, RefusedTimestampsError)):
        return []
    return [
        _RecordError(batch_index=index, batch_index_error_message=message)
        for index, message in error.record_errors
    ]


def handle(request: Request, services: BrokerServices) -> Any:
    message = request.message
    if message.transactional_id is not None:
        raise CloseConnectionError("Produce of a transaction, which this broker did not open")
    produce = _Produce(request, services)
    produce.append_all()
    if message.acks == 0:
        if produce.first_error:
            # There is no answer to put the error in; hanging up is how Kafka lets such a producer know.
            raise CloseConnectionError(f"Produce with acks=0 failed: {produce.first_error}")
        request.respond(None)
        return ANSWERED_LATER
    if not produce.pending:
        return produce.response
    deadline_ms = services.clock.monotonic_ms() + max(message.timeout_ms, 0)
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


HANDLER = ApiHandler(ProduceRequest, 3, 13, handle)
