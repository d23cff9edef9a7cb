"""Keeps one fetch in flight to every broker that leads partitions to read, and returns the fetched records.

The next fetch is sent before the records of the previous fetch are returned, so that network and application
work in parallel. This is Kafka's ``Fetcher`` and ``AbstractFetch``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from kafkacore.client import ClientResponse, Metadata
from kafkacore.clock import Clock
from kafkacore.consumer._counters import ResponseTally
from kafkacore.consumer._memory import FetchMemory, PinLedger
from kafkacore.consumer._record import ConsumerRecord
from kafkacore.consumer._steady_fetcher import SteadyFetcher
from kafkacore.consumer.completed_fetch import CompletedFetch, ReadOptions
from kafkacore.consumer.consumer_network_client import ConsumerNetworkClient
from kafkacore.consumer.fetch_buffer import FetchBuffer
from kafkacore.consumer.fetch_session import (
    FIRST_VERSION_BY_ID,
    FetchMetadata,
    FetchPartition,
    FetchRequestData,
    FetchSessionHandler,
)
from kafkacore.consumer.fetch_size import FetchSizes
from kafkacore.consumer.metrics import FetchMetrics
from kafkacore.consumer.subscription_state import OffsetResetStrategy, SubscriptionState
from kafkacore.consumer.timer import Timer
from kafkacore.errors import (
    CorruptRecordError,
    FetchSessionTopicIdError,
    IllegalStateError,
    KafkaError,
    OffsetNotAvailableError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
    UnknownError,
    UnknownLeaderEpochError,
    for_code,
)
from kafkacore.logs import logger_of
from kafkacore.network import Selector
from kafkacore.protocol import ZERO_UUID
from kafkacore.protocol.generated.fetch import FetchRequest, FetchResponse
from kafkacore.record import ColumnBuilder, RecordColumns
from kafkacore.structs import IsolationLevel, Node, TopicPartition, partition_name
from kafkacore.wire import Uuid

logger = logger_of(__name__)

_NO_REPLICA = -1


class FetchConfig(NamedTuple):
    """Consumer settings for fetch requests, in bytes and milliseconds. Attributes are named like settings."""

    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 50 * 1024 * 1024
    fetch_max_wait_ms: int = 500
    max_partition_fetch_bytes: int = 1024 * 1024
    client_rack: str = ""
    enable_incremental_fetch_sessions: bool = True
    metadata_max_age_ms: int = 300_000
    read: ReadOptions = ReadOptions()


class Fetcher:
    """Fetches records of the partitions in ``subscriptions``.

    Parameters
    ----------
    client, metadata, subscriptions, clock:
        Objects that are shared with the other parts of the consumer.
    config:
        Settings of the fetch requests.
    metrics:
        Metrics of responses and positions; ``None`` disables them.
    notice_new_leaders:
        Function that is called before each fetch. The function stops fetching from partitions with a new
        leader until that leader has confirmed that its log contains the position.
    """

    def __init__(
        self,
        client: ConsumerNetworkClient,
        metadata: Metadata,
        subscriptions: SubscriptionState,
        config: FetchConfig,
        clock: Clock,
        metrics: FetchMetrics | None = None,
        notice_new_leaders: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._metadata = metadata
        self._subscriptions = subscriptions
        self._config = config
        self._clock = clock
        self._sessions: dict[int, FetchSessionHandler] = {}
        self._pending_nodes: set[int] = set()
        #: Nodes whose last fetch request failed.
        self._failed_nodes: set[int] = set()
        self._buffer = FetchBuffer(subscriptions, self._initialize)
        self._pins = PinLedger()
        self._sizes = FetchSizes(config.max_partition_fetch_bytes, config.fetch_min_bytes)
        self._closed = False
        self._metrics = metrics
        #: Handles the usual responses at low rates; ``None`` with a simulated network.
        self._steady: SteadyFetcher | None = None
        if isinstance(client.client.selector, Selector):
            counter = None if metrics is None else metrics.fetches
            self._steady = SteadyFetcher(
                client, metadata, subscriptions, clock, self._buffer, config, self._pins, counter
            )
        self._notice_new_leaders = notice_new_leaders

    # ---- Sending fetches ---------------------------------------------------------------------------------
    def send_fetches(self, end_offsets: Mapping[TopicPartition, int] | None = None) -> int:
        """Queue a fetch for each node that has no fetch in flight and no buffered records.

        Partitions whose position has reached their offset in ``end_offsets`` are left out. For other
        partitions with an end offset, the requested size is about the size of the records before the end.

        Returns
        -------
        int
            Number of queued fetches.
        """
        return self._send(end_offsets or {}, {})

    def send_ahead(self, max_records: int | None, end_offsets: Mapping[TopicPartition, int] | None) -> int:
        """Queue fetches from the positions that the consumer will have after collecting all buffered records.

        Call this just before the records are collected. Apart from that, this method is like
        :meth:`send_fetches`. No fetch is queued if the next collection may leave records in the buffer
        because of ``max_records``. If the collection ends at another position than expected (after a corrupt
        record or a seek), the responses are dropped.
        """
        taken = self._buffer.when_taken(max_records) if len(self._buffer) else {}
        return self._send(end_offsets or {}, taken) if taken else 0

    def _send(self, end_offsets: Mapping[TopicPartition, int], taken: Mapping[TopicPartition, int]) -> int:
        requests = self._prepare(end_offsets, taken)
        for node, data in requests:
            session = self._sessions[node.node_id]
            future = self._client.send(
                node,
                self._request(data),
                max_version=None if data.can_use_topic_ids else FIRST_VERSION_BY_ID - 1,
            )
            future.add_callbacks(
                partial(self._on_response, node, session, data), partial(self._on_error, node, session, data)
            )
            if self._steady is not None:
                self._steady.sent(node.node_id, session, data.session_partitions, future)
            # Add the node to the pending nodes last. A Ctrl-C before this line then leaves no pending node
            # without a fetch in flight.
            self._pending_nodes.add(node.node_id)
        return len(requests)

    def _prepare(
        self, end_offsets: Mapping[TopicPartition, int], taken: Mapping[TopicPartition, int]
    ) -> list[tuple[Node, FetchRequestData]]:
        """Return the fetch of each node.

        ``taken`` has the partitions whose buffered records are about to be collected, with the offset after
        the buffered records of each partition.
        """
        self._notice_new_leaders()
        now_ms = self._clock.monotonic_ms()
        cluster = self._metadata.fetch()
        busy_nodes = self._busy_nodes(taken, end_offsets, now_ms)
        if busy_nodes and all(node.node_id in busy_nodes for node in cluster.nodes):
            return []
        buffered = self._buffer.partitions() - taken.keys()
        wanted: dict[Node, list[tuple[TopicPartition, FetchPartition]]] = {}
        for tp, state in self._subscriptions.fetchable():
            assert state.position is not None, "a fetchable partition has a position"
            offset = taken.get(tp, state.position.offset)
            end = end_offsets.get(tp)
            if tp in buffered or (end is not None and offset >= end) or state.next_retry_ms > now_ms:
                continue
            node = self._node_for(tp, now_ms)
            if node is None:
                self._metadata.request_update()
            elif self._client.is_unavailable(node):
                self._client.maybe_raise_authentication_error(node)
            elif node.node_id not in busy_nodes:
                epoch = cluster.leader_epoch(tp)
                data = FetchPartition(
                    cluster.topic_id(tp.topic) or ZERO_UUID,
                    offset,
                    self._sizes.wanted(tp.topic, offset, end),
                    -1 if epoch is None else epoch,
                )
                wanted.setdefault(node, []).append((tp, data))
        return [(node, self._build(node, partitions)) for node, partitions in wanted.items()]

    def _build(self, node: Node, partitions: list[tuple[TopicPartition, FetchPartition]]) -> FetchRequestData:
        session = self._sessions.get(node.node_id)
        if session is None:
            session = FetchSessionHandler(node.node_id, self._config.enable_incremental_fetch_sessions)
            self._sessions[node.node_id] = session
        builder = session.new_builder()
        for tp, data in partitions:
            builder.add(tp, data)
        return builder.build()

    def _busy_nodes(
        self, taken: Mapping[TopicPartition, int], end_offsets: Mapping[TopicPartition, int], now_ms: float
    ) -> set[int]:
        """Return the nodes with a fetch in flight or with buffered records.

        A new fetch without the buffered partitions would remove them from the fetch session.
        """
        busy = set(self._pending_nodes)
        for completed in self._buffer:
            tp = completed.partition
            if tp in taken or not self._subscriptions.is_fetchable(tp):
                continue
            position = self._subscriptions.position(tp)
            if position is not None and position.offset >= end_offsets.get(tp, position.offset + 1):
                continue
            node = self._node_for(tp, now_ms)
            if node is not None:
                busy.add(node.node_id)
                if len(busy) >= len(self._metadata.fetch().nodes):
                    break
        return busy

    def _node_for(self, tp: TopicPartition, now_ms: float) -> Node | None:
        cluster = self._metadata.fetch()
        replica = self._subscriptions.preferred_read_replica(tp, now_ms)
        if replica is not None:
            node = cluster.online_node(tp, replica)
            if node is not None:
                return node
            self._refresh_metadata(tp)
        return cluster.leader_for(tp)

    def _refresh_metadata(self, tp: TopicPartition) -> None:
        """Request new metadata, and fetch from the leader instead of the preferred replica."""
        self._metadata.request_update()
        self._subscriptions.clear_preferred_read_replica(tp)

    def _request(self, data: FetchRequestData) -> FetchRequest:
        config = self._config
        return FetchRequest(
            max_wait_ms=config.fetch_max_wait_ms,
            min_bytes=config.fetch_min_bytes,
            max_bytes=config.fetch_max_bytes,
            isolation_level=int(config.read.isolation_level),
            session_id=data.metadata.session_id,
            session_epoch=data.metadata.epoch,
            topics=_fetch_topics(data.to_send),
            forgotten_topics_data=_forgotten_topics(
                [*data.to_forget, *(data.to_replace if data.can_use_topic_ids else ())]
            ),
            rack_id=config.client_rack,
        )

    # ---- Responses ---------------------------------------------------------------------------------------
    def _on_response(
        self, node: Node, session: FetchSessionHandler, data: FetchRequestData, response: ClientResponse
    ) -> None:
        self._pending_nodes.discard(node.node_id)
        message, version = response.message, response.version
        if not session.handle_response(message, version):
            if self._steady is not None:
                self._steady.failed(node.node_id)
            if message.error_code == FetchSessionTopicIdError.errno:
                self._metadata.request_update()
            self._request_failed(node, data)
            return
        self._failed_nodes.discard(node.node_id)
        hints: dict[TopicPartition, tuple[int, int]] = {}
        redirected: list[CompletedFetch] = []
        memory, tally = FetchMemory(self._pins), self._tally(response)
        size_in_bytes = 0
        for topic in message.responses:
            name = topic.topic if version < FIRST_VERSION_BY_ID else session.topic_name(topic.topic_id)
            for partition in topic.partitions:
                tp = TopicPartition(name or "", partition.partition_index)
                requested = data.session_partitions.get(tp)
                assert requested is not None, "the session has checked the partitions"
                offset, options = requested.fetch_offset, self._config.read
                completed = CompletedFetch(tp, partition, offset, version, options, memory, tally)
                completed.failed_before = self._count_failure(tp, partition)
                self._sizes.add_response(completed)
                self._buffer.add(completed)
                size_in_bytes += completed.size_in_bytes
                if _names_leader(partition):
                    leader = partition.current_leader
                    hints[tp] = (leader.leader_id, leader.leader_epoch)
                    redirected.append(completed)
        if self._steady is not None:
            self._steady.received(node.node_id, size_in_bytes)
        if hints:
            moved = self._metadata.update_partition_leadership(
                hints, [Node(end.node_id, end.host, end.port, end.rack) for end in message.node_endpoints]
            )
            for completed in redirected:
                completed.has_new_leader = completed.partition in moved

    def _count_failure(self, tp: TopicPartition, answer: FetchResponse.PartitionData) -> bool:
        """Record whether the fetch failed, and return whether the partition's previous fetch failed too.

        Of several failures in a row, only the first is retried without a backoff. A redirection to a
        preferred replica counts as neither success nor failure.
        """
        state = self._subscriptions.state_or_none(tp)
        if state is None:
            return False
        failed_before = state.has_failed_fetch
        if answer.error_code:
            state.has_failed_fetch = True
        elif answer.preferred_read_replica <= _NO_REPLICA:
            state.has_failed_fetch = False
        return failed_before

    def _tally(self, response: ClientResponse) -> ResponseTally | None:
        if self._metrics is None:
            return None
        message = response.message
        return self._metrics.fetches.response(
            response.latency_ms,
            message.throttle_time_ms,
            sum(len(topic.partitions) for topic in message.responses),
        )

    def _on_error(
        self, node: Node, session: FetchSessionHandler, data: FetchRequestData, error: BaseException
    ) -> None:
        self._pending_nodes.discard(node.node_id)
        if self._steady is not None:
            self._steady.failed(node.node_id)
        session.handle_error(error)
        self._request_failed(node, data)
        for tp in data.session_partitions:
            self._subscriptions.clear_preferred_read_replica(tp)

    def _request_failed(self, node: Node, data: FetchRequestData) -> None:
        """Back off, but not after the first failure: the node may only have dropped the fetch session."""
        if node.node_id in self._failed_nodes:
            for tp in data.session_partitions:
                if self._subscriptions.is_fetchable(tp):
                    self._back_off(tp)
        self._failed_nodes.add(node.node_id)

    def _initialize(self, completed: CompletedFetch) -> bool:
        """Prepare a fetch that has reached the front of the buffer; see :class:`FetchBuffer`."""
        tp, data = completed.partition, completed.data
        state = self._subscriptions.state_or_none(tp)
        position = None if state is None else state.position
        if state is None or not self._subscriptions.is_fetchable(tp) or position is None:
            return False
        if data.error_code:
            self._subscriptions.move_to_end(tp)
            self._handle_error(completed, position.offset)
            return False
        if position.offset != completed.next_fetch_offset:
            return False
        if completed.size_in_bytes and not completed.has_whole_batch:
            raise CorruptRecordError(
                f"the response has {completed.size_in_bytes} bytes but no complete batch", tp, position.offset
            )
        if data.high_watermark >= 0:
            state.high_watermark = data.high_watermark
        if data.log_start_offset >= 0:
            state.log_start_offset = data.log_start_offset
        if data.last_stable_offset >= 0:
            state.last_stable_offset = data.last_stable_offset
        if data.preferred_read_replica > _NO_REPLICA:
            expires_ms = self._clock.monotonic_ms() + self._config.metadata_max_age_ms
            self._subscriptions.update_preferred_read_replica(tp, data.preferred_read_replica, expires_ms)
        return True

    def _handle_error(self, completed: CompletedFetch, position: int) -> None:
        tp, error = completed.partition, for_code(completed.data.error_code)
        logger.debug(
            "fetch of %s at offset %d failed: %s",
            partition_name(tp),
            completed.next_fetch_offset,
            error.message,
        )
        if error is OffsetOutOfRangeError:
            self._handle_out_of_range(completed, position)
        elif issubclass(error, TopicAuthorizationFailedError):
            raise error(f"not authorized to read topic {tp.topic!r}")
        elif error is CorruptRecordError:
            raise CorruptRecordError(
                "the broker reports that its log is corrupt", tp, completed.next_fetch_offset
            )
        elif error.invalid_metadata or error is OffsetNotAvailableError:
            self._refresh_metadata(tp)
            if completed.failed_before or not completed.has_new_leader:
                self._back_off(tp)
        elif error.retriable or error in (UnknownLeaderEpochError, UnknownError):
            self._back_off(tp)
        else:
            raise error(f"fetch of {partition_name(tp)} failed at offset {completed.next_fetch_offset}")

    def _back_off(self, tp: TopicPartition) -> None:
        self._subscriptions.set_next_retry([tp], self._clock.monotonic_ms() + self._client.retry_backoff_ms)

    def _handle_out_of_range(self, completed: CompletedFetch, position: int) -> None:
        tp = completed.partition
        if self._subscriptions.clear_preferred_read_replica(tp) is not None:
            # A follower may lag, so ask the leader.
            if completed.failed_before:
                self._back_off(tp)
            return
        if completed.next_fetch_offset != position:
            return  # The position has changed since the fetch, such as by seek().
        if self._subscriptions.default_reset_strategy is OffsetResetStrategy.NONE:
            error = OffsetOutOfRangeError(
                f"position {position} of {partition_name(tp)} is out of range, and auto_offset_reset is "
                "'none': call seek(), or set auto_offset_reset to 'earliest' or 'latest'"
            )
            error.partitions = {tp: position}
            raise error
        logger.info(
            "position %d of %s is out of range; resetting it by auto_offset_reset",
            position,
            partition_name(tp),
        )
        self._subscriptions.request_offset_reset(tp)
        if completed.failed_before:
            # Back off, because the position that the last reset found is out of range, too.
            self._back_off(tp)

    # ---- Returning records -------------------------------------------------------------------------------
    def begin_poll(self) -> None:
        """Confirm the positions after the last poll, and release responses with few records in use.

        Raises
        ------
        IllegalStateError
            If a deserializer polls.
        """
        if self._steady is not None and self._steady.is_reading:
            raise IllegalStateError("a deserializer must not poll the consumer that called it")
        self._buffer.keep_moved()
        self._pins.begin_poll()

    def rewind(self) -> None:
        """Move the positions back: the application did not receive the records of the last poll."""
        self._buffer.rewind()

    def has_available_fetches(self, end_offsets: Mapping[TopicPartition, int] | None = None) -> bool:
        return self._buffer.is_available(self._is_bounded(end_offsets or {}))

    def _is_bounded(self, end_offsets: Mapping[TopicPartition, int]) -> Callable[[TopicPartition], bool]:
        """Return a function that tests whether a partition's position has reached its end offset."""

        def reached(tp: TopicPartition) -> bool:
            end, state = end_offsets.get(tp), self._subscriptions.state_or_none(tp)
            position = None if state is None else state.position
            return end is not None and position is not None and position.offset >= end

        return reached

    def collect_records(self, max_records: int, update_positions: bool = True) -> Records:
        """Return up to ``max_records`` fetched records, and advance the positions past them."""
        records: dict[TopicPartition, list[ConsumerRecord]] = {}
        remaining = max_records

        def take(completed: CompletedFetch) -> bool:
            nonlocal remaining
            taken = completed.fetch_records(remaining)
            if taken:
                records.setdefault(completed.partition, []).extend(taken)
            remaining -= len(taken)
            return remaining > 0

        moved = self._buffer.collect(take, update_positions=update_positions)
        self._note_positions(moved)
        return Records(records, moved)

    def receive_records(self, timeout_ms: float, max_records: int) -> Records | None:
        """Wait for a small response, and return its records. Send the next fetch before reading them.

        Return ``None`` if no response arrives, or if the general code must handle it.
        """
        found = None if self._steady is None else self._steady.receive(timeout_ms, max_records)
        if found is None:
            return None
        if self._closed:
            raise IllegalStateError("this KafkaConsumer is closed: a deserializer closed it")
        return Records(*found)

    def collect_columns(
        self,
        new_builder: Callable[[], ColumnBuilder],
        max_records: int | None,
        end_offsets: Mapping[TopicPartition, int],
    ) -> Columns:
        """Return fetched records as columns, limited by ``max_records`` and ``end_offsets``."""
        builders: dict[TopicPartition, ColumnBuilder] = {}
        counts: dict[TopicPartition, int] = {}
        done: set[TopicPartition] = set()
        remaining = max_records
        reached = self._is_bounded(end_offsets)

        def take(completed: CompletedFetch) -> bool:
            nonlocal remaining
            tp = completed.partition
            builder = builders.get(tp) or builders.setdefault(tp, new_builder())
            count = completed.fetch_columns(builder, remaining, end_offsets.get(tp))
            counts[tp] = counts.get(tp, 0) + count
            done.add(tp)
            if remaining is None:
                return True
            remaining -= count
            return remaining > 0

        moved = self._buffer.collect(take, lambda tp: tp in done or reached(tp))
        self._note_positions(moved)
        return Columns({tp: builders[tp].finish() for tp, count in counts.items() if count}, moved)

    def _note_positions(self, moved: Mapping[TopicPartition, int]) -> None:
        if self._metrics is None or not moved:
            return
        now_ms = self._clock.monotonic_ms()
        committed = self._config.read.isolation_level is IsolationLevel.READ_COMMITTED
        for tp, offset in moved.items():
            state = self._subscriptions.state_or_none(tp)
            if state is None:
                continue
            end = state.last_stable_offset if committed else state.high_watermark
            start = state.log_start_offset
            self._metrics.fetches.position_moved(
                tp, offset, -1 if end is None else end, -1 if start is None else start, now_ms
            )

    def clear_buffered_for_unassigned(self) -> None:
        """Drop the buffered records of partitions that are not assigned any more."""
        assigned = self._subscriptions.assigned_partitions()
        self._buffer.retain(assigned)
        if self._steady is not None:
            self._steady.retain(assigned)
        if self._metrics is not None:
            self._metrics.retain(assigned)

    # ---- Closing -----------------------------------------------------------------------------------------
    def close(self, timer: Timer) -> None:
        """Close the fetch sessions of connected brokers within ``timer``. Further calls do nothing."""
        if self._closed:
            return
        self._closed = True
        self._buffer.clear()
        if self._steady is not None:
            self._steady.retain(())
        futures = []
        for node_id, session in self._sessions.items():
            closing = session.notify_close()
            node = self._metadata.fetch().node_by_id(node_id)
            if (
                closing is None
                or node is None
                # The broker would answer a request to close the session only after the fetch in flight.
                # Let the session expire instead.
                or node_id in self._pending_nodes
                or not self._client.client.is_ready(node, self._clock.monotonic_ms())
            ):
                continue
            futures.append(self._client.send(node, self._closing_request(closing)))
        try:
            for future in futures:
                self._client.poll_until(future, timer, disable_wakeup=True)
        except KafkaError as error:
            logger.debug("closing fetch sessions failed: %s", error)

    def _closing_request(self, closing: FetchMetadata) -> FetchRequest:
        return FetchRequest(
            max_wait_ms=0, min_bytes=0, session_id=closing.session_id, session_epoch=closing.epoch
        )


