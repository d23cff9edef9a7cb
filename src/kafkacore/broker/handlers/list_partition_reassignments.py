"""ListPartitionReassignments: return an empty list, because no reassignment is ever in progress (KIP-455).

Version 0. AlterPartitionReassignments is complete when its response is sent. Kafka's topics tool sends this
request before it describes a topic.
"""

from __future__ import annotations

from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.handlers.services import ApiHandler, Request, TopicServices
from kafkacore.broker.requests.authorization import require_cluster
from kafkacore.errors import ClusterAuthorizationFailedError
from kafkacore.protocol.generated.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kafkacore.structs import ACLOperation


def handle(
    request: Request[ListPartitionReassignmentsRequest], services: TopicServices
) -> ListPartitionReassignmentsResponse:
    try:
        require_cluster(request, services, ACLOperation.DESCRIBE)
    except ClusterAuthorizationFailedError as error:
        return ListPartitionReassignmentsResponse(
            error_code=error_code(error), error_message=error_message(error)
        )
    return ListPartitionReassignmentsResponse(error_message=None)


HANDLER = ApiHandler(ListPartitionReassignmentsRequest, 0, 0, handle)
