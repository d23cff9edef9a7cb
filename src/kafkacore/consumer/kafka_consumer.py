"""The consumer that a program uses.

It checks arguments and admits one thread at a time. The work is done by its :class:`ConsumerEngine`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from types import TracebackType
from typing import Any, ClassVar, Literal, NoReturn, TypeVar, Unpack, overload

from kafkacore.client import bootstrap_client
from kafkacore.client.config import refuse_positional, servers_text
from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.consumer._iteration import next_record
from kafkacore.consumer._record import ConsumerRecord
from kafkacore.consumer._request_future import RequestFuture
from kafkacore.consumer.config import DEFAULTS, resolve
from kafkacore.consumer.config_types import ConsumerConfig
from kafkacore.consumer.deserializers import close_deserializer
from kafkacore.consumer.engine import ConsumerEngine
from kafkacore.consumer.group.committed_offsets import CommittedOffsets
from kafkacore.consumer.group.heartbeat_thread import HeartbeatThread
from kafkacore.consumer.group.offset_commits import CommitCallback
from kafkacore.consumer.guard import SingleOwnerGuard
from kafkacore.consumer.hold import Hold
from kafkacore.consumer.listener import RebalanceListener
from kafkacore.consumer.offset_fetcher import UNKNOWN_OFFSET
from kafkacore.consumer.subscription_state import FetchPosition, OffsetResetStrategy
from kafkacore.consumer.timer import Timer
from kafkacore.errors import IllegalStateError, KafkaTimeoutError
from kafkacore.record import ColumnBuilder, RecordColumns
from kafkacore.structs import (
    ConsumerGroupMetadata,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OffsetSpec,
    TopicPartition,
)
from kafkacore.wire.copying import refuse_copy

T = TypeVar("T")

#: For the heartbeat thread to end: it never waits for the network.
_THREAD_END_MS = 1000.0
_client_numbers = count(1)
_COLUMNS = ("offset", "timestamp", "timestamp_type", "key", "value", "headers")


class KafkaConsumer:
    """Reads records from Kafka. Arguments and methods are kafka-python 3.0's; :meth:`poll_arrow` is ours.

    No connection is made before it is needed: by :meth:`poll`, iteration, or a method that must ask a broker.
    One thread at a time may use a consumer, and only the process that made it; :meth:`wakeup` alone is free.

    Parameters
    ----------
    *topics:
        Topics to subscribe to. Without a group all their partitions are read, also those added later.
    **configs:
        The settings of the consumer. :data:`DEFAULT_CONFIG` has their defaults.

    Raises
    ------
    KafkaConfigurationError
        A name is unknown, or a value is invalid.
    TypeError
        Settings were given as a dict. They are keyword arguments.

    Notes
    -----
    The constructor does not wait for a broker. A method that must ask one waits for ``request_timeout_ms``,
    or for its own time-out; ``poll`` waits for its time-out.
    """

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = dict(DEFAULTS)

    def __init__(self, *topics: str, clock: Clock = SYSTEM_CLOCK, **configs: Unpack[ConsumerConfig]) -> None:
        self._closed = True  # Until all is made, so that a refused argument leaves nothing to warn about.
        refuse_positional(type(self).__name__, (topic for topic in topics if isinstance(topic, Mapping)))
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
        if topics:
            try:
                self.subscribe(topics)
            except BaseException:
                self.close()
                raise

    def _new_heartbeat_thread(self, clock: Clock) -> HeartbeatThread | None:
        """For a member of a group; who hands a clock in gives the membership its background turns by hand."""
        membership = self._engine.membership
        if membership is None or clock is not SYSTEM_CLOCK:
            return None
        return HeartbeatThread(
            self._guard, membership, self._engine.heartbeats, clock, self.config["group_id"]
        )

    # ---- What to read ------------------------------------------------------------------------------------
    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly ``partitions``; those that were assigned before keep their position. None: stop
        reading.

        Raises
        ------
        IllegalStateError
            If topics are subscribed.
        TypeError
            If one is no :class:`TopicPartition`.
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
        """The partitions that are read now."""
        with self._guard:
            return self._engine.subscriptions.assigned_partitions()

    def subscribe(
        self,
        topics: Iterable[str] = (),
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Follow ``topics``, or all topics whose name ``pattern`` matches (from its beginning), now and
        later.

        Parameters
        ----------
        topics, pattern:
            One of the two. Replaces the subscription before.
        listener:
            Told, inside :meth:`poll`, when partitions come and go.

        Raises
        ------
        IllegalStateError
            If partitions are assigned.
        TypeError
            If ``listener`` is no listener.
        """
        with self._guard:
            self._begin()
            self._engine.subscriptions.subscribe(topics, pattern, listener)
            self._engine.subscription_changed()

    def subscription(self) -> set[str] | None:
        """The topics subscribed to; ``None`` without a subscription."""
        with self._guard:
            if not self._engine.subscriptions.has_auto_assigned_partitions():
                return None
            return set(self._engine.subscriptions.subscription)

    def unsubscribe(self) -> None:
        """Give up the subscription or the assignment, and all positions."""
        with self._guard:
            self._begin()
            self._engine.unsubscribe()

    # ---- Reading -----------------------------------------------------------------------------------------
    def poll(
        self, timeout_ms: float = 0, max_records: int | None = None, update_offsets: bool = True
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Fetched records, at most ``max_records``; empty when none came within ``timeout_ms``.

        Parameters
        ----------
        timeout_ms:
            How long to wait if nothing is there, in milliseconds.
        max_records:
            ``max_poll_records`` by default.
        update_offsets:
            If false, positions stay, and the next call gives the same records.

        Raises
        ------
        OffsetOutOfRangeError, NoOffsetForPartitionError
            Without ``auto_offset_reset``.
        CorruptRecordError
            At a record or batch that breaks the format; again by every call until a :meth:`seek` past it.
        RecordDeserializationError
            If a deserializer raised. The position stays before that record.
        GroupAuthorizationFailedError, FencedInstanceIdError, GroupMaxSizeReachedError
            In a group: it will not have this consumer, or has another one in its place.
        WakeupError
            If another thread called :meth:`wakeup`.
        BaseException
            What a listener, or a callback of :meth:`commit_async`, raised. No record is lost by it.
        """
        limit = self.config["max_poll_records"] if max_records is None else max_records
        _check_poll(timeout_ms, limit)
        with self._guard:
            self._begin()
            return self._engine.poll_records(Timer(self._engine.clock, timeout_ms), limit, update_offsets)

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
        """As :meth:`poll`, straight into Arrow columns: nothing runs in Python for a record.

        Parameters
        ----------
        timeout_ms:
            As in :meth:`poll`.
        max_records:
            Rows of all partitions together; unlimited by default.
        columns:
            Of ``offset``, ``timestamp``, ``timestamp_type``, ``key``, ``value``, ``headers``, in the order
            wanted.
        timestamp_unit, timezone:
            ``"ms"`` or ``"us"``, and a time zone's name, of the timestamp column.
        end_offsets:
            Partition → offset before which to stop. :meth:`position` is never past it, and reaches it also
            when the last offsets before it hold no record (compacted, transaction markers); then the call
            returns at once.
        max_column_bytes:
            Bytes of keys, values or headers at which a partition's columns are full, but for a record that
            is larger by itself; 2 GiB by default. What is left comes with the next call.

        Returns
        -------
        dict
            Partition → ``RecordColumns``, which pyarrow, polars, pandas and duckdb take by the Arrow C data
            interface. They are copies: no column holds a response.

        Raises
        ------
        ValueError
            There is no such column or unit.
        OffsetOutOfRangeError, NoOffsetForPartitionError, CorruptRecordError, WakeupError
            As of :meth:`poll`. Deserializers are not asked.
        """
        _check_poll(timeout_ms, max_records)
        names = _COLUMNS if columns is None else tuple(columns)
        ends = {} if end_offsets is None else dict(end_offsets)
        settings: dict[str, Any] = {"timestamp_unit": timestamp_unit, "timezone": timezone}
        if max_column_bytes is not None:
            settings["max_column_bytes"] = max_column_bytes

        with self._guard:
            self._begin()
            return self._engine.poll(
                Timer(self._engine.clock, timeout_ms),
                lambda: self._engine.fetcher.collect_columns(
                    lambda: ColumnBuilder(names, **settings),
                    max_records,
                    ends,
                ),
                lambda found: bool(found.columns) or self._engine.reached_all(ends),
                ends,
                max_records,
            ).columns

    def __iter__(self) -> KafkaConsumer:
        return self

    # Compiled: it runs once per record, and all but one call per poll only take from the iteration.
    __next__ = next_record

    def _poll_for_next(self) -> ConsumerRecord | None:
        """Poll when the iteration has no record left; ``None`` ends the loop."""
        with self._guard:
            return None if self._engine.closed else self._engine.next_record()

    def wakeup(self) -> None:
        """Have the call that waits, or else the next one that would, raise :class:`WakeupError`. From any
        thread.
        """
        self._engine.client.wakeup()

    def hold(self) -> Hold:
        """Take as long as it takes: ``with consumer.hold() as held:`` keeps this consumer in its group.

        Within the block

        - what is assigned is paused, and what the block has paused is resumed at its end;
        - heartbeats go on, and ``max_poll_interval_ms`` does not count;
        - when the group rebalances, the heartbeat thread joins again, as :meth:`poll` would; the listener's
          callbacks run on that thread then. Partitions that come are not read before the block ends. For
          this, not for heartbeats, it needs the GIL once within ``max_poll_interval_ms``;
        - nothing is committed automatically, not when partitions go either: the records in hand are not done.
          :meth:`commit` commits;
        - ``held.check(partition)`` says whether a partition has been ours all the time; ``held.revoked`` and
          ``held.lost`` are those that have not. What an eager rebalance takes and gives back at once was
          nobody else's: it goes on where it was, unless a listener was told that it went;
        - :meth:`poll` gives nothing; every other method works.

        Blocks may be nested. Without a group it is :meth:`pause` and :meth:`resume`. No other client has it.

        Returns
        -------
        Hold
            To be entered, once.
        """
        with self._guard:
            self._check_open()
        return Hold(self._engine.holds, self._guard)

    # ---- Positions ---------------------------------------------------------------------------------------
    def position(self, partition: TopicPartition, timeout_ms: float | None = None) -> int:
        """The offset of the next record, found out by ``auto_offset_reset`` if there is none yet.

        Parameters
        ----------
        timeout_ms:
            For finding it out; ``request_timeout_ms`` by default.

        Raises
        ------
        IllegalStateError
            If the partition is not assigned.
        KafkaTimeoutError
            If it could not be found out in time; names the bootstrap servers.
        """
        _check_partitions([partition])
        with self._guard:
            self._check_open()
            return self._engine.position(partition, self._timer(timeout_ms))

    def highwater(self, partition: TopicPartition) -> int | None:
        """The offset behind the last readable record, as of the last fetch; ``None`` before one."""
        _check_partitions([partition])
        with self._guard:
            return self._engine.subscriptions.state(partition).high_watermark

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Go on from ``offset``.

        Parameters
        ----------
        offset:
            Or an :class:`OffsetAndMetadata`, as :meth:`committed` and ``LogTruncationError`` give it: by its
            leader epoch the leader is asked first whether its log still has what comes before (KIP-320).

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
            raise ValueError(f"an offset is an int of at least 0, not {offset!r}")
        with self._guard:
            self._begin()
            self._check_assigned([partition])
            self._engine.metadata.update_last_seen_epoch_if_newer(partition, epoch)
            self._engine.subscriptions.seek_unvalidated(partition, FetchPosition(offset, epoch))

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Go on from the first record there is, of ``partitions`` or of all; looked up when it is needed."""
        self._seek_by_name(partitions, OffsetResetStrategy.EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Go on behind the last record, of ``partitions`` or of all; looked up when it is needed."""
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
        """Hand out nothing of ``partitions`` until :meth:`resume`; what was fetched of them is kept."""
        _check_partitions(partitions)
        with self._guard:
            self._begin()
            for partition in partitions:
                self._engine.subscriptions.pause(partition)

    def resume(self, *partitions: TopicPartition) -> None:
        """Undo :meth:`pause`."""
        _check_partitions(partitions)
        with self._guard:
            self._begin()
            for partition in partitions:
                self._engine.subscriptions.resume(partition)

    def paused(self) -> set[TopicPartition]:
        with self._guard:
            return self._engine.subscriptions.paused_partitions()

    # ---- Asking brokers ----------------------------------------------------------------------------------
    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition, assigned or not.

        Raises
        ------
        KafkaTimeoutError
            If that took longer than ``timeout_ms`` (default: ``request_timeout_ms``).
        """
        return self._named_offsets(partitions, OffsetSpec.EARLIEST, timeout_ms)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset behind the last record of each partition; reading committed, the last stable offset.

        Raises as :meth:`beginning_offsets`.
        """
        return self._named_offsets(partitions, OffsetSpec.LATEST, timeout_ms)

    def _named_offsets(
        self, partitions: Iterable[TopicPartition], spec: OffsetSpec, timeout_ms: float | None
    ) -> dict[TopicPartition, int]:
        wanted = list(partitions)
        _check_partitions(wanted)
        with self._guard:
            self._check_open()
            asked = dict.fromkeys(wanted, int(spec))
            found = self._engine.offsets.fetch_offsets(asked, self._timer(timeout_ms))
        return {tp: found[tp].offset for tp in asked if found[tp].offset != UNKNOWN_OFFSET}

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after a time (ms since the epoch) in each partition; ``None`` where there
        is none.

        Raises
        ------
        ValueError
            For a negative time.
        KafkaTimeoutError
            As :meth:`beginning_offsets`.
        """
        _check_partitions(timestamps)
        asked = {tp: int(timestamp) for tp, timestamp in timestamps.items()}
        for tp, timestamp in asked.items():
            if timestamp < 0:
                raise ValueError(f"the time asked for in {tp} is {timestamp}; it must not be negative")
        with self._guard:
            self._check_open()
            found = self._engine.offsets.fetch_offsets(asked, self._timer(timeout_ms))
        return {
            tp: None if found[tp].offset == UNKNOWN_OFFSET else OffsetAndTimestamp(*found[tp]) for tp in asked
        }

    def topics(self, timeout_ms: float | None = None) -> set[str]:
        """All topics that this client may see, asked for anew by every call."""
        with self._guard:
            self._check_open()
            return set(self._engine.topics.fetch(self._timer(timeout_ms)))

    def partitions_by_topic(
        self, topics: Iterable[str] | None = None, timeout_ms: float | None = None
    ) -> dict[str, set[int]]:
        """The partition numbers of ``topics``, of all by default; asked for anew by every call. A topic that
        does not exist is left out, and none is created.

        Raises
        ------
        TopicAuthorizationFailedError, InvalidTopicError
            For a topic that was asked for by name.
        KafkaTimeoutError
            If that took longer than ``timeout_ms`` (default: ``request_timeout_ms``).
        """
        wanted = None if topics is None else list(topics)
        with self._guard:
            self._check_open()
            return self._engine.topics.fetch(self._timer(timeout_ms), wanted)

    def partitions_for_topic(self, topic: str, timeout_ms: float | None = None) -> set[int]:
        """The topic's partition numbers; empty if it does not exist."""
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
        """Commit ``offsets`` and wait until that is done; what may go better is tried again.

        The callbacks of all asynchronous commits before it have been called when it returns.

        Parameters
        ----------
        offsets:
            Partition → the offset to go on from, with a note if wanted: ``OffsetAndMetadata(last + 1)``. By
            default that of everything that has been handed out; in a loop over the consumer, up to the record
            that the loop has now.
        timeout_ms:
            ``request_timeout_ms`` by default.

        Raises
        ------
        IllegalStateError
            Without a ``group_id``.
        TypeError, ValueError
            If the offsets are none.
        CommitFailedError
            The group has gone on without this consumer; its partitions may be another member's.
        RebalanceInProgressError
            The group is between two generations: call :meth:`poll`, then commit what is still assigned.
        FencedInstanceIdError
            Another consumer has this one's ``group_instance_id`` now.
        KafkaTimeoutError
            It took too long; the offsets may be committed or not.
        WakeupError
            If another thread called :meth:`wakeup`; as after a time-out.
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
    ) -> RequestFuture[None]:
        """Send ``offsets`` off without waiting. It is not tried again: that could pass a later commit.

        Parameters
        ----------
        offsets:
            As of :meth:`commit`.
        callback:
            ``callback(offsets, error)``, called by a later :meth:`poll`, :meth:`commit` or :meth:`close`, in
            the order of the commits; ``error`` is ``None`` if it succeeded, and a
            :class:`RetriableCommitFailedError` with its cause if another try may help. By default
            ``default_offset_commit_callback``, or else failures are logged.

        Returns
        -------
        RequestFuture
            Done when the commit has its outcome, which takes polls.

        Raises
        ------
        IllegalStateError, TypeError, ValueError, FencedInstanceIdError
            As of :meth:`commit`.
        """
        given = None if offsets is None else _checked(offsets)
        if callback is not None and not callable(callback):
            raise TypeError(f"a callback must be a function of offsets and error, not {callback!r}")
        with self._guard:
            commits = self._in_group(self._engine.commits)
            chosen = self._engine.consumed_offsets() if given is None else given
            return commits.commit_async(chosen, callback)

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
        """Where the group goes on in a partition, whoever committed it.

        Parameters
        ----------
        partition:
            One, assigned or not; or several, and the answer is a dictionary.
        metadata:
            Give the :class:`OffsetAndMetadata` instead of its offset.
        timeout_ms:
            ``request_timeout_ms`` by default.

        Returns
        -------
        int, OffsetAndMetadata or None
            ``None`` if nothing is committed.

        Raises
        ------
        IllegalStateError
            Without a ``group_id``.
        KafkaTimeoutError
            If it took too long; also while a transaction that commits the offset is open.
        """
        one = isinstance(partition, TopicPartition)
        if not one and not isinstance(partition, list | tuple | set | frozenset):
            raise TypeError(f"a partition must be a TopicPartition, not {partition!r}")
        wanted = [partition] if isinstance(partition, TopicPartition) else list(partition)
        _check_partitions(wanted)
        with self._guard:
            reader: CommittedOffsets = self._in_group(self._engine.committed)
            with self._timed(self._engine.metrics.group.waited_for_committed):
                found = reader.fetch_committed(set(wanted), self._timer(timeout_ms))
        chosen = {
            tp: committed if metadata or committed is None else committed.offset
            for tp, committed in ((tp, found[tp]) for tp in wanted)
        }
        return chosen[wanted[0]] if one else chosen

    def current_lag(self, partition: TopicPartition) -> int | None:
        """Records between the position and the log's end (reading committed, the last stable offset), as of
        the last answer of a broker. Does not wait: ``None`` where the position is not known yet, or the end,
        which is asked for then and known after some polls. (Kafka's ``currentLag``, KIP-695.)

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
        """Who this consumer is in its group now, for ``KafkaProducer.send_offsets_to_transaction()``
        (KIP-447). Without a group, nobody.
        """
        with self._guard:
            self._check_open()
            membership = self._engine.membership
            return ConsumerGroupMetadata() if membership is None else membership.group_metadata()

    def enforce_rebalance(self, reason: str | None = None) -> None:
        """Have the next :meth:`poll` begin a rebalance, such as after something that an assignor looks at has
        changed (KIP-568).

        Parameters
        ----------
        reason:
            For the coordinator's log.

        Raises
        ------
        IllegalStateError
            Without a ``group_id``.
        """
        with self._guard:
            membership = self._in_group(self._engine.membership)
            membership.request_rejoin(reason or "a rebalance was asked for by enforce_rebalance()")

    # ---- Connection --------------------------------------------------------------------------------------
    def bootstrap(self, timeout_ms: float | None = None, refresh: bool = False) -> None:
        """Wait until the cluster is known, asking anew if ``refresh``.

        Raises
        ------
        KafkaTimeoutError
            If no broker has answered within ``timeout_ms`` (default: ``bootstrap_timeout_ms``).
        """
        with self._guard:
            self._check_open()
            if not refresh and self.bootstrap_connected():
                return
            timer = self._timer(self.config["bootstrap_timeout_ms"] if timeout_ms is None else timeout_ms)
            if not self._engine.client.await_metadata_update(timer):
                raise KafkaTimeoutError(
                    f"no broker answered within {timer.timeout_ms:.0f} ms "
                    f"(bootstrap_servers={self._engine.bootstrap_servers})"
                    f"{self._engine.client.client.connection_errors.as_cause()}"
                )

    def bootstrap_connected(self) -> bool:
        """Whether a broker has told about the cluster, and a connection is there."""
        with self._guard:
            return self._engine.client.is_connected()

    def metrics(self, raw: bool = False) -> Any:
        """What this consumer has counted: group → name → figure, as of now.

        Names and meanings are kafka-python's and Apache Kafka's:
        ``metrics()["consumer-fetch-manager-metrics"]["records-lag-max"]``; by topic in
        ``"consumer-fetch-manager-metrics.<topic>"``, by partition in ``"….<topic>.<partition>"``, by broker
        in ``"consumer-node-metrics.node-<id>"``, of the group in ``"consumer-coordinator-metrics"``.

        Parameters
        ----------
        raw:
            Give the metrics themselves, which can be asked again, from any thread.

        Returns
        -------
        dict or None
            ``{group: {name: float}}``, or with ``raw`` ``{MetricName: KafkaMetric}``. ``None`` with
            ``metrics_enabled=False``; empty once the consumer is closed.
        """
        registry = self._engine.metrics.registry
        if registry is None:
            return None
        return registry.metrics if raw else registry.snapshot()

    # ---- The end -----------------------------------------------------------------------------------------
    def close(self, autocommit: bool = True, timeout_ms: float | None = None) -> None:
        """Commit, leave the group, close fetch sessions and connections. Idempotent.

        Parameters
        ----------
        autocommit:
            If false, nothing is committed, though ``enable_auto_commit`` is set. Leaving a ``with`` block by
            an exception does so: whether the last record has been dealt with is not known.
        timeout_ms:
            For all of it; ``request_timeout_ms`` by default. 0 sends the commit and waits for nothing.
        """
        if self._closed:
            return
        if self._guard.in_other_process():
            self._closed = True  # The parent's sockets are not ours to say good-bye on.
            return
        with self._guard:
            self._closed = True
            timer = self._timer(timeout_ms)
            if self._heartbeat_thread is not None:
                self._heartbeat_thread.close(_THREAD_END_MS)
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
        # Without a word to the brokers: a collector's thread must not wait for the network.
        if self._heartbeat_thread is None:
            self._engine.client.close()
        else:
            self._heartbeat_thread.abandon(self._engine.client.close)

    def __reduce__(self) -> NoReturn:
        refuse_copy(self, "its connections belong to this process; make one in each process")

    def __repr__(self) -> str:
        return (
            f"<KafkaConsumer client_id={self.config['client_id']!r} servers={self._engine.bootstrap_servers}>"
        )

    # ---- What every call begins with ---------------------------------------------------------------------
    def _begin(self) -> None:
        self._engine.begin()

    def _check_open(self) -> None:
        if self._engine.closed:
            raise IllegalStateError("this KafkaConsumer is closed")

    def _timer(self, timeout_ms: float | None) -> Timer:
        return Timer(
            self._engine.clock, self.config["request_timeout_ms"] if timeout_ms is None else timeout_ms
        )

    @contextmanager
    def _timed(self, tell: Callable[[float], None]) -> Iterator[None]:
        started_ms = self._engine.clock.monotonic_ms()
        try:
            yield
        finally:
            tell(self._engine.clock.monotonic_ms() - started_ms)

    def _in_group(self, part: T | None) -> T:
        self._check_open()
        if part is None:
            raise IllegalStateError(
                "this needs a group_id: offsets are committed for a group, and read of one. Pass "
                "group_id='...' to KafkaConsumer, also if partitions are chosen with assign()"
            )
        return part


def _check_partitions(partitions: Iterable[object]) -> None:
    for partition in partitions:
        if not isinstance(partition, TopicPartition):
            raise TypeError(f"a partition must be a TopicPartition, not {partition!r}")


def _checked(offsets: Mapping[TopicPartition, object]) -> dict[TopicPartition, OffsetAndMetadata]:
    """What kafka-python takes, of today and of before 3.0: values of two or of three fields."""
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
        raise TypeError(f"offset and leader epoch of {tp} must be whole numbers, not {value!r}")
    if metadata is not None and not isinstance(metadata, str):
        raise TypeError(f"the note of {tp} must be text, not {metadata!r}")
    if not 0 <= offset < 2**63 or not -1 <= leader_epoch < 2**31:
        raise ValueError(f"the offset of {tp} must not be negative: {value!r}")
    return OffsetAndMetadata(offset, metadata or "", leader_epoch)


def _check_poll(timeout_ms: float, max_records: int | None) -> None:
    if isinstance(timeout_ms, bool) or not isinstance(timeout_ms, int | float):
        raise TypeError(f"timeout_ms must be a number of milliseconds, not {timeout_ms!r}")
    if not timeout_ms >= 0:
        raise ValueError("timeout_ms must not be negative")
    if max_records is not None and (isinstance(max_records, bool) or not isinstance(max_records, int)):
        raise TypeError("max_records must be an int")
    if max_records is not None and max_records <= 0:
        raise ValueError("max_records must be positive")
