"""Creates and connects the parts of the transaction coordinator, and runs its periodic work."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkacore.broker.purgatory.timer import Timer, TimerTask
from kafkacore.broker.transaction.marker_writer import AppendMarker, MarkerWriter
from kafkacore.broker.transaction.transaction_coordinator import TransactionCoordinator
from kafkacore.broker.transaction.transaction_log import TransactionLog

if TYPE_CHECKING:
    from kafkacore.broker.config.broker_config import BrokerConfig
    from kafkacore.broker.metadata.feature_levels import FeatureLevels
    from kafkacore.broker.replica.replica_manager import ReplicaManager
    from kafkacore.broker.storage.producer_ids import ProducerIdManager
    from kafkacore.broker.topics.cluster_state import ClusterState
    from kafkacore.broker.topics.topic_catalog import TopicCatalog
    from kafkacore.clock import Clock
    from kafkacore.structs import TopicPartition


class _Every(TimerTask):
    """Timer task that runs an action at intervals."""

    def __init__(self, timer: Timer, clock: Clock, interval_ms: int, action: Callable[[], None]) -> None:
        super().__init__()
        self._timer = timer
        self._clock = clock
        self._interval_ms = interval_ms
        self._action = action

    def start(self) -> None:
        self._timer.add(self._clock.monotonic_ms() + self._interval_ms, self)

    def run(self) -> None:
        self.start()
        self._action()


class TransactionServices:
    """The parts of the transaction coordinator.

    After :meth:`start`, only the network thread may use it. Call :meth:`close` after that thread has stopped.

    Parameters
    ----------
    append_marker:
        Appends a marker to a partition.
    features:
        Levels of the features.
    """

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        timer: Timer,
        topics: TopicCatalog,
        cluster: ClusterState,
        replica_manager: ReplicaManager,
        producer_ids: ProducerIdManager,
        append_marker: AppendMarker,
        features: FeatureLevels,
    ) -> None:
        transactions = TransactionLog(config, clock, topics, cluster, replica_manager, features)
        markers = MarkerWriter(transactions, append_marker, replica_manager, timer, clock)
        self.log = transactions.log
        self.state = transactions.state
        self.coordinator = TransactionCoordinator(transactions, markers, producer_ids, config, clock, timer)
        self.log.on_loaded = self.coordinator.partition_loaded
        self._periodic = [
            _Every(
                timer,
                clock,
                config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
                self.coordinator.abort_timed_out,
            ),
            _Every(
                timer,
                clock,
                config.transaction_remove_expired_transaction_cleanup_interval_ms,
                self.coordinator.remove_expired,
            ),
        ]

    def start(self) -> None:
        """Begin to load transactional ids.

        Also start to abort transactions that have timed out, and to remove expired ids, at intervals.
        """
        self.log.start()
        for task in self._periodic:
            task.start()

    def close(self) -> None:
        """Cancel all loads and wait until the loader thread has stopped."""
        self.log.close()

    def partition_removed(self, topic_partition: TopicPartition) -> None:
        """Forget all transactional ids if their topic has been deleted."""
        if topic_partition.topic == self.log.topic.name:
            self.log.topic_removed()
