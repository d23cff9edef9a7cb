"""ListTransactions: return the transactional ids that a node coordinates (KIP-664).

Versions 0 to 2, with a filter by duration since version 1 (KIP-994) and by pattern since version 2
(KIP-1152). Ids that the client may not describe are left out.
"""

from __future__ import annotations

from typing import Final

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.config.patterns import matcher_of
from kafkacore.broker.error_answer import error_code
from kafkacore.broker.handlers.services import ApiHandler, Request, TransactionHandlerServices
from kafkacore.broker.requests.authorization import allowed_names
from kafkacore.broker.transaction.transaction_metadata import TransactionMetadata, TransactionState
from kafkacore.errors import BrokerResponseError
from kafkacore.protocol.generated.list_transactions import ListTransactionsRequest, ListTransactionsResponse

STATES: Final = {state.title: state for state in TransactionState}


def handle(
    request: Request[ListTransactionsRequest], services: TransactionHandlerServices
) -> ListTransactionsResponse:
    message = request.message
    unknown = [state for state in dict.fromkeys(message.state_filters) if state not in STATES]
    try:
        matches = matcher_of(message.transactional_id_pattern or ".*")
        known = services.transactions.transactions(request.node_id)
    except BrokerResponseError as error:
        return ListTransactionsResponse(error_code=error_code(error))
    now_ms = services.clock.wall_ms()
    found = [each for each in known if _is_wanted(each, message, now_ms) and matches(each.transactional_id)]
    shown = allowed_names(
        request,
        services,
        ACLOperation.DESCRIBE,
        ResourceType.TRANSACTIONAL_ID,
        [each.transactional_id for each in found],
        is_asked_for=False,
    )
    return ListTransactionsResponse(
        unknown_state_filters=unknown,
        transaction_states=[
            ListTransactionsResponse.TransactionState(
                transactional_id=each.transactional_id,
                producer_id=each.producer_id,
                transaction_state=each.state.title,
            )
            for each in found
            if each.transactional_id in shown
        ],
    )


def _is_wanted(metadata: TransactionMetadata, message: ListTransactionsRequest, now_ms: int) -> bool:
    if message.producer_id_filters and metadata.producer_id not in message.producer_id_filters:
        return False
    if message.state_filters and metadata.state.title not in message.state_filters:
        return False
    # As in Kafka, an id that has never had a transaction passes the duration filter, because its start time
    # is -1.
    return message.duration_filter < 0 or now_ms - metadata.start_ms > message.duration_filter


HANDLER = ApiHandler(ListTransactionsRequest, 0, 2, handle)
