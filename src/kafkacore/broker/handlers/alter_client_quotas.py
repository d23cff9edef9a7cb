"""AlterClientQuotas: set and remove quotas of users, client IDs and IP addresses (KIP-546, KIP-612).

Versions 0 to 1. When the response is sent, the changes are on disk and in effect.
Host names instead of IP addresses are not supported and are rejected.
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
from kafkacore.broker.metadata.quota_entities import Entity, entity_of
from kafkacore.broker.requests.authorization import require_cluster
from kafkacore.errors import BrokerResponseError
from kafkacore.protocol.generated.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)


def handle(
    request: Request[AlterClientQuotasRequest], services: MetadataServices
) -> AlterClientQuotasResponse | AnsweredLater:
    message = request.message
    wanted = [
        (
            entity_of({part.entity_type: part.entity_name for part in entry.entity}),
            [(op.key, None if op.remove else op.value) for op in entry.ops],
        )
        for entry in message.entries
    ]
    entities = dict.fromkeys(entity for entity, _ in wanted)
    quotas = services.metadata.quotas
    try:
        require_cluster(request, services, ACLOperation.ALTER_CONFIGS)
    except BrokerResponseError as error:
        return _answer(dict.fromkeys(entities, error))
    if message.validate_only:
        return _answer(quotas.alter(wanted)[1])

    def on_done(outcome: Mapping[Entity, Exception | None] | Exception) -> None:
        if isinstance(outcome, Exception):
            outcome = dict.fromkeys(entities, outcome)
        request.respond(_answer(outcome))

    services.metadata.change(lambda: quotas.alter(wanted), on_done)
    return ANSWERED_LATER


def _answer(outcomes: Mapping[Entity, Exception | None]) -> AlterClientQuotasResponse:
    shape = AlterClientQuotasResponse
    return shape(
        entries=[
            shape.EntryData(
                error_code=0 if error is None else error_code(error),
                error_message=None if error is None else error_message(error),
                entity=[shape.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            )
            for entity, error in outcomes.items()
        ]
    )


HANDLER = ApiHandler(AlterClientQuotasRequest, 0, 1, handle)
