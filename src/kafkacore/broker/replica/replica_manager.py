"""Appends to and reads from the partitions of this broker, and the requests that wait on them.

Partition, offset and record bytes in; offsets, record bytes and completed requests out. Does not know:
requests' formats, sockets, files. Source of the behaviour: Kafka's ``ReplicaManager``, for
partitions with one replica.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
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
        """Note it; returns the key of the fetch purgatory to look at."""
        ...


class ReplicaManager:
    """Used by the network thread alone, but for :meth:`on_high_watermark`.

    Parameters
    ----------
    cluster:
        Finds the log of a partition for the node that leads it.
    clock:
        Time of appends.
    timer:
        Of the requests that wait.
    wakeup:
        Ends the network thread's wait; called from the log's flusher thread.
    """

    def __init__(self, cluster: ClusterState, clock: Clock, timer: Timer, wakeup: Callable[[], None]) -> None:
        self._cluster = cluster
        self._clock = clock
        self._wakeup = wakeup
        self.produce_purgatory = DelayedOperationPurgatory(timer)
        self.fetch_purgatory = DelayedOperationPurgatory(timer)
        # Appended to by the flusher thread and emptied by the network thread; deque's own operations are
        # atomic.
        self._changed: deque[TopicPartition] = deque()
        # What has been taken from there and is to be looked for in the purgatories.
        self._keys: dict[Hashable, None] = {}
        self._watchers: dict[TopicPartition, dict[PartitionWatcher, None]] = {}
        self._tasks: deque[Callable[[], None]] = deque()

    # ---- Events ---------------------------------------------------------------------------------------

    def on_high_watermark(self, topic_partition: TopicPartition, high_watermark: int) -> None:
        """The log's flusher has moved a high watermark. Any thread; completes nothing itself."""
        self._changed.append(topic_partition)
        self._wakeup()

    def partition_changed(self, topic_partition: TopicPartition) -> None:
        """A partition has grown, gone, or has another leader. Network thread; whoever waits on it is looked
        at soon."""
        self._changed.append(topic_partition)

    def call_soon(self, task: Callable[[], None]) -> None:
        """Have the network thread run ``task``, in its next turn at the earliest. Any thread.

        What is too long for one turn calls for the next one at its end.
        """
        self._tasks.append(task)
        self._wakeup()

    def watch(self, topic_partition: TopicPartition, watcher: PartitionWatcher) -> None:
        """Tell ``watcher`` of every event on a partition, until :meth:`unwatch`."""
        self._watchers.setdefault(topic_partition, {})[watcher] = None

    def unwatch(self, topic_partition: TopicPartition, watcher: PartitionWatcher) -> None:
        watchers = self._watchers[topic_partition]
        del watchers[watcher]
        if not watchers:
            del self._watchers[topic_partition]

    @property
    def has_events(self) -> bool:
        return bool(self._changed or self._keys or self._tasks)

    def _take_events(self) -> None:
        """Tell the watchers what has happened; completes nothing yet."""
        changed = self._changed
        while changed:
            for topic_partition in {changed.popleft() for _ in range(len(changed))}:
                self._keys[topic_partition] = None
                for watcher in self._watchers.get(topic_partition, ()):
                    self._keys[watcher.partition_changed()] = None

    def complete_delayed(self) -> int:
        """Run the tasks, and answer the requests that the events since the last call have made answerable;
        how many.
        """
        for _ in range(len(self._tasks)):
            self._tasks.popleft()()
        completed = 0
        self._take_events()
        while self._keys:
            keys, self._keys = self._keys, {}
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
        NotLeaderForPartitionError, CorruptRecordError, …
            As the cluster or the log refuses it; nothing has been appended then.
        """
        log = self._cluster.led_log(topic_partition, node_id)
        info = log.append(records, now_ms=self._clock.wall_ms())
        return log, self._appended(topic_partition, log, info)

    def append_within(
        self, topic_partition: TopicPartition, records: memoryview, node_id: int, budget: ValidationBudget
    ) -> tuple[UnifiedLog, LogAppendInfo | None]:
        """As :meth:`append`, if the validation of the batch costs no more than ``budget``.

        Else ``None`` is returned with the log, and another thread has to validate the batch for
        :meth:`append_validated`.
        """
        log = self._cluster.led_log(topic_partition, node_id)
        info = log.append(records, now_ms=self._clock.wall_ms(), budget=budget)
        return log, None if info is None else self._appended(topic_partition, log, info)

    def append_validated(
        self, topic_partition: TopicPartition, log: UnifiedLog, batch: ValidatedBatch, node_id: int
    ) -> LogAppendInfo:
        """Append what ``log.validate`` has returned on another thread; raises as :meth:`append`.

        Raises
        ------
        UnknownTopicOrPartitionError
            The topic has been deleted meanwhile, even if there is another one of that name.
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
        """Read, and ``respond`` with what there is, once it is enough or the wait is over.

        At once if nothing is to be waited for: there is enough, an error, a log that parts from what the
        client has read. Then ``None`` is returned, else what the fetch waits in.
        """

        def answer(results: PartitionResults) -> None:
            for _, result in results:
                if result.log is not None:
                    result.log.fetched_bytes += len(result.records)
            respond(results)

        now_ms = self._clock.monotonic_ms()
        # What has happened before this fetch is not what it waits for.
        self._take_events()
        partitions = list(context.partitions())
        results = self.read(params, partitions)
        if params.max_wait_ms <= 0 or params.min_bytes <= 0 or not context.keys():
            answer(results)
            return None
        if is_worth_answering(results, params.min_bytes):
            answer(results)
            return None
        seen = _seen_of(results) if params.min_bytes > 1 else {}
        operation = DelayedFetch(
            now_ms + params.max_wait_ms,
            lambda: self.is_satisfied(params, context, seen),
            lambda: answer(self.read(params, list(context.partitions()))),
        )
        # It has been looked at just now.
        self.fetch_purgatory.watch(operation, context.keys())
        return operation

    def read(self, params: FetchParams, partitions: list[FetchPartition]) -> PartitionResults:
        """Read from each partition in turn until ``max_bytes`` are gathered (``readFromLog``).

        The first partition that has something gives at least one batch, however large it is, so that a
        consumer whose limits are too small still gets on (KIP-74).
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
            records, next_offset = NO_RECORDS, partition.fetch_offset
            is_readable = partition.fetch_offset < limit and diverging_epoch is None
            limit_bytes = min(max(partition.max_bytes, 0), remaining)
            if is_readable and (limit_bytes or min_one_message):
                records, next_offset = log.read(
                    partition.fetch_offset,
                    limit_bytes,
                    min_one_message=min_one_message,
                    max_offset=limit,
                    may_slice=True,
                )
        except Exception as error:  # noqa: BLE001 - is of one partition; error_code logs surprises
            return FetchPartitionResult(error=error_code(error))
        return FetchPartitionResult(
            0,
            log.high_watermark,
            log.last_stable_offset,
            log.log_start_offset,
            records,
            diverging_epoch,
            is_readable,
            log,
            next_offset,
        )

    def _readable(
        self, params: FetchParams, partition: FetchPartition
    ) -> tuple[UnifiedLog, int, tuple[int, int] | None]:
        """The log, the offset before which a consumer may read, where the log parts from what he has read.

        Raises the error of the response.
        """
        topic_partition = partition.topic_partition
        if topic_partition is None:
            raise UnknownTopicIdError(f"No topic has the id {partition.topic_id}")
        if params.may_read is not None and not params.may_read(topic_partition.topic):
            raise TopicAuthorizationFailedError(f"{topic_partition.topic} may not be read")
        log = self._cluster.led_log(topic_partition, params.node_id, partition.current_leader_epoch)
        if partition.topic_id != ZERO_UUID and partition.topic_id != self._cluster.topic_id(topic_partition):
            raise InconsistentTopicIdError(f"{topic_partition.topic} has another id than the fetch session")
        offset = partition.fetch_offset
        diverging_epoch = None
        if partition.last_fetched_epoch != NO_EPOCH:
            diverging_epoch = _diverging_epoch(log, partition)
        # Most offsets are below the high watermark, which is read without a call.
        is_beyond_end = offset > log.high_watermark and offset > log.log_end_offset
        if offset < log.log_start_offset or (diverging_epoch is None and is_beyond_end):
            raise OffsetOutOfRangeError(
                f"offset {offset} of {partition_name(topic_partition)} is outside "
                f"{log.log_start_offset}..{log.log_end_offset}"
            )
        limit = log.last_stable_offset if params.read_committed else log.high_watermark
        return log, limit, diverging_epoch

    def is_satisfied(
        self, params: FetchParams, context: FetchContext, seen: dict[TopicPartition, Seen]
    ) -> bool:
        """Whether a Fetch that waits can be answered: ``min_bytes`` are there, or an error.

        Nothing is read for that: a log knows where its batches end. ``seen``: what was found so far.
        """
        available = 0
        for partition in context.partitions():
            try:
                log, limit, diverging_epoch = self._readable(params, partition)
            except Exception:  # noqa: BLE001 - the read that answers returns and logs it
                return True
            if diverging_epoch is not None:
                return True
            if partition.fetch_offset < limit:
                if params.min_bytes <= 1:
                    return True
                available += self._available(params, partition, log, seen)
                if available >= params.min_bytes:
                    return True
        return False

    def _available(
        self,
        params: FetchParams,
        partition: FetchPartition,
        log: UnifiedLog,
        seen: dict[TopicPartition, Seen],
    ) -> int:
        """Bytes of a partition that a fetch would get, as :class:`DelayedFetch` of Kafka counts them."""
        assert partition.topic_partition is not None, "it has a log"
        before, end = seen.get(partition.topic_partition), log.high_watermark_metadata
        if before is None:
            # Batches were appended while it was read.
            results = [(partition, self._read_one(params, partition, params.max_bytes, True))]
            seen.update(_seen_of(results))
            return params.min_bytes if results[0][1].error else len(results[0][1].records)
        if end.segment is not before.end.segment:
            # A read does not go on into the next one.
            return params.min_bytes
        return min(before.size + end.position - before.end.position, max(partition.max_bytes, before.size))


class Seen(NamedTuple):
    """What there was of a partition when it was read: its bytes, and where they ended."""

    size: int
    end: LogOffsetMetadata


def _seen_of(results: PartitionResults) -> dict[TopicPartition, Seen]:
    """Of the partitions that were read to their end."""
    seen = {}
    for partition, result in results:
        if partition.topic_partition is not None and result.log is not None:
            end = result.log.high_watermark_metadata
            if end.offset == result.next_offset:
                seen[partition.topic_partition] = Seen(len(result.records), end)
    return seen


def is_worth_answering(results: PartitionResults, min_bytes: int) -> bool:
    """Whether there are ``min_bytes``, or something that the client should know at once."""
    available = 0
    for _, result in results:
        if result.error or result.diverging_epoch is not None:
            return True
        available += len(result.records)
    return available >= min_bytes


def _diverging_epoch(log: UnifiedLog, partition: FetchPartition) -> tuple[int, int] | None:
    """Where the log ends in the epoch that the client has read last, if that is not where he goes on."""
    epoch, end_offset = log.end_offset_for_epoch(partition.last_fetched_epoch)
    if epoch == NO_EPOCH or end_offset == NO_OFFSET:
        raise OffsetOutOfRangeError(
            f"the end of leader epoch {partition.last_fetched_epoch} of "
            f"{partition.name}-{partition.partition} is not known"
        )
    if epoch < partition.last_fetched_epoch or end_offset < partition.fetch_offset:
        return epoch, end_offset
    return None
