from typing import final

from kafkacore.broker.config.group_limits import GroupLimits
from kafkacore.broker.group.consumer._heartbeat import ConsumerHeartbeat, SteadyAnswer
from kafkacore.broker.group.consumer._sessions import Sessions
from kafkacore.broker.group.consumer.consumer_member import ConsumerGroupMember
from kafkacore.broker.group.interfaces import CoordinatorLog
from kafkacore.broker.group.registry import GroupRegistry
from kafkacore.broker.metadata.feature_levels import FeatureLevels
from kafkacore.broker.topics.topic_catalog import TopicCatalog

@final
class SteadyHeartbeats:
    def __init__(
        self,
        log: CoordinatorLog,
        registry: GroupRegistry,
        limits: GroupLimits,
        topics: TopicCatalog,
        features: FeatureLevels,
        sessions: Sessions,
    ) -> None: ...
    def member_of(self, heartbeat: ConsumerHeartbeat) -> ConsumerGroupMember | None: ...
    def answer(self, heartbeat: ConsumerHeartbeat, node_id: int, now_ms: float) -> SteadyAnswer | None: ...
