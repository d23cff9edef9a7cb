"""AlterUserScramCredentials: set and delete SCRAM credentials of users (KIP-554).

Version 0. When the response is sent, the changes are on disk and in effect for the next login.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkacore.access_control import ACLOperation
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.handlers.services import (
    ANSWERED_LATER,
    AnsweredLater,
    ApiHandler,
    MetadataServices,
    Request,
)
from kafkacore.broker.metadata.scram_users import Alteration, Deletion, Upsertion
from kafkacore.broker.requests.authorization import require_cluster
from kafkacore.errors import BrokerResponseError
from kafkacore.protocol.generated.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)

_Result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult


def handle(
    request: Request[AlterUserScramCredentialsRequest], services: MetadataServices
) -> AlterUserScramCredentialsResponse | AnsweredLater:
    message = request.message
    wanted: list[Alteration] = [Deletion(each.name, each.mechanism) for each in message.deletions]
    wanted += [
        Upsertion(each.name, each.mechanism, each.iterations, each.salt, each.salted_password)
        for each in message.upsertions
    ]
    users = dict.fromkeys(each.user for each in wanted)
    try:
        require_cluster(request, services, ACLOperation.ALTER)
    except BrokerResponseError as error:
        return _answer(dict.fromkeys(users, error))

    def on_done(outcome: Mapping[str, BrokerResponseError | None] | Exception) -> None:
        if isinstance(outcome, Exception):
            request.respond(_answer(dict.fromkeys(users, outcome)))
        else:
            request.respond(_answer(outcome))

    metadata = services.metadata
    metadata.change(lambda: metadata.users.alter(wanted), on_done)
    return ANSWERED_LATER


def _answer(outcomes: Mapping[str, Exception | None]) -> AlterUserScramCredentialsResponse:
    return AlterUserScramCredentialsResponse(
        results=[
            _Result(user=user, error_message=None)
            if error is None
            else _Result(user=user, error_code=error_code(error), error_message=error_message(error))
            for user, error in outcomes.items()
        ]
    )


HANDLER = ApiHandler(AlterUserScramCredentialsRequest, 0, 0, handle)
