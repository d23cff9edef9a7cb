"""OffsetForLeaderEpoch: where a leader's epoch ends, by which a consumer finds that a log was cut (KIP-320).

Versions 2 to 4. Gaps: the one leader never changes, so there is one epoch and it ends where the log ends.
"""

from __future__ import annotations

from typing import Any

from kafkacore.broker.error_answer import error_code
from kafkacore.broker.identity import LEADER_EPOCH
from kafkacore.broker.replica_manager import check_leader_epoch
from kafkacore.broker.request import ApiHandler, BrokerServices, Request
from kafkacore.protocol.generated.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafkacore.structs import TopicPartition

_Topic = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
_Partition = OffsetForLeaderEpochResponse.EpochEndOffset


def handle(request: Request, services: BrokerServices) -> Any:
    return OffsetForLeaderEpochResponse(
        topics=[
            _Topic(
                topic=topic.topic,
                partitions=[_answer(topic.topic, asked, services) for asked in topic.partitions],
            )
            for topic in request.message.topics
        ]
    )


def _answer(topic: str, asked: Any, services: BrokerServices) -> Any:
    try:
        check_leader_epoch(asked.current_leader_epoch)
        log = services.topics.log(TopicPartition(topic, asked.partition))
    except Exception as error:  # noqa: BLE001 - one partition's failure is its own; error_code logs surprises
        return _Partition(partition=asked.partition, error_code=error_code(error))
    if asked.leader_epoch != LEADER_EPOCH:
        return _Partition(partition=asked.partition)
    return _Partition(partition=asked.partition, leader_epoch=LEADER_EPOCH, end_offset=log.log_end_offset)


HANDLER = ApiHandler(OffsetForLeaderEpochRequest, 2, 4, handle)
