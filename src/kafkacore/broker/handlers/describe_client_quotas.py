"""DescribeClientQuotas: return the quotas of users, client IDs and IP addresses that match a filter.

Versions 0 to 1 (KIP-546, KIP-612). Quotas in the broker's configuration are not returned.
"""

from __future__ import annotations

from kafkacore.access_control import ACLOperation
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.handlers.services import ApiHandler, MetadataServices, Request
from kafkacore.broker.metadata.quota_entities import Match
from kafkacore.broker.requests.authorization import require_cluster
from kafkacore.errors import BrokerResponseError
from kafkacore.protocol.generated.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)


def handle(
    request: Request[DescribeClientQuotasRequest], services: MetadataServices
) -> DescribeClientQuotasResponse:
    message = request.message
    matches = [Match(each.entity_type, each.match_type, each.match) for each in message.components]
    try:
        require_cluster(request, services, ACLOperation.DESCRIBE_CONFIGS)
        found = services.metadata.quotas.matching(matches, strict=message.strict)
    except BrokerResponseError as error:
        return DescribeClientQuotasResponse(
            error_code=error_code(error), error_message=error_message(error), entries=None
        )
    shape = DescribeClientQuotasResponse
    entries = [
        shape.EntryData(
            entity=[shape.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            values=[shape.ValueData(key=key, value=value) for key, value in limits.items()],
        )
        for entity, limits in found
    ]
    return DescribeClientQuotasResponse(error_message=None, entries=entries)


HANDLER = ApiHandler(DescribeClientQuotasRequest, 0, 1, handle)
