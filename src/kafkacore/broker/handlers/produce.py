"""Produce: append batches to the logs; with ``acks`` 1 or all, respond when consumers can read them.

Versions 3 to 13, with topic names up to version 12 and topic IDs from version 13. Transactions are not
supported. As in Kafka since version 3, a request has one batch per partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from kafkacore.broker.handlers._produce_append import ProduceAppend
from kafkacore.broker.handlers.services import (
    ANSWERED_LATER,
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
from kafkacore.broker.requests.long_work import LongOperation, answer_after
from kafkacore.errors import (
    KafkaStorageError,
    NotLeaderForPartitionError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
    for_code,
)
from kafkacore.protocol.generated.produce import ProduceRequest
from kafkacore.structs import TopicPartition

if TYPE_CHECKING:
    from kafkacore.broker.log import UnifiedLog
    from kafkacore.broker.log.log_structs import ValidatedBatch

    Unvalidated = tuple[ProducePartition, TopicPartition, UnifiedLog]

#: Minimum total size in bytes of the batches that one call on the other thread validates.
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
        """Validate the slow batches on another thread, and append them on this one."""
        waiting = self.request.operation
        append = self._append
        for some in _parts(append.unvalidated):
            outcomes: list[ValidatedBatch | Exception] = []
            yield partial(append.validate, some, outcomes)
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
        return self.services.topics.name_of(UUID(bytes=topic.topic_id))


def _parts(unvalidated: list[Unvalidated]) -> Iterator[list[Unvalidated]]:
    """Group batches so that each call on the other thread validates enough to be worth its overhead."""
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
    call = request.message
    if call.transactional_id is not None:
        raise CloseConnectionError(
            "Produce with a transactional ID: this broker does not support transactions"
        )
    append = ProduceAppend(request, services)
    append.append_all()
    produce = _Produce(append)
    if append.unvalidated:
        request.operation = LongOperation()
        return answer_after(request, services, produce.append_unvalidated())
    return produce.conclude()


HANDLER = ApiHandler(ProduceRequest, 3, 13, handle, read_produce, encode_produce)
