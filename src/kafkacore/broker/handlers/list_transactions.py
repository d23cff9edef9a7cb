"""ListTransactions: return no transactions, because this broker has no transaction coordinator (KIP-664).

Versions 0 to 2. The filters are checked as in Kafka (KIP-994, KIP-1152), so that an admin client behaves as
on a cluster without transactions. Every client may send the request, because Kafka leaves out the
transactions that a client may not describe.
"""

from __future__ import annotations

from typing import Final

from kafkacore.broker.config.patterns import is_pattern
from kafkacore.broker.handlers.services import ApiHandler, Request
from kafkacore.broker.requests.authorization import AuthorizationServices
from kafkacore.errors import InvalidRegularExpressionError
from kafkacore.protocol.generated.list_transactions import ListTransactionsRequest, ListTransactionsResponse

#: Names of the states of Kafka's ``TransactionState``.
STATES: Final = frozenset(
    {
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    }
)


def handle(
    request: Request[ListTransactionsRequest], services: AuthorizationServices
) -> ListTransactionsResponse:
    message = request.message
    pattern = message.transactional_id_pattern
    if pattern and not is_pattern(pattern):
        return ListTransactionsResponse(error_code=InvalidRegularExpressionError.errno)
    unknown = [state for state in dict.fromkeys(message.state_filters) if state not in STATES]
    return ListTransactionsResponse(unknown_state_filters=unknown)


HANDLER = ApiHandler(ListTransactionsRequest, 0, 2, handle)
