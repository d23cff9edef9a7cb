"""ConsumerGroupHeartbeat (KIP-848): UNSUPPORTED_VERSION, as from Apache Kafka with ``group.version=0``.

The broker announces versions 0 to 1 although it does not serve the protocol. librdkafka looks for another
coordinator for ever, without an error, when the API is not announced; the answer here is fatal to it.
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
        "client %s asks for the group protocol of KIP-848 (group.protocol=consumer), which this broker does "
        "not have",
        request.client_id,
    )
    return ConsumerGroupHeartbeatResponse(
        error_code=UnsupportedVersionError.errno,
        error_message="This broker does not have the group protocol of KIP-848: set group.protocol=classic.",
    )


HANDLER = ApiHandler(ConsumerGroupHeartbeatRequest, 0, 1, handle)
