from typing import Any, final

from kafkacore.broker.coordinator.coordinator_log import CoordinatorLog
from kafkacore.broker.coordinator.pending import PendingAppends
from kafkacore.broker.log import UnifiedLog
from kafkacore.structs import TopicPartition

@final
class CoordinatorPartition:
    topic_partition: TopicPartition
    log: UnifiedLog
    pending: PendingAppends
    leader_epoch: int
    is_loading: bool
    has_failed: bool
    is_gone: bool
    def __init__(self, topic_partition: TopicPartition, log: UnifiedLog, pending: PendingAppends) -> None: ...

def is_safe_now(log: CoordinatorLog[Any], key: str, node_id: int) -> bool: ...
