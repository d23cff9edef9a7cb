"""DescribeUserScramCredentials: return the SCRAM mechanisms and iterations of users (KIP-554).

Version 0.
"""

from __future__ import annotations

from collections import Counter

from kafkacore.access_control import ACLOperation
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.handlers.services import ApiHandler, MetadataServices, Request
from kafkacore.broker.metadata.scram_users import ScramUsers
from kafkacore.broker.requests.authorization import require_cluster
from kafkacore.errors import BrokerResponseError, DuplicateResourceError, ResourceNotFoundError
from kafkacore.protocol.generated.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

_Result = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult


def handle(
    request: Request[DescribeUserScramCredentialsRequest], services: MetadataServices
) -> DescribeUserScramCredentialsResponse:
    try:
        require_cluster(request, services, ACLOperation.DESCRIBE)
    except BrokerResponseError as error:
        # As in Kafka, the response has one result for each requested user, without the user's name.
        refused = [_Result(error_code=error_code(error)) for _ in request.message.users or ()]
        return DescribeUserScramCredentialsResponse(
            error_code=error_code(error), error_message=error_message(error), results=refused
        )
    users = services.metadata.users
    requested = Counter(user.name for user in request.message.users or ()) or Counter(users.users())
    return DescribeUserScramCredentialsResponse(
        error_message=None, results=[_described(name, count, users) for name, count in requested.items()]
    )


def _described(name: str, count: int, users: ScramUsers) -> _Result:
    found = users.described(name)
    error: BrokerResponseError | None = None
    if count > 1:
        error = DuplicateResourceError(
            f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        )
    elif not found:
        error = ResourceNotFoundError(f"Attempt to describe a user credential that does not exist: {name}")
    if error is not None:
        return _Result(
            user=name,
            error_code=error_code(error),
            error_message=error_message(error),
            credential_infos=[],
        )
    infos = [
        DescribeUserScramCredentialsResponse.CredentialInfo(mechanism=mechanism, iterations=iterations)
        for mechanism, iterations in found
    ]
    return _Result(user=name, error_message=None, credential_infos=infos)


HANDLER = ApiHandler(DescribeUserScramCredentialsRequest, 0, 0, handle)
