"""ListPartitionReassignments: return the reassignments that wait for a node that is down (KIP-455).

Version 0. Kafka's topics tool sends this request before it describes a topic.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkacore.access_control import ACLOperation
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.handlers.services import ApiHandler, Request, TopicServices
from kafkacore.broker.requests.authorization import require_cluster
from kafkacore.errors import ClusterAuthorizationFailedError
from kafkacore.protocol.generated.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kafkacore.structs import TopicPartition

_Topic = ListPartitionReassignmentsResponse.OngoingTopicReassignment
_Partition = ListPartitionReassignmentsResponse.OngoingPartitionReassignment


def handle(
    request: Request[ListPartitionReassignmentsRequest], services: TopicServices
) -> ListPartitionReassignmentsResponse:
    try:
        require_cluster(request, services, ACLOperation.DESCRIBE)
    except ClusterAuthorizationFailedError as error:
        return ListPartitionReassignmentsResponse(
            error_code=error_code(error), error_message=error_message(error)
        )
    topics: dict[str, _Topic] = {}
    for topic_partition in _wanted(request.message, services):
        reassignment = services.cluster.reassignment(topic_partition)
        if reassignment is not None:
            name, partition = topic_partition
            topic = topics.setdefault(name, _Topic(name=name, partitions=[]))
            topic.partitions.append(
                _Partition(
                    partition_index=partition,
                    replicas=services.cluster.replicas(topic_partition),
                    adding_replicas=reassignment.adding,
                    removing_replicas=reassignment.removing,
                )
            )
    return ListPartitionReassignmentsResponse(error_message=None, topics=list(topics.values()))


def _wanted(message: ListPartitionReassignmentsRequest, services: TopicServices) -> Iterable[TopicPartition]:
    """Return the requested partitions, or all partitions with a reassignment if the list is null."""
    if message.topics is None:
        return services.cluster.reassigned()
    return [
        TopicPartition(topic.name, partition)
        for topic in message.topics
        for partition in topic.partition_indexes
    ]


HANDLER = ApiHandler(ListPartitionReassignmentsRequest, 0, 0, handle)
