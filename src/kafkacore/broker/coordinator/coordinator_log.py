"""The log of a coordinator, an internal topic: appends records and applies them to memory.

A record is applied right after its append, so the state in memory always equals the state in the log. An
append is acknowledged when the high watermark has passed it, because the append may fail until then. A
partition whose log fails, or whose leader changes, is unloaded: its state is dropped and waiting requests
fail.

Only the network thread uses this module. A separate thread loads partitions into memory of its own. The
behaviour is that of Kafka's ``CoordinatorRuntime`` without snapshots: a request that reads the state waits
for the high watermark instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Generic

from kafkacore.broker.coordinator._coordinator_partition import CoordinatorPartition, is_safe_now
from kafkacore.broker.coordinator.interfaces import (
    NO_PRODUCER_ID,
    CoordinatorRecord,
    CoordinatorState,
    CoordinatorTopic,
    EndTransactionMarker,
    LoadedT,
    OnSafe,
    Producer,
    Replay,
)
from kafkacore.broker.coordinator.loader import LoadJob, PartitionLoader
from kafkacore.broker.coordinator.pending import PendingAppends
from kafkacore.broker.error_answer import error_code
from kafkacore.broker.topics.cluster_state import NO_LEADER
from kafkacore.coordinator import partition_for
from kafkacore.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    KafkaError,
    KafkaStorageError,
    MessageSizeTooLargeError,
    NotCoordinatorError,
    NotEnoughReplicasError,
    NotLeaderForPartitionError,
    RecordListTooLargeError,
    RequestTimedOutError,
    UnknownError,
    UnknownTopicOrPartitionError,
)
from kafkacore.logs import logger_of
from kafkacore.record import RecordBatchBuilder
from kafkacore.record._layout import BATCH_OVERHEAD, MAX_FIELDS_OVERHEAD
from kafkacore.structs import TopicPartition, partition_name
from kafkacore.wire import Uuid

if TYPE_CHECKING:
    from kafkacore.broker.log import LogAppendInfo, UnifiedLog
    from kafkacore.broker.replica.replica_manager import ReplicaManager
    from kafkacore.broker.topics.cluster_state import ClusterState
    from kafkacore.broker.topics.topic_catalog import TopicCatalog
    from kafkacore.clock import Clock

logger = logger_of(__name__)

#: Maps the error of an append to the error of the response (``CoordinatorOperationExceptionHelper``).
_CLIENT_ERRORS = {
    UnknownTopicOrPartitionError.errno: CoordinatorNotAvailableError.errno,
    NotEnoughReplicasError.errno: CoordinatorNotAvailableError.errno,
    RequestTimedOutError.errno: CoordinatorNotAvailableError.errno,
    NotLeaderForPartitionError.errno: NotCoordinatorError.errno,
    KafkaStorageError.errno: NotCoordinatorError.errno,
    MessageSizeTooLargeError.errno: UnknownError.errno,
    RecordListTooLargeError.errno: UnknownError.errno,
}


class CoordinatorLog(Generic[LoadedT]):
    """The log of one coordinator. The hash of a key, such as a group id, determines its partition.

    Parameters
    ----------
    topic:
        The internal topic.
    state:
        The state in memory to which the records are applied.
    clock:
        Source of the time.
    topics:
        Catalog in which the topic and its logs are looked up.
    cluster:
        State of the cluster, which gives the leaders of the topic's partitions.
    replica_manager:
        Appends records and reports high watermarks.
    loader_thread_name:
        Name of the thread that loads partitions.

    Attributes
    ----------
    topic:
        The internal topic.
    """

    def __init__(
        self,
        topic: CoordinatorTopic,
        state: CoordinatorState[LoadedT],
        clock: Clock,
        topics: TopicCatalog,
        cluster: ClusterState,
        replica_manager: ReplicaManager,
        loader_thread_name: str,
    ) -> None:
        self.topic = topic
        self._state = state
        self._clock = clock
        self._topics = topics
        self._cluster = cluster
        self._replica_manager = replica_manager
        self._loader = PartitionLoader(topic.load_buffer_size, loader_thread_name)
        self._topic_id: Uuid | None = None
        # Version of the catalog at the last look at the topic.
        self._topics_version = -1
        #: Returns whether :meth:`check` would pass for a key and a node, and :meth:`when_safe` would call its
        #: function at once. ``False`` may also mean that only :meth:`check` can find out.
        self.is_safe_now: Callable[[str, int], bool] = partial(is_safe_now, self)
        self._partitions: list[CoordinatorPartition | None] = []
        #: For tests: the exception that :meth:`check` raises.
        self.refusal: Exception | None = None
        #: Function that is called with the number of a partition after the partition has been loaded.
        self.on_loaded: Callable[[int], None] = lambda _: None

    # ---- Partitions -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to load the topic if it exists. Until the topic is loaded, :meth:`check` raises an error."""
        self._look_at_topic()

    def close(self) -> None:
        """Cancel all loads and wait until the loader thread has stopped."""
        self._loader.close()

    def ensure_topic(self) -> None:
        """Create the topic if it does not exist.

        Raises
        ------
        CoordinatorNotAvailableError
            The topic is being created.
        InvalidPartitionsError, OSError
            In the same cases as in :meth:`TopicCatalog.create`.
        """
        name = self.topic.name
        if self._topics.get(name) is None:
            try:
                self._topics.create_unless_slow(name, self.topic.partition_count, self.topic.configs)
            except UnknownTopicOrPartitionError as error:
                raise CoordinatorNotAvailableError(f"topic {name} is being created") from error
        self._look_at_topic()

    def _look_at_topic(self) -> None:
        """Load or unload partitions if the topic has been created or deleted."""
        if self._topics_version == self._topics.version:
            return
        self._topics_version = self._topics.version
        topic = self._topics.get(self.topic.name)
        topic_id = None if topic is None else topic.topic_id
        if topic_id == self._topic_id:
            return
        # Set the id first: a client whose request fails below may retry at once and call this method again.
        self._topic_id = topic_id
        for number in range(len(self._partitions)):
            self._unload(number)
        # Partitions that are added to the topic later are not used, so that a key keeps its partition.
        self._partitions = [None] * (0 if topic is None else topic.partition_count)
        for number in range(len(self._partitions)):
            self._load(number)

    def partition_for(self, key: str) -> int:
        """Return the partition of the topic that stores a key."""
        return partition_for(key, len(self._partitions) or self.topic.partition_count)

    def check(self, key: str, node_id: int | None = None) -> None:
        """Check that ``node_id`` coordinates the key now. By default, any node may coordinate the key.

        Raises
        ------
        NotCoordinatorError
            Another node leads the key's partition, its log has failed, or the topic does not exist.
        CoordinatorLoadInProgressError
            The partition is being loaded.
        """
        if self.refusal is not None:
            raise self.refusal
        self._look_at_topic()
        number = self.partition_for(key)
        if not self._partitions:
            raise NotCoordinatorError(f"topic {self.topic.name} does not exist yet")
        place = TopicPartition(self.topic.name, number)
        if node_id is not None and self._cluster.leader(place) != node_id:
            raise NotCoordinatorError(f"node {node_id} is not the leader of {partition_name(place)}")
        self._check_active(number)

    def _check_active(self, number: int) -> CoordinatorPartition:
        partition = self._current(number)
        if partition is not None and not partition.has_failed and not partition.is_loading:
            return partition
        name = partition_name(TopicPartition(self.topic.name, number))
        if partition is not None and partition.is_loading and not partition.has_failed:
            raise CoordinatorLoadInProgressError(f"{name} is being loaded")
        raise NotCoordinatorError(f"{name} is offline")

    def topic_removed(self) -> None:
        """Unload all partitions if the topic has been deleted."""
        self._look_at_topic()

    def leader_changed(self, topic_partition: TopicPartition) -> None:
        """Reload a partition that has a new leader, if it belongs to this topic."""
        self._look_at_topic()
        if topic_partition.topic == self.topic.name and topic_partition.partition < len(self._partitions):
            self._current(topic_partition.partition)

    def _current(self, number: int) -> CoordinatorPartition | None:
        """Return a partition, reloaded if its leader has changed, or unloaded if its log has failed."""
        partition = self._partitions[number]
        if partition is not None and not partition.has_failed:
            if partition.log.failure is not None:
                self._fail(number, partition.log.failure)
            elif partition.log.leader_epoch != partition.leader_epoch:
                self._unload(number)
                self._load(number)
                partition = self._partitions[number]
        return partition

    def _active(self, number: int) -> CoordinatorPartition:
        partition = self._partitions[number]
        assert partition is not None, "check() has passed"
        assert not partition.is_loading, "check() has passed"
        assert not partition.has_failed, "check() has passed"
        return partition

    # ---- Load -----------------------------------------------------------------------------------------

    def _load(self, number: int) -> None:
        place = TopicPartition(self.topic.name, number)
        try:
            log = self._topics.log(place)
        except (UnknownTopicOrPartitionError, KafkaStorageError) as error:
            logger.error("%s: its coordinator is not available: %s", partition_name(place), error)
            return
        pending = PendingAppends(place, log, self._replica_manager.produce_purgatory, self._clock)
        partition = self._partitions[number] = CoordinatorPartition(place, log, pending)
        replay = self._state.new_replay(place)
        if log.log_start_offset == log.log_end_offset:
            for _ in self._state.apply_loaded(number, replay.finish()):
                pass
            partition.is_loading = False
            return

        def on_loaded(outcome: LoadedT | KafkaError) -> None:
            self._replica_manager.call_soon(lambda: self._apply_loaded(number, partition, outcome, replay))

        self._loader.load(LoadJob(place, log, replay, lambda: partition.is_gone, on_loaded))

    def _apply_loaded(
        self,
        number: int,
        partition: CoordinatorPartition,
        outcome: LoadedT | KafkaError,
        replay: Replay[LoadedT],
    ) -> None:
        """Apply the state that the loader has read. This runs on the network thread."""
        if partition.is_gone:
            return
        if isinstance(outcome, KafkaError):
            self._fail(number, f"loading failed: {outcome}")
            return
        self._continue_load(number, partition, self._state.apply_loaded(number, outcome), replay.record_count)

    def _continue_load(
        self, number: int, partition: CoordinatorPartition, steps: Iterator[None], record_count: int
    ) -> None:
        if partition.is_gone:
            return
        for _ in steps:
            # Let the network thread serve other requests before the next step.
            self._replica_manager.call_soon(
                lambda: self._continue_load(number, partition, steps, record_count)
            )
            return
        partition.is_loading = False
        logger.info("%s: loaded %d records", partition_name(partition.topic_partition), record_count)
        self.on_loaded(number)

    def _unload(self, number: int) -> None:
        """Drop a partition. Requests that wait for the partition fail with NOT_COORDINATOR."""
        partition, self._partitions[number] = self._partitions[number], None
        if partition is None or partition.is_gone:
            return
        partition.is_gone = True
        self._state.unload(number)
        partition.pending.fail(NotCoordinatorError.errno)

    def _fail(self, number: int, reason: str) -> None:
        """Unload a partition until the broker restarts: its state in memory may differ from its log."""
        partition = self._partitions[number]
        assert partition is not None
        logger.error(
            "%s: its coordinator is not available until the broker is restarted: %s",
            partition_name(partition.topic_partition),
            reason,
        )
        self._unload(number)
        partition.has_failed = True
        self._partitions[number] = partition

    # ---- Append ---------------------------------------------------------------------------------------

    def append(
        self,
        key: str,
        batch: Sequence[CoordinatorRecord],
        on_safe: OnSafe,
        producer: Producer | None = None,
    ) -> None:
        """Append one batch to the key's partition and apply it.

        If the append fails, no record is applied, and ``on_safe`` is called with the error before this method
        returns. Otherwise the records are applied before it returns.

        Parameters
        ----------
        key:
            A key that has passed :meth:`check` in the same iteration of the network thread.
        batch:
            At least one record.
        on_safe:
            Called exactly once, on the network thread, in the order of the appends to a partition.
        producer:
            The producer whose transaction the records belong to; ``None`` for records that take effect at
            once.

        Notes
        -----
        Codes that ``on_safe`` is called with:

        - 0: the high watermark has passed the records, so they cannot be lost.
        - ``NOT_COORDINATOR``: the log has failed or the leader has changed, and the partition has been
          unloaded.
        - ``COORDINATOR_NOT_AVAILABLE``: the records were not safe after the time limit of the topic. They may
          still become safe.
        - ``UNKNOWN_SERVER_ERROR``: the batch is too large.
        - ``INVALID_PRODUCER_EPOCH``: the partition has seen a later epoch of the producer.
        """
        self.append_to(self.partition_for(key), batch, on_safe, producer)

    def append_to(
        self,
        number: int,
        batch: Sequence[CoordinatorRecord],
        on_safe: OnSafe,
        producer: Producer | None = None,
    ) -> None:
        """Append records of several keys of one partition, as :meth:`append` does."""
        partition = self._active(number)
        try:
            info = self._append(partition.topic_partition, self._built(batch, producer), producer)
        except KafkaError as error:
            if partition.log.failure is not None:
                self._fail(number, partition.log.failure)
            code = error_code(error)
            on_safe(_CLIENT_ERRORS.get(code, code))
            return
        producer_id = NO_PRODUCER_ID if producer is None else producer.producer_id
        try:
            for offset, record in enumerate(batch, info.first_offset):
                self._state.apply(number, record, offset, producer_id)
        except Exception:
            # The exception is a bug in the coordinator. A part of the batch may have been applied.
            self._fail(number, "a record could not be applied")
            raise
        timeout_ms = self.topic.append_timeout_ms
        partition.pending.add(info.last_offset + 1, timeout_ms, self._watched(number, on_safe))

    def _append(self, place: TopicPartition, records: memoryview, producer: Producer | None) -> LogAppendInfo:
        leader = self._cluster.leader(place)
        if producer is None:
            return self._replica_manager.append(place, records, leader)[1]
        log = self._cluster.led_log(place, leader)
        info = log.append_from_coordinator(records, now_ms=self._clock.wall_ms())
        self._replica_manager.partition_changed(place)
        return info

    def _built(self, batch: Sequence[CoordinatorRecord], producer: Producer | None) -> memoryview:
        size = sum(len(key) + len(value or b"") + MAX_FIELDS_OVERHEAD for key, value in batch)
        builder = RecordBatchBuilder(BATCH_OVERHEAD + size, self.topic.compression)
        now_ms = self._clock.wall_ms()
        for key, value in batch:
            place = builder.append(now_ms, key, value)
            assert place >= 0, "the batch is large enough for its records"
        if producer is None:
            return builder.close()
        return builder.close(*producer, is_transactional=True)

    def append_marker(self, number: int, marker: EndTransactionMarker, now_ms: int) -> tuple[UnifiedLog, int]:
        """Append the marker that ends a transaction in a partition, and apply it.

        The marker counts as an append for :meth:`when_safe`.

        Parameters
        ----------
        number:
            Number of the partition.
        marker:
            The marker.
        now_ms:
            Timestamp of the marker, in milliseconds since the epoch.

        Returns
        -------
        UnifiedLog
            The log of the partition.
        int
            The offset after the marker. The marker is safe when the high watermark reaches this offset.

        Raises
        ------
        UnknownTopicOrPartitionError
            The partition does not exist.
        NotCoordinatorError, CoordinatorLoadInProgressError
            The partition is offline, or is being loaded.
        NotLeaderForPartitionError
            All nodes with a replica of the partition are stopped.
        BrokerResponseError
            In the same cases as in ``UnifiedLog.append_marker``. Nothing has been appended.
        """
        self._look_at_topic()
        if not 0 <= number < len(self._partitions):
            place = TopicPartition(self.topic.name, number)
            raise UnknownTopicOrPartitionError(f"{partition_name(place)} does not exist")
        partition = self._check_active(number)
        place = partition.topic_partition
        leader = self._cluster.leader(place)
        if leader == NO_LEADER:
            raise NotLeaderForPartitionError(f"{partition_name(place)} has no leader: its nodes are stopped")
        try:
            log = self._cluster.led_log(place, leader)
            info = log.append_marker(
                marker.producer_id,
                marker.producer_epoch,
                commit=marker.commit,
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.transaction_version,
                now_ms=now_ms,
            )
        except KafkaError:
            if partition.log.failure is not None:
                self._fail(number, partition.log.failure)
            raise
        try:
            self._state.end_transaction(number, marker.producer_id, marker.commit, info.last_offset)
        except Exception:
            # The exception is a bug in the coordinator. A part of the transaction may have been applied.
            self._fail(number, "the end of a transaction could not be applied")
            raise
        required = info.last_offset + 1
        partition.pending.advance(required)
        self._replica_manager.partition_changed(place)
        return log, required

    def has_open_transaction(self, key: str, producer: Producer) -> bool:
        """Return whether a producer has an open transaction, in its current epoch, in the key's partition."""
        return self._active(self.partition_for(key)).log.has_open_transaction(*producer)

    def _watched(self, number: int, on_safe: OnSafe) -> OnSafe:
        """Return a function that unloads the partition if its log has failed, and then calls ``on_safe``."""

        def watched(code: int) -> None:
            partition = self._partitions[number]
            if code and partition is not None and not partition.has_failed and partition.log.failure:
                self._fail(number, partition.log.failure)
            on_safe(code)

        return watched

    def when_safe(self, key: str, on_safe: OnSafe) -> None:
        """Call ``on_safe`` when every record applied to the key's partition so far is safe.

        The call may happen before this method returns. The error codes are those of :meth:`append`. A
        response that contains state of the coordinator waits for the call of ``on_safe``, so that clients
        never see state that a crash could undo.
        """
        number = self.partition_for(key)
        partition = self._active(number)
        partition.pending.when_safe(self.topic.append_timeout_ms, self._watched(number, on_safe))

    # ---- State ----------------------------------------------------------------------------------------

    def is_active(self, number: int) -> bool:
        """Return whether this broker coordinates a partition that is loaded and has not failed."""
        partition = self._partitions[number] if number < len(self._partitions) else None
        return partition is not None and not partition.is_loading and not partition.has_failed

    def leader_epoch(self, key: str) -> int:
        """Return the leader epoch of the key's partition, which is the epoch of its coordinator."""
        return self._active(self.partition_for(key)).leader_epoch

    @property
    def is_loading(self) -> bool:
        """Whether any partition is still being loaded."""
        return any(one is not None and one.is_loading and not one.has_failed for one in self._partitions)

    @property
    def partition_count(self) -> int:
        """Number of partitions of the topic; 0 if it does not exist."""
        return len(self._partitions)
