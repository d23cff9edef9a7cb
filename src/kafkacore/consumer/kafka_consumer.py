"""The consumer that applications use.

:class:`KafkaConsumer` checks arguments and allows only one thread at a time. It calls its
:class:`ConsumerEngine` for all other work.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, Self, TypeVar, Unpack, overload

from kafkacore.client import bootstrap_client
from kafkacore.client.config import refuse_positional, servers_text
from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.consumer._iteration import next_record
from kafkacore.consumer._record import ConsumerRecord
from kafkacore.consumer.commit_future import CommitFuture
from kafkacore.consumer.config import DEFAULTS, resolve
from kafkacore.consumer.consumer_network_client import ConsumerClosingError
from kafkacore.consumer.deserializers import close_deserializer
from kafkacore.consumer.engine import ConsumerEngine
from kafkacore.consumer.group.committed_offsets import CommittedOffsets
from kafkacore.consumer.group.heartbeat_thread import HeartbeatThread
from kafkacore.consumer.group.offset_commits import CommitCallback
from kafkacore.consumer.guard import ConsumerInUseError, SingleOwnerGuard
from kafkacore.consumer.hold import Hold
from kafkacore.consumer.listener import RebalanceListener
from kafkacore.consumer.offset_fetcher import UNKNOWN_OFFSET
from kafkacore.consumer.subscription_pattern import SubscriptionPattern
from kafkacore.consumer.subscription_state import FetchPosition, OffsetResetStrategy
from kafkacore.consumer.timer import Timer
from kafkacore.errors import IllegalStateError, KafkaConfigurationError, NoBrokersAvailable
from kafkacore.record import ColumnBuilder, RecordColumns
from kafkacore.structs import (
    ConsumerGroupMetadata,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OffsetSpec,
    TopicPartition,
)
from kafkacore.wire.copying import refuse_copy

if TYPE_CHECKING:
    from kafkacore.consumer.config_types import ConsumerConfig

T = TypeVar("T")

#: Maximum milliseconds to wait until the heartbeat thread stops. The thread never blocks on the network, so
#: it stops quickly.
_HEARTBEAT_THREAD_TIMEOUT_MS = 1000.0
_client_numbers = count(1)
_COLUMNS = ("offset", "timestamp", "timestamp_type", "key", "value", "headers")


class KafkaConsumer:
    """A client that reads records from Kafka.

    Arguments and methods are those of kafka-python 3.0; :meth:`poll_arrow` and :meth:`hold` are additions.

    Only one thread at a time may use a consumer, and only in the process that created it. While one thread is
    in a call, another thread may call :meth:`wakeup` and :meth:`close`, and the methods that read the
    consumer's state: :meth:`assignment`, :meth:`subscription`, :meth:`paused`, :meth:`position`,
    :meth:`committed`, :meth:`highwater`, :meth:`group_metadata`, :meth:`topics` and :meth:`metrics`. These
    methods return the state at that moment. Any other method raises ``IllegalStateError``.

    Parameters
    ----------
    *topics:
        Topics to subscribe to. Without a ``group_id`` the consumer reads all partitions of these topics,
        including partitions that are added later.
    clock:
        Source of time, for tests. If it is not the default clock, no heartbeat thread is started.
    **configs:
        Consumer settings, such as ``bootstrap_servers`` and ``group_id``. docs/reference/settings describes
        all settings; :data:`DEFAULT_CONFIG` holds their defaults.

    Raises
    ------
    KafkaConfigurationError
        A setting is unknown or has an invalid value.
    NoBrokersAvailable
        None of ``bootstrap_servers`` responded within ``bootstrap_timeout_ms``.
    AuthenticationFailedError
        The broker rejected the client's credentials, or the broker's certificate is not valid.
    TypeError
        Settings were given as a dict instead of keyword arguments.

    Notes
    -----
    The constructor waits for a broker, up to ``bootstrap_timeout_ms``. With ``api_version`` or
    ``bootstrap_timeout_ms=0`` the constructor does not connect. The first method that needs a broker then
    connects. A method that needs a broker waits up to its ``timeout_ms``. If no ``timeout_ms`` is given, the
    method waits up to the setting ``request_timeout_ms``.
    """

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = dict(DEFAULTS)

    def __init__(self, *topics: str, clock: Clock = SYSTEM_CLOCK, **configs: Unpack[ConsumerConfig]) -> None:
        refuse_positional(type(self).__name__, (topic for topic in topics if isinstance(topic, Mapping)))
        self._open(configs, clock)
        try:
            # With api_version given, the constructor does not wait for a broker, as in kafka-python.
            if self.config["api_version"] is None and self.config["bootstrap_timeout_ms"] > 0:
                self.bootstrap()
            if topics:
                self.subscribe(topics)
        except BaseException:
            self.close(autocommit=False, timeout_ms=0)
            raise

    @classmethod
    def _opened(cls, configs: Mapping[str, object], clock: Clock) -> Self:
        """Return a consumer that has not waited for a broker, for ``kafkacore.aio``."""
        consumer = cls.__new__(cls)
        consumer._open(configs, clock)
        return consumer

    def _open(self, configs: Mapping[str, object], clock: Clock) -> None:
        """Create the objects of the consumer."""
        # The attribute becomes False when all objects exist, so that __del__ does not warn if an exception is
        # raised before.
        self._closed = True
        self.config = resolve(configs)
        if self.config["client_id"] is None:
            self.config["client_id"] = f"kafkacore-consumer-{next(_client_numbers)}"
        self._guard = SingleOwnerGuard()
        client, metadata = bootstrap_client(self.config, clock)
        try:
            self._engine = ConsumerEngine(
                self.config, client, metadata, clock, servers_text(self.config), self._guard.released
            )
        except BaseException:
            client.close()
            raise
        self._heartbeat_thread = self._new_heartbeat_thread(clock)
        self._iteration = self._engine.iteration
        self._closed = False

    def _new_heartbeat_thread(self, clock: Clock) -> HeartbeatThread | None:
        """Return the heartbeat thread of a group member.

        Return ``None`` without a group, or if a test passed its own clock and runs the background work
        itself.
        """
        membership = self._engine.membership
        if membership is None or clock is not SYSTEM_CLOCK:
            return None
        return HeartbeatThread(
            self._guard, membership, self._engine.heartbeats, clock, self.config["group_id"]
        )

    # ---- Subscription and assignment ---------------------------------------------------------------------
    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign ``partitions`` to this consumer, replacing the previous assignment.

        Partitions that were assigned before keep their positions.

        Parameters
        ----------
        partitions:
            Partitions to read. If empty, the call is the same as :meth:`unsubscribe`.

        Raises
        ------
        IllegalStateError
            If the consumer has subscribed to topics.
        TypeError
            If an element is not a :class:`TopicPartition`.
        """
        wanted = list(partitions)
        _check_partitions(wanted)
        with self._guard:
            self._begin()
            if not wanted:
                self._engine.unsubscribe()
                return
            self._engine.assign(wanted)

    def assignment(self) -> set[TopicPartition]:
        """Return the partitions that are assigned to this consumer."""
        return set(self._engine.subscriptions.states)

    def subscribe(
        self,
        topics: Iterable[str] = (),
        pattern: str | re.Pattern[str] | SubscriptionPattern | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Subscribe to ``topics``, or to all existing and future topics that match ``pattern``.

        Parameters
        ----------
        topics, pattern:
            Topic names, or a regular expression that is matched from the start of a topic name. Give one of
            the two. The new subscription replaces the previous one. With ``group_protocol="consumer"``,
            ``pattern`` may also be a :class:`SubscriptionPattern`, which the broker matches against whole
            names.
        listener:
            Rebalance listener, whose methods :meth:`poll` calls when partitions are assigned, revoked or
            lost.

        Raises
        ------
        IllegalStateError
            If partitions were assigned with :meth:`assign`.
        KafkaConfigurationError
            If ``pattern`` is a :class:`SubscriptionPattern`, and the consumer has no ``group_id`` or uses the
            classic group protocol.
        TypeError
            If ``listener`` is not a rebalance listener.
        ValueError
            If not exactly one of ``topics`` and ``pattern`` is given, or a topic name is invalid.
        """
        with self._guard:
            self._begin()
            if isinstance(pattern, SubscriptionPattern):
                self._check_server_patterns()
            self._engine.subscriptions.subscribe(topics, pattern, listener)
            self._engine.subscription_changed()

    def subscription(self) -> set[str] | None:
        """Return the topics subscribed to, or ``None`` without a subscription.

        The set is empty with a :class:`SubscriptionPattern`, because only the broker knows the topics.
        """
        topics = self._engine.subscriptions.subscribed
        return None if topics is None else set(topics)

    def unsubscribe(self) -> None:
        """Drop the subscription or the assignment, and all positions."""
        with self._guard:
            self._begin()
            self._engine.unsubscribe()

    # ---- Reading -----------------------------------------------------------------------------------------
    def poll(
        self, timeout_ms: float = 0, max_records: int | None = None, update_offsets: bool = True
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Return fetched records, waiting up to ``timeout_ms`` if none are available.

        Parameters
        ----------
        timeout_ms:
            Maximum time to wait for records, in milliseconds.
        max_records:
            Maximum number of records to return; the setting ``max_poll_records`` by default.
        update_offsets:
            Whether to advance the positions. If false, the next call returns the same records.

        Returns
        -------
        dict
            Partition → list of records, in the order of their offsets. Empty if no record arrived in time.

        Raises
        ------
        OffsetOutOfRangeError, NoOffsetForPartitionError
            If ``auto_offset_reset`` is ``none`` and a partition has no valid position.
        CorruptRecordError
            If the next record or batch is corrupt. Every call raises this error until :meth:`seek` skips the
            record.
        RecordDeserializationError
            If a deserializer raised an exception. The position stays at that record.
        GroupAuthorizationFailedError, FencedInstanceIdError, GroupMaxSizeReachedError
            If the group rejects this consumer, or another consumer has taken over its
            ``group_instance_id``.
        WakeupError
            If another thread called :meth:`wakeup`.
        BaseException
            Any exception of a rebalance listener or of a :meth:`commit_async` callback. No record is lost:
            the next call returns the records.
        """
        limit = self.config["max_poll_records"] if max_records is None else max_records
        _check_poll(timeout_ms, limit)
        with self._guard:
            self._begin()
            try:
                return self._engine.poll_records(Timer(self._engine.clock, timeout_ms), limit, update_offsets)
            except ConsumerClosingError:
                return {}

    def poll_arrow(
        self,
        timeout_ms: float = 0,
        max_records: int | None = None,
        columns: Sequence[str] | None = None,
        timestamp_unit: Literal["ms", "us"] = "ms",
        end_offsets: Mapping[TopicPartition, int] | None = None,
        timezone: str | None = None,
        max_column_bytes: int | None = None,
    ) -> dict[TopicPartition, RecordColumns]:
        """Return fetched records as Arrow columns instead of objects, but otherwise behave like :meth:`poll`.

        No Python code runs per record, and deserializers are not called. A :class:`~kafkacore.RecordDecoder`
        decodes the keys and values of the result.

        Parameters
        ----------
        timeout_ms:
            Maximum time to wait for records, in milliseconds.
        max_records:
            Maximum number of rows, over all partitions; no limit by default.
        columns:
            Columns to return, in this order: any of ``offset``, ``timestamp``, ``timestamp_type``, ``key``,
            ``value`` and ``headers``. All six by default.
        timestamp_unit:
            Unit of the timestamp column: ``"ms"`` or ``"us"``.
        end_offsets:
            Partition → offset at which to stop, exclusive. The position never exceeds this offset. The
            position reaches the offset even if the last offsets before it have no record (after compaction,
            or at transaction markers). The call returns at once when all partitions have reached their end
            offsets.
        timezone:
            Time zone name of the timestamp column; none by default.
        max_column_bytes:
            Maximum bytes of keys, of values or of headers per partition; 2 GiB by default. A single record
            that exceeds the limit is returned nevertheless. The next call returns the remaining records.

        Returns
        -------
        dict
            Partition → ``RecordColumns``, which pyarrow, polars, pandas and duckdb import through the Arrow C
            data interface. The columns are copies and do not keep fetch responses in memory.

        Raises
        ------
        ValueError
            If a column or unit is unknown.
        OffsetOutOfRangeError, NoOffsetForPartitionError, CorruptRecordError, WakeupError
            As in :meth:`poll`.
        """
        _check_poll(timeout_ms, max_records)
        names = _COLUMNS if columns is None else tuple(columns)
        ends = {} if end_offsets is None else dict(end_offsets)
        settings: dict[str, Any] = {"timestamp_unit": timestamp_unit, "timezone": timezone}
        if max_column_bytes is not None:
            settings["max_column_bytes"] = max_column_bytes

        with self._guard:
            self._begin()
            try:
                return self._engine.poll_columns(
                    Timer(self._engine.clock, timeout_ms),
                    lambda: ColumnBuilder(names, **settings),
                    max_records,
                    ends,
                )
            except ConsumerClosingError:
                return {}

    def __iter__(self) -> KafkaConsumer:
        return self

    # next_record is compiled, because it runs once per record. It calls Python code only once per poll.
    __next__ = next_record

    def _poll_for_next(self) -> ConsumerRecord | None:
        """Poll for the next record of the iteration; return ``None`` to end the loop."""
        if self._closed:
            return None
        with self._guard:
            try:
                return None if self._engine.closed else self._engine.next_record()
            except ConsumerClosingError:
                return None

    def wakeup(self) -> None:
        """Make the waiting call, or else the next call that would wait, raise :class:`WakeupError`.

        This method may be called from any thread.
        """
        self._engine.client.wakeup()

    def hold(self) -> Hold:
        """Keep this consumer in its group during long processing: ``with consumer.hold() as held:``.

        Within the block:

        - All assigned partitions are paused. The end of the block resumes the partitions that the block
          paused.
        - Heartbeats continue, and ``max_poll_interval_ms`` does not apply.
        - If the group rebalances, the heartbeat thread rejoins it, as :meth:`poll` would, and also runs the
          callbacks of the rebalance listener. To rejoin, the thread needs the GIL once within
          ``max_poll_interval_ms``; heartbeats do not need the GIL.
        - Newly assigned partitions are not read before the block ends.
        - Nothing is committed automatically, not even when partitions are revoked, because the records are
          still being processed. Call :meth:`commit` to commit.
        - ``held.check(partition)`` returns whether this consumer has owned a partition since the block began.
          ``held.revoked`` and ``held.lost`` contain the partitions that were revoked or lost since then.
        - An eager rebalance may revoke a partition and assign it again at once. Such a partition keeps its
          position and does not count as revoked, unless a rebalance listener saw the revocation.
        - :meth:`poll` returns no records. All other methods work.

        Blocks may be nested. Without a group, the block only pauses and resumes partitions. Other Kafka
        clients have no equivalent.

        Returns
        -------
        Hold
            Context manager for one ``with`` statement.
        """
        with self._guard:
            self._check_open()
        return Hold(self._engine.holds, self._guard)

    # ---- Positions ---------------------------------------------------------------------------------------
    def position(self, partition: TopicPartition, timeout_ms: float | None = None) -> int:
        """Return the offset of the next record to read.

        If the partition has no position yet, use the committed offset or ``auto_offset_reset``. While another
        thread polls, the position may already be after records that ``poll()`` has not returned yet.

        Parameters
        ----------
        partition:
            An assigned partition.
        timeout_ms:
            Maximum time to look up the position, in milliseconds; ``request_timeout_ms`` by default.

        Raises
        ------
        IllegalStateError
            If the partition is not assigned, or if its position must be looked up while another thread is in
            a call.
        KafkaTimeoutError
            If the position could not be looked up in time.
        """
        _check_partitions([partition])
        self._check_open()
        position = self._engine.known_position(partition)
        if position is not None:
            return position
        with self._guard:
            self._check_open()
            return self._engine.position(partition, self._timer(timeout_ms))

    def highwater(self, partition: TopicPartition) -> int | None:
        """Return a partition's high watermark as of the last fetch, or ``None`` before the first fetch.

        Raises
        ------
        IllegalStateError
            If the partition is not assigned.
        """
        _check_partitions([partition])
        return self._engine.subscriptions.state(partition).high_watermark

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Set the position of an assigned partition.

        Parameters
        ----------
        partition:
            An assigned partition.
        offset:
            Offset of the next record to read, or an :class:`OffsetAndMetadata` as :meth:`committed` and
            ``LogTruncationError`` provide it. If the :class:`OffsetAndMetadata` has a leader epoch, the
            consumer first asks the leader whether the log has been truncated before this offset (KIP-320).

        Raises
        ------
        ValueError
            If the offset is negative or the partition is not assigned.
        """
        _check_partitions([partition])
        epoch = -1
        if isinstance(offset, OffsetAndMetadata):
            offset, _, epoch = offset
        if not isinstance(offset, int) or offset < 0:
            raise ValueError(f"offset must be an int of at least 0, not {offset!r}")
        with self._guard:
            self._begin()
            self._check_assigned([partition])
            self._engine.metadata.update_last_seen_epoch_if_newer(partition, epoch)
            self._engine.subscriptions.seek_unvalidated(partition, FetchPosition(offset, epoch))

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Set the position of ``partitions`` (default: all assigned) to the first record.

        The offset is looked up when it is needed, for example by the next :meth:`poll` or :meth:`position`.

        Raises
        ------
        ValueError
            If a partition is not assigned, or if no partitions are given and none are assigned.
        """
        self._seek_by_name(partitions, OffsetResetStrategy.EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Set the position of ``partitions`` (default: all assigned) to the end of the log.

        The offset is looked up when it is needed, for example by the next :meth:`poll` or :meth:`position`.

        Raises
        ------
        ValueError
            If a partition is not assigned, or if no partitions are given and none are assigned.
        """
        self._seek_by_name(partitions, OffsetResetStrategy.LATEST)

    def _seek_by_name(self, partitions: Sequence[TopicPartition], strategy: OffsetResetStrategy) -> None:
        _check_partitions(partitions)
        with self._guard:
            self._begin()
            chosen = partitions or self._engine.subscriptions.assigned_partitions()
            if not chosen:
                raise ValueError("no partitions are assigned")
            self._check_assigned(chosen)
            for partition in chosen:
                self._engine.subscriptions.request_offset_reset(partition, strategy)

    def _check_assigned(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            if not self._engine.subscriptions.is_assigned(partition):
                raise ValueError(f"{partition} is not assigned to this consumer")

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of ``partitions`` until :meth:`resume`. Fetched records stay in the buffer.

        Raises
        ------
        IllegalStateError
            If a partition is not assigned.
        """
        _check_partitions(partitions)
        with self._guard:
            self._begin()
            for partition in partitions:
                self._engine.subscriptions.pause(partition)

    def resume(self, *partitions: TopicPartition) -> None:
        """Resume partitions that :meth:`pause` has paused.

        Raises
        ------
        IllegalStateError
            If a partition is not assigned.
        """
        _check_partitions(partitions)
        with self._guard:
            self._begin()
            for partition in partitions:
                self._engine.subscriptions.resume(partition)

    def paused(self) -> set[TopicPartition]:
        """Return the paused partitions."""
        return {tp for tp, state in self._engine.subscriptions.states.items() if state.paused}

    # ---- Offsets and topics of the brokers ---------------------------------------------------------------
    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offset of each partition, assigned or not.

        Parameters
        ----------
        partitions:
            Partitions to look up.
        timeout_ms:
            Maximum time to wait, in milliseconds; ``request_timeout_ms`` by default.

        Raises
        ------
        KafkaTimeoutError
            If the brokers did not respond in time.
        """
        return self._named_offsets(partitions, OffsetSpec.EARLIEST, timeout_ms)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the offset after the last record of each partition, assigned or not.

        With ``isolation_level="read_committed"`` this is the last stable offset.

        Parameters
        ----------
        partitions:
            Partitions to look up.
        timeout_ms:
            Maximum time to wait, in milliseconds; ``request_timeout_ms`` by default.

        Raises
        ------
        KafkaTimeoutError
            If the brokers did not respond in time.
        """
        return self._named_offsets(partitions, OffsetSpec.LATEST, timeout_ms)

    def _named_offsets(
        self, partitions: Iterable[TopicPartition], spec: OffsetSpec, timeout_ms: float | None
    ) -> dict[TopicPartition, int]:
        wanted = list(partitions)
        _check_partitions(wanted)
        with self._guard:
            self._check_open()
            specs = dict.fromkeys(wanted, int(spec))
            found = self._engine.offsets.fetch_offsets(specs, self._timer(timeout_ms))
        return {tp: found[tp].offset for tp in specs if found[tp].offset != UNKNOWN_OFFSET}

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return, for each partition, the first record at or after a timestamp.

        Parameters
        ----------
        timestamps:
            Partition → milliseconds since the epoch.
        timeout_ms:
            Maximum time to wait, in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        dict
            Partition → offset and timestamp of the record, or ``None`` if there is no such record.

        Raises
        ------
        ValueError
            If a timestamp is negative.
        KafkaTimeoutError
            If the brokers did not respond in time.
        """
        _check_partitions(timestamps)
        wanted = {tp: int(timestamp) for tp, timestamp in timestamps.items()}
        for tp, timestamp in wanted.items():
            if timestamp < 0:
                raise ValueError(f"the timestamp of {tp} must not be negative: {timestamp}")
        with self._guard:
            self._check_open()
            found = self._engine.offsets.fetch_offsets(wanted, self._timer(timeout_ms))
        return {
            tp: None if found[tp].offset == UNKNOWN_OFFSET else OffsetAndTimestamp(*found[tp])
            for tp in wanted
        }

    def topics(self, timeout_ms: float | None = None) -> set[str]:
        """Return all topics that this client is authorized to see. Each call asks a broker.

        While another thread is in a call, return the topics in the consumer's metadata instead. These are the
        topics of the subscription or assignment. With a subscription to a pattern, they are all topics.
        """
        try:
            with self._guard:
                self._check_open()
                return set(self._engine.topics.fetch(self._timer(timeout_ms)))
        except ConsumerInUseError:
            return set(self._engine.metadata.fetch().topics)

    def partitions_by_topic(
        self, topics: Iterable[str] | None = None, timeout_ms: float | None = None
    ) -> dict[str, set[int]]:
        """Return the partition numbers of ``topics`` (default: of all topics). Each call asks a broker.

        The result leaves out topics that do not exist. The call does not create topics.

        Parameters
        ----------
        topics:
            Topic names.
        timeout_ms:
            Maximum time to wait, in milliseconds; ``request_timeout_ms`` by default.

        Raises
        ------
        TopicAuthorizationFailedError, InvalidTopicError
            If ``topics`` contains a topic that is not authorized or has an invalid name.
        KafkaTimeoutError
            If no broker responded in time.
        """
        wanted = None if topics is None else list(topics)
        with self._guard:
            self._check_open()
            return self._engine.topics.fetch(self._timer(timeout_ms), wanted)

    def partitions_for_topic(self, topic: str, timeout_ms: float | None = None) -> set[int]:
        """Return the topic's partition numbers; empty if the topic does not exist."""
        with self._guard:
            self._check_open()
            known = self._engine.metadata.fetch().partitions_for_topic(topic)
            if known:
                return set(known)
            return self._engine.topics.fetch(self._timer(timeout_ms), [topic]).get(topic, set())

    # ---- Commits -----------------------------------------------------------------------------------------
    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Commit offsets and wait for the result. Retriable errors are retried until the timeout.

        The callbacks of all earlier :meth:`commit_async` calls have run when this method returns.

        Parameters
        ----------
        offsets:
            Partition → offset of the next record to read, with optional metadata text:
            ``OffsetAndMetadata(last + 1)``. By default, the positions after all returned records are
            committed. In a loop over the consumer, the current record counts as returned.
        timeout_ms:
            Maximum time to wait, in milliseconds; ``request_timeout_ms`` by default.

        Raises
        ------
        IllegalStateError
            If the consumer has no ``group_id``.
        TypeError, ValueError
            If ``offsets`` is invalid.
        CommitFailedError
            If the group has rebalanced without this consumer, whose partitions may now belong to another
            member.
        RebalanceInProgressError
            If the group is rebalancing. Call :meth:`poll`, then commit the partitions still assigned.
        FencedInstanceIdError
            If another consumer has taken over this consumer's ``group_instance_id``.
        KafkaTimeoutError
            If the commit did not finish in time. The offsets may have been committed.
        WakeupError
            If another thread called :meth:`wakeup`. The offsets may have been committed.
        """
        given = None if offsets is None else _checked(offsets)
        with self._guard:
            commits = self._in_group(self._engine.commits)
            chosen = self._engine.consumed_offsets() if given is None else given
            with self._timed(self._engine.metrics.group.waited_for_commit):
                commits.commit_sync(chosen, self._timer(timeout_ms))

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        callback: CommitCallback | None = None,
    ) -> CommitFuture:
        """Send a commit without waiting for the result.

        Failed commits are not retried, because a retry could overwrite a later commit.

        Parameters
        ----------
        offsets:
            As in :meth:`commit`.
        callback:
            ``callback(offsets, error)``. A later :meth:`poll`, :meth:`commit` or :meth:`close` calls it, in
            the order of the commits. ``error`` is ``None`` on success. If a retry may succeed, ``error`` is a
            :class:`RetriableCommitFailedError` with its cause. Without a callback,
            ``default_offset_commit_callback`` is called. Without that setting, failures are logged.

        Returns
        -------
        CommitFuture
            A future that is done when the result is known. Later calls of :meth:`poll` process the response.

        Raises
        ------
        IllegalStateError, TypeError, ValueError, FencedInstanceIdError
            As in :meth:`commit`.
        """
        given = None if offsets is None else _checked(offsets)
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be a function of the offsets and the error, not {callback!r}")
        with self._guard:
            commits = self._in_group(self._engine.commits)
            chosen = self._engine.consumed_offsets() if given is None else given
            return CommitFuture(commits.commit_async(chosen, callback))

    @overload
    def committed(
        self, partition: TopicPartition, metadata: bool = False, timeout_ms: float | None = None
    ) -> int | OffsetAndMetadata | None: ...
    @overload
    def committed(
        self, partition: Collection[TopicPartition], metadata: bool = False, timeout_ms: float | None = None
    ) -> dict[TopicPartition, int | OffsetAndMetadata | None]: ...
    def committed(
        self,
        partition: TopicPartition | Collection[TopicPartition],
        metadata: bool = False,
        timeout_ms: float | None = None,
    ) -> object:
        """Return the offset that the group has committed for a partition.

        While another thread is in a call, return the last offset that this consumer has committed or looked
        up, if it has such an offset for each partition.

        Parameters
        ----------
        partition:
            A partition, assigned or not, or a collection of partitions.
        metadata:
            Whether to return :class:`OffsetAndMetadata` instead of the offset alone.
        timeout_ms:
            Maximum time to wait, in milliseconds; ``request_timeout_ms`` by default.

        Returns
        -------
        int, OffsetAndMetadata, None or dict
            The committed offset, or ``None`` if nothing is committed. For a collection of partitions, a
            dictionary with an entry per partition.

        Raises
        ------
        IllegalStateError
            If the consumer has no ``group_id``, or if an offset must be looked up while another thread is in
            a call.
        KafkaTimeoutError
            If the coordinator did not respond in time, or if an open transaction has a pending commit of the
            offset.
        """
        one = isinstance(partition, TopicPartition)
        if not one and not isinstance(partition, list | tuple | set | frozenset):
            raise TypeError(f"a partition must be a TopicPartition, not {partition!r}")
        wanted = [partition] if isinstance(partition, TopicPartition) else list(partition)
        _check_partitions(wanted)
        reader: CommittedOffsets = self._in_group(self._engine.committed)
        try:
            with self._guard, self._timed(self._engine.metrics.group.waited_for_committed):
                self._check_open()
                found = reader.fetch_committed(set(wanted), self._timer(timeout_ms))
        except ConsumerInUseError:
            known = self._engine.known_committed(wanted)
            if known is None:
                raise
            found = known
        chosen = {
            tp: committed if metadata or committed is None else committed.offset
            for tp, committed in ((tp, found[tp]) for tp in wanted)
        }
        return chosen[wanted[0]] if one else chosen

    def current_lag(self, partition: TopicPartition) -> int | None:
        """Return the number of records between a partition's position and the end of its log (KIP-695).

        The end is the high watermark, or with ``read_committed`` the last stable offset, as of a broker's
        last response. The call does not wait. If the end of the log is unknown, the call sends a request for
        it, and later polls process the response.

        Returns
        -------
        int or None
            ``None`` if the position or the end of the log is unknown.

        Raises
        ------
        IllegalStateError
            If the partition is not assigned.
        """
        _check_partitions([partition])
        with self._guard:
            self._check_open()
            return self._engine.current_lag(partition)

    # ---- Membership --------------------------------------------------------------------------------------
    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return the group, generation and member id for ``KafkaProducer.send_offsets_to_transaction()``.

        Without a group the result is an empty :class:`ConsumerGroupMetadata` (KIP-447).
        """
        self._check_open()
        membership = self._engine.membership
        return ConsumerGroupMetadata() if membership is None else membership.group_metadata()

    def enforce_rebalance(self, reason: str | None = None) -> None:
        """Make the next :meth:`poll` start a rebalance (KIP-568).

        Use this method after a change that the assignor should consider.

        Parameters
        ----------
        reason:
            Text for the coordinator's log.

        Raises
        ------
        IllegalStateError
            If the consumer has no ``group_id``.
        """
        with self._guard:
            membership = self._in_group(self._engine.membership)
            membership.request_rejoin(reason or "enforce_rebalance() was called")

    # ---- Connection --------------------------------------------------------------------------------------
    def bootstrap(self, timeout_ms: float | None = None, refresh: bool = False) -> None:
        """Wait until the consumer has the cluster's metadata.

        Parameters
        ----------
        timeout_ms:
            Maximum time to wait, in milliseconds; ``bootstrap_timeout_ms`` by default.
        refresh:
            Whether to fetch the metadata again if the consumer already has them.

        Raises
        ------
        NoBrokersAvailable
            If no broker responded in time. This is a :class:`KafkaTimeoutError`.
        """
        limit = "bootstrap_timeout_ms" if timeout_ms is None else "timeout_ms"
        with self._guard:
            self._check_open()
            if not refresh and self.bootstrap_connected():
                return
            timer = self._timer(self.config[limit] if timeout_ms is None else timeout_ms)
            if not self._engine.client.await_metadata_update(timer):
                raise NoBrokersAvailable(
                    f"none of bootstrap_servers={self._engine.bootstrap_servers!r} answered within "
                    f"{limit}={timer.timeout_ms:.0f}: is the broker running, and reachable from here?"
                    f"{self._engine.client.client.connection_errors.as_cause()}"
                )

    def bootstrap_connected(self) -> bool:
        """Return whether the consumer has the cluster's metadata and a connection to a broker."""
        with self._guard:
            return self._engine.client.is_connected()

    def metrics(self, raw: bool = False) -> Any:
        """Return the current values of this consumer's metrics: group → name → value.

        Names and meanings are those of kafka-python and Apache Kafka, such as
        ``metrics()["consumer-fetch-manager-metrics"]["records-lag-max"]``. Metrics per topic are in
        ``"consumer-fetch-manager-metrics.<topic>"``, per partition in ``"….<topic>.<partition>"``, per broker
        in ``"consumer-node-metrics.node-<id>"``, and of the group in ``"consumer-coordinator-metrics"``.

        Parameters
        ----------
        raw:
            Whether to return the metric objects instead of their values. Any thread may read these objects
            later.

        Returns
        -------
        dict or None
            ``{group: {name: float}}``, or with ``raw`` ``{MetricName: KafkaMetric}``. ``None`` with
            ``metrics_enabled=False``. The dictionary is empty after the consumer has been closed.
        """
        registry = self._engine.metrics.registry
        if registry is None:
            return None
        return registry.metrics if raw else registry.snapshot()

    # ---- Closing -----------------------------------------------------------------------------------------
    def close(self, autocommit: bool = True, timeout_ms: float | None = None) -> None:
        """Commit offsets, leave the group, and close fetch sessions and connections.

        Further calls do nothing. If another thread is in a call, that call ends first: :meth:`poll` returns
        no records, a loop over the consumer ends, and any other call raises ``IllegalStateError``.

        Parameters
        ----------
        autocommit:
            Whether to commit if ``enable_auto_commit`` is set. A ``with`` block that ends with an exception
            passes false, because the last record may not have been processed.
        timeout_ms:
            Maximum total time, in milliseconds; ``request_timeout_ms`` by default. With 0 the commit is sent
            without waiting for the response.

        Raises
        ------
        IllegalStateError
            If another thread's call has not ended within ``timeout_ms``, for example because it runs a
            listener or callback. The consumer then stays open.
        """
        if self._closed:
            return
        if self._guard.in_other_process():
            self._closed = True  # Send nothing, because the sockets belong to the parent process.
            return
        timer = self._timer(timeout_ms)
        self._closed = self._guard.is_closing = True
        self._engine.client.begin_close()
        with ExitStack() as entered:
            try:
                entered.enter_context(self._guard.when_left(timer.timeout_ms))
            except BaseException:
                self._closed = self._guard.is_closing = False
                self._engine.client.cancel_close()
                raise
            if self._engine.closed:
                # Another thread has called close() at the same time, and has closed the consumer.
                return
            if self._heartbeat_thread is not None:
                self._heartbeat_thread.close(_HEARTBEAT_THREAD_TIMEOUT_MS)
            try:
                self._engine.close(timer, autocommit)
            finally:
                close_deserializer(self.config["key_deserializer"])
                close_deserializer(self.config["value_deserializer"])

    def __enter__(self) -> KafkaConsumer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close(autocommit=kind is None)

    def __del__(self) -> None:
        if getattr(self, "_closed", True) or self._guard.in_other_process():
            return
        self._closed = True
        warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self, stacklevel=2)
        # Send nothing to the brokers, because the garbage collector may run this on any thread and must not
        # block.
        if self._heartbeat_thread is None:
            self._engine.client.close()
        else:
            self._heartbeat_thread.abandon(self._engine.client.close)

    def __reduce__(self) -> NoReturn:
        refuse_copy(self, "its connections belong to this process; create one in each process")

    def __repr__(self) -> str:
        return (
            f"<KafkaConsumer client_id={self.config['client_id']!r} servers={self._engine.bootstrap_servers}>"
        )

    # ---- Checks ------------------------------------------------------------------------------------------
    def _begin(self) -> None:
        self._engine.begin()

    def _check_open(self) -> None:
        if self._engine.closed:
            raise IllegalStateError("this KafkaConsumer is closed")

    def _check_server_patterns(self) -> None:
        if self.config["group_protocol"] != "consumer" or self.config["group_id"] is None:
            raise KafkaConfigurationError(
                "subscribe(pattern=SubscriptionPattern(...)) needs a group_id and group_protocol='consumer', "
                "because the broker matches the pattern. Pass a str or a compiled pattern to match topics in "
                "the consumer"
            )

    def _timer(self, timeout_ms: float | None) -> Timer:
        return Timer(
            self._engine.clock, self.config["request_timeout_ms"] if timeout_ms is None else timeout_ms
        )

    @contextmanager
    def _timed(self, record: Callable[[float], None]) -> Iterator[None]:
        started_ms = self._engine.clock.monotonic_ms()
        try:
            yield
        finally:
            record(self._engine.clock.monotonic_ms() - started_ms)

    def _in_group(self, part: T | None) -> T:
        self._check_open()
        if part is None:
            raise IllegalStateError(
                "this call needs a group_id, because offsets are committed per group. Pass group_id='...' to "
                "KafkaConsumer, even if partitions are chosen with assign()"
            )
        return part


def _check_partitions(partitions: Iterable[object]) -> None:
    for partition in partitions:
        if not isinstance(partition, TopicPartition):
            raise TypeError(f"a partition must be a TopicPartition, not {partition!r}")


def _checked(offsets: Mapping[TopicPartition, object]) -> dict[TopicPartition, OffsetAndMetadata]:
    """Check and convert offsets: named tuples of three fields, or of two fields as in older kafka-python."""
    if not isinstance(offsets, Mapping):
        raise TypeError(f"offsets must be a dict of TopicPartition and OffsetAndMetadata, not {offsets!r}")
    _check_partitions(offsets)
    return {tp: _checked_offset(tp, value) for tp, value in offsets.items()}


def _checked_offset(tp: TopicPartition, value: object) -> OffsetAndMetadata:
    if not isinstance(value, tuple) or not 2 <= len(value) <= 3:
        raise TypeError(f"the offset of {tp} must be an OffsetAndMetadata, not {value!r}")
    offset, metadata, *epoch = value
    leader_epoch = epoch[0] if epoch and epoch[0] is not None else -1
    if isinstance(offset, bool) or not isinstance(offset, int) or not isinstance(leader_epoch, int):
        raise TypeError(f"offset and leader epoch of {tp} must be integers, not {value!r}")
    if metadata is not None and not isinstance(metadata, str):
        raise TypeError(f"the metadata of {tp} must be a str, not {metadata!r}")
    if not 0 <= offset < 2**63 or not -1 <= leader_epoch < 2**31:
        raise ValueError(f"the offset of {tp} must be between 0 and 2**63 - 1: {value!r}")
    return OffsetAndMetadata(offset, metadata or "", leader_epoch)


def _check_poll(timeout_ms: float, max_records: int | None) -> None:
    if isinstance(timeout_ms, bool) or not isinstance(timeout_ms, int | float):
        raise TypeError(f"timeout_ms must be a number of milliseconds, not {timeout_ms!r}")
    if not timeout_ms >= 0:
        raise ValueError("timeout_ms must be 0 or more")
    if max_records is not None and (isinstance(max_records, bool) or not isinstance(max_records, int)):
        raise TypeError("max_records must be an int")
    if max_records is not None and max_records <= 0:
        raise ValueError("max_records must be positive")
