"""DescribeTopicPartitions: return topics and their partitions page by page, in alphabetical order (KIP-966).

Version 0. The request never creates topics. Each page ends with errors for the requested topics that the
client may not describe. A partition has no eligible leader replicas, because all nodes share one log.
"""

from __future__ import annotations

from kafkacore.access_control import ResourceType
from kafkacore.broker.handlers.metadata import describe_topic, partition_state, visible_topics
from kafkacore.broker.handlers.services import ApiHandler, Request, TopicServices
from kafkacore.broker.requests.authorization import authorized_operations
from kafkacore.errors import InvalidRequestError, TopicAuthorizationFailedError
from kafkacore.protocol.generated.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from kafkacore.structs import TopicPartition

#: Kafka's ``max.request.partition.size.limit``.
MAX_PARTITIONS = 2000

_Topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
_Partition = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition
_Cursor = DescribeTopicPartitionsResponse.Cursor


def handle(
    request: Request[DescribeTopicPartitionsRequest], services: TopicServices
) -> DescribeTopicPartitionsResponse:
    message = request.message
    requested = sorted({topic.name for topic in message.topics})
    names = requested or services.topics.names()
    if message.cursor is not None:
        first = message.cursor.topic_name
        names = [name for name in names if name >= first]
        # If topics are requested by name, the cursor's topic must be one of them. Otherwise the topic may be
        # missing, because it may have been deleted since the last page.
        is_lost = bool(requested) and first not in names
        if is_lost or message.cursor.partition_index < 0:
            return DescribeTopicPartitionsResponse(topics=_refused(requested, InvalidRequestError.errno))
    limit = max(1, min(message.response_partition_limit, MAX_PARTITIONS))
    visible = visible_topics(names, request, services, is_asked_for=bool(requested))
    shown = [name for name in names if name in visible]
    cursor = message.cursor
    continues = cursor is not None and shown[:1] == [cursor.topic_name]
    first_partition = cursor.partition_index if cursor is not None and continues else 0
    response = _page(shown, first_partition, limit, request, services)
    if requested:
        denied = [name for name in names if name not in visible]
        response.topics += _refused(denied, TopicAuthorizationFailedError.errno)
    return response


def _refused(names: list[str], code: int) -> list[_Topic]:
    return [_Topic(error_code=code, name=name) for name in names]


def _page(
    names: list[str], first_partition: int, limit: int, request: Request, services: TopicServices
) -> DescribeTopicPartitionsResponse:
    response = DescribeTopicPartitionsResponse()
    left = limit
    for name in names:
        if left == 0:
            response.next_cursor = _Cursor(topic_name=name, partition_index=0)
            break
        found = describe_topic(name, services)
        topic = services.topics.get(name)
        count = 0 if topic is None else topic.partition_count
        end = min(count, first_partition + left)
        response.topics.append(
            _Topic(
                error_code=found.error_code,
                name=name,
                topic_id=found.topic_id,
                is_internal=found.is_internal,
                partitions=[
                    _partition(TopicPartition(name, index), services) for index in range(first_partition, end)
                ],
                topic_authorized_operations=authorized_operations(
                    request, services, ResourceType.TOPIC, name
                ),
            )
        )
        if end < count:
            response.next_cursor = _Cursor(topic_name=name, partition_index=end)
            break
        left -= max(0, end - first_partition)
        first_partition = 0
    return response


def _partition(topic_partition: TopicPartition, services: TopicServices) -> _Partition:
    state = partition_state(topic_partition, services)
    return _Partition(
        error_code=state.error_code,
        partition_index=state.partition_index,
        leader_id=state.leader_id,
        leader_epoch=state.leader_epoch,
        replica_nodes=state.replica_nodes,
        isr_nodes=state.isr_nodes,
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=state.offline_replicas,
    )


HANDLER = ApiHandler(DescribeTopicPartitionsRequest, 0, 0, handle)
