"""The consumer that a program uses: topics or partitions in, records or columns out.

Checks arguments, lets one thread at a time in, and turns the wheel: follow metadata, find positions, fetch,
hand out. Everything else is done by the parts it owns. Does not know: the wire format, sockets.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from types import TracebackType
from typing import Any, ClassVar, Literal

from kafkacore.client import bootstrap_client
from kafkacore.client.config import refuse_positional, servers_text
from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.consumer._record import ConsumerRecord
from kafkacore.consumer.calls import check_partitions
from kafkacore.consumer.commit_calls import CommitCalls
from kafkacore.consumer.config import DEFAULTS, resolve
from kafkacore.consumer.deserializers import close_deserializer
from kafkacore.consumer.engine import ConsumerEngine
from kafkacore.consumer.group.heartbeat_thread import HeartbeatThread
from kafkacore.consumer.guard import SingleOwnerGuard
from kafkacore.consumer.hold import Hold
from kafkacore.consumer.listener import RebalanceListener
from kafkacore.consumer.position_calls import PositionCalls
from kafkacore.consumer.timer import Timer
from kafkacore.errors import KafkaTimeoutError
from kafkacore.record import ColumnBuilder, RecordColumns
from kafkacore.structs import TopicPartition

#: For the heartbeat thread to end: it never waits for the network.
_THREAD_END_MS = 1000.0
_client_numbers = count(1)
_COLUMNS = ("offset", "timestamp", "timestamp_type", "key", "value", "headers")


class KafkaConsumer(PositionCalls, CommitCalls):
    """Reads records from Kafka. Arguments and methods are kafka-python 3.0's; :meth:`poll_arrow` is ours.

    No connection is made before it is needed: by :meth:`poll`, iteration, or a method that must ask a broker.
    One thread at a time may use a consumer, and only the process that made it; :meth:`wakeup` alone is free.

    Parameters
    ----------
    *topics:
        Topics to subscribe to. Without a group all their partitions are read, also those added later.
    **configs:
        See :data:`DEFAULT_CONFIG` for names and defaults.

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

    def __init__(self, *topics: str, **configs: Any) -> None:
        self._closed = True  # Until all is made, so that a refused argument leaves nothing to warn about.
        refuse_positional(type(self).__name__, (topic for topic in topics if isinstance(topic, Mapping)))
        clock: Clock = configs.pop("clock", SYSTEM_CLOCK)
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
        check_partitions(wanted)
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
            self._engine.follow_anew()

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

    def _poll_for_next(self) -> ConsumerRecord | None:
        """For the iteration when it has nothing left; ``None`` ends it."""
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
                    f"{self._engine.client.client.troubles.as_cause()}"
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

    def __repr__(self) -> str:
        return (
            f"<KafkaConsumer client_id={self.config['client_id']!r} servers={self._engine.bootstrap_servers}>"
        )


def _check_poll(timeout_ms: float, max_records: int | None) -> None:
    if isinstance(timeout_ms, bool) or not isinstance(timeout_ms, int | float):
        raise TypeError(f"timeout_ms must be a number of milliseconds, not {timeout_ms!r}")
    if not timeout_ms >= 0:
        raise ValueError("timeout_ms must not be negative")
    if max_records is not None and (isinstance(max_records, bool) or not isinstance(max_records, int)):
        raise TypeError("max_records must be an int")
    if max_records is not None and max_records <= 0:
        raise ValueError("max_records must be positive")
