"""CreateAcls: add access control entries.

Versions 1 to 3. When the response is sent, the entries are on disk and in effect. As in Kafka, adding an
existing entry succeeds.
"""

from __future__ import annotations

from kafkacore.access_control import ACLOperation
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.handlers.services import (
    ANSWERED_LATER,
    AnsweredLater,
    ApiHandler,
    MetadataServices,
    Request,
)
from kafkacore.broker.metadata.acls import Acl, checked_acl
from kafkacore.broker.requests.authorization import require_acls
from kafkacore.errors import BrokerResponseError
from kafkacore.protocol.generated.create_acls import CreateAclsRequest, CreateAclsResponse

_Result = CreateAclsResponse.AclCreationResult


def handle(
    request: Request[CreateAclsRequest], services: MetadataServices
) -> CreateAclsResponse | AnsweredLater:
    creations = request.message.creations
    try:
        require_acls(request, services, ACLOperation.ALTER)
    except BrokerResponseError as error:
        return _refused(error, len(creations))
    acls = services.metadata.acls
    checked = [_checked(creation) for creation in creations]
    results = [_Result(error_message=None) if isinstance(each, Acl) else _failed(each) for each in checked]

    def on_done(outcome: object) -> None:
        if isinstance(outcome, Exception):
            request.respond(_refused(outcome, len(creations)))
        else:
            request.respond(CreateAclsResponse(results=results))

    services.metadata.change(
        lambda: (acls.additions(each for each in checked if isinstance(each, Acl)), None), on_done
    )
    return ANSWERED_LATER


def _checked(creation: CreateAclsRequest.AclCreation) -> Acl | BrokerResponseError:
    try:
        return checked_acl(
            creation.resource_type,
            creation.resource_name,
            creation.resource_pattern_type,
            creation.principal,
            creation.host,
            creation.operation,
            creation.permission_type,
        )
    except BrokerResponseError as error:
        return error


def _failed(error: Exception) -> _Result:
    return _Result(error_code=error_code(error), error_message=error_message(error))


def _refused(error: Exception, count: int) -> CreateAclsResponse:
    return CreateAclsResponse(results=[_failed(error)] * count)


HANDLER = ApiHandler(CreateAclsRequest, 1, 3, handle)
