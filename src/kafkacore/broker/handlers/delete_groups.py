"""DeleteGroups: delete groups without members and their offsets.

Versions 0 to 2. The response is sent when the deletion is on disk.
"""

from __future__ import annotations

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.handlers.services import (
    ANSWERED_LATER,
    AnsweredLater,
    ApiHandler,
    GroupServices,
    Request,
)
from kafkacore.broker.requests.authorization import allowed_names
from kafkacore.errors import GroupAuthorizationFailedError
from kafkacore.protocol.generated.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse

_Result = DeleteGroupsResponse.DeletableGroupResult


def handle(
    request: Request[DeleteGroupsRequest], services: GroupServices
) -> DeleteGroupsResponse | AnsweredLater:
    group_ids = list(dict.fromkeys(request.message.groups_names))
    deletable = allowed_names(request, services, ACLOperation.DELETE, ResourceType.GROUP, group_ids)

    def on_deleted(codes: dict[str, int]) -> None:
        refused = GroupAuthorizationFailedError.errno
        results = [
            _Result(group_id=one, error_code=codes[one] if one in deletable else refused) for one in group_ids
        ]
        request.respond(DeleteGroupsResponse(results=results))

    services.groups.delete([one for one in group_ids if one in deletable], request.node_id, on_deleted)
    return ANSWERED_LATER


HANDLER = ApiHandler(DeleteGroupsRequest, 0, 2, handle)
