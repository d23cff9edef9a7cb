"""InitProducerId: assign a producer ID to an idempotent producer (KIP-98, KIP-360).

Versions 0 to 5; version 6 is unstable in Kafka 4.3 (KIP-939). Transactions are not supported. A producer that
already has an ID gets a new one with epoch 0, which KIP-360 allows for a producer without a transactional ID.
"""

from __future__ import annotations

from kafkacore.broker.error_answer import error_code
from kafkacore.broker.handlers.services import ApiHandler, ProducerIdServices, Request
from kafkacore.broker.requests.authorization import require, require_idempotent_write
from kafkacore.errors import AuthorizationError, UnsupportedVersionError
from kafkacore.protocol.generated.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafkacore.structs import ACLOperation, ResourceType


def handle(request: Request[InitProducerIdRequest], services: ProducerIdServices) -> InitProducerIdResponse:
    transactional_id = request.message.transactional_id
    try:
        if transactional_id is not None:
            require(request, services, ACLOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
            raise UnsupportedVersionError(
                "This broker does not support transactions: use Apache Kafka for them."
            )
        require_idempotent_write(request, services)
        producer_id = services.producer_ids.next_producer_id()
    except (AuthorizationError, UnsupportedVersionError, OSError) as error:
        return InitProducerIdResponse(error_code=error_code(error), producer_epoch=-1)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


HANDLER = ApiHandler(InitProducerIdRequest, 0, 5, handle)
