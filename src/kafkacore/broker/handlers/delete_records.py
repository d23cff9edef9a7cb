"""DeleteRecords: advance the log start offset of partitions.

Versions 0 to 2. As in Kafka, a topic whose ``cleanup.policy`` lacks ``delete`` is rejected, and segment files
are deleted later.
"""

from __future__ import annotations

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.error_answer import error_code
from kafkacore.broker.handlers.services import AnsweredLater, ApiHandler, Request, TopicServices
from kafkacore.broker.requests.authorization import require
from kafkacore.broker.topics.internal_topics import is_internal
from kafkacore.errors import (
    InvalidTopicError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol.generated.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kafkacore.structs import TopicPartition

#: Offset in a request that stands for the high watermark: all records are deleted.
ALL = -1
UNKNOWN = -1

_Topic = DeleteRecordsResponse.DeleteRecordsTopicResult
_Partition = DeleteRecordsResponse.DeleteRecordsPartitionResult


def handle(
    request: Request[DeleteRecordsRequest], services: TopicServices
) -> DeleteRecordsResponse | AnsweredLater:
    return DeleteRecordsResponse(
        topics=[
            _Topic(
                name=topic.name,
                partitions=[
                    _delete(topic.name, requested, request, services) for requested in topic.partitions
                ],
            )
            for topic in request.message.topics
        ]
    )


def _delete(
    name: str,
    requested: DeleteRecordsRequest.DeleteRecordsPartition,
    request: Request,
    services: TopicServices,
) -> _Partition:
    topic_partition = TopicPartition(name, requested.partition_index)
    try:
        require(request, services, ACLOperation.DELETE, ResourceType.TOPIC, name)
        low_watermark = _deleted(topic_partition, requested.offset, request.node_id, services)
    except Exception as error:  # noqa: BLE001 - fails this partition only; error_code logs bugs
        return _Partition(
            partition_index=requested.partition_index, low_watermark=UNKNOWN, error_code=error_code(error)
        )
    return _Partition(partition_index=requested.partition_index, low_watermark=low_watermark)


def _deleted(topic_partition: TopicPartition, offset: int, node_id: int, services: TopicServices) -> int:
    topic = services.topics.get(topic_partition.topic)
    if topic is None:
        raise UnknownTopicOrPartitionError(f"Topic '{topic_partition.topic}' does not exist.")
    if is_internal(topic_partition.topic):
        raise InvalidTopicError(f"Cannot delete records of the internal topic {topic_partition.topic}")
    log = services.cluster.led_log(topic_partition, node_id)
    if "delete" not in services.topics.effective_configs(topic)["cleanup.policy"].split(","):
        raise PolicyViolationError(
            f"Cannot delete records of topic '{topic_partition.topic}': its cleanup.policy is not delete"
        )
    high_watermark = log.high_watermark
    before = high_watermark if offset == ALL else offset
    if not 0 <= before <= high_watermark:
        raise OffsetOutOfRangeError(
            f"offset {offset} is not between 0 and the high watermark, {high_watermark}"
        )
    # The catalog persists the log start offset: acknowledged deletions must survive a crash.
    low_watermark = services.topics.delete_records(topic_partition, before)
    services.replica_manager.partition_changed(topic_partition)
    return low_watermark


HANDLER = ApiHandler(DeleteRecordsRequest, 0, 2, handle)
