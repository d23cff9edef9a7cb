"""DeleteGroups: groups without members go, with their offsets; answered when that is safe.

Versions 0 to 2. Gaps: none known.
"""

from __future__ import annotations

from typing import Any

from kafkacore.broker.request import ANSWERED_LATER, ApiHandler, BrokerServices, Request
from kafkacore.protocol.generated.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse

_Result = DeleteGroupsResponse.DeletableGroupResult


def handle(request: Request, services: BrokerServices) -> Any:
    group_ids = list(dict.fromkeys(request.message.groups_names))

    def on_deleted(codes: dict[str, int]) -> None:
        results = [_Result(group_id=one, error_code=codes[one]) for one in group_ids]
        request.respond(DeleteGroupsResponse(results=results))

    services.groups.delete(group_ids, request.node_id, on_deleted)
    return ANSWERED_LATER


HANDLER = ApiHandler(DeleteGroupsRequest, 0, 2, handle)
