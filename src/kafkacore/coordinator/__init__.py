"""The consumer group protocol: subscriptions, assignments, and the assignors that members agree on.

No code in this package waits, sends requests, or reads a clock.
"""

from kafkacore.coordinator.group_partition import partition_for

__all__ = ["partition_for"]
