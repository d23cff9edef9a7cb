"""The poll loop of a consumer: follow the metadata, find positions, fetch and return records.

The engine owns the parts of a consumer and decides in which order they run. It does not deal with threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import TypeVar

from kafkacore.client import Metadata, NetworkClient
from kafkacore.clock import Clock
from kafkacore.consumer._iteration import RecordIteration
from kafkacore.consumer._record import ConsumerRecord
from kafkacore.consumer.completed_fetch import ReadOptions
from kafkacore.consumer.consumer_network_client import ConsumerNetworkClient
from kafkacore.consumer.deserializers import deserialize_function
from kafkacore.consumer.fetcher import Columns, FetchConfig, Fetcher, Records
from kafkacore.consumer.group.committed_offsets import CommittedOffsets
from kafkacore.consumer.group.factory import new_membership
from kafkacore.consumer.group.group_requests import GroupParts
from kafkacore.consumer.group.heartbeat import HeartbeatSender, InBandHeartbeatSender
from kafkacore.consumer.group.native_heartbeat_sender import NativeHeartbeatSender
from kafkacore.consumer.group.offset_commits import OffsetCommits
from kafkacore.consumer.hold import Holds
from kafkacore.consumer.interceptors import ConsumerInterceptors
from kafkacore.consumer.listener import call_listener
from kafkacore.consumer.metrics import ConsumerMetrics
from kafkacore.consumer.offset_fetcher import OffsetFetcher
from kafkacore.consumer.offset_validator import OffsetValidator
from kafkacore.consumer.subscription_state import (
    FetchPosition,
    OffsetResetStrategy,
    SubscriptionState,
    SubscriptionType,
)
from kafkacore.consumer.timer import Timer
from kafkacore.consumer.topic_metadata import TopicMetadataFetcher
from kafkacore.errors import IllegalStateError, KafkaTimeoutError
from kafkacore.network import Selector
from kafkacore.record import ColumnBuilder, RecordColumns
from kafkacore.settings import Config
from kafkacore.structs import IsolationLevel, OffsetAndMetadata, TopicPartition, partition_name

F = TypeVar("F", Records, Columns)


class ConsumerEngine:
    """All the parts of one consumer, and the loop that drives them.

    Parameters
    ----------
    config:
        All settings, already checked.
    client, metadata:
        Network client that is not connected yet, and the metadata that it updates.
    clock:
        Source of time for every deadline.
    bootstrap_servers:
        The configured servers as text, for the messages of timeouts.
    released:
        Context manager that releases the consumer's lock while a rebalance runs the user's callbacks.
    """

    def __init__(
        self,
        config: Config,
        client: NetworkClient,
        metadata: Metadata,
        clock: Clock,
        bootstrap_servers: str,
        released: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.config = config
        self.clock = clock
        self.bootstrap_servers = bootstrap_servers
        self.metadata = metadata
        self.iteration = RecordIteration()
        self.closed = False
        self._followed_version = -1
        isolation_level = IsolationLevel[config["isolation_level"].upper()]
        self.client = ConsumerNetworkClient(
            client,
            metadata,
            clock=clock,
            retry_backoff_ms=config["retry_backoff_ms"],
            request_timeout_ms=config["request_timeout_ms"],
        )
        self.subscriptions = SubscriptionState(OffsetResetStrategy.parse(config["auto_offset_reset"]))
        self.offsets = OffsetFetcher(
            self.client, metadata, self.subscriptions, clock, isolation_level, bootstrap_servers
        )
        self.validator = OffsetValidator(self.client, metadata, self.subscriptions, clock)
        self.topics = TopicMetadataFetcher(self.client, clock, bootstrap_servers)
        self.metrics = ConsumerMetrics(config, clock, client, self.subscriptions)
        self.fetcher = Fetcher(
            self.client,
            metadata,
            self.subscriptions,
            _fetch_config(config, isolation_level),
            clock,
            self.metrics.fetch,
            self.validator.notice_new_leaders,
        )
        self.heartbeats = self._new_heartbeats(client)
        #: Membership in the group; ``None`` without a ``group_id``.
        self.membership = new_membership(
            config,
            self.client,
            metadata,
            self.subscriptions,
            clock,
            released=released,
            on_assignment_changed=self._assignment_changed,
            on_partitions_removed=self._on_partitions_removed,
            heartbeats=self.heartbeats,
            metrics=self.metrics.group,
        )
        self.holds = Holds(self.subscriptions, self.membership, self._end_iteration, clock.monotonic_ms)
        self.interceptors = ConsumerInterceptors(config["interceptors"])
        #: Objects that commit offsets and that fetch committed offsets; both are ``None`` without a
        #: ``group_id``.
        self.commits: OffsetCommits | None = None
        self.committed: CommittedOffsets | None = None
        if self.membership is not None:
            parts = GroupParts(
                config, self.client, metadata, self.subscriptions, self.membership, clock, self.metrics.group
            )
            self.commits = OffsetCommits(parts, self.consumed_offsets, self.interceptors)
            self.committed = CommittedOffsets(parts)
            self.membership.commits = self.commits

    def _new_heartbeats(self, client: NetworkClient) -> HeartbeatSender:
        """Return a native heartbeat sender for a group member with real sockets, else an in-band sender."""
        is_line = self.config["group_id"] is not None and isinstance(client.selector, Selector)
        backoff_ms = self.config["retry_backoff_ms"]
        kind = NativeHeartbeatSender if is_line else InBandHeartbeatSender
        return kind(self.client, self.clock, backoff_ms, self.metrics.group)

    def _on_partitions_removed(self, partitions: set[TopicPartition], is_lost: bool) -> None:
        self.holds.on_partitions_removed(partitions, is_lost)

    def _assignment_changed(self) -> None:
        self.fetcher.clear_buffered_for_unassigned()
        self.holds.on_assignment_changed()

    def begin(self) -> None:
        """Raise an error if the consumer is closed. End a loop over the consumer after its current record.

        Every method that changes the state of the consumer calls this first.
        """
        if self.closed:
            raise IllegalStateError("this KafkaConsumer is closed")
        self._end_iteration()

    def _end_iteration(self) -> None:
        """Move the positions back to the records that the loop has not read, and end the iteration."""
        if not self.iteration.has_begun:
            return
        for tp, record in self.iteration.untaken().items():
            if self.subscriptions.is_assigned(tp) and self.subscriptions.position(tp) is not None:
                self.subscriptions.seek(tp, FetchPosition(record.offset, record.leader_epoch))
        # End the iteration only after all positions have moved back, so that a Ctrl-C loses no record.
        self.iteration.end()

    def consumed_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets to commit for all records that the program has received.

        In a loop over the consumer, the current record of the loop is the last record received.
        """
        offsets = self.subscriptions.all_consumed()
        for tp, record in self.iteration.untaken().items():
            if tp in offsets:
                offsets[tp] = OffsetAndMetadata(record.offset, "", record.leader_epoch)
        return offsets

    # ---- Subscription ------------------------------------------------------------------------------------
    def assign(self, partitions: list[TopicPartition]) -> None:
        """Assign exactly ``partitions``. If automatic commits are enabled, commit the old positions first."""
        self._auto_commit_before_change()
        self.subscriptions.assign_from_user(partitions)
        self.fetcher.clear_buffered_for_unassigned()
        self.metadata.set_topics({tp.topic for tp in partitions})

    def _auto_commit_before_change(self) -> None:
        # Skip the commit if no coordinator is connected, because the commit does not justify a new
        # connection.
        if self.commits is not None and self.membership is not None and self.membership.coordinator():
            self.commits.auto_commit_now()

    def unsubscribe(self) -> None:
        self._auto_commit_before_change()
        try:
            if self.membership is not None:
                self.membership.leave("the consumer unsubscribed from all topics")
        finally:
            self.subscriptions.unsubscribe()
            self.fetcher.clear_buffered_for_unassigned()
            self.metadata.set_topics(set())
            if self.membership is not None:
                self.membership.subscription_changed()

    def subscription_changed(self) -> None:
        """Apply a changed subscription, even if the metadata have not changed."""
        if self.membership is not None:
            self.membership.subscription_changed()
            return
        if self.subscriptions.subscription_type is SubscriptionType.AUTO_PATTERN:
            self.metadata.set_need_all_topics(True)
        else:
            self.metadata.set_topics(self.subscriptions.subscription)
        self._followed_version = -1
        self._follow_metadata()

    def _follow_metadata(self) -> None:
        """Assign all partitions that the subscribed topics have now."""
        if not self.subscriptions.has_auto_assigned_partitions():
            return
        version = self.metadata.update_version
        if version == self._followed_version:
            return
        self._followed_version = version
        cluster = self.metadata.fetch()
        if self.subscriptions.subscription_type is SubscriptionType.AUTO_PATTERN:
            internal = cluster.internal_topics if self.config["exclude_internal_topics"] else frozenset()
            self.subscriptions.subscribe_from_pattern(set(cluster.topics) - internal)
        before = self.subscriptions.assigned_partitions()
        wanted = [
            TopicPartition(topic, partition)
            for topic in sorted(self.subscriptions.subscription)
            for partition in sorted(cluster.partitions_for_topic(topic) or ())
        ]
        listener = self.subscriptions.listener
        gone, new = before - set(wanted), set(wanted) - before
        if gone and listener is not None:
            call_listener(listener, "on_partitions_revoked", gone)
        if gone or new:
            self.subscriptions.assign_from_subscribed(wanted)
            self.fetcher.clear_buffered_for_unassigned()
        if new and listener is not None:
            call_listener(listener, "on_partitions_assigned", new)

    # ---- Without reading ---------------------------------------------------------------------------------
    def join(self, timer: Timer) -> bool:
        """Wait until the group has assigned the partitions; return ``False`` if the time is up first.

        Without a group, assign the partitions of the subscribed topics.
        """
        if self.membership is None:
            self._follow_metadata()
            return True
        while not self.membership.poll():
            if timer.expired:
                return False
            wait_ms = min(self._wait_ms(timer), self.config["retry_backoff_ms"])
            self.client.poll(Timer(self.clock, wait_ms))
        return True

    def find_positions(self, timer: Timer) -> bool:
        """Wait until all partitions have a position; return ``False`` if the time is up first.

        Raises
        ------
        NoOffsetForPartitionError
            If a partition has no committed offset, and ``auto_offset_reset`` is ``none``.
        """
        while not self._find_positions():
            if timer.expired:
                return False
            self.client.poll(
                Timer(self.clock, min(timer.remaining_ms, self.config["retry_backoff_ms"])),
                lambda: not self.subscriptions.has_all_fetch_positions(),
            )
        return True

    # ---- Reading -----------------------------------------------------------------------------------------
    def poll(
        self,
        timer: Timer,
        collect: Callable[[], F],
        is_enough: Callable[[F], bool],
        end_offsets: Mapping[TopicPartition, int] | None = None,
        max_records: int | None = 0,
        receive: Callable[[float], F | None] = lambda timeout_ms: None,
    ) -> F:
        """Run the poll loop until ``collect`` returns enough records or the time is up.

        ``max_records`` is the maximum number of records that ``collect`` reads: ``None`` for no limit, 0 if
        ``collect`` does not move the positions. The value decides whether the next fetch may be sent before
        ``collect`` is called. ``receive`` waits for records that arrive at a low rate and returns them, or
        ``None`` if ``collect`` must be called.

        If an exception interrupts the poll, such as a Ctrl-C or an error while sending the next fetch, the
        positions are moved back and no records are lost.
        """
        polls = self.metrics.polls
        if polls is not None:
            polls.began()
        self.fetcher.begin_poll()
        try:
            found = self._turn_until(timer, collect, is_enough, end_offsets, max_records, receive)
            if polls is not None:
                polls.ended()
        except BaseException:
            self.fetcher.rewind()
            if polls is not None:
                polls.ended()
            raise
        return found

    def _turn_until(
        self,
        timer: Timer,
        collect: Callable[[], F],
        is_enough: Callable[[F], bool],
        end_offsets: Mapping[TopicPartition, int] | None,
        max_records: int | None,
        receive: Callable[[float], F | None],
    ) -> F:
        while True:
            self.client.maybe_trigger_wakeup()
            if self.membership is None:
                self._follow_metadata()
            else:
                self.membership.poll()
                if self.closed:
                    raise IllegalStateError("this KafkaConsumer is closed: one of its callbacks closed it")
            if self._find_positions():
                received = receive(self._wait_ms(timer))
                if received is not None:
                    if is_enough(received) or timer.expired:
                        return received
                    continue
            is_ahead = self._fetch_ahead(max_records, end_offsets)
            found = collect()
            if not is_enough(found):
                self.fetcher.send_fetches(end_offsets)
                self._wait(timer, end_offsets)
                is_ahead = self._fetch_ahead(max_records, end_offsets)
                found = collect()
            if is_enough(found):
                # Send the next fetch now, so that it is in flight while the application processes these
                # records.
                if not is_ahead and (
                    self.fetcher.send_fetches(end_offsets) or self.client.has_pending_requests()
                ):
                    self.client.transmit_sends()
                return found
            if timer.expired:
                return found

    def _fetch_ahead(self, max_records: int | None, end_offsets: Mapping[TopicPartition, int] | None) -> bool:
        """Send the next fetch before decoding the last buffered records, so that the broker is not idle."""
        if max_records == 0 or not self.fetcher.send_ahead(max_records, end_offsets):
            return False
        self.client.write_requests()
        return True

    def _wait_ms(self, timer: Timer) -> float:
        """Return how long a turn may wait for responses."""
        timeout_ms = timer.remaining_ms
        if not self.subscriptions.has_all_fetch_positions() or not self.client.has_pending_requests():
            timeout_ms = min(timeout_ms, self.config["retry_backoff_ms"])
        if self.membership is not None:
            timeout_ms = min(timeout_ms, self.membership.time_to_next_poll_ms(self.clock.monotonic_ms()))
        return timeout_ms

    def _wait(self, timer: Timer, end_offsets: Mapping[TopicPartition, int] | None) -> None:
        self.client.poll(
            Timer(self.clock, self._wait_ms(timer)),
            lambda: not self.fetcher.has_available_fetches(end_offsets),
        )

    def _find_positions(self) -> bool:
        """Start the lookups that give every partition a position; return whether all have a position."""
        if self.validator.is_needed() or not self.subscriptions.has_all_fetch_positions():
            self.validator.validate_if_needed()
        if self.subscriptions.has_all_fetch_positions():
            return True
        # Committed offsets take precedence. Fetching them may take several polls.
        if self.committed is None or self.committed.init_positions():
            self.subscriptions.reset_initializing_positions()
        self.validator.notice_new_leaders()
        self.offsets.reset_positions_if_needed()
        return False

    def reached_all(self, end_offsets: Mapping[TopicPartition, int]) -> bool:
        """Return whether every assigned partition has an end offset and has reached it."""
        assigned = self.subscriptions.assigned_partitions()
        for tp in assigned:
            position = self.subscriptions.position(tp)
            if position is None or position.offset < end_offsets.get(tp, position.offset + 1):
                return False
        return bool(end_offsets) and bool(assigned)

    def poll_records(
        self, timer: Timer, max_records: int, update_positions: bool = True
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Return records, after the interceptors have processed them."""
        self.interceptors.on_poll()
        found = self.poll(
            timer,
            lambda: self.fetcher.collect_records(max_records, update_positions),
            lambda found: bool(found.records),
            max_records=max_records if update_positions else 0,
            receive=lambda timeout_ms: (
                self.fetcher.receive_records(timeout_ms, max_records) if update_positions else None
            ),
        )
        try:
            return self.interceptors.on_consume(found.records)
        except BaseException:
            # The caller does not receive the records, for example after a Ctrl-C, so read them again.
            self.fetcher.rewind()
            raise

    def poll_columns(
        self,
        timer: Timer,
        new_builder: Callable[[], ColumnBuilder],
        max_records: int | None,
        end_offsets: Mapping[TopicPartition, int],
    ) -> dict[TopicPartition, RecordColumns]:
        """Return records as columns, after the interceptors have seen them."""
        self.interceptors.on_poll()
        found = self.poll(
            timer,
            lambda: self.fetcher.collect_columns(new_builder, max_records, end_offsets),
            lambda found: bool(found.columns) or self.reached_all(end_offsets),
            end_offsets,
            max_records,
        )
        try:
            self.interceptors.on_consume_columns(found.columns)
        except BaseException:
            self.fetcher.rewind()
            raise
        return found.columns

    def next_record(self) -> ConsumerRecord | None:
        """Return the next record of an iteration, or ``None`` if none arrives in ``consumer_timeout_ms``."""
        timer = Timer(self.clock, self.config["consumer_timeout_ms"])
        while True:
            self.iteration.start(self.poll_records(timer, self.config["max_poll_records"]))
            record = self.iteration.take()
            if record is not None or timer.expired:
                return record

    def current_lag(self, partition: TopicPartition) -> int | None:
        """Return the number of records between the position and the end of the log.

        Return ``None`` if the position or the end is unknown. If the end is unknown, request it from the
        leader.
        """
        state = self.subscriptions.state(partition)
        is_committed = self.config["isolation_level"] == IsolationLevel.READ_COMMITTED.name.lower()
        end = state.last_stable_offset if is_committed else state.high_watermark
        if end is None:
            self.offsets.ask_for_end(partition)
            self.client.transmit_sends()
            return None
        if state.position is None:
            return None
        next_one = self.iteration.untaken().get(partition)
        return max(end - (state.position.offset if next_one is None else next_one.offset), 0)

    def known_position(self, partition: TopicPartition) -> int | None:
        """Return the position of a partition, or ``None`` if it must be looked up. Any thread may call this.

        Raises
        ------
        IllegalStateError
            If the partition is not assigned.
        """
        state = self.subscriptions.state(partition)
        # Read the records of the loop first: before the polling thread drops them, it moves the position
        # back.
        untaken = self.iteration.untaken().get(partition)
        if untaken is not None:
            return untaken.offset
        position = state.position
        return None if position is None else position.offset

    def known_committed(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata | None] | None:
        """Return the last known committed offsets, or ``None`` if the offset of any partition is unknown.

        Any thread may call this.
        """
        states = self.subscriptions.states
        found = {tp: state.committed for tp in partitions if (state := states.get(tp)) is not None}
        if any(found.get(tp) is None for tp in partitions):
            return None
        return {tp: committed.offset for tp, committed in found.items() if committed is not None}

    def position(self, partition: TopicPartition, timer: Timer) -> int:
        """Return the position of a partition, after looking it up if it is unknown.

        Raises
        ------
        KafkaTimeoutError
            If the lookup did not finish in time.
        """
        while True:
            position = self.known_position(partition)
            if position is not None:
                return position
            self._find_positions()
            self.client.poll(
                Timer(self.clock, min(timer.remaining_ms, self.config["retry_backoff_ms"])),
                lambda: self.subscriptions.position(partition) is None,
            )
            if timer.expired and self.subscriptions.position(partition) is None:
                raise KafkaTimeoutError(
                    f"could not find the position of {partition_name(partition)} within "
                    f"{timer.timeout_ms:.0f} ms (bootstrap_servers={self.bootstrap_servers})"
                )

    def close(self, timer: Timer, autocommit: bool = True) -> None:
        """Commit, leave the group and close fetch sessions within ``timer``, then close all connections."""
        self._end_iteration()
        self.client.disable_wakeups()
        with ExitStack() as closing:
            # These callbacks run in reverse order: the last registered callback runs first.
            closing.callback(self.interceptors.close)
            closing.callback(self.metrics.close)
            closing.callback(self.client.close)
            closing.callback(self.fetcher.close, timer)
            closing.callback(self.heartbeats.close)
            closing.callback(self._refuse_calls)
            if self.membership is not None:
                closing.callback(self.membership.close, timer)
            if self.commits is not None:
                closing.callback(self.commits.close, timer)
                if autocommit:
                    closing.callback(self.commits.auto_commit_sync, timer)

    def _refuse_calls(self) -> None:
        # Refuse calls only from now on, because a rebalance listener that is called while leaving the group
        # may commit.
        self.closed = True


def _fetch_config(config: Config, isolation_level: IsolationLevel) -> FetchConfig:
    return FetchConfig(
        fetch_min_bytes=config["fetch_min_bytes"],
        fetch_max_bytes=config["fetch_max_bytes"],
        fetch_max_wait_ms=config["fetch_max_wait_ms"],
        max_partition_fetch_bytes=config["max_partition_fetch_bytes"],
        client_rack=config["client_rack"],
        enable_incremental_fetch_sessions=config["enable_incremental_fetch_sessions"],
        metadata_max_age_ms=config["metadata_max_age_ms"],
        read=ReadOptions(
            isolation_level=isolation_level,
            check_crcs=config["check_crcs"],
            max_decompressed_size=config["max_decompressed_size"],
            key_deserializer=deserialize_function(config["key_deserializer"]),
            value_deserializer=deserialize_function(config["value_deserializer"]),
        ),
    )
