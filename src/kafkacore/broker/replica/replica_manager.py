"""Appends to partitions, reads from them, and completes requests that wait for changes of partitions.

The behaviour is that of Kafka's ``ReplicaManager`` for partitions with one replica.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sized
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kafkacore.broker.error_answer import error_code
from kafkacore.broker.purgatory.delayed_operation import DelayedFetch, DelayedOperationPurgatory
from kafkacore.broker.purgatory.timer import Timer
from kafkacore.broker.replica.fetch_partition import (
    NO_EPOCH,
    NO_OFFSET,
    NO_RECORDS,
    FetchContext,
    FetchParams,
    FetchPartition,
    FetchPartitionResult,
    PartitionResults,
)
from kafkacore.clock import Clock
from kafkacore.errors import (
    InconsistentTopicIdError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol import ZERO_UUID
from kafkacore.structs import TopicPartition, partition_name

if TYPE_CHECKING:
    from kafkacore.broker.log import LogAppendInfo, UnifiedLog
    from kafkacore.broker.log._validation import ValidationBudget
    from kafkacore.broker.log.log_structs import ValidatedBatch
    from kafkacore.broker.log.reading import LogOffsetMetadata
    from kafkacore.broker.topics.cluster_state import ClusterState


class PartitionWatcher(Protocol):
    """An object that is notified of each change of a partition."""

    def partition_changed(self) -> Hashable:
        """Record the change, and return the purgatory key whose waiting fetches must be checked."""
        ...


class ReplicaManager:
    """Reads from and appends to the partitions of this broker.

    Only the network thread may use it, but :meth:`on_high_watermark` and :meth:`call_soon` may be called from
    any thread.

    Parameters
    ----------
    cluster:
        State of the cluster, which returns the log of a partition to the node that leads it.
    clock:
        Source of the time of appends.
    timer:
        Timer of the broker, for the requests that wait.
    wakeup:
        Wakes the network thread. It is called from other threads.
    """

    def __init__(self, cluster: ClusterState, clock: Clock, timer: Timer, wakeup: Callable[[], None]) -> None:
        self._cluster = cluster
        self._clock = clock
        self._wakeup = wakeup
        self.produce_purgatory = DelayedOperationPurgatory(timer)
        self.fetch_purgatory = DelayedOperationPurgatory(timer)
        # The flusher thread appends partitions and the network thread removes them. A deque needs no lock
        # for these operations.
        self._changed: deque[TopicPartition] = deque()
        # Keys of the changed partitions, for which the purgatories have not been checked yet.
        self._keys: dict[Hashable, None] = {}
        self._watchers: dict[TopicPartition, dict[PartitionWatcher, None]] = {}
        self._tasks: deque[Callable[[], None]] = deque()
        #: The events that :meth:`complete_delayed` takes. The network thread waits only if all are empty.
        self.events: tuple[Sized, Sized, Sized] = (self._changed, self._keys, self._tasks)

    # ---- Events ---------------------------------------------------------------------------------------

    def on_high_watermark(self, topic_partition: TopicPartition, high_watermark: int) -> None:
        """Record that the high watermark of a partition has moved. Any thread may call this."""
        self._changed.append(topic_partition)
        self._wakeup()

    def partition_changed(self, topic_partition: TopicPartition) -> None:
        """Record that a partition has grown, was deleted or has a new leader.

        The next :meth:`complete_delayed` checks the requests that wait for the partition.
        """
        self._changed.append(topic_partition)

    def call_soon(self, task: Callable[[], None]) -> None:
        """Run ``task`` on the network thread in a later iteration of its loop. Any thread may call this.

        A long task must divide its work and call this method again for the next part.
        """
        self._tasks.append(task)
        self._wakeup()

    def watch(self, topic_partition: TopicPartition, watcher: PartitionWatcher) -> None:
        """Notify ``watcher`` of every change of a partition until :meth:`unwatch`."""
        self._watchers.setdefault(topic_partition, {})[watcher] = None

    def unwatch(self, topic_partition: TopicPartition, watcher: PartitionWatcher) -> None:
        watchers = self._watchers[topic_partition]
        del watchers[watcher]
        if not watchers:
            del self._watchers[topic_partition]

    @property
    def has_events(self) -> bool:
        return any(self.events)

    def _take_events(self) -> None:
        """Collect the keys of changed partitions and notify their watchers. Do not complete requests yet."""
        changed = self._changed
        while changed:
            for topic_partition in {changed.popleft() for _ in range(len(changed))}:
                self._keys[topic_partition] = None
                for watcher in self._watchers.get(topic_partition, ()):
                    self._keys[watcher.partition_changed()] = None

    def complete_delayed(self) -> int:
        """Run the tasks of :meth:`call_soon`, and complete the waiting requests that can be answered now.

        Returns
        -------
        int
            Number of completed requests.
        """
        for _ in range(len(self._tasks)):
            self._tasks.popleft()()
        completed = 0
        self._take_events()
        while self._keys:
            keys = list(self._keys)
            self._keys.clear()
            for key in keys:
                completed += self.produce_purgatory.check_and_complete(key)
                completed += self.fetch_purgatory.check_and_complete(key)
            self._take_events()
        return completed

    # ---- Produce --------------------------------------------------------------------------------------

    def append(
        self, topic_partition: TopicPartition, records: memoryview, node_id: int
    ) -> tuple[UnifiedLog, LogAppendInfo]:
        """Append one batch to a partition that ``node_id`` leads.

        Raises
        ------
        BrokerResponseError
            The error of the response, such as ``NOT_LEADER_OR_FOLLOWER`` or ``CORRUPT_MESSAGE``. Nothing has
            been appended.
        """
        log = self._cluster.led_log(topic_partition, node_id)
        info = log.append(records, now_ms=self._clock.wall_ms())
        return log, self._appended(topic_partition, log, info)

    def append_within(
        self, topic_partition: TopicPartition, records: memoryview, node_id: int, budget: ValidationBudget
    ) -> tuple[UnifiedLog, LogAppendInfo | None]:
        """Append one batch like :meth:`append`, if its validation does not exceed ``budget``.

        If the validation exceeds ``budget``, return the log and ``None``. The caller then validates the batch
        on another thread and calls :meth:`append_validated`.
        """
        log = self._cluster.led_log(topic_partition, node_id)
        info = log.append(records, now_ms=self._clock.wall_ms(), budget=budget)
        return log, None if info is None else self._appended(topic_partition, log, info)

    def append_validated(
        self, topic_partition: TopicPartition, log: UnifiedLog, batch: ValidatedBatch, node_id: int
    ) -> LogAppendInfo:
        """Append a batch that ``log.validate`` has returned on another thread.

        Raises
        ------
        UnknownTopicOrPartitionError
            The topic has been deleted in the meantime. The error is raised even if a new topic has the same
            name.
        BrokerResponseError
            See :meth:`append`.
        """
        if self._cluster.led_log(topic_partition, node_id) is not log:
            raise UnknownTopicOrPartitionError(f"{partition_name(topic_partition)} was deleted")
        return self._appended(topic_partition, log, log.append_validated(batch, self._clock.wall_ms()))

    def _appended(
        self, topic_partition: TopicPartition, log: UnifiedLog, info: LogAppendInfo
    ) -> LogAppendInfo:
        if log.high_watermark > info.last_offset:
            self._changed.append(topic_partition)
        return info

    # ---- Fetch ----------------------------------------------------------------------------------------

    def fetch_messages(
        self, params: FetchParams, context: FetchContext, respond: Callable[[PartitionResults], None]
    ) -> DelayedFetch | None:
        """Read the partitions; call ``respond`` when ``min_bytes`` are available or ``max_wait_ms`` is over.

        Returns
        -------
        DelayedFetch or None
            The waiting fetch; ``None`` if ``respond`` has been called at once. That is the case if there are
            enough bytes, an error, or a diverging epoch, or if the fetch must not wait.
        """

        def answer(results: PartitionResults) -> None:
            for _, result in results:
                if result.log is not None:
                    result.log.fetched_bytes += len(result.records)
            respond(results)

        now_ms = self._clock.monotonic_ms()
        # Collect earlier changes now, so that they do not count as events for this fetch.
        self._take_events()
        partitions = list(context.partitions())
        results = self.read(params, partitions)
        if params.max_wait_ms <= 0 or params.min_bytes <= 0 or not context.keys():
            answer(results)
            return None
        if is_worth_answering(results, params.min_bytes):
            answer(results)
            return None
        seen = _seen_of(results, params) if params.min_bytes > 1 else {}
        operation = DelayedFetch(
            now_ms + params.max_wait_ms,
            lambda: self.is_satisfied(params, context, seen),
            lambda: answer(self.read(params, list(context.partitions()))),
        )
        # The partitions have just been read, so the fetch cannot be completed yet.
        self.fetch_purgatory.watch(operation, context.keys())
        return operation

    def read(self, params: FetchParams, partitions: list[FetchPartition]) -> PartitionResults:
        """Read from each partition in turn until ``max_bytes`` have been read (Kafka's ``readFromLog``).

        The first partition with records returns at least one batch of any size. A consumer therefore makes
        progress even if its limits are too small (KIP-74).
        """
        results = []
        remaining = params.max_bytes
        min_one_message = True
        for partition in partitions:
            result = self._read_one(params, partition, remaining, min_one_message)
            size = len(result.records)
            if size:
                min_one_message = False
                remaining = max(remaining - size, 0)
            results.append((partition, result))
        return results

    def _read_one(
        self, params: FetchParams, partition: FetchPartition, remaining: int, min_one_message: bool
    ) -> FetchPartitionResult:
        try:
            log, limit, diverging_epoch = self._readable(params, partition)
            found = None
            is_readable = partition.fetch_offset < limit and diverging_epoch is None
            limit_bytes = min(max(partition.max_bytes, 0), remaining)
            if is_readable and (limit_bytes or min_one_message):
                found = log.read(
                    partition.fetch_offset,
                    limit_bytes,
                    min_one_message=min_one_message,
                    max_offset=limit,
                    may_slice=True,
                    with_aborted=params.read_committed,
                )
        except Exception as error:  # noqa: BLE001 - affects one partition; error_code logs it
            return FetchPartitionResult(error=error_code(error))
        return FetchPartitionResult(
            0,
            log.high_watermark,
            log.last_stable_offset,
            log.log_start_offset,
            NO_RECORDS if found is None else found.records,
            diverging_epoch,
            is_readable,
            log,
            partition.fetch_offset if found is None else found.next_offset,
            () if found is None else found.aborted_transactions,
        )

    def _readable(
        self, params: FetchParams, partition: FetchPartition
    ) -> tuple[UnifiedLog, int, tuple[int, int] | None]:
        """Check a fetch from a partition, and return the log and the limit of the offsets that it may read.

        Returns
        -------
        tuple
            The log, the offset before which the consumer may read, and a pair with the diverging epoch and
            its end offset. The pair is ``None`` if the epochs do not diverge.

        Raises
        ------
        BrokerResponseError
            The error of the response.
        """
        topic_partition = partition.topic_partition
        if topic_partition is None:
            raise UnknownTopicIdError(f"No topic has the id {partition.topic_id}")
        if params.may_read is not None and not params.may_read(topic_partition.topic):
            raise TopicAuthorizationFailedError(f"not authorized to read topic '{topic_partition.topic}'")
        log = self._cluster.led_log(topic_partition, params.node_id, partition.current_leader_epoch)
        topic_id = partition.topic_id
        if topic_id not in (ZERO_UUID, self._cluster.topic_id(topic_partition)):
            raise InconsistentTopicIdError(
                f"topic '{topic_partition.topic}' has another id than in the fetch session"
            )
        offset = partition.fetch_offset
        diverging_epoch = None
        if partition.last_fetched_epoch != NO_EPOCH:
            diverging_epoch = _diverging_epoch(log, partition)
        # Compare the offset with the high watermark first: reading the high watermark is faster than reading
        # the log end offset, and most fetch offsets are lower.
        is_beyond_end = offset > log.high_watermark and offset > log.log_end_offset
        if offset < log.log_start_offset or (diverging_epoch is None and is_beyond_end):
            raise OffsetOutOfRangeError(
                f"offset {offset} of {partition_name(topic_partition)} is out of range: the log has offsets "
                f"from {log.log_start_offset} to {log.log_end_offset}"
            )
        limit = log.last_stable_offset if params.read_committed else log.high_watermark
        return log, limit, diverging_epoch

    def is_satisfied(
        self, params: FetchParams, context: FetchContext, seen: dict[TopicPartition, Seen]
    ) -> bool:
        """Return whether a waiting fetch can be answered: ``min_bytes`` are available, or there is an error.

        The bytes are computed from positions in the log, usually without reading records. ``seen`` has the
        sizes and positions found so far.
        """
        available = 0
        for partition in context.partitions():
            try:
                log, limit, diverging_epoch = self._readable(params, partition)
            except Exception:  # noqa: BLE001 - the final read returns and logs it
                return True
            if diverging_epoch is not None:
                return True
            if partition.fetch_offset < limit:
                if params.min_bytes <= 1:
                    return True
                available += self._available(params, partition, log, limit, seen)
                if available >= params.min_bytes:
                    return True
        return False

    def _available(
        self,
        params: FetchParams,
        partition: FetchPartition,
        log: UnifiedLog,
        limit: int,
        seen: dict[TopicPartition, Seen],
    ) -> int:
        """Return how many bytes of a partition a fetch would get, as Kafka's ``DelayedFetch`` counts them.

        ``limit`` is the offset before which the consumer may read.
        """
        assert partition.topic_partition is not None, "the partition has a log"
        before, end = seen.get(partition.topic_partition), log.high_watermark_metadata
        if before is not None and before.end.offset == limit:
            return before.size
        if before is None or limit != end.offset or before.is_last_stable:
            # The position of the limit is not known: it is a last stable offset, or batches were appended
            # during the last read.
            results = [(partition, self._read_one(params, partition, params.max_bytes, True))]
            seen.update(_seen_of(results, params))
            return params.min_bytes if results[0][1].error else len(results[0][1].records)
        if end.segment is not before.end.segment:
            # Answer now, because the log has a new segment and a read cannot continue in the next segment.
            return params.min_bytes
        return min(before.size + end.position - before.end.position, max(partition.max_bytes, before.size))


class Seen(NamedTuple):
    """Number of bytes that a read of a partition returned, and the position in the log after them."""

    size: int
    end: LogOffsetMetadata
    #: Whether the records end at a last stable offset below the high watermark. If so, only the offset of
    #: ``end`` is known.
    is_last_stable: bool


def _seen_of(results: PartitionResults, params: FetchParams) -> dict[TopicPartition, Seen]:
    """Return the size and the end offset of the records read from each partition.

    Only partitions that were read up to the consumer's limit are included. The limit is the high watermark
    or, with ``read_committed``, the last stable offset.
    """
    seen = {}
    for partition, result in results:
        if partition.topic_partition is not None and result.log is not None:
            end = result.log.high_watermark_metadata
            size, next_offset = len(result.records), result.next_offset
            if end.offset == next_offset:
                seen[partition.topic_partition] = Seen(size, end, False)
            elif params.read_committed and result.last_stable_offset == next_offset:
                seen[partition.topic_partition] = Seen(size, end._replace(offset=next_offset), True)
    return seen


def is_worth_answering(results: PartitionResults, min_bytes: int) -> bool:
    """Return whether the results have ``min_bytes``, an error or a diverging epoch."""
    available = 0
    for _, result in results:
        if result.error or result.diverging_epoch is not None:
            return True
        available += len(result.records)
    return available >= min_bytes


def _diverging_epoch(log: UnifiedLog, partition: FetchPartition) -> tuple[int, int] | None:
    """Return the epoch and end offset at which the log diverges from the client's records, or ``None``."""
    epoch, end_offset = log.end_offset_for_epoch(partition.last_fetched_epoch)
    if epoch == NO_EPOCH or end_offset == NO_OFFSET:
        raise OffsetOutOfRangeError(
            f"the end offset of leader epoch {partition.last_fetched_epoch} of "
            f"{partition.name}-{partition.partition} is not known"
        )
    if epoch < partition.last_fetched_epoch or end_offset < partition.fetch_offset:
        return epoch, end_offset
    return None
