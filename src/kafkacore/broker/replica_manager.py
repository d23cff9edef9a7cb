"""Appends to and reads from the partitions of this broker, and the requests that wait on them.

Partition, offset and record bytes in; offsets, record bytes and completed requests out. Does not know:
requests' formats, sockets, files. Source of the behaviour: Kafka's ``ReplicaManager``, for
partitions with one replica.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kafkacore.broker.delayed_operation import DelayedOperationPurgatory
from kafkacore.broker.error_answer import error_code
from kafkacore.broker.timer import Timer
from kafkacore.clock import Clock
from kafkacore.errors import OffsetOutOfRangeError
from kafkacore.structs import TopicPartition

if TYPE_CHECKING:
    from kafkacore.broker.cluster_state import ClusterState
    from kafkacore.broker.log import LogAppendInfo, UnifiedLog

NO_RECORDS = memoryview(b"")


class FetchPartition(NamedTuple):
    """What a Fetch asks of one partition. ``error`` is set if that is known to fail before looking."""

    topic_partition: TopicPartition
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int
    error: int = 0


class FetchPartitionResult(NamedTuple):
    """What one partition answers. ``records`` are whole batches as they lie in the log."""

    error: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    records: memoryview = NO_RECORDS


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

    # ---- Events ---------------------------------------------------------------------------------------

    def on_high_watermark(self, topic_partition: TopicPartition, high_watermark: int) -> None:
        """The log's flusher has moved a high watermark. Any thread; completes nothing itself."""
        self._changed.append(topic_partition)
        self._wakeup()

    def partition_changed(self, topic_partition: TopicPartition) -> None:
        """A partition has grown or gone. Network thread; whoever waits on it is looked at soon."""
        self._changed.append(topic_partition)

    @property
    def has_events(self) -> bool:
        return bool(self._changed)

    def complete_delayed(self) -> int:
        """Answer the requests that the events since the last call have made answerable; how many."""
        completed = 0
        while self._changed:
            batch = {self._changed.popleft() for _ in range(len(self._changed))}
            for topic_partition in batch:
                completed += self.produce_purgatory.check_and_complete(topic_partition)
                completed += self.fetch_purgatory.check_and_complete(topic_partition)
        return completed

    # ---- Produce --------------------------------------------------------------------------------------

    def append(
        self, topic_partition: TopicPartition, records: memoryview, node_id: int
    ) -> tuple[UnifiedLog, LogAppendInfo]:
        """Append whole batches to a partition that ``node_id`` leads.

        Raises
        ------
        NotLeaderForPartitionError, CorruptRecordError, …
            As the cluster or the log refuses it; nothing has been appended then.
        """
        log = self._cluster.led_log(topic_partition, node_id)
        info = log.append(records, now_ms=self._clock.wall_ms())
        if log.high_watermark > info.last_offset:
            self._changed.append(topic_partition)
        return log, info

    # ---- Fetch ----------------------------------------------------------------------------------------

    def read(
        self, partitions: Sequence[FetchPartition], node_id: int, max_bytes: int, read_committed: bool
    ) -> list[FetchPartitionResult]:
        """Read from each partition in turn until ``max_bytes`` are gathered.

        The first partition that has something gives at least one batch, however large it is, so that a
        consumer whose limits are too small still gets on (KIP-74).
        """
        results = []
        gathered = 0
        for partition in partitions:
            result = self._read_one(
                partition, node_id, max(max_bytes - gathered, 0), not gathered, read_committed
            )
            gathered += len(result.records)
            results.append(result)
        return results

    def _read_one(
        self,
        partition: FetchPartition,
        node_id: int,
        remaining: int,
        min_one_message: bool,
        read_committed: bool,
    ) -> FetchPartitionResult:
        if partition.error:
            return FetchPartitionResult(error=partition.error)
        try:
            log, limit = self._readable(partition, node_id, read_committed)
            records = NO_RECORDS
            limit_bytes = min(max(partition.max_bytes, 0), remaining)
            if partition.fetch_offset < limit and (limit_bytes or min_one_message):
                records = log.read(
                    partition.fetch_offset,
                    limit_bytes,
                    min_one_message=min_one_message,
                    max_offset=limit,
                ).records
        except Exception as error:  # noqa: BLE001 - one partition's failure is its own; error_code logs surprises
            return FetchPartitionResult(error=error_code(error))
        return FetchPartitionResult(
            0, log.high_watermark, log.last_stable_offset, log.log_start_offset, records
        )

    def _readable(
        self, partition: FetchPartition, node_id: int, read_committed: bool
    ) -> tuple[UnifiedLog, int]:
        """The log, and the offset before which a consumer may read; raises what the client is to be told."""
        log = self._cluster.led_log(partition.topic_partition, node_id, partition.current_leader_epoch)
        if not log.log_start_offset <= partition.fetch_offset <= log.log_end_offset:
            raise OffsetOutOfRangeError(
                f"offset {partition.fetch_offset} of {partition.topic_partition} is outside "
                f"{log.log_start_offset}..{log.log_end_offset}"
            )
        return log, log.last_stable_offset if read_committed else log.high_watermark

    def has_bytes(
        self,
        partitions: Sequence[FetchPartition],
        node_id: int,
        min_bytes: int,
        max_bytes: int,
        read_committed: bool,
    ) -> bool:
        """Whether a Fetch can be answered: ``min_bytes`` are there, or an error. Reads if it must."""
        readable = 0
        for partition in partitions:
            if partition.error:
                return True
            try:
                _, limit = self._readable(partition, node_id, read_committed)
            except Exception:  # noqa: BLE001 - told to the client, and logged, by the read that answers
                return True
            readable += partition.fetch_offset < limit
        if not readable or min_bytes <= 1:
            return readable > 0
        results = self.read(partitions, node_id, max_bytes, read_committed)
        return sum(len(result.records) for result in results) >= min_bytes