class Records(NamedTuple):
    """Fetched records, and the next offset of each partition whose position advanced."""

    records: dict[TopicPartition, list[ConsumerRecord]]
    moved: dict[TopicPartition, int]


class Columns(NamedTuple):
    """Fetched records as columns, and the next offset of each partition whose position advanced."""

    columns: dict[TopicPartition, RecordColumns]
    moved: dict[TopicPartition, int]


def _names_leader(data: FetchResponse.PartitionData) -> bool:
    """Return whether a broker that is not the leader names the current leader (KIP-951)."""
    if not data.error_code:
        # Do not read `current_leader`: for a message without the field, this would create an object.
        return False
    leader = data.current_leader
    return leader.leader_id >= 0 and leader.leader_epoch >= 0


def _fetch_topics(partitions: Mapping[TopicPartition, FetchPartition]) -> list[FetchRequest.FetchTopic]:
    # Group only consecutive partitions of a topic, because the broker serves partitions in the order of the
    # request.
    topics: list[FetchRequest.FetchTopic] = []
    for tp, data in partitions.items():
        if not topics or topics[-1].topic != tp.topic:
            topics.append(FetchRequest.FetchTopic(topic=tp.topic, topic_id=data.topic_id, partitions=[]))
        topics[-1].partitions.append(
            FetchRequest.FetchPartition(
                partition=tp.partition,
                current_leader_epoch=data.current_leader_epoch,
                fetch_offset=data.fetch_offset,
                partition_max_bytes=data.max_bytes,
            )
        )
    return topics


def _forgotten_topics(
    forgotten: Sequence[tuple[TopicPartition, Uuid]],
) -> list[FetchRequest.ForgottenTopic]:
    topics: dict[tuple[str, Uuid], list[int]] = {}
    for tp, topic_id in forgotten:
        topics.setdefault((tp.topic, topic_id), []).append(tp.partition)
    return [
        FetchRequest.ForgottenTopic(topic=topic, topic_id=topic_id, partitions=partitions)
        for (topic, topic_id), partitions in topics.items()
    ]
