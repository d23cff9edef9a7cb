"""Collect records in batches until the sender drains the batches.

Batches of a partition are sent in order. The BufferPool limits the memory of batches. This memory is released
when the last request of a batch has completed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from threading import RLock
from typing import Protocol

from kafkacore.clock import Clock
from kafkacore.errors import KafkaError, KafkaTimeoutError
from kafkacore.logs import logger_of
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
from kafkacore.record.compression import load_library
from kafkacore.structs import Compression, Node, TopicPartition

logger = logger_of("kafkacore.producer")

#: How fast the estimated compression ratio follows the observed ratio. Per batch, the estimate rises by at
#: least ``RATIO_STEP_UP`` and falls by at most ``RATIO_STEP_DOWN``.
RATIO_STEP_UP = 0.05
RATIO_STEP_DOWN = 0.005
#: Lower limit of the estimated compression ratio. It limits the uncompressed size of a batch, and thereby the
#: batch's memory, to ``batch_size`` / ``RATIO_FLOOR``.
RATIO_FLOOR = 0.125
#: Relative jitter of back-offs, so that producers do not retry at the same time.
BACKOFF_JITTER = 0.2


class ClusterView(Protocol):
    """The part of ``kafkacore.client.Cluster`` that the accumulator uses."""

    def leader_for(self, partition: TopicPartition, /) -> Node | None: ...
    def leader_epoch(self, partition: TopicPartition, /) -> int | None: ...
    def partitions_for_topic(self, topic: str, /) -> tuple[int, ...] | None: ...
    def available_partitions(self, topic: str, /) -> tuple[int, ...]: ...


class ReadyCheckResult:
    """The brokers for which there are batches to send, and the time until the next check."""

    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {}
        #: Milliseconds until the time at which the next batch becomes ready; infinity if no batch becomes
        #: ready without an event.
        self.next_check_delay_ms = math.inf
        self.unknown_leader_topics: set[str] = set()


class RecordAccumulator:
    """Queues of batches for all partitions, like Apache Kafka's ``RecordAccumulator``.

    The compiled objects :attr:`records` and :attr:`columns` append records. This class does the work that is
    needed at most once per batch.

    Parameters
    ----------
    clock:
        Clock for waits and for the age of batches. It is also the source of random jitter.
    wakeup:
        Function that wakes the sender. Any thread may call this function.
    batch_size:
        Size in bytes, after compression, at which a batch is full.
    linger_ms:
        How long a batch waits for more records.
    buffer_memory:
        Maximum bytes of all batches.
    compression, compression_level:
        Codec of the batches, and the codec's compression level.
    retry_backoff_ms, retry_backoff_max_ms:
        Pause before the first retry. It doubles with each further retry up to the maximum (KIP-580).
    delivery_timeout_ms:
        Time after which a batch that is not acknowledged expires (KIP-91).
    max_request_size, max_block_ms:
        Maximum bytes of a record, and how long ``append`` waits for memory.
    adaptive_partitioning:
        Whether records without a key are sent less often to a partition with more waiting batches (KIP-794).
    partition_availability_timeout_ms:
        Time after which records without a key avoid the partitions of a broker that does not accept its
        waiting batches. 0 disables this.
    ignore_keys:
        Whether to choose the partition of a record with a key as if the record had no key.
    idempotence:
        Manager that decides which batches may be drained and assigns their sequence numbers.

    Attributes
    ----------
    records, columns:
        Appenders of single records, and of many rows in one call.
    active:
        Partitions with waiting batches. Partitions that have waited longest come first.
    incomplete:
        Batches that are neither acknowledged nor failed.
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
        load_library(compression)
        self.sender_wakeup = SenderWakeup(wakeup)
        # When the pool is exhausted, wake the sender, because batches must be sent now instead of waiting for
        # linger_ms.
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
        # Store bound methods of these objects, so that a call has no overhead.
        self.append = self.records.append
        self.append_source = self.columns.append_source
        self.failed_source = self.columns.failed_source
        self.idempotence = idempotence
        self._clock = clock
        self._linger_ms = linger_ms
        self._compression = compression
        self._retry_backoff_ms = retry_backoff_ms
        self._retry_backoff_max_ms = retry_backoff_max_ms
        self.delivery_timeout_ms = delivery_timeout_ms
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        #: No waiting batch expires before this time.
        self.no_expiry_before_ms = -math.inf
        self._unsealable: list[tuple[ProducerBatch, Exception]] = []
        #: As in Apache Kafka, this time-out has an effect only with adaptive partitioning.
        self._availability_timeout_ms = partition_availability_timeout_ms if adaptive_partitioning else 0.0
        self._ready_nodes: tuple[int, ...] = ()
        #: Id of a node that cannot accept its waiting batches → time since which the node cannot accept them.
        self._unable_since: dict[int, float] = {}
        self._unavailable_nodes: frozenset[int] = frozenset()
        # The lock is reentrant, because the garbage collector may run a finalizer that sends a record.
        self._lock = RLock()
        self._flushes = 0

    # ---- Topics ------------------------------------------------------------------------------------------

    def update_topic(self, topic: str, cluster: ClusterView) -> bool:
        """Use the partitions that ``cluster`` lists for a topic.

        Returns
        -------
        bool
            ``False`` if the topic is unknown, or if its list of partitions has gaps. Kafka numbers partitions
            from 0 without gaps. If there is a gap, the number of partitions is unknown, and the partition of
            a key cannot be computed.
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
        # If all brokers are unavailable, do not avoid any of them.
        return able or available

    def update_cluster(self, cluster: ClusterView) -> None:
        """Apply new metadata to all topics in use."""
        for topic in self.records.topic_names():
            self.update_topic(topic, cluster)

    def _queue(self, topic_partition: TopicPartition) -> PartitionQueue:
        queue = self._queues.get(topic_partition)
        if queue is None:
            queue = self._queues[topic_partition] = PartitionQueue(topic_partition)
        return queue

    def topic_state(self, topic: str) -> TopicState | None:
        """Return the state of a topic, or ``None`` if the topic is unknown."""
        return self.records.topic_state(topic)

    # ---- Calls of the sender -----------------------------------------------------------------------------

    def ready(self, cluster: ClusterView, now_ms: float) -> ReadyCheckResult:
        """Return the nodes that have data to be sent, and when to check again.

        The first batch of a partition is ready if it is full, has waited for ``linger_ms`` and perhaps for a
        response (:class:`SenderWakeup`), or has backed off after a failure. It is also ready while the pool
        is exhausted, and while a flush or a close waits. A batch that still backs off, or whose partition is
        muted, is never ready.
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
            self.sender_wakeup,
            result.nodes,
            result.unknown_leader_topics,
        )
        if self._availability_timeout_ms > 0:
            self._ready_nodes = tuple(result.nodes)
        return result

    def drain(
        self, cluster: ClusterView, nodes: Iterable[Node], max_size: int, now_ms: float
    ) -> dict[int, list[ProducerBatch]]:
        """Remove and seal the first batch of each partition that is led by one of ``nodes``.

        Each node gets at most ``max_size`` bytes, but a larger batch is drained alone. If batches of some
        partitions do not fit, the next call begins with the first of these partitions, so that every
        partition gets its turn.
        """
        queues = by_leader(self.active, cluster)
        able = list(nodes)
        if self._availability_timeout_ms > 0:
            self._update_availability({node.node_id for node in able}, cluster, now_ms)
        if self.idempotence is not None and not self.idempotence.may_send():
            return {}
        return {
            node.node_id: self._drain_node(queues[node.node_id], cluster, max_size, now_ms)
            for node in able
            if node.node_id in queues
        }

    def _update_availability(self, able: set[int], cluster: ClusterView, now_ms: float) -> None:
        """Record which ready nodes are not in ``able``: these nodes cannot accept requests now."""
        # Nodes for which no batches wait are considered available again.
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
                logger.exception("failed to compress %s", batch)
                self._unsealable.append((batch, error))
                continue
            drained.append(batch)
        return drained

    def take_unsealable(self) -> list[tuple[ProducerBatch, Exception]]:
        """Return the batches of the last drain that could not be compressed, with their errors."""
        unsealable, self._unsealable = self._unsealable, []
        return unsealable

    def _seal(self, batch: ProducerBatch) -> int:
        sealed_before = batch.payload is not None
        plain_size = batch.size_in_bytes
        size = len(batch.seal())
        if self._compression and not sealed_before:
            self._update_ratio(batch.topic_partition.topic, size / plain_size)
        return size

    def _update_ratio(self, topic: str, observed: float) -> None:
        # The estimate rises faster than it falls, because a batch that turns out too large has to be split.
        expected = self.memory.ratios.get(topic, 1.0)
        if observed > expected:
            expected = max(expected + RATIO_STEP_UP, observed)
        else:
            expected = max(expected - RATIO_STEP_DOWN, observed)
        self.memory.ratios[topic] = min(max(expected, RATIO_FLOOR), 1.0)

    def reenqueue(self, batch: ProducerBatch, now_ms: float) -> None:
        """Put a batch back into its queue, in its original position, for a retry."""
        batch.attempts += 1
        batch.last_attempt_ms = now_ms
        backoff_ms = min(
            self._retry_backoff_ms * 2 ** min(batch.attempts - 1, 30), self._retry_backoff_max_ms
        )
        batch.backoff_ms = backoff_ms * self._clock.random.uniform(1 - BACKOFF_JITTER, 1 + BACKOFF_JITTER)
        self._put_back(batch)

    def split_and_reenqueue(self, batch: ProducerBatch) -> None:
        """Replace a batch that is too large for the broker by two halves, and release the batch's memory."""
        # Assume no compression, which makes the next batches smaller.
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
        """Remove and return the waiting batches that have expired, including those of muted partitions."""
        expired: list[ProducerBatch] = []
        if now_ms < self.no_expiry_before_ms:
            return expired
        for queue in list(self.active):
            while (head := queue.head) is not None and self.deadline_ms(head) <= now_ms:
                expired.append(queue.pop())
            self.records.forget_if_empty(queue)
        if not self.active:
            # No node has waiting batches, so all nodes count as available.
            self._unable_since.clear()
        # Batches that are created from now on do not expire before now_ms + delivery_timeout_ms.
        self.no_expiry_before_ms = min(self.next_expiry_ms(), now_ms + self.delivery_timeout_ms)
        return expired

    def next_expiry_ms(self) -> float:
        """Return the time at which the first waiting batch expires."""
        heads = (queue.head for queue in list(self.active))
        return min((self.deadline_ms(head) for head in heads if head is not None), default=math.inf)

    def deadline_ms(self, batch: ProducerBatch) -> float:
        """Return the time at which the batch expires."""
        return batch.created_ms + self.delivery_timeout_ms

    def mute(self, topic_partition: TopicPartition, muted: bool) -> None:
        """Mute a partition while one of its batches is in flight, or unmute it."""
        self._queues[topic_partition].muted = muted

    # ---- Flush and close ---------------------------------------------------------------------------------

    @property
    def flush_in_progress(self) -> bool:
        return self._flushes > 0

    def begin_flush(self) -> None:
        """Count all batches as ready to send until :meth:`await_flush_completion` returns."""
        with self._lock:
            self._flushes += 1
        self.sender_wakeup.wake()

    def await_flush_completion(self, timeout_ms: float | None) -> None:
        """Wait until all batches that exist now are done.

        Raises
        ------
        KafkaTimeoutError
            ``timeout_ms`` elapsed before all batches were acknowledged or had failed.
        """
        deadline_ms = math.inf if timeout_ms is None else self._clock.monotonic_ms() + timeout_ms
        try:
            # Start with the newest batch. When the newest batch is done, most other batches are done, too,
            # and waiting for them takes no time.
            for batch in reversed(list(self.incomplete)):
                left_ms = None if timeout_ms is None else max(deadline_ms - self._clock.monotonic_ms(), 0.0)
                if not batch.result.wait(left_ms):
                    raise KafkaTimeoutError(
                        f"flush() did not finish within {timeout_ms:.0f} ms: records are still being sent"
                    )
        finally:
            with self._lock:
                self._flushes -= 1

    def abort(self, error_of: Callable[[ProducerBatch], KafkaError]) -> None:
        """Fail all incomplete batches, and release the memory of waiting batches.

        The memory of a batch in flight is released when its request has completed.
        """
        for queue in list(self.active):
            while queue.head is not None:
                self._fail(queue.pop(), error_of)
            self.records.forget_if_empty(queue)
        for batch in list(self.incomplete):
            self._fail(batch, error_of)

    def abort_undrained(self, error_of: Callable[[ProducerBatch], KafkaError]) -> None:
        """Fail the batches that have never been drained. Batches that wait for a retry remain."""
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
        """Reject records from now on."""
        self.records.close_for_appends()

    def fail_appends(self, error: KafkaError) -> None:
        """Reject further records with ``error``."""
        self.records.fail_appends(error)

    def check_usable(self) -> None:
        """Raise an error if the producer rejects records; see :meth:`RecordAppender.check_usable`."""
        self.records.check_usable()

    @property
    def is_forked(self) -> bool:
        """Whether the producer was created by the parent of this process."""
        return self.records.is_forked

    def release(self, batch: ProducerBatch) -> None:
        """Release the memory of a batch whose last request has completed. Further calls have no effect."""
        self.records.release(batch)

    def _fail(self, batch: ProducerBatch, error_of: Callable[[ProducerBatch], KafkaError]) -> None:
        if not batch.done:
            batch.fail(error_of(batch))
        self.incomplete.pop(batch, None)
        if not batch.in_flight:
            self.release(batch)
