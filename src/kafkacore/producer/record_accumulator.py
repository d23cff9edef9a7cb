"""What waits to be sent, and when it is ready.

Batches of a partition leave in order. The BufferPool bounds their memory, which is given back when a batch's
last request has ended.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import RLock
from typing import Protocol

from kafkacore.clock import Clock
from kafkacore.errors import KafkaError, KafkaTimeoutError
from kafkacore.producer._batch import ProducerBatch
from kafkacore.producer._batch_memory import BatchMemory
from kafkacore.producer._buffer_pool import BufferPool
from kafkacore.producer._column_appender import ColumnAppender
from kafkacore.producer._partition_queue import PartitionQueue
from kafkacore.producer._readiness import backing_off_ms, by_leader, check_ready, move_to_back
from kafkacore.producer._record_appender import RecordAppender
from kafkacore.producer._sender_wakeup import SenderWakeup
from kafkacore.producer._topic_state import TopicState
from kafkacore.producer.producer_manager import ProducerManager
from kafkacore.structs import Compression, Node, TopicPartition

logger = logging.getLogger("kafkacore.producer")

#: How fast the expected compression ratio follows what is seen: up at once by so much, down by less.
RATIO_STEP_UP = 0.05
RATIO_STEP_DOWN = 0.005
#: A batch takes at most this share's inverse of plain bytes for a byte on the wire, whatever its records
#: compress to: all of it is memory.
RATIO_FLOOR = 0.125
#: Back-offs are spread by this share of themselves to both sides, so that producers do not come back in step.
BACKOFF_JITTER = 0.2


class ClusterView(Protocol):
    """What the accumulator asks of ``kafkacore.client.Cluster``."""

    def leader_for(self, partition: TopicPartition, /) -> Node | None: ...
    def leader_epoch(self, partition: TopicPartition, /) -> int | None: ...
    def partitions_for_topic(self, topic: str, /) -> tuple[int, ...] | None: ...
    def available_partitions(self, topic: str, /) -> tuple[int, ...]: ...


@dataclass
class ReadyCheckResult:
    """Which brokers there is something to send to."""

    nodes: dict[int, Node] = field(default_factory=dict)
    #: Milliseconds until something else becomes ready by itself; infinite if nothing does.
    next_check_delay_ms: float = math.inf
    unknown_leader_topics: set[str] = field(default_factory=set)


class RecordAccumulator:
    """Apache Kafka's ``RecordAccumulator``.

    Records come in through :attr:`records` and :attr:`columns`, both of which are compiled. What happens once
    per batch or less often is here.

    Parameters
    ----------
    clock:
        Time of batches, waits and jitter.
    wakeup:
        Wakes the sender; may be called from any thread.
    batch_size:
        Bytes on the wire at which a batch is full.
    linger_ms:
        How long a batch waits for more records.
    buffer_memory:
        Bytes that all batches together may hold.
    compression, compression_level:
        Of the batches.
    retry_backoff_ms, retry_backoff_max_ms:
        Wait before the first retry, doubled with each further one up to the maximum (KIP-580).
    delivery_timeout_ms:
        From a batch's first record to its failure at the latest (KIP-91).
    max_request_size, max_block_ms:
        Bytes of the largest record; milliseconds that ``append`` may wait for memory.
    adaptive_partitioning:
        Records without a key go less often to a partition with more batches waiting (KIP-794).
    partition_availability_timeout_ms:
        They do not go to partitions of a broker that has taken no batch for longer, though it had some
        waiting; 0 for never mind.
    ignore_keys:
        Choose the partition of a record with a key as if it had none.
    idempotence:
        Decides which batches may be drained, and assigns their sequence numbers.

    Attributes
    ----------
    records, columns:
        Append single records, and many rows by one call.
    active:
        Partitions that have batches, in the order in which they got their first.
    incomplete:
        Batches whose outcome is open.
    """

    def __init__(
        self,
        clock: Clock,
        wakeup: Callable[[], object],
        *,
        batch_size: int,
        linger_ms: float,
        buffer_memory: int,
        compression: Compression,
        compression_level: int | None,
        retry_backoff_ms: float,
        retry_backoff_max_ms: float,
        delivery_timeout_ms: float,
        max_request_size: int,
        max_block_ms: float,
        adaptive_partitioning: bool = True,
        partition_availability_timeout_ms: float = 0.0,
        ignore_keys: bool = False,
        idempotence: ProducerManager | None = None,
    ) -> None:
        self.sender_wakeup = SenderWakeup(wakeup)
        # The batches that would make room may be lingering.
        self.pool = BufferPool(buffer_memory, clock, on_wait=self.sender_wakeup.wake)
        self.memory = BatchMemory(self.pool, clock, compression, compression_level)
        self.records = RecordAppender(
            clock,
            self.sender_wakeup,
            self.memory,
            batch_size=batch_size,
            linger_ms=linger_ms,
            max_request_size=max_request_size,
            max_block_ms=max_block_ms,
            is_adaptive=adaptive_partitioning,
            ignores_keys=ignore_keys,
        )
        self.columns = ColumnAppender(self.records)
        self.active: dict[PartitionQueue, None] = self.records.active
        self.incomplete: dict[ProducerBatch, None] = self.records.incomplete
        # The methods themselves: a call costs no more than theirs.
        self.append = self.records.append
        self.append_source = self.columns.append_source
        self.failed_source = self.columns.failed_source
        self.idempotence = idempotence
        self._clock = clock
        self._linger_ms = linger_ms
        self._compression = compression
        self._retry_backoff_ms = retry_backoff_ms
        self._retry_backoff_max_ms = retry_backoff_max_ms
        self._delivery_timeout_ms = delivery_timeout_ms
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        #: None of the batches that wait expires earlier.
        self.no_expiry_before_ms = -math.inf
        self._unsealable: list[tuple[ProducerBatch, Exception]] = []
        #: Nothing to follow without a time-out; without adaptivity Apache Kafka minds neither.
        self._availability_timeout_ms = partition_availability_timeout_ms if adaptive_partitioning else 0.0
        self._ready_nodes: tuple[int, ...] = ()
        #: Node that has batches waiting and cannot take them → since when.
        self._unable_since: dict[int, float] = {}
        self._unavailable_nodes: frozenset[int] = frozenset()
        # Taken again by a finaliser that sends, should the garbage collector run it in here.
        self._lock = RLock()
        self._flushes = 0

    # ---- Topics ------------------------------------------------------------------------------------------

    def update_topic(self, topic: str, cluster: ClusterView) -> bool:
        """Make the partitions that ``cluster`` lists for a topic the ones to send to.

        Returns
        -------
        bool
            ``False`` if the topic is not known, or if its list of partitions has gaps. Kafka numbers
            partitions from 0 without gaps. With a gap the number of partitions is unknown, and so is the
            partition of a key.
        """
        partitions = cluster.partitions_for_topic(topic)
        if not partitions or max(partitions) != len(partitions) - 1:
            self.records.forget_topic(topic)
            return False
        with self._lock:
            queues = [self._queue(TopicPartition(topic, partition)) for partition in partitions]
            self.records.set_topic(topic, queues, self._available_partitions(topic, cluster))
        return True

    def _available_partitions(self, topic: str, cluster: ClusterView) -> tuple[int, ...]:
        available = tuple(cluster.available_partitions(topic))
        if not self._unavailable_nodes:
            return available
        leaders = {number: cluster.leader_for(TopicPartition(topic, number)) for number in available}
        able = tuple(
            number
            for number, leader in leaders.items()
            if leader is not None and leader.node_id not in self._unavailable_nodes
        )
        # If all are slow, none is worse than another.
        return able or available

    def update_cluster(self, cluster: ClusterView) -> None:
        """Take over new metadata for all topics that have been sent to."""
        for topic in self.records.topic_names():
            self.update_topic(topic, cluster)

    def _queue(self, topic_partition: TopicPartition) -> PartitionQueue:
        queue = self._queues.get(topic_partition)
        if queue is None:
            queue = self._queues[topic_partition] = PartitionQueue(topic_partition)
        return queue

    def topic_state(self, topic: str) -> TopicState | None:
        """The state of a topic, ``None`` if it is not known."""
        return self.records.topic_state(topic)

    # ---- Of the sender -----------------------------------------------------------------------------------

    def ready(self, cluster: ClusterView, now_ms: float) -> ReadyCheckResult:
        """Which nodes have data to be sent, and when to look again.

        A partition's head batch is ready when it is full, has lingered, the pool is exhausted, a flush or
        the close waits, or it has backed off after a failure; never while the partition is muted.
        """
        result = ReadyCheckResult()
        send_now = (
            self.records.closed
            or self._flushes > 0
            or self.pool.queued > 0
            or (self.idempotence is not None and self.idempotence.is_completing)
        )
        result.next_check_delay_ms = check_ready(
            self.active,
            cluster,
            now_ms,
            self._linger_ms,
            send_now,
            result.nodes,
            result.unknown_leader_topics,
        )
        if self._availability_timeout_ms > 0:
            self._ready_nodes = tuple(result.nodes)
        return result

    def drain(
        self, cluster: ClusterView, nodes: Iterable[Node], max_size: int, now_ms: float
    ) -> dict[int, list[ProducerBatch]]:
        """Take sealed batches for ``nodes``: of each partition the first, up to ``max_size`` bytes per node.

        A first batch that is larger goes alone. Where a node's partitions do not all fit, the next call
        goes on behind the last one, so that none starves.
        """
        queues = by_leader(self.active, cluster)
        able = list(nodes)
        if self._availability_timeout_ms > 0:
            self._follow_availability({node.node_id for node in able}, cluster, now_ms)
        if self.idempotence is not None and not self.idempotence.may_send():
            return {}
        return {
            node.node_id: self._drain_node(queues[node.node_id], cluster, max_size, now_ms)
            for node in able
            if node.node_id in queues
        }

    def _follow_availability(self, able: set[int], cluster: ClusterView, now_ms: float) -> None:
        """Of the nodes that were ready, those not in ``able`` have no connection, or no room in it."""
        # A node that nothing waits for any more is given another chance.
        unable = (node_id for node_id in self._ready_nodes if node_id not in able)
        self._unable_since = {node_id: self._unable_since.get(node_id, now_ms) for node_id in unable}
        unavailable = frozenset(
            node_id
            for node_id, since_ms in self._unable_since.items()
            if now_ms - since_ms > self._availability_timeout_ms
        )
        if unavailable != self._unavailable_nodes:
            self._unavailable_nodes = unavailable
            self.update_cluster(cluster)

    def _drain_node(
        self, queues: list[PartitionQueue], cluster: ClusterView, max_size: int, now_ms: float
    ) -> list[ProducerBatch]:
        drained: list[ProducerBatch] = []
        size = 0
        idempotence = self.idempotence
        for queue in queues:
            head = queue.head
            if head is None or backing_off_ms(queue, cluster, now_ms) > 0:
                continue
            if idempotence is not None and not idempotence.may_drain(head):
                continue
            if drained and size + head.size_in_bytes > max_size:
                break
            batch = queue.pop()
            move_to_back(self.active, queue)
            if idempotence is not None:
                idempotence.assign(batch)
            try:
                size += self._seal(batch)
            except Exception as error:
                logger.exception("%s cannot be sealed", batch)
                self._unsealable.append((batch, error))
                continue
            drained.append(batch)
        return drained

    def take_unsealable(self) -> list[tuple[ProducerBatch, Exception]]:
        """Batches that the last drain took and that have no bytes to send: compressing them failed."""
        unsealable, self._unsealable = self._unsealable, []
        return unsealable

    def _seal(self, batch: ProducerBatch) -> int:
        sealed_before = batch.payload is not None
        plain_size = batch.size_in_bytes
        size = len(batch.seal())
        if self._compression and not sealed_before:
            self._learn_ratio(batch.topic_partition.topic, size / plain_size)
        return size

    def _learn_ratio(self, topic: str, observed: float) -> None:
        # Slowly down, quickly up: a batch that turns out too large costs a split.
        expected = self.memory.ratios.get(topic, 1.0)
        if observed > expected:
            expected = max(expected + RATIO_STEP_UP, observed)
        else:
            expected = max(expected - RATIO_STEP_DOWN, observed)
        self.memory.ratios[topic] = min(max(expected, RATIO_FLOOR), 1.0)

    def reenqueue(self, batch: ProducerBatch, now_ms: float) -> None:
        """Put a batch back for another attempt, in the place that it had."""
        batch.attempts += 1
        batch.last_attempt_ms = now_ms
        backoff_ms = min(
            self._retry_backoff_ms * 2 ** min(batch.attempts - 1, 30), self._retry_backoff_max_ms
        )
        batch.backoff_ms = backoff_ms * self._clock.random.uniform(1 - BACKOFF_JITTER, 1 + BACKOFF_JITTER)
        self._put_back(batch)

    def split_and_reenqueue(self, batch: ProducerBatch) -> None:
        """Put the two halves of a batch that the broker finds too large in its place; its memory is free."""
        # The next batches shall not be as large.
        self.memory.ratios[batch.topic_partition.topic] = 1.0
        halves = batch.split(self.memory.new_builder)
        if self.idempotence is not None:
            self.idempotence.split(batch, halves)
        for half in halves:
            self.incomplete[half] = None
        self.incomplete.pop(batch, None)
        self.release(batch)
        for half in halves:
            self._put_back(half)

    def _put_back(self, batch: ProducerBatch) -> None:
        queue = self._queues[batch.topic_partition]
        queue.put_back(batch)
        self.active[queue] = None
        self.no_expiry_before_ms = min(self.no_expiry_before_ms, self.deadline_ms(batch))

    def expired_batches(self, now_ms: float) -> list[ProducerBatch]:
        """Take the waiting batches whose delivery time-out has passed, muted partitions' too."""
        expired: list[ProducerBatch] = []
        if now_ms < self.no_expiry_before_ms:
            return expired
        for queue in list(self.active):
            while (head := queue.head) is not None and self.deadline_ms(head) <= now_ms:
                expired.append(queue.pop())
            self.records.forget_if_empty(queue)
        if not self.active:
            # Until something waits again nobody asks which nodes can take it.
            self._unable_since.clear()
        # Those that are made from now on have all of their time before them.
        self.no_expiry_before_ms = min(self.next_expiry_ms(), now_ms + self._delivery_timeout_ms)
        return expired

    def next_expiry_ms(self) -> float:
        """When the first of the waiting batches expires."""
        heads = (queue.head for queue in list(self.active))
        return min((self.deadline_ms(head) for head in heads if head is not None), default=math.inf)

    def deadline_ms(self, batch: ProducerBatch) -> float:
        """When the batch expires."""
        return batch.created_ms + self._delivery_timeout_ms

    def mute(self, topic_partition: TopicPartition, muted: bool) -> None:
        """Hold the partition's batches back while one of them is on its way, or let them go again."""
        self._queues[topic_partition].muted = muted

    # ---- Flush and close ---------------------------------------------------------------------------------

    @property
    def flush_in_progress(self) -> bool:
        return self._flushes > 0

    def begin_flush(self) -> None:
        """Everything is ready from now on, until :meth:`await_flush_completion` returns."""
        with self._lock:
            self._flushes += 1
        self.sender_wakeup.wake()

    def await_flush_completion(self, timeout_ms: float | None) -> None:
        """Wait for all batches that there are now.

        Raises
        ------
        KafkaTimeoutError
            Some are still open after ``timeout_ms``.
        """
        deadline_ms = math.inf if timeout_ms is None else self._clock.monotonic_ms() + timeout_ms
        try:
            # The newest first: when it is done most others are, and need not be waited for one by one.
            for batch in reversed(list(self.incomplete)):
                left_ms = None if timeout_ms is None else max(deadline_ms - self._clock.monotonic_ms(), 0.0)
                if not batch.result.wait(left_ms):
                    raise KafkaTimeoutError(
                        f"records are still on their way after {timeout_ms:.0f} ms of flush"
                    )
        finally:
            with self._lock:
                self._flushes -= 1

    def abort(self, error_of: Callable[[ProducerBatch], KafkaError]) -> None:
        """Fail what is incomplete, and give back the memory of what was waiting.

        Memory of a batch on its way stays taken until its request has ended.
        """
        for queue in list(self.active):
            while queue.head is not None:
                self._fail(queue.pop(), error_of)
            self.records.forget_if_empty(queue)
        for batch in list(self.incomplete):
            self._fail(batch, error_of)

    def abort_undrained(self, error_of: Callable[[ProducerBatch], KafkaError]) -> None:
        """Fail the batches that have never been taken to be sent; those that are to go again stay."""
        for queue in list(self.active):
            tried: list[ProducerBatch] = []
            while queue.head is not None:
                batch = queue.pop()
                if batch.has_sequence:
                    tried.append(batch)
                else:
                    self._fail(batch, error_of)
            for batch in tried:
                queue.put_back(batch)
            self.records.forget_if_empty(queue)

    def close_for_appends(self) -> None:
        """Refuse records from now on."""
        self.records.close_for_appends()

    def fail_appends(self, error: KafkaError) -> None:
        """Refuse records from now on, because of ``error``."""
        self.records.fail_appends(error)

    def check_usable(self) -> None:
        """Raise an error if no record is taken any more: see :meth:`RecordAppender.check_usable`."""
        self.records.check_usable()

    @property
    def is_forked(self) -> bool:
        """Whether this is a copy in a forked child."""
        return self.records.is_forked

    def release(self, batch: ProducerBatch) -> None:
        """Give the batch's memory back: its last request has ended. A second call does nothing."""
        self.records.release(batch)

    def _fail(self, batch: ProducerBatch, error_of: Callable[[ProducerBatch], KafkaError]) -> None:
        if not batch.done:
            batch.fail(error_of(batch))
        self.incomplete.pop(batch, None)
        if not batch.in_flight:
            self.release(batch)
