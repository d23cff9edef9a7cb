"""DeleteAcls: delete the access control entries that match the filters.

Versions 1 to 3. When the response is sent, the entries are deleted on disk and no longer in effect.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkacore.access_control import ACLOperation
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.handlers.services import (
    ANSWERED_LATER,
    AnsweredLater,
    ApiHandler,
    MetadataServices,
    Request,
)
from kafkacore.broker.metadata.acls import Acl, AclFilter, AclStore, asked_filter
from kafkacore.broker.metadata.records import MetadataRecord
from kafkacore.broker.requests.authorization import require_acls
from kafkacore.errors import BrokerResponseError
from kafkacore.protocol.generated.delete_acls import DeleteAclsRequest, DeleteAclsResponse

_Result = DeleteAclsResponse.DeleteAclsFilterResult


def handle(
    request: Request[DeleteAclsRequest], services: MetadataServices
) -> DeleteAclsResponse | AnsweredLater:
    filters = request.message.filters
    try:
        require_acls(request, services, ACLOperation.ALTER)
    except BrokerResponseError as error:
        return _refused(error, len(filters))
    acls = services.metadata.acls
    checked = [_checked(each) for each in filters]

    def on_done(outcome: list[_Result] | Exception) -> None:
        if isinstance(outcome, Exception):
            request.respond(_refused(outcome, len(filters)))
        else:
            request.respond(DeleteAclsResponse(filter_results=outcome))

    services.metadata.change(lambda: _planned(checked, acls), on_done)
    return ANSWERED_LATER


def _planned(
    checked: Sequence[AclFilter | BrokerResponseError], acls: AclStore
) -> tuple[Sequence[MetadataRecord], list[_Result]]:
    """Return the metadata records of the deletion, and the result of each filter."""
    removed: list[Acl] = []
    results = []
    for each in checked:
        if isinstance(each, AclFilter):
            matching = acls.matching(each)
            removed += matching
            results.append(
                _Result(error_message=None, matching_acls=[_matching_acl(acl) for acl in matching])
            )
        else:
            results.append(_failed(each))
    return acls.removals(removed), results


def _checked(wanted: DeleteAclsRequest.DeleteAclsFilter) -> AclFilter | BrokerResponseError:
    try:
        return asked_filter(wanted)
    except BrokerResponseError as error:
        return error


def _matching_acl(acl: Acl) -> DeleteAclsResponse.DeleteAclsMatchingAcl:
    return DeleteAclsResponse.DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=acl.resource_type,
        resource_name=acl.name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


def _failed(error: Exception) -> _Result:
    return _Result(error_code=error_code(error), error_message=error_message(error), matching_acls=[])


def _refused(error: Exception, count: int) -> DeleteAclsResponse:
    return DeleteAclsResponse(filter_results=[_failed(error)] * count)


HANDLER = ApiHandler(DeleteAclsRequest, 1, 3, handle)
