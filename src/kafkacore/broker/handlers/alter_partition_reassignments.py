"""AlterPartitionReassignments: change the nodes that replicate partitions (KIP-455, KIP-860).

Versions 0 to 1. All nodes of a simulated cluster share one log. A reassignment is therefore complete when the
response is sent, unless it adds a node that is down. Then the reassignment is in progress until the node is
up, or until the reassignment is cancelled. On a single node every partition stays where it is.
"""

from __future__ import annotations

from kafkacore.access_control import ACLOperation
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.handlers.services import ApiHandler, Request, TopicServices
from kafkacore.broker.requests.authorization import require_cluster
from kafkacore.errors import (
    BrokerResponseError,
    InvalidReplicationFactorError,
    NoReassignmentInProgressError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from kafkacore.structs import TopicPartition, partition_name

_Topic = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
_Partition = AlterPartitionReassignmentsResponse.ReassignablePartitionResponse


def handle(
    request: Request[AlterPartitionReassignmentsRequest], services: TopicServices
) -> AlterPartitionReassignmentsResponse:
    message = request.message
    refused: BrokerResponseError | None = None
    try:
        require_cluster(request, services, ACLOperation.ALTER)
    except BrokerResponseError as error:
        refused = error
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=message.allow_replication_factor_change,
        error_code=0 if refused is None else error_code(refused),
        error_message=None if refused is None else error_message(refused),
        responses=[
            _Topic(
                name=topic.name,
                partitions=[
                    _answer(topic.name, wanted, refused, message.allow_replication_factor_change, services)
                    for wanted in topic.partitions
                ],
            )
            for topic in message.topics
        ],
    )


def _answer(
    topic: str,
    wanted: AlterPartitionReassignmentsRequest.ReassignablePartition,
    refused: BrokerResponseError | None,
    may_resize: bool,
    services: TopicServices,
) -> _Partition:
    index = wanted.partition_index
    try:
        if refused is not None:
            raise refused
        _reassign(TopicPartition(topic, index), wanted.replicas, may_resize, services)
    except Exception as error:  # noqa: BLE001 - one partition's failure is its own; error_code logs surprises
        code, text = error_code(error), error_message(error)
        return _Partition(partition_index=index, error_code=code, error_message=text)
    return _Partition(partition_index=index, error_message=None)


def _reassign(
    topic_partition: TopicPartition, nodes: list[int] | None, may_resize: bool, services: TopicServices
) -> None:
    topic = services.topics.get(topic_partition.topic)
    if topic is None or not 0 <= topic_partition.partition < topic.partition_count:
        raise UnknownTopicOrPartitionError(f"Partition {partition_name(topic_partition)} does not exist")
    reassignment = services.cluster.reassignment(topic_partition)
    if nodes is None:
        if reassignment is None:
            raise NoReassignmentInProgressError(f"{partition_name(topic_partition)} is not being reassigned")
        services.cluster.cancel_reassignment(topic_partition)
        return
    now = services.cluster.replicas(topic_partition) if reassignment is None else reassignment.after
    if not may_resize and len(nodes) != len(now):
        services.cluster.check_replicas([nodes])
        raise InvalidReplicationFactorError(
            f"The replication factor is changed from {len(now)} to {len(nodes)}"
        )
    services.cluster.reassign(topic_partition, nodes)


HANDLER = ApiHandler(AlterPartitionReassignmentsRequest, 0, 1, handle)
