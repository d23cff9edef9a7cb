"""``__consumer_offsets`` as the group coordinator's log: it alone appends records and applies them.

The state in memory is always that of the log: a record is applied right after its append, at run time and in
the replay of a partition alike. An append may fail until the high watermark has passed it, so it is
acknowledged only then. A partition whose log fails, or whose leader changes, is unloaded: its state in memory
is dropped, and requests that wait for it fail. Used by the network thread alone; a thread of its own loads
partitions, into memory of its own. The behaviour is that of Kafka's ``CoordinatorRuntime``, without its
snapshots: a reader waits instead.
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

#: Groups that become known in one turn of the network thread: a few milliseconds.
GROUPS_PER_TURN = 200
#: Error of an append → the error of the response (``CoordinatorOperationExceptionHelper``).
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
    """One partition while it is coordinated here, under one leader epoch."""

    def __init__(self, topic_partition: TopicPartition, log: UnifiedLog, pending: PendingAppends) -> None:
        self.topic_partition = topic_partition
        self.log = log
        self.leader_epoch = log.leader_epoch
        self.pending = pending
        self.offsets = PartitionOffsets()
        self.is_loading = True
        #: Its log cannot be read or written, until the next start.
        self.has_failed = False
        #: Not coordinated here any more.
        self.is_gone = False


class CoordinatorLog:
    """Implements :class:`~kafkacore.broker.group.interfaces.CoordinatorLog`.

    Parameters
    ----------
    config:
        The topic's settings, and ``offsets.commit.timeout.ms``.
    topics, cluster:
        Whether the topic is there, and who leads its partitions.
    replica_manager:
        Appends, and tells of high watermarks.

    ``groups`` is set before anything is asked.
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
        #: For tests: what :meth:`check` is to raise.
        self.refusal: Exception | None = None
        #: Called with a partition that has just been loaded.
        self.on_loaded: Callable[[int], None] = lambda _: None

    # ---- Which partition, and whose -------------------------------------------------------------------

    def start(self) -> None:
        """Begin to load what there is of the topic. Requests for it are put off meanwhile."""
        self._look_at_topic()

    def close(self) -> None:
        """Load nothing more. Returns when no log is being read."""
        self._loader.close()

    def ensure_topic(self) -> None:
        """Make the topic if it is missing.

        Raises
        ------
        CoordinatorNotAvailableError
            It is being made.
        InvalidPartitionsError, OSError
            As :meth:`TopicCatalog.create`.
        """
        if self._topics.get(OFFSETS_TOPIC) is None:
            try:
                self._topics.create_unless_slow(OFFSETS_TOPIC, *offsets_topic_settings(self._config))
            except UnknownTopicOrPartitionError as error:
                raise CoordinatorNotAvailableError(f"{OFFSETS_TOPIC} is being made") from error
        self._look_at_topic()

    def _look_at_topic(self) -> None:
        """Notice that the topic has been made, or removed."""
        topic = self._topics.get(OFFSETS_TOPIC)
        topic_id = None if topic is None else topic.topic_id
        if topic_id == self._topic_id:
            return
        # First, because who is sent away may come back at once.
        self._topic_id = topic_id
        for number in range(len(self._partitions)):
            self._unload(number)
        # As many as now: a group keeps its partition when the topic is given more.
        self._partitions = [None] * (0 if topic is None else topic.partition_count)
        for number in range(len(self._partitions)):
            self._load(number)

    def partition_for(self, group_id: str) -> int:
        """The partition of ``__consumer_offsets`` that a group lives on."""
        return partition_for(group_id, len(self._partitions) or self._config.offsets_topic_num_partitions)

    def check(self, group_id: str, node_id: int) -> None:
        """Return if ``node_id`` coordinates the group now; raises as the interface says."""
        if self.refusal is not None:
            raise self.refusal
        self._look_at_topic()
        number = self.partition_for(group_id)
        if not self._partitions:
            raise NotCoordinatorError(f"there is no {OFFSETS_TOPIC} yet")
        place = TopicPartition(OFFSETS_TOPIC, number)
        if self._cluster.leader(place) != node_id:
            raise NotCoordinatorError(f"node {node_id} does not lead {partition_name(place)}")
        partition = self._current(number)
        if partition is None or partition.has_failed:
            raise NotCoordinatorError(f"{partition_name(place)} is offline")
        if partition.is_loading:
            raise CoordinatorLoadInProgressError(f"{partition_name(place)} is being loaded")

    def topic_removed(self) -> None:
        """The topic may be gone: if so, forget all groups."""
        self._look_at_topic()

    def leader_changed(self, topic_partition: TopicPartition) -> None:
        """A partition has another leader: if it is one of the topic, begin anew from the log."""
        self._look_at_topic()
        if topic_partition.topic == OFFSETS_TOPIC and topic_partition.partition < len(self._partitions):
            self._current(topic_partition.partition)

    def _current(self, number: int) -> _Partition | None:
        """The partition as it is under the leader of now."""
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
        assert partition is not None, "checked before"
        assert not partition.is_loading, "checked before"
        assert not partition.has_failed, "checked before"
        return partition

    # ---- Load -----------------------------------------------------------------------------------------

    def _load(self, number: int) -> None:
        place = TopicPartition(OFFSETS_TOPIC, number)
        try:
            log = self._topics.log(place)
        except (UnknownTopicOrPartitionError, KafkaStorageError) as error:
            logger.error("the groups of %s are not available: %s", partition_name(place), error)
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
        """Apply the state that the loader has read, on the network thread."""
        if partition.is_gone:
            return
        if not isinstance(outcome, LoadedPartition):
            self._fail(number, f"{partition_name(partition.topic_partition)} cannot be loaded: {outcome}")
            return
        partition.offsets = outcome.offsets
        simple = outcome.offsets.groups.keys() - outcome.groups.keys()
        self._apply_groups(number, partition, outcome, iter([*outcome.groups, *simple]))

    def _apply_groups(
        self, number: int, partition: _Partition, outcome: LoadedPartition, names: Iterator[str]
    ) -> None:
        """Apply the next groups; a group that is not in ``outcome.groups`` has only offsets."""
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
        """Drop a partition; requests that wait for it fail with NOT_COORDINATOR."""
        partition, self._partitions[number] = self._partitions[number], None
        if partition is None or partition.is_gone:
            return
        partition.is_gone = True
        self.groups.unload(number)
        partition.pending.fail(NotCoordinatorError.errno)

    def _fail(self, number: int, reason: str) -> None:
        """Unload a partition until the next start, because its memory may differ from its log."""
        partition = self._partitions[number]
        assert partition is not None
        logger.error("its groups are not available until the next start: %s", reason)
        self._unload(number)
        partition.has_failed = True
        partition.offsets = PartitionOffsets()
        self._partitions[number] = partition

    # ---- Append ---------------------------------------------------------------------------------------

    def append(self, group_id: str, batch: Sequence[CoordinatorRecord], on_safe: OnSafe) -> None:
        """Write one batch to the group's partition, and apply it; as the interface says."""
        self.append_to(self.partition_for(group_id), batch, on_safe)

    def append_to(self, number: int, batch: Sequence[CoordinatorRecord], on_safe: OnSafe) -> None:
        """As :meth:`append`, for records of several groups of one partition."""
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
            # Half of the batch may be applied: a bug of ours, which the log must not suffer from.
            self._fail(number, f"{partition_name(place)}: a record could not be applied")
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
            assert place >= 0, "a batch has room for all of its records"
        return builder.close()

    def _apply(self, partition: _Partition, raw_key: bytes, raw_value: bytes | None, offset: int) -> None:
        """The one place that changes offsets and groups. (A replay does the same to memory of its own.)"""
        key = records.decode_key(raw_key)
        assert key is not None, "a record of ours"
        if isinstance(key, OffsetCommitKey):
            commit = None if raw_value is None else records.decode_offset_commit(raw_value)
            if commit is not None:
                self.groups.ensure_simple(key.group)
            partition.offsets.apply(key, commit, offset)
        else:
            value = None if raw_value is None else records.decode_group_metadata(raw_value)
            self.groups.apply_group(key.group, value)

    def _watched(self, number: int, on_safe: OnSafe) -> OnSafe:
        """``on_safe``, which also unloads a partition whose log has failed."""

        def watched(code: int) -> None:
            partition = self._partitions[number]
            if code and partition is not None and not partition.has_failed and partition.log.failure:
                self._fail(number, partition.log.failure)
            on_safe(code)

        return watched

    def when_safe(self, group_id: str, on_safe: OnSafe) -> None:
        """Call ``on_safe`` once all that is applied to the group's partition cannot be lost."""
        number = self.partition_for(group_id)
        partition = self._active(number)
        partition.pending.when_safe(self._config.offsets_commit_timeout_ms, self._watched(number, on_safe))

    # ---- Offsets --------------------------------------------------------------------------------------

    def offsets_of(self, number: int) -> PartitionOffsets | None:
        """The offsets of a partition that is coordinated here and loaded."""
        partition = self._partitions[number] if number < len(self._partitions) else None
        if partition is None or partition.is_loading or partition.has_failed:
            return None
        return partition.offsets

    @property
    def is_loading(self) -> bool:
        """Whether groups of some partition are still to be known."""
        return any(one is not None and one.is_loading and not one.has_failed for one in self._partitions)

    @property
    def partition_count(self) -> int:
        """Partitions of the topic, 0 if there is none."""
        return len(self._partitions)
