"""DescribeProducers: return the active idempotent producers of partitions and their last sequence (KIP-664).

Version 0. As in Kafka, every replica answers, not only the leader.
"""

from __future__ import annotations

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.config import topic_names
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.handlers.services import AnsweredLater, ApiHandler, Request, TopicServices
from kafkacore.broker.requests.authorization import require
from kafkacore.protocol.generated.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
)
from kafkacore.structs import TopicPartition

_Topic = DescribeProducersResponse.TopicResponse
_Partition = DescribeProducersResponse.PartitionResponse
_Producer = DescribeProducersResponse.ProducerState


def handle(
    request: Request[DescribeProducersRequest], services: TopicServices
) -> DescribeProducersResponse | AnsweredLater:
    return DescribeProducersResponse(
        topics=[
            _Topic(
                name=topic.name,
                partitions=[
                    _describe(TopicPartition(topic.name, index), request, services)
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.message.topics
        ]
    )


def _describe(topic_partition: TopicPartition, request: Request, services: TopicServices) -> _Partition:
    index = topic_partition.partition
    try:
        topic_names.validate(topic_partition.topic)
        require(request, services, ACLOperation.READ, ResourceType.TOPIC, topic_partition.topic)
        producers = services.cluster.hosted_log(topic_partition, request.node_id).active_producers()
    except Exception as error:  # noqa: BLE001 - fails this partition only; error_code logs bugs
        return _Partition(
            partition_index=index, error_code=error_code(error), error_message=error_message(error)
        )
    return _Partition(
        partition_index=index,
        active_producers=[
            _Producer(
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.current_txn_first_offset,
            )
            for producer in producers
        ],
    )


HANDLER = ApiHandler(DescribeProducersRequest, 0, 0, handle)
