"""Produce requests and their answers: sealed batches in, a message out, and an answer per partition.

Source: KIP-516 (topic ids from version 13 on), KIP-467 (errors of single records). Does not know:
connections, retries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from kafkacore.client import Cluster
from kafkacore.errors import InvalidRecordError, KafkaError, for_code
from kafkacore.producer.batch import ProducerBatch
from kafkacore.protocol.generated.produce import ProduceRequest, ProduceResponse
from kafkacore.structs import Node, TopicPartition

#: The last version that names topics by name.
LAST_VERSION_BY_NAME = 12
NO_TOPIC_ID = UUID(int=0)


@dataclass
class PartitionAnswer:
    """What the broker said of one batch; of success, where it lies."""

    base_offset: int = -1
    log_append_time_ms: int = -1
    error: KafkaError | None = None
    record_errors: dict[int, KafkaError] | None = None
    #: Id and epoch of the leader that the broker knows of instead of itself.
    leader: tuple[int, int] | None = None


def produce_request(
    batches: list[ProducerBatch], cluster: Cluster, acks: int, timeout_ms: int
) -> tuple[ProduceRequest, int | None]:
    """The request that carries ``batches``, and the newest version that can (``None``: any)."""
    by_topic: dict[str, list[ProducerBatch]] = {}
    for batch in batches:
        by_topic.setdefault(batch.topic_partition.topic, []).append(batch)
    ids = {topic: cluster.topic_id(topic) or NO_TOPIC_ID for topic in by_topic}
    part = ProduceRequest.PartitionProduceData
    topics = [
        ProduceRequest.TopicProduceData(
            name=topic,
            topic_id=ids[topic],
            partition_data=[
                part(index=batch.topic_partition.partition, records=batch.seal()) for batch in of_topic
            ],
        )
        for topic, of_topic in by_topic.items()
    ]
    request = ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=topics)
    return request, LAST_VERSION_BY_NAME if NO_TOPIC_ID in ids.values() else None


def answers_of(response: ProduceResponse, sent: ProduceRequest) -> dict[tuple[str, int], PartitionAnswer]:
    """Partition → answer. Topics that were not asked for are passed over."""
    name_of = {topic.topic_id: topic.name for topic in sent.topic_data if topic.topic_id != NO_TOPIC_ID}
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
    return PartitionAnswer(error=error, record_errors=record_errors, leader=leader)
