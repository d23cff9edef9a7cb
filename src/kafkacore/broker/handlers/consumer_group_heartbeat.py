"""ConsumerGroupHeartbeat (KIP-848): join a consumer group, stay in it, receive partitions, and leave.

Versions 0 to 1. From version 1 on, a member generates its own id, and can subscribe to a regular expression.
"""

from __future__ import annotations

from kafkacore.broker.group.consumer._heartbeat import (
    ConsumerHeartbeat,
    SteadyAnswer,
    encode_heartbeat,
    read_heartbeat,
)
from kafkacore.broker.handlers._consumer_group_heartbeat import handle
from kafkacore.broker.handlers.services import ApiHandler
from kafkacore.protocol.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

HANDLER: ApiHandler[ConsumerHeartbeat, ConsumerGroupHeartbeatResponse | SteadyAnswer] = ApiHandler(
    ConsumerGroupHeartbeatRequest, 0, 1, handle, read_heartbeat, encode_heartbeat
)
