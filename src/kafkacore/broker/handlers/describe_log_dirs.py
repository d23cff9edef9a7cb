"""DescribeLogDirs: return the data folder and the disk space of each partition (KIP-113, KIP-827).

Versions 1 to 5. Offline partitions are left out. There is one folder, so there are no future replicas and no
cordoned folders (KIP-1066). There are no followers, so the offset lag is always 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kafkacore.access_control import ACLOperation
from kafkacore.broker.error_answer import error_code
from kafkacore.broker.handlers.services import ApiHandler, Request, TopicServices
from kafkacore.broker.requests.authorization import allowed_on_cluster
from kafkacore.errors import (
    ClusterAuthorizationFailedError,
    KafkaStorageError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol.generated.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from kafkacore.structs import TopicPartition

_Result = DescribeLogDirsResponse.DescribeLogDirsResult
_Topic = DescribeLogDirsResponse.DescribeLogDirsTopic
_Partition = DescribeLogDirsResponse.DescribeLogDirsPartition


def handle(request: Request[DescribeLogDirsRequest], services: TopicServices) -> DescribeLogDirsResponse:
    if not allowed_on_cluster(request, services, ACLOperation.DESCRIBE):
        return DescribeLogDirsResponse(error_code=ClusterAuthorizationFailedError.errno)
    folder = services.config.data_dir
    try:
        space = services.topics.disk_space()
    except OSError as error:
        return DescribeLogDirsResponse(
            results=[_Result(error_code=error_code(error), log_dir=str(folder), topics=[])]
        )
    topics = [
        _Topic(name=name, partitions=partitions)
        for name, indexes in _wanted(request.message.topics, services)
        if (partitions := _partitions(name, indexes, request.node_id, services))
    ]
    return DescribeLogDirsResponse(
        results=[
            _Result(
                log_dir=str(folder),
                topics=topics,
                total_bytes=space.total_bytes,
                usable_bytes=space.usable_bytes,
            )
        ]
    )


def _wanted(
    topics: Sequence[DescribeLogDirsRequest.DescribableLogDirTopic] | None, services: TopicServices
) -> Iterable[tuple[str, Iterable[int]]]:
    """Return the requested partitions by topic, or all partitions if the list in the request is null."""
    if topics is not None:
        return [(topic.topic, topic.partitions) for topic in topics]
    found = [(name, services.topics.get(name)) for name in services.topics.names()]
    return [(name, range(topic.partition_count)) for name, topic in found if topic is not None]


def _partitions(name: str, indexes: Iterable[int], node_id: int, services: TopicServices) -> list[_Partition]:
    found = []
    for index in indexes:
        topic_partition = TopicPartition(name, index)
        try:
            log = services.topics.log(topic_partition)
        except (UnknownTopicOrPartitionError, KafkaStorageError):
            continue
        if node_id in services.cluster.replicas(topic_partition):
            found.append(_Partition(partition_index=index, partition_size=log.size_in_bytes))
    return found


HANDLER = ApiHandler(DescribeLogDirsRequest, 1, 5, handle)
