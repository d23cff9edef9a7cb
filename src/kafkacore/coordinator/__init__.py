"""What members of a consumer group agree on: the blobs they exchange, and who gets which partition.

In: subscriptions of the members, partitions of the topics. Out: assignments; bytes for JoinGroup and
SyncGroup. Does not know: sockets, requests, heartbeats, offsets. Pure: nothing here waits or asks the time.
"""

from kafkacore.coordinator.group_partition import partition_for

__all__ = ["partition_for"]
