"""Build produce requests from sealed batches, and read the outcome of each batch from the response.

See KIP-516 (topic ids since version 13), KIP-467 (errors of single records) and KIP-951 (leader hints).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, NamedTuple, Self

from kafkacore.client import Cluster
from kafkacore.errors import InvalidRecordError, KafkaError, for_code
from kafkacore.producer._batch import ProducerBatch
from kafkacore.producer._produce_codec import read_acknowledgements, write_body
from kafkacore.protocol import ZERO_UUID, RequestMessage, ResponseMessage
from kafkacore.protocol.generated.produce import ProduceRequest, ProduceResponse
from kafkacore.protocol.message import unsupported_version
from kafkacore.structs import Node, TopicPartition
from kafkacore.wire import Cursor, Uuid, Writer

#: The last version that identifies topics by name.
LAST_VERSION_BY_NAME = 12


class PartitionResponse(NamedTuple):
    """The outcome of one batch: its offset, or the error of the broker."""

    base_offset: int = -1
    log_append_time_ms: int = -1
    error: KafkaError | None = None
    record_errors: dict[int, KafkaError] | None = None
    #: Id and epoch of the current leader, if the broker is not the leader.
    leader: tuple[int, int] | None = None
    #: First offset of the partition, or -1 if unknown. Only responses with an error contain this offset.
    log_start_offset: int = -1


class BatchesResponse(ResponseMessage):
    """A produce response. It contains objects per topic and partition only if a batch failed.

    Attributes
    ----------
    acknowledged:
        Topic (name or id), partition, base offset and log append time of each batch. The list
        is empty if any batch failed.
    detailed:
        The generated message if a batch failed, otherwise ``None``.
    throttle_time_ms:
        How long the broker throttles the producer.
    """

    __slots__ = ("acknowledged", "detailed", "throttle_time_ms")
    API_KEY: ClassVar[int] = ProduceResponse.API_KEY
    NAME: ClassVar[str] = ProduceResponse.NAME
    MIN_VERSION: ClassVar[int] = ProduceResponse.MIN_VERSION
    MAX_VERSION: ClassVar[int] = ProduceResponse.MAX_VERSION
    FLEXIBLE_FROM: ClassVar[int | None] = ProduceResponse.FLEXIBLE_FROM

    def __init__(
        self,
        acknowledged: list[tuple[str | Uuid, int, int, int]],
        detailed: ProduceResponse | None,
        throttle_time_ms: int,
    ) -> None:
        self.acknowledged = acknowledged
        self.detailed = detailed
        self.throttle_time_ms = throttle_time_ms

    def encode(self, writer: Writer, version: int) -> None:
        raise AssertionError("a producer never encodes a produce response")

    @classmethod
    def decode(cls, cursor: Cursor, version: int) -> Self:
        plain = read_acknowledgements(cursor, version) if version >= cls.MIN_VERSION else None
        if plain is not None:
            return cls(plain[0], None, plain[1])
        detailed = ProduceResponse.decode(cursor, version)
        return cls([], detailed, detailed.throttle_time_ms)


class BatchesRequest(RequestMessage[BatchesResponse]):
    """A produce request that is encoded directly from its batches, without an object per partition.

    Parameters
    ----------
    acks:
        0, 1, or -1 for all in-sync replicas.
    timeout_ms:
        How long the leader waits for its replicas.
    topics:
        Name, id and sealed batches of each topic.
    transactional_id:
        Transactional id of the producer, if the batches belong to a transaction.
    """

    __slots__ = ("acks", "timeout_ms", "topics", "transactional_id")
    API_KEY: ClassVar[int] = ProduceRequest.API_KEY
    NAME: ClassVar[str] = ProduceRequest.NAME
    MIN_VERSION: ClassVar[int] = ProduceRequest.MIN_VERSION
    MAX_VERSION: ClassVar[int] = ProduceRequest.MAX_VERSION
    FLEXIBLE_FROM: ClassVar[int | None] = ProduceRequest.FLEXIBLE_FROM
    LATEST_VERSION_UNSTABLE: ClassVar[bool] = ProduceRequest.LATEST_VERSION_UNSTABLE
    RESPONSE: ClassVar[type[ResponseMessage]] = BatchesResponse

    def __init__(
        self,
        acks: int,
        timeout_ms: int,
        topics: list[tuple[str, Uuid, list[ProducerBatch]]],
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

    @classmethod
    def decode(cls, cursor: Cursor, version: int) -> Self:
        raise AssertionError("a producer never decodes a produce request")


def produce_request(
    batches: list[ProducerBatch],
    cluster: Cluster,
    acks: int,
    timeout_ms: int,
    transactional_id: str | None = None,
    max_version: int | None = None,
) -> tuple[BatchesRequest, int | None]:
    """Return a request with sealed ``batches``, and the newest version in which the request may be sent.

    The version is ``None`` if there is no limit.

    Parameters
    ----------
    max_version:
        Upper limit of the version; ``None`` for no limit.
    """
    by_topic: dict[str, list[ProducerBatch]] = {}
    for batch in batches:
        by_topic.setdefault(batch.topic_partition[0], []).append(batch)
    topics = [(topic, cluster.topic_id(topic) or ZERO_UUID, of_topic) for topic, of_topic in by_topic.items()]
    request = BatchesRequest(acks, timeout_ms, topics, transactional_id)
    return request, produce_version_limit(cluster, by_topic, max_version)


def produce_version_limit(
    cluster: Cluster, topics: Iterable[str], max_version: int | None = None
) -> int | None:
    """Return the newest version in which records of these topics may be sent; ``None`` for no limit.

    Versions that identify topics by id need the ids of all topics.
    """
    if all(cluster.topic_id(topic) for topic in topics):
        return max_version
    return LAST_VERSION_BY_NAME if max_version is None else min(max_version, LAST_VERSION_BY_NAME)


def topic_in_response(topic: str, topic_id: Uuid, version: int) -> str | Uuid:
    """Return what identifies a topic in a response of this version: its name or its id."""
    return topic if version <= LAST_VERSION_BY_NAME else topic_id


def partition_responses(
    response: BatchesResponse, sent: BatchesRequest
) -> Mapping[tuple[str, int], PartitionResponse]:
    """Return topic and partition → outcome of the batch. Topics that were not in the request are ignored."""
    detailed = response.detailed
    if detailed is None:
        acknowledged = response.acknowledged
        names: dict[str | Uuid, str]
        if acknowledged and isinstance(acknowledged[0][0], Uuid):
            names = {topic_id: topic for topic, topic_id, _ in sent.topics}
        else:
            names = {topic: topic for topic, _, _ in sent.topics}
        return {
            (names.get(topic, ""), partition): PartitionResponse(base_offset, log_append_time_ms)
            for topic, partition, base_offset, log_append_time_ms in acknowledged
        }
    name_of = {topic_id: topic for topic, topic_id, _ in sent.topics if topic_id != ZERO_UUID}
    return {
        (topic.name or name_of.get(topic.topic_id, ""), partition.index): _partition_response(partition)
        for topic in detailed.responses
        for partition in topic.partition_responses
    }


def leader_hints(
    responses: Mapping[tuple[str, int], PartitionResponse], response: BatchesResponse
) -> tuple[dict[TopicPartition, tuple[int, int]], list[Node]]:
    """Return partition → (id, epoch) of the new leader, and the addresses of new leaders (KIP-951)."""
    leaders = {
        TopicPartition(topic, partition): result.leader
        for (topic, partition), result in responses.items()
        if result.leader is not None
    }
    if not leaders or response.detailed is None:
        return leaders, []
    endpoints = response.detailed.node_endpoints
    nodes = [Node(node.node_id, node.host, node.port, node.rack) for node in endpoints]
    return leaders, nodes


def _partition_response(partition: ProduceResponse.PartitionProduceResponse) -> PartitionResponse:
    if not partition.error_code:
        return PartitionResponse(partition.base_offset, partition.log_append_time_ms)
    error_class = for_code(partition.error_code)
    error = error_class(partition.error_message or "")
    record_errors: dict[int, KafkaError] = {
        blamed.batch_index: error_class(blamed.batch_index_error_message or partition.error_message or "")
        for blamed in partition.record_errors
    }
    if record_errors:
        # Error of the valid records of the batch, which fail because other records were rejected.
        error = InvalidRecordError(
            f"{len(record_errors)} other record(s) of the batch were rejected: {error}"
        )
    hint = partition.current_leader
    leader = (hint.leader_id, hint.leader_epoch) if hint.leader_id >= 0 else None
    return PartitionResponse(
        error=error,
        record_errors=record_errors,
        leader=leader,
        log_start_offset=partition.log_start_offset,
    )
