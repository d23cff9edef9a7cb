"""SyncGroup: receive the assignments from the leader, persist them, and return each member's assignment.

Versions 0 to 5. From version 5 on, a member must send the protocol type and name that it expects (KIP-559).
"""

from __future__ import annotations

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.error_answer import error_code
from kafkacore.broker.group.group_coordinator import Syncing
from kafkacore.broker.group.member import SyncResult
from kafkacore.broker.handlers.services import (
    ANSWERED_LATER,
    AnsweredLater,
    ApiHandler,
    GroupServices,
    Request,
)
from kafkacore.broker.requests.authorization import require
from kafkacore.errors import InconsistentGroupProtocolError
from kafkacore.protocol.generated.sync_group import SyncGroupRequest, SyncGroupResponse

FIRST_VERSION_WITH_PROTOCOL = 5


def handle(request: Request[SyncGroupRequest], services: GroupServices) -> SyncGroupResponse | AnsweredLater:
    message, version = request.message, request.version
    says_protocol = message.protocol_type is not None and message.protocol_name is not None
    if version >= FIRST_VERSION_WITH_PROTOCOL and not says_protocol:
        return SyncGroupResponse(error_code=InconsistentGroupProtocolError.errno)
    syncing = Syncing(
        group_id=message.group_id,
        generation_id=message.generation_id,
        member_id=message.member_id,
        group_instance_id=message.group_instance_id,
        protocol_type=message.protocol_type,
        protocol_name=message.protocol_name,
        # Copy the assignments, because the group keeps them for as long as the generation exists.
        assignments={one.member_id: bytes(one.assignment) for one in message.assignments},
        on_synced=lambda result: request.respond(_response(result)),
    )
    try:
        require(request, services, ACLOperation.READ, ResourceType.GROUP, message.group_id)
        services.groups.sync(syncing, request.node_id)
    except Exception as error:  # noqa: BLE001 - fails this request only; error_code logs bugs
        return SyncGroupResponse(error_code=error_code(error))
    return ANSWERED_LATER


def _response(result: SyncResult) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=result.error_code,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        assignment=result.assignment,
    )


HANDLER = ApiHandler(SyncGroupRequest, 0, 5, handle)
