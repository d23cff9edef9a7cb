"""ConsumerGroupHeartbeat (KIP-848): return UNSUPPORTED_VERSION, as Kafka does with ``group.version=0``.

The broker announces versions 0 to 1 although it does not implement the protocol. If the API is not announced,
librdkafka searches for another coordinator forever without an error. This response is a fatal error for it.
"""

from __future__ import annotations

from kafkacore.broker.handlers.services import ApiHandler, Request
from kafkacore.broker.log_lines import NameLogger
from kafkacore.broker.requests.authorization import AuthorizationServices
from kafkacore.errors import UnsupportedVersionError
from kafkacore.protocol.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

logger = NameLogger(__name__)


def handle(
    request: Request[ConsumerGroupHeartbeatRequest], services: AuthorizationServices
) -> ConsumerGroupHeartbeatResponse:
    logger.warning(
        "client %s uses the consumer group protocol of KIP-848 (group.protocol=consumer), which this broker "
        "does not support",
        request.client_id,
    )
    return ConsumerGroupHeartbeatResponse(
        error_code=UnsupportedVersionError.errno,
        error_message="The group protocol of KIP-848 is not supported: set group.protocol=classic.",
    )


HANDLER = ApiHandler(ConsumerGroupHeartbeatRequest, 0, 1, handle)
