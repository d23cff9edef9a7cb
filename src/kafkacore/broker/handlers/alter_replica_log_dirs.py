"""AlterReplicaLogDirs: move replicas to another folder of their broker (KIP-113).

Versions 1 to 2. A broker has one folder. A move to this folder is complete at once, and a move to any other
folder fails.
"""

from __future__ import annotations

from typing import Final

from kafkacore.access_control import ACLOperation
from kafkacore.broker.error_answer import error_code
from kafkacore.broker.handlers.services import ApiHandler, Request, TopicServices
from kafkacore.broker.requests.authorization import allowed_on_cluster
from kafkacore.errors import (
    ClusterAuthorizationFailedError,
    InvalidTopicError,
    LogDirNotFoundError,
    NotLeaderForPartitionError,
    ReplicaNotAvailableError,
)
from kafkacore.protocol.generated.alter_replica_log_dirs import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
)
from kafkacore.structs import TopicPartition, partition_name

_Topic = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
_Partition = AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult

#: Maximum characters of a folder's name. While Kafka moves a replica, the name of its new folder consists of
#: the partition's name, a dot, 32 digits and ``-future``.
_MAX_FOLDER_NAME: Final = 255
_FUTURE_SUFFIX_LENGTH: Final = len("." + 32 * "0" + "-future")


def handle(
    request: Request[AlterReplicaLogDirsRequest], services: TopicServices
) -> AlterReplicaLogDirsResponse:
    is_allowed = allowed_on_cluster(request, services, ACLOperation.ALTER)
    # As in Kafka, if a partition occurs several times, the last folder that is given takes effect.
    folders = {
        TopicPartition(topic.name, partition): one.path
        for one in request.message.dirs
        for topic in one.topics
        for partition in topic.partitions
    }
    results: dict[str, list[_Partition]] = {}
    for topic_partition, folder in folders.items():
        code = ClusterAuthorizationFailedError.errno
        if is_allowed:
            code = _moved(topic_partition, folder, request.node_id, services)
        results.setdefault(topic_partition.topic, []).append(
            _Partition(partition_index=topic_partition.partition, error_code=code)
        )
    return AlterReplicaLogDirsResponse(
        results=[_Topic(topic_name=name, partitions=partitions) for name, partitions in results.items()]
    )


def _moved(topic_partition: TopicPartition, folder: str, node_id: int, services: TopicServices) -> int:
    """Return the error code for the move of one replica to ``folder``."""
    try:
        if len("-".join(map(str, topic_partition))) > _MAX_FOLDER_NAME - _FUTURE_SUFFIX_LENGTH:
            raise InvalidTopicError(f"{partition_name(topic_partition)}: the name is too long for a move")
        if folder != str(services.config.data_dir):
            raise LogDirNotFoundError(f"the broker has no folder {folder!r}")
        services.cluster.hosted_log(topic_partition, node_id)
    except NotLeaderForPartitionError:
        return ReplicaNotAvailableError.errno
    except Exception as error:  # noqa: BLE001 - fails this partition only; error_code logs bugs
        return error_code(error)
    return 0


HANDLER = ApiHandler(AlterReplicaLogDirsRequest, 1, 2, handle)
