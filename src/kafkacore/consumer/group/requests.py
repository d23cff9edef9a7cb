"""Builds the requests of a group member from its settings and its generation."""

from __future__ import annotations

from collections.abc import Sequence

from kafkacore.consumer.group.generation import Generation
from kafkacore.consumer.group.settings import GroupSettings
from kafkacore.coordinator.protocol import PROTOCOL_TYPE
from kafkacore.protocol import RequestBuilder
from kafkacore.protocol.generated.heartbeat import HeartbeatRequest
from kafkacore.protocol.generated.join_group import JoinGroupRequest
from kafkacore.protocol.generated.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kafkacore.protocol.generated.sync_group import SyncGroupRequest

#: Maximum number of characters of a reason (KIP-800).
MAX_REASON_LENGTH = 255
#: First LeaveGroup version that can name several members (KIP-345).
_SEVERAL_MEMBERS_FROM = 3


def truncated_reason(reason: str) -> str:
    """Return a rejoin or leave reason, shortened to the maximum length."""
    return reason[:MAX_REASON_LENGTH]


def join_request(
    settings: GroupSettings,
    generation: Generation,
    protocols: Sequence[tuple[str, bytes]],
    reason: str,
) -> JoinGroupRequest:
    """Return a JoinGroup request; ``protocols`` has an entry per assignor, in order of preference."""
    return JoinGroupRequest(
        group_id=settings.group_id,
        session_timeout_ms=int(settings.session_timeout_ms),
        rebalance_timeout_ms=settings.rebalance_timeout_ms,
        member_id=generation.member_id,
        group_instance_id=settings.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=[
            JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=metadata)
            for name, metadata in protocols
        ],
        reason=truncated_reason(reason),
    )


def sync_request(
    settings: GroupSettings, generation: Generation, assignments: Sequence[tuple[str, bytes]] = ()
) -> SyncGroupRequest:
    """Return a SyncGroup request; ``assignments`` is empty unless the member is the leader."""
    return SyncGroupRequest(
        group_id=settings.group_id,
        generation_id=generation.generation_id,
        member_id=generation.member_id,
        group_instance_id=settings.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=generation.protocol_name,
        assignments=[
            SyncGroupRequest.SyncGroupRequestAssignment(member_id=member, assignment=assignment)
            for member, assignment in assignments
        ],
    )


def heartbeat_request(settings: GroupSettings, generation: Generation) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=settings.group_id,
        generation_id=generation.generation_id,
        member_id=generation.member_id,
        group_instance_id=settings.group_instance_id,
    )


def leave_request(
    settings: GroupSettings, generation: Generation, reason: str
) -> RequestBuilder[LeaveGroupResponse]:
    """Return a LeaveGroup request for one member."""

    def build(version: int) -> LeaveGroupRequest:
        if version < _SEVERAL_MEMBERS_FROM:
            return LeaveGroupRequest(group_id=settings.group_id, member_id=generation.member_id)
        member = LeaveGroupRequest.MemberIdentity(
            member_id=generation.member_id,
            group_instance_id=settings.group_instance_id,
            reason=truncated_reason(reason),
        )
        return LeaveGroupRequest(group_id=settings.group_id, members=[member])

    return RequestBuilder(LeaveGroupRequest, build)
