"""Produce requests and their answers: sealed batches in, a message out, and an answer per partition.

Source: KIP-516 (topic ids from version 13 on), KIP-467 (errors of single records). Does not know:
connections, retries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast
from uuid import UUID

from kafkacore.client import Cluster
from kafkacore.errors import InvalidRecordError, KafkaError, for_code
from kafkacore.producer._batch import ProducerBatch
from kafkacore.producer._produce_codec import read_acknowledgements, write_body
from kafkacore.protocol import ZERO_UUID, ResponseMessage
from kafkacore.protocol.generated.produce import ProduceRequest, ProduceResponse
from kafkacore.protocol.message import unsupported_version
from kafkacore.structs import Node, TopicPartition
from kafkacore.wire import Cursor, Writer

#: The last version that names topics by name.
LAST_VERSION_BY_NAME = 12


@dataclass(slots=True)
class PartitionAnswer:
    """What the broker said of one batch; of success, where it lies."""

    base_offset: int = -1
    log_append_time_ms: int = -1
    error: KafkaError | None = None
    record_errors: dict[int, KafkaError] | None = None
    #: Id and epoch of the leader that the broker knows of instead of itself.
    leader: tuple[int, int] | None = None
    #: First offset of the partition, -1 if it is not said; of an error.
    log_start_offset: int = -1


class BatchesResponse(ProduceResponse):
    """A produce response that is mostly no more than a list of offsets.

    Attributes
    ----------
    acknowledged:
        Topic (name or id's bytes), partition, base offset and log append time of each, where all went well;
        else ``None``, and :attr:`responses` says how it went.
    """

    __slots__ = ("acknowledged",)
    acknowledged: list[tuple[str | bytes, int, int, int]] | None

    @classmethod
    def decode(cls, cursor: Cursor, version: int) -> Self:
        plain = read_acknowledgements(cursor, version) if version >= cls.MIN_VERSION else None
        if plain is None:
            self = super().decode(cursor, version)
            self.acknowledged = None
            return self
        self = cls.__new__(cls)
        self.acknowledged, self.throttle_time_ms = plain
        self.responses = []
        self.node_endpoints = []
        return self


class BatchesRequest(ProduceRequest):
    """A produce request that is written from its batches; :attr:`topic_data` is made when it is asked for."""

    __slots__ = ("topics",)
    RESPONSE: ClassVar[type[ResponseMessage]] = BatchesResponse

    def __init__(
        self,
        acks: int,
        timeout_ms: int,
        topics: list[tuple[str, UUID, list[ProducerBatch]]],
        transactional_id: str | None = None,
    ) -> None:
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topics = topics

    def encode(self, writer: Writer, version: int) -> None:
        if not self.MIN_VERSION <= version <= self.MAX_VERSION:
            raise unsupported_version(type(self), version)
        write_body(writer, version, self.acks, self.timeout_ms, self.topics, self.transactional_id)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name != "topic_data":
                raise AttributeError(name)
            self.topic_data = [
                ProduceRequest.TopicProduceData(
                    name=topic,
                    topic_id=topic_id,
                    partition_data=[
                        ProduceRequest.PartitionProduceData(
                            index=batch.topic_partition.partition, records=batch.payload
                        )
                        for batch in batches
                    ],
                )
                for topic, topic_id, batches in self.topics
            ]
            return self.topic_data


def produce_request(
    batches: list[ProducerBatch],
    cluster: Cluster,
    acks: int,
    timeout_ms: int,
    transactional_id: str | None = None,
    max_version: int | None = None,
) -> tuple[BatchesRequest, int | None]:
    """The request that carries sealed ``batches``, and the newest version that can (``None``: any), no newer
    than ``max_version``.
    """
    by_topic: dict[str, list[ProducerBatch]] = {}
    for batch in batches:
        by_topic.setdefault(batch.topic_partition[0], []).append(batch)
    topics = [(topic, cluster.topic_id(topic), of_topic) for topic, of_topic in by_topic.items()]
    if all(topic_id for _, topic_id, _ in topics):
        return BatchesRequest(acks, timeout_ms, cast(Any, topics), transactional_id), max_version
    named = [(topic, topic_id or ZERO_UUID, of_topic) for topic, topic_id, of_topic in topics]
    newest = LAST_VERSION_BY_NAME if max_version is None else min(max_version, LAST_VERSION_BY_NAME)
    return BatchesRequest(acks, timeout_ms, named, transactional_id), newest


def answers_of(response: ProduceResponse, sent: BatchesRequest) -> Mapping[tuple[str, int], PartitionAnswer]:
    """Partition → answer. Topics that were not asked for are passed over."""
    acknowledged = getattr(response, "acknowledged", None)
    if acknowledged is not None:
        names: dict[str | bytes, str] = {}
        if acknowledged and isinstance(acknowledged[0][0], bytes):
            names = {topic_id.bytes: topic for topic, topic_id, _ in sent.topics}
        return {
            (names.get(topic, topic), partition): PartitionAnswer(base_offset, log_append_time_ms)
            for topic, partition, base_offset, log_append_time_ms in acknowledged
        }
    name_of = {topic_id: topic for topic, topic_id, _ in sent.topics if topic_id != ZERO_UUID}
    return {
        (topic.name or name_of.get(topic.topic_id, ""), partition.index): _answer_of(partition)
        for topic in response.responses
        for partition in topic.partition_responses
    }


def leader_hints(
    answers: Mapping[tuple[str, int], PartitionAnswer], response: ProduceResponse
) -> tuple[dict[TopicPartition, tuple[int, int]], list[Node]]:
    """Partition → leader id and epoch that the broker named beside an error, and where those listen
    (KIP-951).
    """
    leaders = {
        TopicPartition(*place): answer.leader
        for place, answer in answers.items()
        if answer.leader is not None
    }
    if not leaders:
        return leaders, []
    nodes = [Node(node.node_id, node.host, node.port, node.rack) for node in response.node_endpoints]
    return leaders, nodes


def _answer_of(partition: ProduceResponse.PartitionProduceResponse) -> PartitionAnswer:
    if not partition.error_code:
        return PartitionAnswer(partition.base_offset, partition.log_append_time_ms)
    error_class = for_code(partition.error_code)
    error = error_class(partition.error_message or "")
    record_errors: dict[int, KafkaError] = {
        blamed.batch_index: error_class(blamed.batch_index_error_message or partition.error_message or "")
        for blamed in partition.record_errors
    }
    if record_errors:
        # The others are as good as they were: they fell with the batch.
        error = InvalidRecordError(f"{len(record_errors)} other record(s) of the batch were refused: {error}")
    hint = partition.current_leader
    leader = (hint.leader_id, hint.leader_epoch) if hint.leader_id >= 0 else None
    return PartitionAnswer(
        error=error,
        record_errors=record_errors,
        leader=leader,
        log_start_offset=partition.log_start_offset,
    )
