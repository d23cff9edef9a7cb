from kafkacore.broker.group.consumer._heartbeat import ConsumerHeartbeat, SteadyAnswer
from kafkacore.broker.handlers.services import AnsweredLater, GroupServices, Request
from kafkacore.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

def handle(
    request: Request[ConsumerHeartbeat], services: GroupServices
) -> ConsumerGroupHeartbeatResponse | SteadyAnswer | AnsweredLater: ...
