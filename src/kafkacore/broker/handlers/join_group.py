"""JoinGroup: join a group; the response is sent when the group's next generation begins.

Versions 0 to 9. A dynamic member first gets its member ID (version 4, KIP-394). A static member that restarts
remains a member (version 5, KIP-345). The reason for joining is logged (version 8, KIP-800). A static leader
that rejoins may skip the assignment (version 9, KIP-814).
"""

from __future__ import annotations

from typing import Protocol

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.error_answer import error_code
from kafkacore.broker.group.joining import Joining
from kafkacore.broker.group.member import JoinResult, MemberProtocol
from kafkacore.broker.handlers.services import (
    ANSWERED_LATER,
    AnsweredLater,
    ApiHandler,
    GroupServices,
    Request,
)
from kafkacore.broker.requests.authorization import require
from kafkacore.errors import AuthorizationError
from kafkacore.protocol.generated.join_group import JoinGroupRequest, JoinGroupResponse

FIRST_VERSION_WITH_REBALANCE_TIMEOUT = 1
FIRST_VERSION_WITH_ID_REQUIRED = 4
FIRST_VERSION_WITH_NULL_PROTOCOL = 7
FIRST_VERSION_WITH_SKIP_ASSIGNMENT = 9
#: Maximum length of a client's reason. Kafka's clients truncate it to the same length.
MAX_REASON_LENGTH = 255

_Member = JoinGroupResponse.JoinGroupResponseMember


class HasReason(Protocol):
    """A message that may contain a client's reason for joining or leaving (KIP-800)."""

    reason: str | None


def handle(request: Request[JoinGroupRequest], services: GroupServices) -> JoinGroupResponse | AnsweredLater:
    message, version = request.message, request.version
    has_own_timeout = version >= FIRST_VERSION_WITH_REBALANCE_TIMEOUT
    joining = Joining(
        group_id=message.group_id,
        member_id=message.member_id,
        group_instance_id=message.group_instance_id,
        client_id=request.client_id or "",
        client_host=request.context.client_host,
        session_timeout_ms=message.session_timeout_ms,
        rebalance_timeout_ms=message.rebalance_timeout_ms if has_own_timeout else message.session_timeout_ms,
        protocol_type=message.protocol_type,
        # Copy the metadata, because a view would keep the whole request in memory for as long as the member
        # is in the group.
        protocols=tuple(MemberProtocol(one.name, bytes(one.metadata)) for one in message.protocols),
        reason=reason_of(message),
        must_know_its_id=version >= FIRST_VERSION_WITH_ID_REQUIRED,
        may_skip_assignment=version >= FIRST_VERSION_WITH_SKIP_ASSIGNMENT,
        on_joined=lambda result: request.respond(_response(result, version)),
    )
    try:
        require(request, services, ACLOperation.READ, ResourceType.GROUP, message.group_id)
        services.groups.join(joining, request.node_id)
    except Exception as error:  # noqa: BLE001 - fails this request only; error_code logs bugs
        # Without permission to join, the response must not reveal whether the member exists.
        member_id = "" if isinstance(error, AuthorizationError) else message.member_id
        return _response(JoinResult(error_code(error), member_id), version)
    return ANSWERED_LATER


def reason_of(message: HasReason) -> str:
    """Return the client's reason for joining or leaving, for the log."""
    return (message.reason or "not provided")[:MAX_REASON_LENGTH]


def _response(result: JoinResult, version: int) -> JoinGroupResponse:
    no_name = None if version >= FIRST_VERSION_WITH_NULL_PROTOCOL else ""
    return JoinGroupResponse(
        error_code=result.error_code,
        generation_id=result.generation_id,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name or no_name,
        leader=result.leader,
        skip_assignment=result.skip_assignment,
        member_id=result.member_id,
        members=[
            _Member(
                member_id=one.member_id,
                group_instance_id=one.group_instance_id,
                metadata=one.metadata,
            )
            for one in result.members
        ],
    )


HANDLER = ApiHandler(JoinGroupRequest, 0, 9, handle)
