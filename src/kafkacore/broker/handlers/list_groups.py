"""ListGroups: return the groups that the node coordinates, with states (KIP-518) and types (KIP-848).

Versions 0 to 5. A client without permission to describe the cluster gets only the groups that it may
describe.
"""

from __future__ import annotations

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.error_answer import error_code
from kafkacore.broker.handlers.services import ApiHandler, GroupServices, Request
from kafkacore.broker.requests.authorization import allowed, allowed_on_cluster
from kafkacore.protocol.generated.list_groups import ListGroupsRequest, ListGroupsResponse

_Group = ListGroupsResponse.ListedGroup


def handle(request: Request[ListGroupsRequest], services: GroupServices) -> ListGroupsResponse:
    message, describe = request.message, ACLOperation.DESCRIBE
    sees_all = allowed_on_cluster(request, services, describe, is_asked_for=False)
    try:
        groups = services.groups.groups(request.node_id, message.states_filter, message.types_filter)
    except Exception as error:  # noqa: BLE001 - fails this request only; error_code logs bugs
        return ListGroupsResponse(error_code=error_code(error))
    return ListGroupsResponse(
        groups=[
            _Group(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state.value,
                group_type=group.kind,
            )
            for group in groups
            if sees_all
            or allowed(request, services, describe, ResourceType.GROUP, group.group_id, is_asked_for=False)
        ]
    )


HANDLER = ApiHandler(ListGroupsRequest, 0, 5, handle)
