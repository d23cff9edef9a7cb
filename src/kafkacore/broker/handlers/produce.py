"""Produce: batches as they came into the log, an answer when as safe as ``acks`` asks.

Versions 3 to 13, topics by name (to 12) and by id (from 13). Gaps: no transactions; one batch per
partition, as Kafka demands since version 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from kafkacore.broker._produce_append import ProduceAppend
from kafkacore.broker._produce_call import (
    ProduceCall,
    ProducePartition,
    ProduceTopic,
    encode_produce,
    read_produce,
)
from kafkacore.broker.current_leader import CurrentLeaders
from kafkacore.broker.delayed_operation import DelayedProduce
from kafkacore.broker.request import ANSWERED_LATER, ApiHandler, BrokerServices, CloseConnectionError, Request
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


class _Produce(ProduceAppend):
    """One Produce on its way: what is appended, and what its answer waits for."""

    def __init__(self, request: Request, services: BrokerServices) -> None:
        super().__init__(request, services)
        self.pending: list[_Pending] = []

    def _wait_for(
        self, partition: ProducePartition, topic_partition: TopicPartition, log: UnifiedLog, required: int
    ) -> None:
        """Answer only when the partition is safe up to the offset ``required``."""
        node_id = self.request.node_id
        self.pending.append(_Pending(partition, topic_partition, log, required, node_id, self.services))

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
        told = leaders.endpoints(self.request.context.listener_name)
        self.call.node_endpoints = [(node.node_id, node.host, node.port, node.rack) for node in told]
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


HANDLER = ApiHandler(ProduceRequest, 3, 13, handle, read_produce, encode_produce)
