"""The group coordinator's log ``__consumer_offsets``: appends records and applies them to memory.

A record is applied right after its append, so the state in memory always equals that of the log. An append
is acknowledged only when the high watermark has passed it, because it may fail until then. A partition whose
log fails, or whose leader changes, is unloaded: its state is dropped and waiting requests fail.

Only the network thread uses this module. A separate thread loads partitions into memory of its own. The
behaviour is that of Kafka's ``CoordinatorRuntime`` without snapshots: a reader waits for the high watermark
instead.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING
from uuid import UUID

from kafkacore.broker.error_answer import error_code
from kafkacore.broker.group import records
from kafkacore.broker.group.interfaces import Groups, OnSafe
from kafkacore.broker.group.loader import LoadedPartition, LoadJob, PartitionLoader
from kafkacore.broker.group.offset_store import PartitionOffsets
from kafkacore.broker.group.pending import PendingAppends
from kafkacore.broker.group.records import CoordinatorRecord
from kafkacore.broker.topics.internal_topics import OFFSETS_TOPIC, offsets_topic_settings
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
from kafkacore.protocol.generated.group_records import OffsetCommitKey
from kafkacore.record import Compression, RecordBatchBuilder
from kafkacore.record._layout import BATCH_OVERHEAD, MAX_FIELDS_OVERHEAD
from kafkacore.structs import TopicPartition, partition_name

if TYPE_CHECKING:
    from kafkacore.broker.config.broker_config import BrokerConfig
    from kafkacore.broker.log import UnifiedLog
    from kafkacore.broker.replica.replica_manager import ReplicaManager
    from kafkacore.broker.topics.cluster_state import ClusterState
    from kafkacore.broker.topics.topic_catalog import TopicCatalog
    from kafkacore.clock import Clock

logger = logging.getLogger(__name__)

#: Groups to apply in one turn of the network thread after a load. This takes a few milliseconds.
GROUPS_PER_TURN = 200
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


class _Partition:
    """A partition of ``__consumer_offsets`` that this broker coordinates, in one leader epoch."""

    def __init__(self, topic_partition: TopicPartition, log: UnifiedLog, pending: PendingAppends) -> None:
        self.topic_partition = topic_partition
        self.log = log
        self.leader_epoch = log.leader_epoch
        self.pending = pending
        self.offsets = PartitionOffsets()
        self.is_loading = True
        #: Whether its log cannot be read or written until the broker restarts.
        self.has_failed = False
        #: Whether this broker has stopped coordinating it.
        self.is_gone = False


class CoordinatorLog:
    """Implements :class:`~kafkacore.broker.group.interfaces.CoordinatorLog`.

    Parameters
    ----------
    config:
        Settings of the topic, and ``offsets.commit.timeout.ms``.
    topics:
        Catalog in which the topic and its logs are looked up.
    cluster:
        State of the cluster, which gives the leaders of the topic's partitions.
    replica_manager:
        Appends records and reports high watermarks.

    Notes
    -----
    Set ``groups`` before the first call.
    """

    groups: Groups

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        topics: TopicCatalog,
        cluster: ClusterState,
        replica_manager: ReplicaManager,
    ) -> None:
        self._config = config
        self._clock = clock
        self._topics = topics
        self._cluster = cluster
        self._replica_manager = replica_manager
        self._loader = PartitionLoader(config.offsets_load_buffer_size)
        self._topic_id: UUID | None = None
        self._partitions: list[_Partition | None] = []
        #: For tests: the exception that :meth:`check` raises.
        self.refusal: Exception | None = None
        #: Called with the number of a partition after it has been loaded.
        self.on_loaded: Callable[[int], None] = lambda _: None

    # ---- Partitions -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to load the topic if it exists. Until then, its groups are reported as loading."""
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
            As :meth:`TopicCatalog.create`.
        """
        if self._topics.get(OFFSETS_TOPIC) is None:
            try:
                self._topics.create_unless_slow(OFFSETS_TOPIC, *offsets_topic_settings(self._config))
            except UnknownTopicOrPartitionError as error:
                raise CoordinatorNotAvailableError(f"topic {OFFSETS_TOPIC} is being created") from error
        self._look_at_topic()

    def _look_at_topic(self) -> None:
        """Load or unload partitions if the topic has been created or deleted."""
        topic = self._topics.get(OFFSETS_TOPIC)
        topic_id = None if topic is None else topic.topic_id
        if topic_id == self._topic_id:
            return
        # Set this first: a client whose request fails below may retry at once and call this method again.
        self._topic_id = topic_id
        for number in range(len(self._partitions)):
            self._unload(number)
        # The count stays the same if partitions are added later, so that a group keeps its partition.
        self._partitions = [None] * (0 if topic is None else topic.partition_count)
        for number in range(len(self._partitions)):
            self._load(number)

    def partition_for(self, group_id: str) -> int:
        """Return the partition of ``__consumer_offsets`` that stores a group."""
        return partition_for(group_id, len(self._partitions) or self._config.offsets_topic_num_partitions)

    def check(self, group_id: str, node_id: int) -> None:
        """Check that ``node_id`` coordinates the group now. The interface documents the errors."""
        if self.refusal is not None:
            raise self.refusal
        self._look_at_topic()
        number = self.partition_for(group_id)
        if not self._partitions:
            raise NotCoordinatorError(f"topic {OFFSETS_TOPIC} does not exist yet")
        place = TopicPartition(OFFSETS_TOPIC, number)
        if self._cluster.leader(place) != node_id:
            raise NotCoordinatorError(f"node {node_id} is not the leader of {partition_name(place)}")
        partition = self._current(number)
        if partition is None or partition.has_failed:
            raise NotCoordinatorError(f"{partition_name(place)} is offline")
        if partition.is_loading:
            raise CoordinatorLoadInProgressError(f"{partition_name(place)} is being loaded")

    def topic_removed(self) -> None:
        """Forget all groups if the topic has been deleted."""
        self._look_at_topic()

    def leader_changed(self, topic_partition: TopicPartition) -> None:
        """Reload a partition that has a new leader, if it belongs to this topic."""
        self._look_at_topic()
        if topic_partition.topic == OFFSETS_TOPIC and topic_partition.partition < len(self._partitions):
            self._current(topic_partition.partition)

    def _current(self, number: int) -> _Partition | None:
        """Return a partition after reloading it if its leader has changed or its log has failed."""
        partition = self._partitions[number]
        if partition is not None and not partition.has_failed:
            if partition.log.failure is not None:
                self._fail(number, partition.log.failure)
            elif partition.log.leader_epoch != partition.leader_epoch:
                self._unload(number)
                self._load(number)
                partition = self._partitions[number]
        return partition

    def _active(self, number: int) -> _Partition:
        partition = self._partitions[number]
        assert partition is not None, "check() has passed"
        assert not partition.is_loading, "check() has passed"
        assert not partition.has_failed, "check() has passed"
        return partition

    # ---- Load -----------------------------------------------------------------------------------------

    def _load(self, number: int) -> None:
        place = TopicPartition(OFFSETS_TOPIC, number)
        try:
            log = self._topics.log(place)
        except (UnknownTopicOrPartitionError, KafkaStorageError) as error:
            logger.error("groups of %s are not available: %s", partition_name(place), error)
            return
        pending = PendingAppends(place, log, self._replica_manager.produce_purgatory, self._clock)
        partition = self._partitions[number] = _Partition(place, log, pending)
        if log.log_start_offset == log.log_end_offset:
            partition.is_loading = False
            return

        def on_loaded(outcome: LoadedPartition | KafkaError) -> None:
            self._replica_manager.call_soon(lambda: self._apply_loaded(number, partition, outcome))

        self._loader.load(LoadJob(place, log, lambda: partition.is_gone, on_loaded))

    def _apply_loaded(
        self, number: int, partition: _Partition, outcome: LoadedPartition | KafkaError
    ) -> None:
        """Apply the state that the loader has read. Runs on the network thread."""
        if partition.is_gone:
            return
        if not isinstance(outcome, LoadedPartition):
            self._fail(number, f"loading failed: {outcome}")
            return
        partition.offsets = outcome.offsets
        simple = outcome.offsets.groups.keys() - outcome.groups.keys()
        self._apply_groups(number, partition, outcome, iter([*outcome.groups, *simple]))

    def _apply_groups(
        self, number: int, partition: _Partition, outcome: LoadedPartition, names: Iterator[str]
    ) -> None:
        """Apply the next few groups. A group that is not in ``outcome.groups`` has only offsets."""
        if partition.is_gone:
            return
        some = list(islice(names, GROUPS_PER_TURN))
        for group_id in some:
            if group_id in outcome.groups:
                self.groups.apply_group(group_id, outcome.groups[group_id])
        self.groups.load(some)
        if some:
            self._replica_manager.call_soon(lambda: self._apply_groups(number, partition, outcome, names))
            return
        partition.is_loading = False
        logger.info("%s: loaded %d records", partition_name(partition.topic_partition), outcome.record_count)
        self.on_loaded(number)

    def _unload(self, number: int) -> None:
        """Drop a partition. Requests that wait for it fail with NOT_COORDINATOR."""
        partition, self._partitions[number] = self._partitions[number], None
        if partition is None or partition.is_gone:
            return
        partition.is_gone = True
        self.groups.unload(number)
        partition.pending.fail(NotCoordinatorError.errno)

    def _fail(self, number: int, reason: str) -> None:
        """Unload a partition until the broker restarts, because its memory may differ from its log."""
        partition = self._partitions[number]
        assert partition is not None
        logger.error(
            "groups of %s are not available until the broker is restarted: %s",
            partition_name(partition.topic_partition),
            reason,
        )
        self._unload(number)
        partition.has_failed = True
        partition.offsets = PartitionOffsets()
        self._partitions[number] = partition

    # ---- Append ---------------------------------------------------------------------------------------

    def append(self, group_id: str, batch: Sequence[CoordinatorRecord], on_safe: OnSafe) -> None:
        """Append one batch to the group's partition and apply it. See the interface for ``on_safe``."""
        self.append_to(self.partition_for(group_id), batch, on_safe)

    def append_to(self, number: int, batch: Sequence[CoordinatorRecord], on_safe: OnSafe) -> None:
        """Append records of several groups of one partition, as :meth:`append` does."""
        partition = self._active(number)
        place = partition.topic_partition
        try:
            _, info = self._replica_manager.append(place, self._built(batch), self._cluster.leader(place))
        except KafkaError as error:
            if partition.log.failure is not None:
                self._fail(number, partition.log.failure)
            code = error_code(error)
            on_safe(_CLIENT_ERRORS.get(code, code))
            return
        try:
            for offset, (key, value) in enumerate(batch, info.first_offset):
                self._apply(partition, key, value, offset)
        except Exception:
            # This is a bug in the coordinator, and part of the batch may have been applied.
            self._fail(number, "a record could not be applied")
            raise
        timeout_ms = self._config.offsets_commit_timeout_ms
        partition.pending.add(info.last_offset + 1, timeout_ms, self._watched(number, on_safe))

    def _built(self, batch: Sequence[CoordinatorRecord]) -> memoryview:
        size = sum(len(key) + len(value or b"") + MAX_FIELDS_OVERHEAD for key, value in batch)
        builder = RecordBatchBuilder(
            BATCH_OVERHEAD + size, Compression(self._config.offsets_topic_compression_codec)
        )
        now_ms = self._clock.wall_ms()
        for key, value in batch:
            place = builder.append(now_ms, key, value)
            assert place >= 0, "the batch is large enough for its records"
        return builder.close()

    def _apply(self, partition: _Partition, raw_key: bytes, raw_value: bytes | None, offset: int) -> None:
        """Apply a record to offsets or groups. Only this method and the loader's replay change them."""
        key = records.decode_key(raw_key)
        assert key is not None, "the coordinator has written the record"
        if isinstance(key, OffsetCommitKey):
            commit = None if raw_value is None else records.decode_offset_commit(raw_value)
            if commit is not None:
                self.groups.ensure_simple(key.group)
            partition.offsets.apply(key, commit, offset)
        else:
            value = None if raw_value is None else records.decode_group_metadata(raw_value)
            self.groups.apply_group(key.group, value)

    def _watched(self, number: int, on_safe: OnSafe) -> OnSafe:
        """Wrap ``on_safe`` so that a partition whose log has failed is unloaded first."""

        def watched(code: int) -> None:
            partition = self._partitions[number]
            if code and partition is not None and not partition.has_failed and partition.log.failure:
                self._fail(number, partition.log.failure)
            on_safe(code)

        return watched

    def when_safe(self, group_id: str, on_safe: OnSafe) -> None:
        """Call ``on_safe`` when the high watermark has passed all records applied to the partition so far."""
        number = self.partition_for(group_id)
        partition = self._active(number)
        partition.pending.when_safe(self._config.offsets_commit_timeout_ms, self._watched(number, on_safe))

    # ---- Offsets --------------------------------------------------------------------------------------

    def offsets_of(self, number: int) -> PartitionOffsets | None:
        """Return the offsets of a partition, or ``None`` if it is not coordinated here or not loaded."""
        partition = self._partitions[number] if number < len(self._partitions) else None
        if partition is None or partition.is_loading or partition.has_failed:
            return None
        return partition.offsets

    @property
    def is_loading(self) -> bool:
        """Whether any partition is still being loaded."""
        return any(one is not None and one.is_loading and not one.has_failed for one in self._partitions)

    @property
    def partition_count(self) -> int:
        """Number of partitions of the topic; 0 if it does not exist."""
        return len(self._partitions)
