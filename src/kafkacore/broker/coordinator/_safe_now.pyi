from typing import Any

from kafkacore.broker.coordinator.coordinator_log import CoordinatorLog

def is_safe_now(log: CoordinatorLog[Any], key: str, node_id: int) -> bool: ...
