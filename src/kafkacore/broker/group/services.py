"""Creates and connects the parts of the group coordinator: log, groups, offsets and offset sweeper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacore.broker.group.coordinator_log import CoordinatorLog
from kafkacore.broker.group.group_coordinator import GroupCoordinator
from kafkacore.broker.group.offset_manager import OffsetManager
from kafkacore.broker.group.offset_sweeper import OffsetSweeper

if TYPE_CHECKING:
    from kafkacore.broker.config.broker_config import BrokerConfig
    from kafkacore.broker.purgatory.timer import Timer
    from kafkacore.broker.replica.replica_manager import ReplicaManager
    from kafkacore.broker.topics.cluster_state import ClusterState
    from kafkacore.broker.topics.topic_catalog import TopicCatalog
    from kafkacore.clock import Clock
    from kafkacore.structs import TopicPartition


class GroupServices:
    """The parts of the group coordinator.

    After :meth:`start`, only the network thread may use it. Call :meth:`close` after that thread has stopped.
    """

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        timer: Timer,
        topics: TopicCatalog,
        cluster: ClusterState,
        replica_manager: ReplicaManager,
    ) -> None:
        self.log = CoordinatorLog(config, clock, topics, cluster, replica_manager)
        self.offsets = OffsetManager(config, clock, self.log)
        self.coordinator = GroupCoordinator(self.log, config, clock, timer, self.offsets.removal)
        self.log.groups = self.coordinator.registry
        self._replica_manager = replica_manager
        self._sweeper = OffsetSweeper(
            config, clock, timer, topics, self.log, self.offsets, replica_manager.call_soon
        )
        self.log.on_loaded = self._sweeper.partition_loaded

    def start(self) -> None:
        """Begin to load groups, and to remove expired offsets at intervals."""
        self.log.start()
        self._sweeper.start()

    def close(self) -> None:
        """Cancel all loads and wait until the loader thread has stopped."""
        self.log.close()

    def partition_removed(self, topic_partition: TopicPartition) -> None:
        """Handle the removal of a partition whose topic has been deleted."""
        self._replica_manager.partition_changed(topic_partition)
        self._sweeper.topic_removed(topic_partition)
