"""Produce: append batches to the logs; with ``acks`` 1 or all, respond when consumers can read them.

Versions 3 to 13, with topic names up to version 12 and topic IDs from version 13. As in Kafka since version
3, a request has one batch per partition. Before the first batch of a transaction is appended to a partition,
the transaction coordinator confirms that the partition is part of the transaction. From version 12 on, the
coordinator adds the partition (KIP-890).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.handlers._produce_append import ProduceAppend
from kafkacore.broker.handlers.services import (
    ANSWERED_LATER,
    HANG_UP,
    AnsweredLater,
    ApiHandler,
    CloseConnectionError,
    ProduceServices,
    Request,
)
from kafkacore.broker.purgatory.change_queue import Change
from kafkacore.broker.purgatory.delayed_operation import NEVER_MS, DelayedProduce
from kafkacore.broker.replica._produce_call import (
    ProduceCall,
    ProducePartition,
    ProduceTopic,
    encode_produce,
    read_produce,
)
from kafkacore.broker.replica.current_leader import CurrentLeaders
from kafkacore.broker.requests.authorization import allowed_names, require
from kafkacore.broker.requests.long_work import LongOperation, answer_after
from kafkacore.errors import (
    BrokerResponseError,
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    InvalidProducerEpochError,
    InvalidRequestError,
    InvalidTxnStateError,
    KafkaStorageError,
    NotCoordinatorError,
    NotEnoughReplicasError,
    NotLeaderForPartitionError,
    ProducerFencedError,
    RequestTimedOutError,
    TransactionAbortableError,
    UnknownTopicOrPartitionError,
    for_code,
)
from kafkacore.logs import logger_of
from kafkacore.protocol.generated.produce import ProduceRequest
from kafkacore.structs import TopicPartition

if TYPE_CHECKING:
    from kafkacore.broker.log import UnifiedLog
    from kafkacore.broker.log.log_structs import ValidatedBatch

    Producer = tuple[int, int]
    Unvalidated = tuple[ProducePartition, TopicPartition, UnifiedLog]

logger = logger_of(__name__)

#: First version whose clients rely on the broker to add partitions to the transaction (KIP-890).
FIRST_VERSION_THAT_ADDS = 12
#: First version whose clients understand TRANSACTION_ABORTABLE.
FIRST_VERSION_WITH_ABORTABLE = 11
#: Errors of the coordinator after which the producer repeats the request.
_RETRIABLE = (
    CoordinatorLoadInProgressError.errno,
    CoordinatorNotAvailableError.errno,
    NotCoordinatorError.errno,
)
#: The thread for long work validates batches of several partitions in one call, until their total size in
#: bytes reaches this limit.
_VALIDATED_AT_ONCE = 256 * 1024


class _Pending:
    """A partition whose batch is appended, but whose high watermark has not passed the batch yet."""

    __slots__ = ("_log", "_node_id", "_required", "_services", "partition", "topic_partition")

    def __init__(
        self,
        partition: ProducePartition,
        topic_partition: TopicPartition,
        log: UnifiedLog,
        required: int,
        node_id: int,
        services: ProduceServices,
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
        # A topic that was deleted and re-created under the same name has another log.
        return None if log is self._log else UnknownTopicOrPartitionError.errno

    def settle(self) -> None:
        """Write the result into the response."""
        outcome = self.outcome()
        if outcome != 0:
            error = RequestTimedOutError if outcome is None else for_code(outcome)
            self.partition.error_code = error.errno
            self.partition.error_message = error.message
            self.partition.base_offset = -1


class _Produce:
    """The response to a Produce request, and the appended batches that it waits for."""

    def __init__(self, append: ProduceAppend) -> None:
        self._append = append
        self.request = append.request
        self.services = append.services
        self.call = append.call
        self.pending: list[_Pending] = []

    def append_unvalidated(self) -> Change[ProduceCall | AnsweredLater]:
        """Validate the remaining batches on another thread, and append them on this thread."""
        waiting = self.request.operation
        append = self._append
        for some in _parts(append.unvalidated):
            outcomes: list[ValidatedBatch | Exception] = []
            yield partial(append.validate, some, outcomes)
            # The transaction may have ended meanwhile. A batch after its marker would belong to a transaction
            # that never ends.
            _refuse_unverified(append)
            for (partition, topic_partition, log), outcome in zip(some, outcomes, strict=True):
                append.append_validated(partition, topic_partition, log, outcome)
        if self.request.operation is None:
            # The connection is closed, so no answer can be sent.
            return ANSWERED_LATER
        response = self.conclude()
        if waiting is not None and self.request.operation is not None:
            self.request.operation.on_failure = waiting.on_failure
        return response

    def conclude(self) -> ProduceCall | AnsweredLater:
        """Return the response or ``ANSWERED_LATER``, after all batches have been appended or refused."""
        call, request, services = self.call, self.request, self.services
        if call.acks == 0:
            if self._append.first_error:
                # There is no response, so close the connection to notify the producer, as in Kafka.
                raise CloseConnectionError(f"Produce with acks=0 failed: {self._append.first_error}")
            request.respond(None)
            return ANSWERED_LATER
        if not self._append.waiting:
            return self.finished() if self._append.first_error else call
        for waiting in self._append.waiting:
            self.pending.append(_Pending(*waiting, request.node_id, services))
        # In Kafka the timeout applies to acks=all only, so with acks=1 clients may send any value, even 0.
        deadline_ms = NEVER_MS if call.acks == 1 else services.clock.monotonic_ms() + max(call.timeout_ms, 0)
        request.operation = DelayedProduce(deadline_ms, self.pending, self.answer)
        services.replica_manager.produce_purgatory.try_complete_else_watch(
            request.operation, [pending.topic_partition for pending in self.pending]
        )
        return ANSWERED_LATER

    def answer(self) -> None:
        for pending in self.pending:
            pending.settle()
        self.request.respond(self.finished())

    def finished(self) -> ProduceCall:
        """Return the response, with the current leaders of the partitions that this node does not lead."""
        leaders = CurrentLeaders(self.services.cluster)
        for topic in self.call.topics:
            for partition in topic.partitions:
                if partition.error_code:
                    name = self._name(topic) or ""
                    partition.current_leader = leaders.returned_with(
                        partition.error_code, TopicPartition(name, partition.index)
                    )
        nodes = leaders.endpoints(self.request.context.listener_name)
        self.call.node_endpoints = [(node.node_id, node.host, node.port, node.rack) for node in nodes]
        return self.call

    def _name(self, topic: ProduceTopic) -> str | None:
        if topic.topic_id is None:
            return topic.name
        return self.services.topics.name_of(topic.topic_id)


def _parts(unvalidated: list[Unvalidated]) -> Iterator[list[Unvalidated]]:
    """Group batches so that each call on another thread validates enough bytes to be worth its overhead."""
    part: list[Unvalidated] = []
    size = 0
    for each in unvalidated:
        part.append(each)
        assert each[0].records is not None, "records are dropped only after validation"
        size += len(each[0].records)
        if size >= _VALIDATED_AT_ONCE:
            yield part
            part, size = [], 0
    if part:
        yield part


def handle(request: Request[ProduceCall], services: ProduceServices) -> ProduceCall | AnsweredLater:
    append = ProduceAppend(request, services)
    if request.message.transactional_id is not None:
        return _append_to_transaction(append)
    append.append_all()
    return _concluded(append)


def _concluded(append: ProduceAppend) -> ProduceCall | AnsweredLater:
    produce = _Produce(append)
    if append.unvalidated:
        append.request.operation = LongOperation()
        return answer_after(append.request, append.services, produce.append_unvalidated())
    return produce.conclude()


def _append_to_transaction(append: ProduceAppend) -> ProduceCall | AnsweredLater:
    """Add the partitions to the producer's transaction, or verify that they were added, then append."""
    request, services = append.request, append.services
    name = request.message.transactional_id
    assert name is not None
    try:
        require(request, services, ACLOperation.WRITE, ResourceType.TRANSACTIONAL_ID, name)
        producer, partitions = _without_transaction(append)
    except BrokerResponseError as error:
        append.refuse_all(error)
        return _concluded(append)
    if partitions and request.version >= FIRST_VERSION_THAT_ADDS:
        request.operation = LongOperation()
        on_added = partial(_added, append, partitions)
        services.transactions.add_partitions(name, *producer, partitions, None, 2, on_added)
        return ANSWERED_LATER
    _verify(append, producer, partitions)
    append.append_all()
    return _concluded(append)


