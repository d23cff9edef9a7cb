"""The consumer for asyncio, with aiokafka's API.

:class:`AIOKafkaConsumer` runs the code of the synchronous :class:`~kafkacore.KafkaConsumer` in greenlets.
"""

from __future__ import annotations

import asyncio
import math
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from kafkacore.aio._background import BackgroundWork
from kafkacore.aio._calls import EngineCalls
from kafkacore.aio._loop_resolver import loop_resolver
from kafkacore.aio._loop_wait import LoopWait, close_in_loop
from kafkacore.aio._settings import DEFAULTS, default_sasl_mechanism
from kafkacore.aio._slice_size import MOST_RECORDS, SliceSize
from kafkacore.aio._token_provider import TokenProviderCaller
from kafkacore.aio._user_code import AnyRebalanceListener, InterceptorCaller, ListenerCaller
from kafkacore.clock import Clock
from kafkacore.consumer import ConsumerRecord, Hold, KafkaConsumer, SubscriptionPattern
from kafkacore.consumer.config_types import ConsumerConfig
from kafkacore.consumer.consumer_network_client import ConsumerClosingError
from kafkacore.consumer.deserializers import close_deserializer
from kafkacore.consumer.timer import Timer
from kafkacore.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafkacore.errors import (
    CommitFailedError,
    ConsumerStoppedError,
    IllegalOperation,
    IllegalStateError,
    KafkaError,
    NoOffsetForPartitionError,
    RebalanceInProgressError,
)
from kafkacore.logs import logger_of
from kafkacore.network import Selector
from kafkacore.record import RecordColumns
from kafkacore.security.first_fetch import Fetch, fetching_by
from kafkacore.structs import (
    ConsumerGroupMetadata,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    TopicPartition,
)

logger = logger_of(__name__)

T = TypeVar("T")

#: aiokafka's defaults in a classic group, where they are not those of the synchronous consumer.
_CLASSIC_DEFAULTS: dict[str, Any] = {
    "partition_assignment_strategy": (RoundRobinPartitionAssignor,),
    "session_timeout_ms": 10_000,
}
#: Settings of aiokafka that have no effect here.
_WITHOUT_EFFECT = ("api_version", "consumer_timeout_ms", "rebalance_timeout_ms")
#: Number of records that getone() returns without letting other tasks run.
_TURN_RECORDS = 100

#: An offset to commit: the number alone, or with metadata.
Offset = int | tuple[int, str] | OffsetAndMetadata


