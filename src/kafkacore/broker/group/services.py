"""Creates and connects the parts of the group coordinator: log, groups, offsets and offset sweeper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacore.broker.coordinator.coordinator_log import CoordinatorLog
from kafkacore.broker.coordinator.interfaces import CoordinatorTopic
from kafkacore.broker.group.coordinator_state import GroupCoordinatorState
from kafkacore.broker.group.group_coordinator import GroupCoordinator
from kafkacore.broker.group.offset_manager import OffsetManager
from kafkacore.broker.group.offset_sweeper import OffsetSweeper
from kafkacore.broker.topics.internal_topics import OFFSETS_TOPIC, offsets_topic_settings
from kafkacore.record import Compression

if TYPE_CHECKING:
    from kafkacore.broker.config.broker_config import BrokerConfig
    from kafkacore.broker.metadata.cluster_metadata import ClusterMetadata
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
        metadata: ClusterMetadata,
    ) -> None:
        self.state = GroupCoordinatorState()
        self.log = CoordinatorLog(
            offsets_topic(config), self.state, clock, topics, cluster, replica_manager, "kafka-offsets-loader"
        )
        self.offsets = OffsetManager(config, clock, self.log, self.state)
        self.coordinator = GroupCoordinator(
            self.log, config, clock, timer, topics, metadata, self.offsets.removal
        )
        self.state.groups = self.coordinator.registry
        self._replica_manager = replica_manager
        self._sweeper = OffsetSweeper(
            config, clock, timer, topics, self.log, self.state, self.offsets, replica_manager.call_soon
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


def offsets_topic(config: BrokerConfig) -> CoordinatorTopic:
    """Return the topic of the group coordinator, with the settings of ``offsets.*``."""
    partition_count, configs = offsets_topic_settings(config)
    return CoordinatorTopic(
        name=OFFSETS_TOPIC,
        partition_count=partition_count,
        configs=configs,
        load_buffer_size=config.offsets_load_buffer_size,
        compression=Compression(config.offsets_topic_compression_codec),
        append_timeout_ms=config.offsets_commit_timeout_ms,
    )
