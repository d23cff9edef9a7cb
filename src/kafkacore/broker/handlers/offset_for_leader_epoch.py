"""OffsetForLeaderEpoch: return the end offset of a leader epoch, by which consumers detect truncation.

Versions 2 to 4 (KIP-320).
"""

from __future__ import annotations

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.error_answer import error_code
from kafkacore.broker.handlers.services import ApiHandler, Request, TopicServices
from kafkacore.broker.requests.authorization import allowed_on_cluster, require
from kafkacore.protocol.generated.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafkacore.structs import TopicPartition

_Topic = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
_Partition = OffsetForLeaderEpochResponse.EpochEndOffset


def handle(
    request: Request[OffsetForLeaderEpochRequest], services: TopicServices
) -> OffsetForLeaderEpochResponse:
    is_follower = allowed_on_cluster(request, services, ACLOperation.CLUSTER_ACTION, is_asked_for=False)
    return OffsetForLeaderEpochResponse(
        topics=[
            _Topic(
                topic=topic.topic,
                partitions=[
                    _answer(topic.topic, requested, request, services, is_follower)
                    for requested in topic.partitions
                ],
            )
            for topic in request.message.topics
        ]
    )


def _answer(
    topic: str,
    requested: OffsetForLeaderEpochRequest.OffsetForLeaderPartition,
    request: Request,
    services: TopicServices,
    is_follower: bool,
) -> _Partition:
    try:
        if not is_follower:
            require(request, services, ACLOperation.DESCRIBE, ResourceType.TOPIC, topic)
        topic_partition = TopicPartition(topic, requested.partition)
        log = services.cluster.led_log(topic_partition, request.node_id, requested.current_leader_epoch)
        found = log.end_offset_for_epoch(requested.leader_epoch)
    except Exception as error:  # noqa: BLE001 - fails this partition only; error_code logs bugs
        return _Partition(partition=requested.partition, error_code=error_code(error))
    return _Partition(
        partition=requested.partition, leader_epoch=found.leader_epoch, end_offset=found.end_offset
    )


HANDLER = ApiHandler(OffsetForLeaderEpochRequest, 2, 4, handle)