def _refuse_unverified(append: ProduceAppend) -> None:
    """Refuse batches that are not appended yet and whose transaction has ended since it was verified."""
    if append.call.transactional_id is not None and append.request.version < FIRST_VERSION_THAT_ADDS:
        _verify(append, *_without_transaction(append))


def _verify(append: ProduceAppend, producer: Producer, partitions: list[TopicPartition]) -> None:
    """Refuse batches in partitions that are not part of the producer's transaction."""
    request, services = append.request, append.services
    name = request.message.transactional_id
    if not partitions or name is None or not services.config.transaction_partition_verification_enable:
        return
    codes = services.transactions.verify_partitions(name, *producer, partitions, None)
    append.refused = {each: _error_of_produce(code, request.version) for each, code in codes.items() if code}


def _without_transaction(append: ProduceAppend) -> tuple[Producer, list[TopicPartition]]:
    """Return the producer, and the partitions in which the producer has no open transaction.

    The logs of these partitions store the sequence number of the transaction's first batch. From version 12
    on, this number is 0, because each transaction has an epoch of its own.

    Raises
    ------
    InvalidRequestError
        The batches have different producers.
    """
    request, services = append.request, append.services
    cluster, node_id = services.cluster, request.node_id
    batches = append.transactional()
    names = {place.topic for place, *_ in batches if place.topic is not None}
    # A topic that the client may not write to must not become part of the transaction.
    allowed = allowed_names(
        request, services, ACLOperation.WRITE, ResourceType.TOPIC, names, is_asked_for=False
    )
    producers = set()
    partitions = []
    for topic_partition, producer_id, epoch, sequence in batches:
        producers.add((producer_id, epoch))
        if topic_partition.topic not in allowed:
            continue  # The append returns the error.
        try:
            log = cluster.led_log(topic_partition, node_id)
        except BrokerResponseError:
            continue  # The append returns the error.
        if not log.has_open_transaction(producer_id, epoch):
            partitions.append(topic_partition)
            lowest = 0 if request.version >= FIRST_VERSION_THAT_ADDS else sequence
            log.update_lowest_sequence(producer_id, epoch, lowest)
    if len(producers) > 1:
        raise InvalidRequestError("the batches of a Produce request have different producers")
    return producers.pop() if producers else (-1, -1), partitions


