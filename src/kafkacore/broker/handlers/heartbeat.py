"""Heartbeat: keep a group member's session alive and notify the member of a rebalance.

Versions 0 to 4.
"""

from __future__ import annotations

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.error_answer import error_code
from kafkacore.broker.handlers.services import ApiHandler, GroupServices, Request
from kafkacore.broker.requests.authorization import require
from kafkacore.protocol.generated.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(request: Request[HeartbeatRequest], services: GroupServices) -> HeartbeatResponse:
    message = request.message
    try:
        require(request, services, ACLOperation.READ, ResourceType.GROUP, message.group_id)
        services.groups.heartbeat(
            message.group_id,
            message.member_id,
            message.group_instance_id,
            message.generation_id,
            request.node_id,
        )
    except Exception as error:  # noqa: BLE001 - fails this request only; error_code logs bugs
        return HeartbeatResponse(error_code=error_code(error))
    return HeartbeatResponse()


HANDLER = ApiHandler(HeartbeatRequest, 0, 4, handle)
