"""Writes the ends of transactions to data partitions and to the partitions of committed offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafkacore.broker.coordinator.coordinator_log import CoordinatorLog
from kafkacore.broker.coordinator.interfaces import EndTransactionMarker
from kafkacore.broker.topics.cluster_state import NO_LEADER
from kafkacore.errors import NotLeaderForPartitionError
from kafkacore.structs import TopicPartition, partition_name

if TYPE_CHECKING:
    from kafkacore.broker.log import UnifiedLog
    from kafkacore.broker.replica.replica_manager import ReplicaManager
    from kafkacore.broker.topics.cluster_state import ClusterState
    from kafkacore.clock import Clock


class MarkerTargets:
    """Implements :class:`~kafkacore.broker.transaction.marker_writer.AppendMarker`.

    Parameters
    ----------
    cluster:
        State of the cluster, which returns the leader and the log of a partition.
    replica_manager:
        Completes the requests that wait for a partition.
    clock:
        Source of the timestamps of markers.
    offsets_log:
        Log of the group coordinator. A marker in this log commits or drops pending offsets.
    """

    def __init__(
        self,
        cluster: ClusterState,
        replica_manager: ReplicaManager,
        clock: Clock,
        offsets_log: CoordinatorLog[Any],
    ) -> None:
        self._cluster = cluster
        self._replica_manager = replica_manager
        self._clock = clock
        self._offsets_log = offsets_log

    def __call__(
        self, topic_partition: TopicPartition, marker: EndTransactionMarker
    ) -> tuple[UnifiedLog, int]:
        now_ms = self._clock.wall_ms()
        if topic_partition.topic == self._offsets_log.topic.name:
            return self._offsets_log.append_marker(topic_partition.partition, marker, now_ms)
        leader = self._cluster.leader(topic_partition)
        log = self._cluster.led_log(topic_partition, leader)
        if leader == NO_LEADER:
            raise NotLeaderForPartitionError(f"{partition_name(topic_partition)} has no leader")
        info = log.append_marker(
            marker.producer_id,
            marker.producer_epoch,
            commit=marker.commit,
            coordinator_epoch=marker.coordinator_epoch,
            transaction_version=marker.transaction_version,
            now_ms=now_ms,
        )
        self._replica_manager.partition_changed(topic_partition)
        return log, info.last_offset + 1
