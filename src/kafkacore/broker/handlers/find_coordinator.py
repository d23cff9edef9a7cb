"""FindCoordinator: the node that keeps a group's state, which in a cluster of one is this one.

Versions 0 to 6. Gaps: transactions and share groups are not served, and their coordinator is refused with a
sentence that says so, rather than found and then no help.
"""

from __future__ import annotations

from typing import Any

from kafkacore.broker.request import ApiHandler, BrokerServices, Request
from kafkacore.errors import InvalidRequestError
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

FIRST_BATCHED_VERSION = 4
GROUP = 0

_Coordinator = FindCoordinatorResponse.Coordinator


def handle(request: Request, services: BrokerServices) -> Any:
    message = request.message
    served = message.key_type == GROUP
    node = services.cluster.nodes()[0]
    where: dict[str, Any] = {
        "node_id": node.node_id if served else -1,
        "host": node.host if served else "",
        "port": node.port if served else -1,
        "error_code": 0 if served else InvalidRequestError.errno,
        "error_message": None if served else f"Coordinators of type {message.key_type} are not served here.",
    }
    if request.version < FIRST_BATCHED_VERSION:
        return FindCoordinatorResponse(**where)
    return FindCoordinatorResponse(
        coordinators=[_Coordinator(key=key, **where) for key in message.coordinator_keys]
    )


HANDLER = ApiHandler(FindCoordinatorRequest, 0, 6, handle)
