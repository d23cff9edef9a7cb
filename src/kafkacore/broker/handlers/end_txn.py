"""EndTxn: commit or abort a transaction (KIP-98, KIP-890).

Versions 0 to 5. The response is sent when the outcome is on disk; the markers are written afterwards. From
version 5 on, the end of a transaction gives the producer a new epoch, which the response contains.
"""

from __future__ import annotations

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.handlers.services import (
    ANSWERED_LATER,
    AnsweredLater,
    ApiHandler,
    Request,
    TransactionHandlerServices,
)
from kafkacore.broker.requests.authorization import allowed
from kafkacore.broker.transaction.transaction_coordinator import ProducerIdAndEpoch
from kafkacore.errors import (
    InvalidProducerEpochError,
    ProducerFencedError,
    TransactionalIdAuthorizationFailedError,
)
from kafkacore.protocol.generated.end_txn import EndTxnRequest, EndTxnResponse

#: First version whose clients understand PRODUCER_FENCED.
FIRST_VERSION_WITH_FENCED = 2
FIRST_VERSION_WITH_EPOCH = 5


def handle(
    request: Request[EndTxnRequest], services: TransactionHandlerServices
) -> EndTxnResponse | AnsweredLater:
    message, version = request.message, request.version
    kind, name = ResourceType.TRANSACTIONAL_ID, message.transactional_id
    if not allowed(request, services, ACLOperation.WRITE, kind, name):
        return EndTxnResponse(error_code=TransactionalIdAuthorizationFailedError.errno)

    def on_done(code: int, producer: ProducerIdAndEpoch) -> None:
        if code == ProducerFencedError.errno and version < FIRST_VERSION_WITH_FENCED:
            code = InvalidProducerEpochError.errno
        request.respond(
            EndTxnResponse(error_code=code, producer_id=producer.producer_id, producer_epoch=producer.epoch)
        )

    services.transactions.end(
        name,
        ProducerIdAndEpoch(message.producer_id, message.producer_epoch),
        commits=message.committed,
        client_version=2 if version >= FIRST_VERSION_WITH_EPOCH else 0,
        node_id=request.node_id,
        on_done=on_done,
    )
    return ANSWERED_LATER


HANDLER = ApiHandler(EndTxnRequest, 0, 5, handle)
