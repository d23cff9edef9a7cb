"""DescribeGroups: return state, protocol and members of groups of the classic protocol.

Versions 0 to 6. A group that does not exist, or is a consumer group, has the state Dead, and from version 6
on also an error code (KIP-1043). Metadata and assignments of members are returned only for a stable group.
"""

from __future__ import annotations

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.group.classic_group import ClassicGroup, GroupState
from kafkacore.broker.handlers.services import ApiHandler, GroupServices, Request
from kafkacore.broker.requests.authorization import authorized_operations, require
from kafkacore.errors import GroupIdNotFoundError
from kafkacore.protocol.generated.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

FIRST_VERSION_WITH_AUTHORIZED_OPERATIONS = 3
FIRST_VERSION_WITH_NOT_FOUND = 6

_Group = DescribeGroupsResponse.DescribedGroup
_Member = DescribeGroupsResponse.DescribedGroupMember


def handle(request: Request[DescribeGroupsRequest], services: GroupServices) -> DescribeGroupsResponse:
    message, version = request.message, request.version
    wants_operations = (
        version >= FIRST_VERSION_WITH_AUTHORIZED_OPERATIONS and message.include_authorized_operations
    )
    groups = [_described(group_id, request, services) for group_id in message.groups]
    for group in groups:
        if wants_operations and not group.error_code:
            group.authorized_operations = authorized_operations(
                request, services, ResourceType.GROUP, group.group_id
            )
    return DescribeGroupsResponse(groups=groups)


def _described(group_id: str, request: Request, services: GroupServices) -> _Group:
    try:
        require(request, services, ACLOperation.DESCRIBE, ResourceType.GROUP, group_id)
        group = services.groups.describe(group_id, request.node_id)
    except GroupIdNotFoundError as error:
        if request.version < FIRST_VERSION_WITH_NOT_FOUND:
            return _Group(group_id=group_id, group_state=GroupState.DEAD.value)
        return _Group(
            group_id=group_id,
            group_state=GroupState.DEAD.value,
            error_code=error.errno,
            error_message=error_message(error),
        )
    except Exception as error:  # noqa: BLE001 - fails this group only; error_code logs bugs
        return _Group(group_id=group_id, error_code=error_code(error))
    is_stable = group.is_in(GroupState.STABLE)
    return _Group(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=group.protocol_name or "" if is_stable else "",
        members=_members(group, group.protocol_name if is_stable else None),
    )


def _members(group: ClassicGroup, protocol_name: str | None) -> list[_Member]:
    return [
        _Member(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=b"" if protocol_name is None else member.metadata(protocol_name),
            member_assignment=member.assignment,
        )
        for member in group
    ]


HANDLER = ApiHandler(DescribeGroupsRequest, 0, 6, handle)
