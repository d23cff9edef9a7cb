"""The log ``__transaction_state`` together with the state that its records describe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kafkacore.broker.coordinator.coordinator_log import CoordinatorLog
from kafkacore.broker.coordinator.interfaces import CoordinatorRecord, CoordinatorTopic, OnSafe
from kafkacore.broker.topics.internal_topics import TRANSACTIONS_TOPIC, transactions_topic_settings
from kafkacore.broker.transaction.coordinator_state import TransactionCoordinatorState
from kafkacore.broker.transaction.records import transaction_record, transaction_tombstone
from kafkacore.broker.transaction.transaction_metadata import TransactionMetadata
from kafkacore.logs import logger_of
from kafkacore.record import Compression

if TYPE_CHECKING:
    from kafkacore.broker.config.broker_config import BrokerConfig
    from kafkacore.broker.metadata.feature_levels import FeatureLevels
    from kafkacore.broker.replica.replica_manager import ReplicaManager
    from kafkacore.broker.topics.cluster_state import ClusterState
    from kafkacore.broker.topics.topic_catalog import TopicCatalog
    from kafkacore.clock import Clock

logger = logger_of(__name__)

#: Maximum size in bytes of the keys in a batch of tombstones. The limit keeps a batch far below
#: ``max.message.bytes``.
KEYS_SIZE_PER_BATCH = 64 * 1024
#: Milliseconds that a request waits until its record is safe. Kafka uses ``request.timeout.ms``.
APPEND_TIMEOUT_MS = 30_000


def transactions_topic(config: BrokerConfig) -> CoordinatorTopic:
    """Return the topic of the transaction coordinator, with the settings of ``transaction.state.log.*``."""
    partition_count, configs = transactions_topic_settings(config)
    return CoordinatorTopic(
        name=TRANSACTIONS_TOPIC,
        partition_count=partition_count,
        configs=configs,
        load_buffer_size=config.transaction_state_log_load_buffer_size,
        compression=Compression.NONE,
        append_timeout_ms=APPEND_TIMEOUT_MS,
    )


class TransactionLog:
    """The states of the transactional ids, and the log that stores them.

    Only the network thread may use it.

    Attributes
    ----------
    state:
        The transactional ids in memory.
    features:
        Levels of the features: ``transaction.version`` decides the version of the records.
    log:
        The log, whose records are applied to ``state``.
    """

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        topics: TopicCatalog,
        cluster: ClusterState,
        replica_manager: ReplicaManager,
        features: FeatureLevels,
    ) -> None:
        self.features = features
        self.state = TransactionCoordinatorState()
        self.log = CoordinatorLog(
            transactions_topic(config),
            self.state,
            clock,
            topics,
            cluster,
            replica_manager,
            "kafka-transactions-loader",
        )

    def write(self, metadata: TransactionMetadata, on_safe: OnSafe) -> None:
        """Append the record of a new state and apply it, as :meth:`CoordinatorLog.append` does."""
        self.state.next_last_epoch = metadata.last_producer_epoch
        record = transaction_record(metadata, self.features.transaction_version)
        self.log.append(metadata.transactional_id, [record], on_safe)

    def remove(self, partition: int, transactional_ids: Sequence[str]) -> None:
        """Append tombstones of transactional ids of one partition. A failure is logged."""

        def on_safe(code: int) -> None:
            if code:
                logger.warning("failed to remove expired transactional ids: error %d; will retry later", code)

        for batch in _batches(transactional_ids):
            if self.log.is_active(partition):
                self.log.append_to(partition, batch, on_safe)


def _batches(transactional_ids: Sequence[str]) -> Iterator[list[CoordinatorRecord]]:
    """Return the tombstones of transactional ids, which may have up to 32,767 bytes each, in batches."""
    batch: list[CoordinatorRecord] = []
    size = 0
    for each in transactional_ids:
        record = transaction_tombstone(each)
        if batch and size + len(record.key) > KEYS_SIZE_PER_BATCH:
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += len(record.key)
    if batch:
        yield batch
