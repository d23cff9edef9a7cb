"""Looks up offsets with ListOffsets requests to the leaders, and resets positions to these offsets.

This is Kafka's ``OffsetFetcher``.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import partial
from typing import NamedTuple

from kafkacore.client import ClientResponse, Metadata
from kafkacore.clock import Clock
from kafkacore.consumer._request_future import RequestFuture
from kafkacore.consumer.consumer_network_client import ConsumerNetworkClient
from kafkacore.consumer.subscription_state import FetchPosition, OffsetResetStrategy, SubscriptionState
from kafkacore.consumer.timer import Timer
from kafkacore.errors import (
    KafkaError,
    KafkaTimeoutError,
    TopicAuthorizationFailedError,
    UnsupportedForMessageFormatError,
    for_code,
)
from kafkacore.logs import logger_of
from kafkacore.protocol.generated.list_offsets import ListOffsetsRequest
from kafkacore.structs import IsolationLevel, Node, OffsetSpec, TopicPartition, partition_name

logger = logger_of(__name__)

UNKNOWN_OFFSET = -1
_CONSUMER_REPLICA_ID = -1


class FoundOffset(NamedTuple):
    """An offset that a leader returned. The timestamp is -1 for the start or the end of the log."""

    offset: int
    timestamp: int
    leader_epoch: int


class _Answer(NamedTuple):
    found: dict[TopicPartition, FoundOffset]
    retry: set[TopicPartition]
    #: The last error of a partition in ``retry``, or ``None``.
    error: KafkaError | None


class OffsetFetcher:
    """Looks up offsets at the leaders of partitions.

    Parameters
    ----------
    client, metadata, subscriptions, clock:
        Objects that all parts of the consumer share.
    isolation_level:
        With ``READ_COMMITTED``, the end offset is the last stable offset.
    bootstrap_servers:
        The configured servers as text, for timeout messages.
    """

    def __init__(
        self,
        client: ConsumerNetworkClient,
        metadata: Metadata,
        subscriptions: SubscriptionState,
        clock: Clock,
        isolation_level: IsolationLevel,
        bootstrap_servers: str,
    ) -> None:
        self._client = client
        self._metadata = metadata
        self._subscriptions = subscriptions
        self._clock = clock
        self._isolation_level = isolation_level
        self._bootstrap_servers = bootstrap_servers
        self._error: KafkaError | None = None
        self._end_requests: dict[TopicPartition, RequestFuture[_Answer]] = {}

    # ---- Positions ---------------------------------------------------------------------------------------
    def reset_positions_if_needed(self) -> None:
        """Start looking up offsets for partitions whose position must be reset. This does not wait.

        Raises
        ------
        KafkaError
            If an earlier lookup failed with an error that is not retriable.
        """
        error, self._error = self._error, None
        if error is not None:
            raise error
        now_ms = self._clock.monotonic_ms()
        needed = self._subscriptions.partitions_needing_reset(now_ms)
        if not needed:
            return
        wall_ms = self._clock.wall_ms()
        by_node, unavailable = self._client.by_reachable_leader(
            {tp: strategy.timestamp(wall_ms) for tp, strategy in needed.items()}
        )
        if unavailable:
            self._metadata.request_update()
            # Partitions without a known leader wait only for new metadata. Metadata requests have their own
            # backoff.
            cluster = self._metadata.fetch()
            unreachable = [tp for tp in unavailable if cluster.leader_for(tp) is not None]
            self._subscriptions.set_next_retry(unreachable, now_ms + self._client.retry_backoff_ms)
        for node, timestamps in by_node.items():
            try:
                # Do not repeat the request while it is in flight, but retry if its response never arrives.
                self._subscriptions.set_next_retry(timestamps, now_ms + self._client.request_timeout_ms)
                self._ask_to_reset(node, timestamps, {tp: needed[tp] for tp in timestamps}, {})
            except BaseException:
                # The error may be a Ctrl-C before the request was sent, so allow a retry at once.
                self._subscriptions.set_next_retry(timestamps, now_ms)
                raise

    def _ask_to_reset(
        self,
        node: Node,
        timestamps: Mapping[TopicPartition, int],
        strategies: Mapping[TopicPartition, OffsetResetStrategy],
        ends: Mapping[TopicPartition, FoundOffset],
    ) -> None:
        self._send(node, timestamps).add_callbacks(
            partial(self._on_reset_answer, node, timestamps, strategies, ends),
            partial(self._on_reset_error, strategies),
        )

    def _on_reset_answer(
        self,
        node: Node,
        timestamps: Mapping[TopicPartition, int],
        strategies: Mapping[TopicPartition, OffsetResetStrategy],
        ends: Mapping[TopicPartition, FoundOffset],
        answer: _Answer,
    ) -> None:
        self._retry_later(answer.retry)
        without_record = {}
        for tp, found in answer.found.items():
            if found.offset == UNKNOWN_OFFSET and tp in ends:
                self._reset(tp, strategies[tp], ends[tp])
            elif found.offset == UNKNOWN_OFFSET and strategies[tp].duration_ms is not None:
                without_record[tp] = timestamps[tp]
            elif found.offset == UNKNOWN_OFFSET:
                self._retry_later({tp})
            else:
                self._reset(tp, strategies[tp], found)
        if without_record:
            self._ask_for_ends(node, without_record, strategies)

    def _ask_for_ends(
        self,
        node: Node,
        timestamps: Mapping[TopicPartition, int],
        strategies: Mapping[TopicPartition, OffsetResetStrategy],
    ) -> None:
        """Look up the end offsets of partitions whose records are all older than the configured duration.

        Then repeat the lookup by timestamp, because a record may have been appended before the end offset was
        known.
        """

        def on_ends(answer: _Answer) -> None:
            self._retry_later(answer.retry)
            again = {tp: timestamps[tp] for tp in answer.found}
            if again:
                self._ask_to_reset(node, again, strategies, answer.found)

        self._send(node, dict.fromkeys(timestamps, int(OffsetSpec.LATEST))).add_callbacks(
            on_ends, partial(self._on_reset_error, {tp: strategies[tp] for tp in timestamps})
        )

    def _reset(self, tp: TopicPartition, strategy: OffsetResetStrategy, found: FoundOffset) -> None:
        # Set the position without an epoch, so that it is not validated: the leader has just returned this
        # offset.
        if self._subscriptions.maybe_seek_unvalidated(tp, strategy, FetchPosition(found.offset)):
            logger.info(
                "resetting the position of %s to offset %d (%s)",
                partition_name(tp),
                found.offset,
                strategy.name,
            )
        self._metadata.update_last_seen_epoch_if_newer(tp, found.leader_epoch)

    def _on_reset_error(
        self, strategies: Mapping[TopicPartition, OffsetResetStrategy], error: BaseException
    ) -> None:
        self._retry_later(set(strategies))
        if not getattr(error, "retriable", False) and isinstance(error, KafkaError):
            self._error = error

    def _retry_later(self, partitions: set[TopicPartition]) -> None:
        if partitions:
            self._metadata.request_update()
            self._subscriptions.set_next_retry(
                partitions, self._clock.monotonic_ms() + self._client.retry_backoff_ms
            )

    # ---- Lookups of the application ----------------------------------------------------------------------
    def fetch_offsets(
        self, timestamps: Mapping[TopicPartition, int], timer: Timer
    ) -> dict[TopicPartition, FoundOffset]:
        """Look up the offset of each partition for a timestamp, or for a value of :class:`OffsetSpec`.

        Raises
        ------
        KafkaTimeoutError
            If not all leaders responded in time.
        KafkaError
            An error that is not retriable.
        """
        found: dict[TopicPartition, FoundOffset] = {}
        remaining = dict(timestamps)
        last_error: BaseException | None = None
        while remaining:
            answers = self._ask(remaining)
            for future in answers:
                self._client.poll_until(future, timer)
            for future in answers:
                if future.succeeded():
                    found.update(future.value().found)
                    last_error = future.value().error or last_error
                elif future.failed():
                    last_error = future.exception()
                    if not future.is_retriable():
                        raise last_error
            remaining = {tp: at for tp, at in timestamps.items() if tp not in found}
            if not remaining:
                break
            if timer.expired:
                raise KafkaTimeoutError(self._timeout_message(remaining, timer)) from last_error
            # A leader is unknown, has moved or is not ready. Wait for the next metadata update, which is
            # requested after a backoff.
            self._client.await_metadata_update(timer)
        self._note_ends(timestamps, found)
        return found

    def ask_for_end(self, partition: TopicPartition) -> None:
        """Request the end offset of an assigned partition, to update its lag. The call does not wait."""
        pending = self._end_requests.get(partition)
        if pending is not None and not pending.is_done():
            return
        wanted = {partition: int(OffsetSpec.LATEST)}
        by_node, _ = self._client.by_reachable_leader(wanted)
        for node in by_node:
            self._end_requests[partition] = future = self._send(node, wanted)
            # If the request fails, the next call of current_lag() sends another request.
            future.add_callbacks(
                lambda answer: self._note_ends(wanted, answer.found),
                lambda error: logger.debug(
                    "looking up the end offset of %s-%d failed: %s", *partition, error
                ),
            )

    def _note_ends(
        self, timestamps: Mapping[TopicPartition, int], found: Mapping[TopicPartition, FoundOffset]
    ) -> None:
        """Store the end offsets of assigned partitions, from which their lag is computed."""
        for tp, timestamp in timestamps.items():
            state = self._subscriptions.state_or_none(tp)
            if state is None or timestamp != OffsetSpec.LATEST or tp not in found:
                continue
            if found[tp].offset == UNKNOWN_OFFSET:
                continue
            if self._isolation_level is IsolationLevel.READ_COMMITTED:
                state.last_stable_offset = found[tp].offset
            else:
                state.high_watermark = found[tp].offset

    def _timeout_message(self, remaining: Mapping[TopicPartition, int], timer: Timer) -> str:
        missing = ", ".join(map(partition_name, sorted(remaining)[:5]))
        more = f" and {len(remaining) - 5} more" if len(remaining) > 5 else ""
        return (
            f"could not look up the offsets of {missing}{more} within {timer.timeout_ms:.0f} ms "
            f"(bootstrap_servers={self._bootstrap_servers})"
        )

    def _ask(self, timestamps: Mapping[TopicPartition, int]) -> list[RequestFuture[_Answer]]:
        for topic in {tp.topic for tp in timestamps}:
            self._metadata.add_topic(topic)
        by_node, _ = self._client.by_reachable_leader(timestamps)
        return [self._send(node, wanted) for node, wanted in by_node.items()]

    def _send(self, node: Node, timestamps: Mapping[TopicPartition, int]) -> RequestFuture[_Answer]:
        cluster = self._metadata.fetch()
        topics: dict[str, ListOffsetsRequest.ListOffsetsTopic] = {}
        for tp, timestamp in timestamps.items():
            topic = topics.get(tp.topic)
            if topic is None:
                topic = topics[tp.topic] = ListOffsetsRequest.ListOffsetsTopic(name=tp.topic, partitions=[])
            epoch = cluster.leader_epoch(tp)
            topic.partitions.append(
                ListOffsetsRequest.ListOffsetsPartition(
                    partition_index=tp.partition,
                    current_leader_epoch=-1 if epoch is None else epoch,
                    timestamp=timestamp,
                )
            )
        request = ListOffsetsRequest(
            replica_id=_CONSUMER_REPLICA_ID,
            isolation_level=int(self._isolation_level),
            topics=list(topics.values()),
            timeout_ms=int(self._client.request_timeout_ms),
        )
        return self._client.send(node, request).compose(partial(self._on_answer, timestamps.keys()))

    def _on_answer(
        self, requested: Set[TopicPartition], response: ClientResponse, future: RequestFuture[_Answer]
    ) -> None:
        found: dict[TopicPartition, FoundOffset] = {}
        # Partitions that the response leaves out are retried.
        retry = set(requested)
        forbidden: set[str] = set()
        last_error: KafkaError | None = None
        for topic in response.message.topics:
            for partition in topic.partitions:
                tp = TopicPartition(topic.name, partition.partition_index)
                if tp not in retry:
                    continue
                error = for_code(partition.error_code)
                if not partition.error_code:
                    offset = max(partition.offset, UNKNOWN_OFFSET)
                    found[tp] = FoundOffset(offset, partition.timestamp, partition.leader_epoch)
                elif error is UnsupportedForMessageFormatError:
                    # Message formats before 0.10 have no timestamps, so no record matches.
                    found[tp] = FoundOffset(UNKNOWN_OFFSET, -1, -1)
                elif error is TopicAuthorizationFailedError:
                    forbidden.add(topic.name)
                else:
                    log = logger.debug if error.retriable else logger.warning
                    name = partition_name(tp)
                    log("listing the offsets of %s failed: %s; retrying", name, error.message)
                    last_error = error(f"could not list the offsets of {name}")
        retry -= found.keys()
        if forbidden:
            names = ", ".join(map(repr, sorted(forbidden)))
            future.fail(TopicAuthorizationFailedError(f"not authorized to read topic {names}"))
            return
        if retry:
            self._metadata.request_update()
        future.complete(_Answer(found, retry, last_error))
