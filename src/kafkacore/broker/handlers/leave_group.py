"""LeaveGroup: remove members from a group.

Versions 0 to 5. From version 3 on, a request can name several members, and can identify static members by
their instance ID. The reason for leaving is logged (version 5, KIP-800).
"""

from __future__ import annotations

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.error_answer import error_code
from kafkacore.broker.group.group_coordinator import Leaving
from kafkacore.broker.handlers.join_group import reason_of
from kafkacore.broker.handlers.services import (
    ANSWERED_LATER,
    AnsweredLater,
    ApiHandler,
    GroupServices,
    Request,
)
from kafkacore.broker.requests.authorization import require
from kafkacore.protocol.generated.leave_group import LeaveGroupRequest, LeaveGroupResponse

FIRST_BATCHED_VERSION = 3

_Member = LeaveGroupResponse.MemberResponse


def handle(
    request: Request[LeaveGroupRequest], services: GroupServices
) -> LeaveGroupResponse | AnsweredLater:
    message, version = request.message, request.version
    if version >= FIRST_BATCHED_VERSION:
        leaving = [Leaving(one.member_id, one.group_instance_id, reason_of(one)) for one in message.members]
    else:
        leaving = [Leaving(message.member_id, None, "not provided")]

    def on_left(code: int, codes: list[int]) -> None:
        request.respond(_response(code, leaving, codes, version))

    try:
        require(request, services, ACLOperation.READ, ResourceType.GROUP, message.group_id)
        services.groups.leave(message.group_id, leaving, request.node_id, on_left)
    except Exception as error:  # noqa: BLE001 - fails this request only; error_code logs bugs
        return LeaveGroupResponse(error_code=error_code(error))
    return ANSWERED_LATER


def _response(code: int, leaving: list[Leaving], codes: list[int], version: int) -> LeaveGroupResponse:
    if code:
        return LeaveGroupResponse(error_code=code)
    if version < FIRST_BATCHED_VERSION:
        return LeaveGroupResponse(error_code=codes[0])
    return LeaveGroupResponse(
        members=[
            _Member(member_id=one.member_id, group_instance_id=one.group_instance_id, error_code=own)
            for one, own in zip(leaving, codes, strict=True)
        ]
    )


HANDLER = ApiHandler(LeaveGroupRequest, 0, 5, handle)
