"""InitProducerId: assign a producer ID and epoch to a producer (KIP-98, KIP-360).

Versions 0 to 5; version 6 is unstable in Kafka 4.3 (KIP-939). A producer without a transactional ID that
already has a producer ID gets a new producer ID with epoch 0, which KIP-360 allows.
"""

from __future__ import annotations

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.error_answer import error_code
from kafkacore.broker.handlers.services import (
    ANSWERED_LATER,
    AnsweredLater,
    ApiHandler,
    Request,
    TransactionHandlerServices,
)
from kafkacore.broker.requests.authorization import require, require_idempotent_write
from kafkacore.broker.transaction.transaction_coordinator import ProducerIdAndEpoch
from kafkacore.errors import (
    AuthorizationError,
    InvalidProducerEpochError,
    InvalidRequestError,
    ProducerFencedError,
)
from kafkacore.protocol.generated.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

#: First version whose clients understand PRODUCER_FENCED.
FIRST_VERSION_WITH_FENCED = 4


def handle(
    request: Request[InitProducerIdRequest], services: TransactionHandlerServices
) -> InitProducerIdResponse | AnsweredLater:
    message = request.message
    transactional_id = message.transactional_id
    try:
        if transactional_id is None:
            require_idempotent_write(request, services)
            return InitProducerIdResponse(
                producer_id=services.producer_ids.next_producer_id(), producer_epoch=0
            )
        require(request, services, ACLOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        if (message.producer_id < 0) != (message.producer_epoch < 0):
            raise InvalidRequestError("producer_id and producer_epoch must both be set, or neither of them")
    except (AuthorizationError, InvalidRequestError, OSError) as error:
        return InitProducerIdResponse(error_code=error_code(error), producer_epoch=-1)

    def on_done(code: int, producer: ProducerIdAndEpoch) -> None:
        if code == ProducerFencedError.errno and request.version < FIRST_VERSION_WITH_FENCED:
            code = InvalidProducerEpochError.errno
        request.respond(
            InitProducerIdResponse(
                error_code=code, producer_id=producer.producer_id, producer_epoch=producer.epoch
            )
        )

    expected = None
    if message.producer_id >= 0:
        expected = ProducerIdAndEpoch(message.producer_id, message.producer_epoch)
    services.transactions.init_producer_id(
        transactional_id, message.transaction_timeout_ms, expected, request.node_id, on_done
    )
    return ANSWERED_LATER


HANDLER = ApiHandler(InitProducerIdRequest, 0, 5, handle)