def _added(append: ProduceAppend, partitions: list[TopicPartition], code: int) -> None:
    """Append and respond after the coordinator has added the partitions to the transaction."""
    request = append.request
    if code:
        append.refused = dict.fromkeys(partitions, _error_of_produce(code, request.version))
    append.append_all()
    waiting = request.operation
    if waiting is None:
        # The connection is closed, so no answer can be sent.
        return
    try:
        response = _concluded(append)
    except CloseConnectionError as error:
        logger.warning("closing %s: %s", request.context.connection_id, ascii(str(error))[1:-1])
        request.on_response(request, HANG_UP)
        return
    if not isinstance(response, AnsweredLater):
        request.respond(response)
    elif request.operation is not None:
        request.operation.on_failure = waiting.on_failure


def _error_of_produce(code: int, version: int) -> int:
    """Convert an error of the coordinator to an error of Produce, as ``AddPartitionsToTxnManager`` does."""
    if code in _RETRIABLE or (
        code == ConcurrentTransactionsError.errno and version < FIRST_VERSION_THAT_ADDS
    ):
        return NotEnoughReplicasError.errno
    if code == ProducerFencedError.errno:
        return InvalidProducerEpochError.errno
    if code == TransactionAbortableError.errno and version < FIRST_VERSION_WITH_ABORTABLE:
        return InvalidTxnStateError.errno
    return code


HANDLER = ApiHandler(ProduceRequest, 3, 13, handle, read_produce, encode_produce)
