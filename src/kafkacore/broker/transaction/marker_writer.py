"""Ends prepared transactions: writes a marker to each partition, and then the completed state.

The outcome of a transaction is decided when its prepared state is below the high watermark. From then on,
this module repeats failed steps until the transaction is complete, even after a restart. It does the work of
Kafka's ``TransactionMarkerChannelManager``, without requests between brokers, because all nodes share the
logs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from kafkacore.broker.coordinator.interfaces import EndTransactionMarker
from kafkacore.broker.log_lines import NameLogger
from kafkacore.broker.purgatory.delayed_operation import NEVER_MS, DelayedOperation
from kafkacore.broker.purgatory.timer import Timer, TimerTask
from kafkacore.broker.transaction.transaction_metadata import PREPARED, TransactionMetadata
from kafkacore.errors import (
    CoordinatorLoadInProgressError,
    InvalidProducerEpochError,
    KafkaError,
    TransactionCoordinatorFencedError,
    UnknownTopicOrPartitionError,
)
from kafkacore.structs import TopicPartition, partition_name

if TYPE_CHECKING:
    from kafkacore.broker.log import UnifiedLog
    from kafkacore.broker.replica.replica_manager import ReplicaManager
    from kafkacore.broker.transaction.transaction_log import TransactionLog
    from kafkacore.clock import Clock

logger = NameLogger(__name__)

#: Milliseconds after which a step that failed is repeated. The time doubles with each failure.
RETRY_BACKOFF_MS = 50.0
MAX_RETRY_BACKOFF_MS = 10_000.0


class AppendMarker(Protocol):
    """Appends a marker to a partition, and returns the partition's log and the offset after the marker."""

    def __call__(
        self, topic_partition: TopicPartition, marker: EndTransactionMarker
    ) -> tuple[UnifiedLog, int]: ...


class _Retry(TimerTask):
    def __init__(self, retry: Callable[[], None]) -> None:
        super().__init__()
        self._retry = retry

    def run(self) -> None:
        self._retry()


class _MarkersWritten(DelayedOperation):
    """An operation that waits until all markers are below the high watermarks, or a log has failed."""

    def __init__(
        self, required: Mapping[TopicPartition, tuple[UnifiedLog, int]], on_written: Callable[[], None]
    ) -> None:
        super().__init__(NEVER_MS)
        self._required = required
        self._on_written = on_written

    def can_complete(self) -> bool:
        return all(
            log.high_watermark >= required or log.failure is not None or log.is_closed
            for log, required in self._required.values()
        )

    def on_complete(self, expired: bool) -> None:
        self._on_written()


class MarkerWriter:
    """Ends prepared transactions. Only the network thread may use it.

    Parameters
    ----------
    transactions:
        State of the transactional ids, and their log.
    append_marker:
        Appends a marker to a partition.
    replica_manager:
        Reports that the high watermark of a log has advanced.
    timer, clock:
        Timer and clock of the broker.
    """

    def __init__(
        self,
        transactions: TransactionLog,
        append_marker: AppendMarker,
        replica_manager: ReplicaManager,
        timer: Timer,
        clock: Clock,
    ) -> None:
        self.transactions = transactions
        self.append_marker = append_marker
        self.purgatory = replica_manager.produce_purgatory
        self.timer = timer
        self.clock = clock
        # Requests that wait for the end of a transaction, by transactional id.
        self._waiting: dict[str, list[Callable[[], None]]] = {}

    def notify(self, transactional_id: str) -> None:
        """Continue the requests that wait for the end of a transaction."""
        for callback in self._waiting.pop(transactional_id, ()):
            callback()

    def when_completed(self, transactional_id: str, callback: Callable[[], None]) -> None:
        """Call ``callback`` when the prepared transaction is complete or no longer coordinated here."""
        self._waiting.setdefault(transactional_id, []).append(callback)

    def complete(self, metadata: TransactionMetadata) -> None:
        """Write the markers and the completed state of a prepared transaction.

        The record of the prepared state must be below the high watermark.
        """
        _Completion(self, metadata).write_markers()


class _Completion:
    """Ends one prepared transaction, and repeats failed steps until the transaction is complete."""

    def __init__(self, writer: MarkerWriter, metadata: TransactionMetadata) -> None:
        assert metadata.state in PREPARED, "only a prepared transaction gets markers"
        self._writer = writer
        self._metadata = metadata
        self._name = metadata.transactional_id
        #: Partitions without a marker.
        self._left = set(metadata.partitions)
        #: For each marker that was appended, the log and the offset after the marker.
        self._written: dict[TopicPartition, tuple[UnifiedLog, int]] = {}
        self._failures = 0

    def write_markers(self) -> None:
        """Append the missing markers, and continue when all markers are below the high watermarks."""
        transactions = self._writer.transactions
        if transactions.state.get(self._name) is not self._metadata:
            # The partition of the transactional id has been unloaded.
            self._writer.notify(self._name)
            return
        metadata = self._metadata
        marker = EndTransactionMarker(
            producer_id=metadata.producer_id,
            producer_epoch=metadata.producer_epoch,
            commit=metadata.commits,
            coordinator_epoch=transactions.log.leader_epoch(self._name),
            transaction_version=metadata.client_version,
        )
        for topic_partition in sorted(self._left):
            try:
                self._written[topic_partition] = self._writer.append_marker(topic_partition, marker)
            except UnknownTopicOrPartitionError:
                logger.info(
                    "transactional id %s: %s was deleted and needs no marker",
                    self._name,
                    partition_name(topic_partition),
                )
            except (InvalidProducerEpochError, TransactionCoordinatorFencedError) as error:
                # A later coordinator or producer has ended the transaction in this partition already.
                logger.warning("transactional id %s: no marker written: %s", self._name, error)
            except KafkaError as error:
                if not self._failures and not isinstance(error, CoordinatorLoadInProgressError):
                    logger.warning(
                        "transactional id %s: failed to write the marker to %s, will retry: %s",
                        self._name,
                        partition_name(topic_partition),
                        error,
                    )
                continue
            self._left.remove(topic_partition)
        if self._left:
            self._retry()
            return
        operation = _MarkersWritten(self._written, self._markers_written)
        self._writer.purgatory.try_complete_else_watch(operation, self._written)

    def _retry(self) -> None:
        backoff_ms = min(RETRY_BACKOFF_MS * 2**self._failures, MAX_RETRY_BACKOFF_MS)
        self._failures += 1
        self._writer.timer.add(self._writer.clock.monotonic_ms() + backoff_ms, _Retry(self.write_markers))

    def _markers_written(self) -> None:
        for topic_partition, (log, required) in list(self._written.items()):
            if log.high_watermark < required:
                # The log has failed, or the topic was deleted.
                del self._written[topic_partition]
                self._left.add(topic_partition)
        if self._left:
            self._retry()
            return
        transactions = self._writer.transactions
        if transactions.state.get(self._name) is self._metadata:
            transactions.write(self._metadata.completed(self._writer.clock.wall_ms()), lambda _: None)
            if transactions.state.get(self._name) is self._metadata:
                # The record was not appended, for example because the disk is full.
                self._retry()
                return
        self._writer.notify(self._name)