class AIOKafkaConsumer:
    """A client that reads records from Kafka in an event loop.

    Methods and arguments are those of aiokafka 0.14; :meth:`poll_arrow`, :meth:`hold`, :meth:`wakeup` and
    ``group_protocol="consumer"`` are additions. All tasks of one event loop may use a consumer at the same
    time. :doc:`/guides/asyncio` lists what differs from aiokafka.

    Parameters
    ----------
    *topics:
        Topics to subscribe to.
    loop:
        Deprecated and ignored. The consumer uses the loop in which :meth:`start` runs.
    rebalance_timeout_ms:
        Ignored. ``max_poll_interval_ms`` limits a rebalance.
    clock:
        Source of time, for tests.
    **configs:
        Consumer settings, such as ``bootstrap_servers`` and ``group_id``. docs/reference/settings describes
        all settings. Deserializers are functions. The methods of ``interceptors`` may be coroutines.

    Raises
    ------
    KafkaConfigurationError
        A setting is unknown or has an invalid value.

    Notes
    -----
    The constructor does not connect and needs no running event loop. No thread is started, but asyncio itself
    uses a thread to look up host names, and native code writes the heartbeats of a group member.
    """

    def __init__(
        self,
        *topics: str,
        loop: asyncio.AbstractEventLoop | None = None,
        rebalance_timeout_ms: float | None = None,
        clock: Clock | None = None,
        **configs: Unpack[ConsumerConfig],
    ) -> None:
        # The attribute becomes False at the end of the constructor, so that __del__ does not warn if the
        # constructor raises an exception.
        self._is_closed = True
        if loop is not None:
            warnings.warn("the argument loop is deprecated and ignored", DeprecationWarning, stacklevel=2)
        settings: dict[str, Any] = dict(configs)
        for name in _WITHOUT_EFFECT:
            settings.pop(name, None)
        #: Maximum number of records of one getmany().
        self._max_poll_records: int | None = settings.pop("max_poll_records", None)
        _check_max_records("max_poll_records", self._max_poll_records)
        is_classic = settings.get("group_protocol", "classic") == "classic"
        settings = DEFAULTS | (_CLASSIC_DEFAULTS if is_classic else {}) | settings
        default_sasl_mechanism(settings)
        self._callers: list[InterceptorCaller | ListenerCaller] = [
            InterceptorCaller(each) for each in settings.get("interceptors", ())
        ]
        settings["interceptors"] = list(self._callers)
        if "partition_assignment_strategy" in settings:
            settings["partition_assignment_strategy"] = _own_assignors(
                settings["partition_assignment_strategy"]
            )
        self._token_provider = TokenProviderCaller.wrap(settings)
        # With a clock of its own, the synchronous consumer starts no heartbeat thread.
        self._clock = clock or Clock()
        #: Fetch the first token of the client, when it is started.
        self._fetches: list[Fetch] = []
        with fetching_by(self._fetches.append):
            self._consumer = KafkaConsumer._opened(settings, self._clock)
        # The engine is closed by this object, and not by the synchronous consumer.
        self._consumer._closed = True
        self._engine = self._consumer._engine
        self._iteration = self._engine.iteration
        self._slice_size = SliceSize(
            any(settings.get(name) is not None for name in ("key_deserializer", "value_deserializer"))
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._calls: EngineCalls | None = None
        self._background: BackgroundWork | None = None
        self._is_started = False
        #: Partitions that a poll for some of the partitions has paused until its end.
        self._set_aside: set[TopicPartition] = set()
        self._polled_ms: int | None = None
        #: Number of records that getone() may return before other tasks run.
        self._turns_left = _TURN_RECORDS
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False
        if topics:
            self.subscribe(topics)

    # ---- Life cycle --------------------------------------------------------------------------------------
    async def start(self) -> None:
        """Connect, join the group, and look up the positions.

        The method returns without an assignment if the group has not completed its rebalance within
        ``request_timeout_ms``; the consumer then continues to join. Until the first call that reads records,
        rebalances run in the background, because a program may start several members of a group before it
        reads from the first one. After an error or a cancellation, the method can be called again. With
        ``bootstrap_timeout_ms=0``, the method does not wait, and the first call that needs a broker connects.

        Raises
        ------
        NoBrokersAvailable
            None of ``bootstrap_servers`` responded within ``bootstrap_timeout_ms``.
        AuthenticationFailedError
            The broker rejected the client's credentials, or the broker's certificate is not valid.
        KafkaError
            The group rejects this consumer.
        IllegalStateError
            The consumer has been started or stopped before.
        """
        if self._is_closed:
            raise ConsumerStoppedError("this consumer is stopped; create another one")
        if self._is_started:
            raise IllegalStateError("start() was called twice")
        self._is_started = True
        try:
            loop = asyncio.get_running_loop()
            calls = self._attach(loop)
            while self._fetches:
                await loop.run_in_executor(None, self._fetches[0])
                del self._fetches[0]
            if self._consumer.config["bootstrap_timeout_ms"] > 0:
                await calls.call(self._consumer.bootstrap)
                await self._join()
                self._engine.holds.rejoin_anyway(self._engine.subscriptions.has_auto_assigned_partitions())
        except BaseException:
            self._is_started = False
            raise

    def _attach(self, loop: asyncio.AbstractEventLoop) -> EngineCalls:
        """Let the engine wait in ``loop``, unless an earlier call of :meth:`start` has done that."""
        if self._calls is not None and self._loop is loop:
            return self._calls
        client = self._engine.client.client
        assert isinstance(client.selector, Selector)
        if client.event_wait is not None:
            client.event_wait.close()
        self._loop = loop
        client.event_wait = event_wait = LoopWait(client.selector, loop)
        client.states.resolver = loop_resolver(loop)
        self._calls = calls = EngineCalls(self._engine.client, event_wait, self._clock)
        for caller in self._callers:
            caller.calls = calls
        if self._token_provider is not None:
            self._token_provider.loop = loop
        if self._engine.membership is not None:
            self._background = BackgroundWork(self._engine.membership, calls, self._clock, loop)
        return calls

    async def _join(self) -> None:
        timer = self._timer()
        calls = self._started()
        if await calls.poll(timer, False, self._engine.join):
            await calls.call(self._find_positions, timer)
        else:
            logger.warning(
                "group %r: the rebalance has not completed within request_timeout_ms=%.0f; the consumer "
                "continues to join the group",
                self._consumer.config["group_id"],
                timer.timeout_ms,
            )

    def _find_positions(self, timer: Timer) -> None:
        try:
            self._engine.find_positions(timer)
        except NoOffsetForPartitionError:
            # The next call that reads records raises this error.
            logger.debug("no position yet", exc_info=True)

    async def stop(self) -> None:
        """Commit the positions if ``enable_auto_commit`` is set, leave the group, and close all connections.

        Calls that wait for records raise ``ConsumerStoppedError``, and ``async for`` ends. Further calls do
        nothing. The method takes at most ``request_timeout_ms``, and the time of the rebalance listener.

        Raises
        ------
        Exception
            Any exception of the rebalance listener, after everything has been closed.
        """
        await self._stop(autocommit=True)

    async def _stop(self, *, autocommit: bool) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._consumer._guard.in_other_process():
            return  # Send nothing, because the sockets belong to the parent process.
        if self._calls is None:
            self._close_all()
            return
        self._engine.holds.rejoin_anyway(False)
        if self._background is not None:
            self._background.close()
        timer = self._timer()

        def close() -> None:
            try:
                self._engine.close(timer, autocommit)
            finally:
                close_deserializer(self._consumer.config["key_deserializer"])
                close_deserializer(self._consumer.config["value_deserializer"])

        try:
            await self._calls.close(timer, close)
        except BaseException:
            self._is_closed = self._engine.closed
            raise

    def _close_all(self) -> None:
        """Close the connections without sending anything."""
        if self._background is not None:
            self._background.close()
        self._engine.heartbeats.close()
        self._engine.client.close()
        self._engine.closed = True

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self._stop(autocommit=False)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._stop(autocommit=kind is None)

    def __del__(self) -> None:
        if getattr(self, "_is_closed", True) or self._consumer._guard.in_other_process():
            return
        self._is_closed = True
        warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self, stacklevel=2)
        close_in_loop(self._loop, self._close_all)

    def __repr__(self) -> str:
        return (
            f"<AIOKafkaConsumer client_id={self._consumer.config['client_id']!r} "
            f"servers={self._engine.bootstrap_servers}>"
        )

    # ---- Subscription and assignment ---------------------------------------------------------------------
    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign ``partitions`` to this consumer, replacing the previous assignment.

        Parameters
        ----------
        partitions:
            Partitions to read.

        Raises
        ------
        IllegalStateError
            If the consumer has subscribed to topics.
        TypeError
            If an element is not a :class:`TopicPartition`.
        """
        wanted = _own_partitions(partitions)
        if wanted:
            self._consumer.assign(wanted)
        else:
            self.unsubscribe()
        self._changed()
        self._find_positions_soon()

    def assignment(self) -> set[TopicPartition]:
        """Return the partitions that are assigned to this consumer."""
        return self._consumer.assignment()

    def subscribe(
        self,
        topics: Iterable[str] = (),
        pattern: str | re.Pattern[str] | SubscriptionPattern | None = None,
        listener: AnyRebalanceListener | None = None,
    ) -> None:
        """Subscribe to ``topics``, or to all existing and future topics that match ``pattern``.

        Parameters
        ----------
        topics, pattern:
            List, tuple or set of topic names, or a regular expression that is matched from the start of a
            topic name. Give one of the two. With ``group_protocol="consumer"``, ``pattern`` may also be a
            :class:`~kafkacore.SubscriptionPattern`, which the broker matches against whole names.
        listener:
            Object with the methods ``on_partitions_revoked``, ``on_partitions_assigned`` and, optionally,
            ``on_partitions_lost``, which are functions or coroutines. Calls that read records run them.

        Raises
        ------
        IllegalStateError
            If partitions were assigned with :meth:`assign`.
        TypeError
            If not exactly one of ``topics`` and ``pattern`` is given, or the listener lacks a method.
        ValueError
            If ``pattern`` is not a valid regular expression, or a topic name is invalid.
        """
        if bool(topics) == bool(pattern):
            raise TypeError("give either topics or pattern")
        if topics and not isinstance(topics, tuple | set | list):
            raise TypeError("topics must be a list of topic names")
        if isinstance(pattern, str):
            try:
                pattern = re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is not a valid pattern: {error}") from error
        caller = None
        if listener is not None:
            for method in ("on_partitions_revoked", "on_partitions_assigned"):
                if not callable(getattr(listener, method, None)):
                    raise TypeError(f"the listener {listener!r} has no method {method}")
            caller = ListenerCaller(listener)
            caller.calls = self._calls
        self._consumer.subscribe(topics, pattern, caller)
        self._callers = [each for each in self._callers if isinstance(each, InterceptorCaller)]
        if caller is not None:
            self._callers.append(caller)
        self._changed()

    def subscription(self) -> frozenset[str]:
        """Return the topics subscribed to; an empty set without a subscription."""
        return frozenset(self._consumer.subscription() or ())

    def unsubscribe(self) -> None:
        """Drop the subscription or the assignment, and all positions, and leave the group.

        The rebalance listener is not called.
        """
        self._engine.subscriptions.listener = None
        self._consumer.unsubscribe()
        self._changed()

    # ---- Reading -----------------------------------------------------------------------------------------
    async def getone(self, *partitions: TopicPartition) -> ConsumerRecord:
        """Return the next record, after waiting for it if necessary.

        Parameters
        ----------
        *partitions:
            Partitions to read from; all assigned partitions by default.

        Raises
        ------
        ConsumerStoppedError
            If the consumer is stopped, also during the call.
        OffsetOutOfRangeError, NoOffsetForPartitionError
            If ``auto_offset_reset`` is ``none`` and a partition has no valid position.
        CorruptRecordError
            If the next record or batch is corrupt. Every call raises this error until :meth:`seek` skips it.
        RecordDeserializationError
            If a deserializer raised an exception. The position stays at that record.
        WakeupError
            If :meth:`wakeup` was called.
        """
        if not partitions:
            # The usual case is repeated in __anext__(), because another coroutine would cost time.
            if self._turns_left:
                record = self._iteration.take()
                if record is not None:
                    self._turns_left -= 1
                    return record
            return await self._wait_for_record()
        only = frozenset(_own_partitions(partitions))
        found = await self._poll(math.inf, lambda timer: self._next_record_of(timer, only), only)
        assert found is not None
        return found

    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: float = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Return fetched records, waiting up to ``timeout_ms`` if none are available.

        Parameters
        ----------
        *partitions:
            Partitions to read from; all assigned partitions by default.
        timeout_ms:
            Maximum time to wait for records, in milliseconds.
        max_records:
            Maximum number of records; by default the setting ``max_poll_records``, or 500.

        Returns
        -------
        dict
            Partition → list of records, in the order of their offsets. Empty if no record arrived in time.

        Raises
        ------
        ValueError
            If ``max_records`` is not a positive integer.
        KafkaError
            As in :meth:`getone`.
        """
        _check_max_records("max_records", max_records)
        limit = max_records or self._max_poll_records or MOST_RECORDS
        only = frozenset(_own_partitions(partitions))
        return await self._poll(timeout_ms, lambda timer: self._next_records(timer, limit, only), only) or {}

    async def poll_arrow(
        self, timeout_ms: float = 0, max_records: int | None = None, **options: Any
    ) -> dict[TopicPartition, RecordColumns]:
        """Return fetched records as Arrow columns, but otherwise behave like :meth:`getmany`.

        Parameters
        ----------
        timeout_ms:
            Maximum time to wait for records, in milliseconds.
        max_records:
            Maximum number of rows, over all partitions; no limit by default.
        **options:
            Further arguments of :meth:`kafkacore.KafkaConsumer.poll_arrow`.
        """

        def attempt(timer: Timer) -> dict[TopicPartition, RecordColumns]:
            found = self._consumer.poll_arrow(timer.remaining_ms, max_records, **options)
            self._received()
            return found

        return await self._poll(timeout_ms, attempt) or {}

    def __aiter__(self) -> Self:
        self._check_open()
        return self

    async def __anext__(self) -> ConsumerRecord:
        if self._turns_left:
            record = self._iteration.take()
            if record is not None:
                self._turns_left -= 1
                return record
        try:
            return await self._wait_for_record()
        except ConsumerStoppedError:
            raise StopAsyncIteration from None

    async def _wait_for_record(self) -> ConsumerRecord:
        if not self._turns_left:
            await asyncio.sleep(0)
            self._turns_left = _TURN_RECORDS
        record = self._iteration.take() or await self._poll(math.inf, self._next_record)
        assert record is not None
        return record

    async def _poll(
        self,
        timeout_ms: float,
        attempt: Callable[[Timer], T],
        only: Collection[TopicPartition] = (),
    ) -> T | None:
        self._check_open()
        calls = self._started()
        self._engine.holds.rejoin_anyway(False)
        try:
            return await calls.poll(Timer(self._clock, timeout_ms), bool(only), attempt)
        except ConsumerClosingError:
            raise _stopped() from None
        except IllegalStateError:
            if self._is_closed:
                raise _stopped() from None
            raise

    def _next_record(self, timer: Timer) -> ConsumerRecord | None:
        with self._consumer._guard:
            while True:
                record = self._iteration.take()
                if record is not None or timer.expired:
                    return record
                self._check_open()
                limit = min(self._max_poll_records or MOST_RECORDS, self._slice_size.records)
                records = self._engine.poll_records(timer, limit)
                self._received()
                self._slice_size.read(records)
                self._iteration.start(records)

    def _next_record_of(self, timer: Timer, only: Collection[TopicPartition]) -> ConsumerRecord | None:
        for records in self._next_records(timer, 1, only).values():
            return records[0]
        return None

    def _next_records(
        self, timer: Timer, limit: int, only: Collection[TopicPartition]
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        with self._consumer._guard:
            self._check_open()
            if not only:
                found = self._untaken(limit)
                if found:
                    return found
            self._engine.begin()
            self._set_others_aside(only)
            try:
                found = self._engine.poll_records(timer, limit)
                self._received()
            finally:
                self._return_others()
            return found

    def _untaken(self, limit: int) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Return records that were read for :meth:`getone`, which has not returned them yet."""
        found: dict[TopicPartition, list[ConsumerRecord]] = {}
        for _ in range(limit):
            record = self._iteration.take()
            if record is None:
                break
            found.setdefault(TopicPartition(record.topic, record.partition), []).append(record)
        return found

    def _set_others_aside(self, only: Collection[TopicPartition]) -> None:
        subscriptions = self._engine.subscriptions
        for partition in subscriptions.assigned_partitions().difference(only) if only else ():
            if not subscriptions.is_paused(partition):
                subscriptions.pause(partition)
                self._set_aside.add(partition)

    def _return_others(self) -> None:
        while self._set_aside:
            partition = self._set_aside.pop()
            if self._engine.subscriptions.is_assigned(partition):
                self._engine.subscriptions.resume(partition)

    def _received(self) -> None:
        """Note that a poll has ended. If its task was cancelled meanwhile, read the records again later."""
        self._started().raise_deferred(self._engine.fetcher.rewind)
        self._polled_ms = self._clock.wall_ms()

    def wakeup(self) -> None:
        """Make the running call that reads records, or else the next one, raise :class:`WakeupError`."""
        if self._calls is not None:
            self._calls.wakeup()

    def hold(self) -> Hold:
        """Keep this consumer in its group during long processing: ``with consumer.hold() as held:``.

        See :meth:`kafkacore.KafkaConsumer.hold`. Within the block, the group's rebalances run in the
        background.
        """
        hold = self._consumer.hold()
        self._changed()
        return hold

    # ---- Positions ---------------------------------------------------------------------------------------
    async def position(self, partition: TopicPartition) -> int:
        """Return the offset of the next record to read, after looking it up if necessary.

        Raises
        ------
        IllegalStateError
            If the partition is not assigned.
        KafkaTimeoutError
            If the position could not be looked up within ``request_timeout_ms``.
        """
        partition = _own(partition)
        known = self._engine.known_position(partition)
        return await self._call(self._consumer.position, partition) if known is None else known

    def highwater(self, partition: TopicPartition) -> int | None:
        """Return a partition's high watermark as of the last fetch, or ``None`` before the first fetch.

        Raises
        ------
        IllegalStateError
            If the partition is not assigned.
        """
        return self._consumer.highwater(_own(partition))

    def last_stable_offset(self, partition: TopicPartition) -> int | None:
        """Return the end of the completed transactions of a partition as of the last fetch.

        Raises
        ------
        IllegalStateError
            If the partition is not assigned.
        """
        return self._engine.subscriptions.state(partition).last_stable_offset

    def last_poll_timestamp(self, partition: TopicPartition) -> int | None:
        """Return when :meth:`highwater` was last brought up to date, in milliseconds since the epoch.

        Raises
        ------
        IllegalStateError
            If the partition is not assigned.
        """
        state = self._engine.subscriptions.state(partition)
        return None if state.high_watermark is None else self._polled_ms

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Set the position of an assigned partition.

        Raises
        ------
        ValueError
            If the offset is negative or not an integer.
        IllegalStateError
            If the partition is not assigned.
        """
        partition = _own(partition)
        self._check_assigned([partition])
        self._consumer.seek(partition, offset)
        self._changed()

    async def seek_to_beginning(self, *partitions: TopicPartition) -> bool:
        """Set the position of ``partitions`` (default: all assigned) to the first record; return true.

        Raises
        ------
        IllegalStateError
            If a partition is not assigned.
        KafkaTimeoutError
            If a position could not be looked up within ``request_timeout_ms``.
        """
        return await self._seek(self._consumer.seek_to_beginning, partitions)

    async def seek_to_end(self, *partitions: TopicPartition) -> bool:
        """Set the position of ``partitions`` (default: all assigned) to the end of the log; return true.

        Raises
        ------
        IllegalStateError
            If a partition is not assigned.
        KafkaTimeoutError
            If a position could not be looked up within ``request_timeout_ms``.
        """
        return await self._seek(self._consumer.seek_to_end, partitions)

    async def _seek(self, seek: Callable[..., None], partitions: tuple[TopicPartition, ...]) -> bool:
        chosen = _own_partitions(partitions) or tuple(self.assignment())
        if not chosen:
            raise IllegalStateError("no partitions are assigned")
        self._check_assigned(chosen)

        def seek_and_look_up() -> None:
            seek(*chosen)
            for partition in chosen:
                self._consumer.position(partition)

        await self._call(seek_and_look_up)
        return True

    async def seek_to_committed(self, *partitions: TopicPartition) -> dict[TopicPartition, int | None]:
        """Set the position of ``partitions`` (default: all assigned) to the committed offset.

        Partitions without a committed offset keep their position.

        Returns
        -------
        dict
            Partition → committed offset, or ``None``.

        Raises
        ------
        IllegalOperation
            If the consumer has no ``group_id``.
        IllegalStateError
            If a partition is not assigned.
        """
        chosen = _own_partitions(partitions) or tuple(self.assignment())
        self._check_assigned(chosen)
        self._check_group()
        found = await self._call(self._committed_offsets, chosen)
        for partition, offset in found.items():
            if offset is not None:
                self.seek(partition, offset)
        return found

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of ``partitions`` until :meth:`resume`.

        Raises
        ------
        IllegalStateError
            If a partition is not assigned.
        """
        self._consumer.pause(*_own_partitions(partitions))
        self._set_aside.difference_update(partitions)
        self._changed()

    def resume(self, *partitions: TopicPartition) -> None:
        """Resume partitions that :meth:`pause` has paused.

        Raises
        ------
        IllegalStateError
            If a partition is not assigned.
        """
        chosen = _own_partitions(partitions)
        self._check_assigned(chosen)
        self._consumer.resume(*(each for each in chosen if each not in self._set_aside))
        self._changed()

    def paused(self) -> set[TopicPartition]:
        """Return the paused partitions."""
        return self._consumer.paused() - self._set_aside

    # ---- Offsets and topics of the brokers ---------------------------------------------------------------
    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset of each partition, assigned or not.

        Raises
        ------
        KafkaTimeoutError
            If the brokers did not respond within ``request_timeout_ms``.
        """
        return await self._call(self._consumer.beginning_offsets, _own_partitions(partitions))

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset after the last record of each partition, assigned or not.

        Raises
        ------
        KafkaTimeoutError
            If the brokers did not respond within ``request_timeout_ms``.
        """
        return await self._call(self._consumer.end_offsets, _own_partitions(partitions))

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return, for each partition, the first record at or after a timestamp.

        Parameters
        ----------
        timestamps:
            Partition → milliseconds since the epoch.

        Raises
        ------
        ValueError
            If a timestamp is negative.
        KafkaTimeoutError
            If the brokers did not respond within ``request_timeout_ms``.
        """
        wanted = {_own(partition): timestamp for partition, timestamp in timestamps.items()}
        return await self._call(self._consumer.offsets_for_times, wanted)

    async def topics(self) -> set[str]:
        """Return all topics that this client is authorized to see. Each call asks a broker."""
        return await self._call(self._consumer.topics)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Return the topic's partition numbers; ``None`` if the consumer does not have its metadata."""
        found = self._engine.metadata.fetch().partitions_for_topic(topic)
        return None if found is None else set(found)

    # ---- Commits -----------------------------------------------------------------------------------------
    async def commit(self, offsets: Mapping[TopicPartition, Offset] | None = None) -> None:
        """Commit offsets. Retriable errors are retried until ``request_timeout_ms`` has passed.

        Parameters
        ----------
        offsets:
            Partition → offset of the next record to read, or a tuple of this offset and metadata. By default,
            the positions after all records that were returned.

        Raises
        ------
        IllegalOperation
            If the consumer has no ``group_id``.
        IllegalStateError
            If a partition is not assigned.
        ValueError, TypeError
            If ``offsets`` is invalid.
        CommitFailedError
            If the group is rebalancing, or has rebalanced without this consumer.
        KafkaTimeoutError
            If the commit did not finish in time. The offsets may have been committed.
        """
        self._check_group()
        if self._consumer.subscription() is None and not self.assignment():
            raise IllegalStateError("the consumer has no subscription and no assignment")
        given = None
        if offsets is not None:
            given = _checked_offsets(offsets)
            self._check_assigned(given)
        try:
            await self._call(self._consumer.commit, given)
        except RebalanceInProgressError as error:
            raise CommitFailedError(str(error)) from error

    async def committed(self, partition: TopicPartition) -> int | None:
        """Return the offset that the group has committed for a partition, or ``None``.

        Raises
        ------
        IllegalOperation
            If the consumer has no ``group_id``.
        KafkaTimeoutError
            If the coordinator did not respond within ``request_timeout_ms``.
        """
        self._check_group()
        return (await self._call(self._committed_offsets, (_own(partition),)))[partition]

    def _committed_offsets(self, partitions: tuple[TopicPartition, ...]) -> dict[TopicPartition, int | None]:
        found = self._consumer.committed(partitions, metadata=True)
        return {partition: _offset_of(offset) for partition, offset in found.items()}

    # ---- Membership --------------------------------------------------------------------------------------
    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return the group, generation and member id, for the offsets of a transaction (KIP-447)."""
        return self._consumer.group_metadata()

    def enforce_rebalance(self, reason: str | None = None) -> None:
        """Make the next call that reads records start a rebalance (KIP-568).

        Raises
        ------
        IllegalStateError
            If the consumer has no ``group_id``.
        """
        self._consumer.enforce_rebalance(reason)
        self._changed()

    def metrics(self, raw: bool = False) -> Any:
        """Return the current values of the metrics; see :meth:`kafkacore.KafkaConsumer.metrics`."""
        return self._consumer.metrics(raw)

    # ---- Checks ------------------------------------------------------------------------------------------
    def _timer(self) -> Timer:
        return Timer(self._clock, self._consumer.config["request_timeout_ms"])

    async def _call(self, function: Callable[..., T], *args: Any) -> T:
        return await self._started().call(function, *args)

    def _started(self) -> EngineCalls:
        if self._calls is None:
            raise IllegalStateError("this consumer has not been started: await start() first")
        return self._calls

    def _check_open(self) -> None:
        if self._is_closed:
            raise _stopped()

    def _check_group(self) -> None:
        if self._consumer.config["group_id"] is None:
            raise IllegalOperation("this call needs a group_id, because offsets are committed per group")

    def _check_assigned(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            if not self._engine.subscriptions.is_assigned(partition):
                raise IllegalStateError(f"{partition} is not assigned to this consumer")

    def _changed(self) -> None:
        """Make a poll notice that the consumer has changed during its wait."""
        if self._calls is not None:
            self._calls.interrupt_poll()

    def _find_positions_soon(self) -> None:
        """Look up the positions of newly assigned partitions in the background, as aiokafka does."""
        if self._calls is None or self._calls.is_busy:
            return
        task = asyncio.get_running_loop().create_task(self._find_positions_now())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _find_positions_now(self) -> None:
        try:
            await self._call(self._find_positions, self._timer())
        except KafkaError:
            # The next call that reads records raises an error that persists.
            logger.debug("looking up positions in the background failed", exc_info=True)


def _stopped() -> ConsumerStoppedError:
    return ConsumerStoppedError("this consumer is stopped")


def _check_max_records(name: str, value: object) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise ValueError(f"{name} must be a positive integer, not {value!r}")


def _own(partition: object) -> TopicPartition:
    """Return a partition as kafkacore's class. aiokafka has a class of the same name."""
    if isinstance(partition, TopicPartition):
        return partition
    if not isinstance(partition, tuple) or type(partition).__name__ != "TopicPartition":
        raise TypeError(f"a partition must be a TopicPartition, not {partition!r}")
    return TopicPartition(*partition)


def _own_partitions(partitions: Iterable[object]) -> tuple[TopicPartition, ...]:
    return tuple(map(_own, partitions))


def _own_assignors(strategy: Any) -> Any:
    """Replace aiokafka's assignors by the names of kafkacore's, which make the same assignments."""
    if isinstance(strategy, str) or not isinstance(strategy, Iterable):
        return strategy
    return [
        each.name if getattr(each, "__module__", "").startswith("aiokafka.") else each for each in strategy
    ]


def _offset_of(committed: int | OffsetAndMetadata | None) -> int | None:
    return committed.offset if isinstance(committed, OffsetAndMetadata) else committed


def _checked_offsets(offsets: Mapping[TopicPartition, Offset]) -> dict[TopicPartition, Any]:
    """Convert plain numbers. ``KafkaConsumer.commit`` checks the rest."""
    if not offsets or not isinstance(offsets, Mapping):
        raise ValueError(f"offsets must be a dict of partitions and offsets, not {offsets!r}")
    return {
        _own(partition): OffsetAndMetadata(offset, "", -1) if isinstance(offset, int) else offset
        for partition, offset in offsets.items()
    }
