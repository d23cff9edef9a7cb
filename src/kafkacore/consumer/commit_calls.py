"""The consumer's calls about its group: commit, what is committed, who it is there, how far it is behind.

Arguments are checked here, the work is done by the engine's parts. Does not know: requests, positions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar, overload

from kafkacore.consumer.calls import ConsumerCalls, check_partitions
from kafkacore.consumer.group.committed_offsets import CommittedOffsets
from kafkacore.consumer.group.offset_commits import CommitCallback
from kafkacore.consumer.request_future import RequestFuture
from kafkacore.errors import IllegalStateError
from kafkacore.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

T = TypeVar("T")


class CommitCalls(ConsumerCalls):
    """Of one consumer."""

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
    ) -> Any:
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
        check_partitions(wanted)
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
        check_partitions([partition])
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


def _checked(offsets: Mapping[TopicPartition, Any]) -> dict[TopicPartition, OffsetAndMetadata]:
    """What kafka-python takes, of today and of before 3.0: values of two or of three fields."""
    if not isinstance(offsets, Mapping):
        raise TypeError(f"offsets must be a dict of TopicPartition and OffsetAndMetadata, not {offsets!r}")
    check_partitions(offsets)
    return {tp: _checked_offset(tp, value) for tp, value in offsets.items()}


def _checked_offset(tp: TopicPartition, value: Any) -> OffsetAndMetadata:
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
