"""Commits of a group's offsets: synchronous, asynchronous and automatic.

Callbacks run in the order in which the commits were sent. If the user assigned the partitions, commits use
only the coordinator of the membership, not its generation. In Kafka, this is a part of
``ConsumerCoordinator``.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from kafkacore import errors
from kafkacore.client import ClientResponse
from kafkacore.consumer._request_future import RequestFuture
from kafkacore.consumer.group.generation import NO_GENERATION, Generation
from kafkacore.consumer.group.group_requests import GroupParts, GroupRequests
from kafkacore.consumer.group.offset_requests import Shown, Topics, commit_error, commit_request
from kafkacore.consumer.interceptors import ConsumerInterceptors
from kafkacore.consumer.timer import Timer
from kafkacore.errors import KafkaError
from kafkacore.logs import logger_of
from kafkacore.structs import OffsetAndMetadata, TopicPartition

logger = logger_of(__name__)

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
#: Function that takes the offsets and the error. The error is ``None`` on success.
CommitCallback = Callable[[Any, BaseException | None], object]

REBALANCING = (
    "the group is rebalancing: call poll() until the rebalance is complete, then commit the partitions that "
    "are still assigned"
)
NOT_A_MEMBER = (
    "the consumer is not a member of the group now, and its partitions may belong to another member. Either "
    "it has not called poll() since subscribe(), or the group has removed it. The next poll() joins the group"
)
NOT_SUBSCRIBED = (
    "a consumer that uses assign() cannot commit for a group that has members: use another group_id, or use "
    "subscribe()"
)


class _Asynchronous(NamedTuple):
    """An asynchronous commit whose callback has not been called yet."""

    offsets: Offsets
    callback: CommitCallback
    outcome: RequestFuture[None]

    def call_back(self) -> None:
        self.callback(self.offsets, self.outcome.exception() if self.outcome.failed() else None)


class OffsetCommits(GroupRequests):
    """Commits offsets for a group.

    Parameters
    ----------
    parts:
        Objects that all parts of the consumer share.
    consumed:
        Function that returns the offsets to commit for all records that the application has received.
    interceptors:
        Interceptors that are notified of every successful commit.
    """

    def __init__(
        self,
        parts: GroupParts,
        consumed: Callable[[], dict[TopicPartition, OffsetAndMetadata]],
        interceptors: ConsumerInterceptors,
    ) -> None:
        super().__init__(parts)
        self._consumed = consumed
        self._interceptors = interceptors
        self._auto_commit_interval_ms: float = (
            self._config["auto_commit_interval_ms"] if self._config["enable_auto_commit"] else math.inf
        )
        self._next_auto_commit_ms = self._clock.monotonic_ms() + self._auto_commit_interval_ms
        self._default_callback: CommitCallback = (
            self._config["default_offset_commit_callback"] or _log_failure
        )
        #: Asynchronous commits in the order of sending. They may complete in another order.
        self._open: deque[_Asynchronous] = deque()
        self._fenced: BaseException | None = None

    # ---- Synchronous commits -----------------------------------------------------------------------------
    def commit_sync(self, offsets: Offsets, timer: Timer) -> None:
        """Commit ``offsets``, retrying retriable errors until ``timer`` expires.

        The callbacks of all earlier asynchronous commits have run when this returns.

        Raises
        ------
        CommitFailedError
            If the consumer is not a member of the group any more.
        RebalanceInProgressError
            If the group is rebalancing. Call :meth:`KafkaConsumer.poll`, then commit again.
        FencedInstanceIdError
            If another consumer has taken over the ``group_instance_id``.
        KafkaTimeoutError
            If the commit did not finish in time. The offsets may have been committed.
        KafkaError
            Any other error that is not retriable.
        """
        self.invoke_completed_callbacks()
        if not offsets:
            self._await_open_commits(timer)
            return
        self._retry_until(
            lambda: self._send_commit(offsets),
            timer,
            lambda: f"commit {Shown(offsets)}",
            # Earlier commits have completed before this commit, so call their callbacks first.
            self.invoke_completed_callbacks,
        )
        self._interceptors.on_commit(offsets)

    def _await_open_commits(self, timer: Timer) -> None:
        attempts = 0
        while self._open:
            if self._membership.ensure_coordinator(timer):
                self._client.poll(timer, lambda: not self._has_completed())
            self.invoke_completed_callbacks()
            if self._open and timer.expired:
                raise self._timed_out(f"complete {len(self._open)} asynchronous commits", timer)
            if self._membership.coordinator() is None:
                self._pause(attempts, timer)
                attempts += 1

    # ---- Asynchronous commits ----------------------------------------------------------------------------
    def commit_async(self, offsets: Offsets, callback: CommitCallback | None = None) -> RequestFuture[None]:
        """Send a commit once. It is not retried, because a retry could overwrite a later commit's offsets.

        A later poll or commit calls ``callback(offsets, error)``; callbacks run in the order of the commits.
        Without a callback, ``default_offset_commit_callback`` is called. A retriable error is passed as
        :class:`RetriableCommitFailedError` with the error as its cause.
        """
        self.invoke_completed_callbacks()
        commit = _Asynchronous(dict(offsets), callback or self._default_callback, RequestFuture())
        self._open.append(commit)
        try:
            if not offsets or self._membership.coordinator() is not None:
                self._send_async(commit)
            else:
                self._membership.lookup_coordinator().add_callbacks(
                    lambda _: self._send_found(commit), partial(self._settle, commit)
                )
        except BaseException as error:
            # The error may be a Ctrl-C. Complete the commit, because an incomplete commit would block the
            # callbacks of all later commits.
            self._settle(commit, error)
            raise
        # Send the commit, or the coordinator lookup if the coordinator is unknown.
        self._client.poll_no_wakeup()
        return commit.outcome

    def _send_async(self, commit: _Asynchronous) -> None:
        settle = partial(self._settle, commit)
        if commit.offsets:
            self._send_commit(commit.offsets).add_callbacks(settle, settle)
        else:
            settle(None)

    def _send_found(self, commit: _Asynchronous) -> None:
        """Send the commit once the coordinator is known, without waiting for the application to poll."""
        self._send_async(commit)
        self._client.transmit_sends()

    def _settle(self, commit: _Asynchronous, error: BaseException | None) -> None:
        if commit.outcome.is_done():
            return
        if error is None:
            self._interceptors.on_commit(commit.offsets)
            commit.outcome.complete(None)
            return
        if isinstance(error, errors.FencedInstanceIdError):
            self._fenced = error
        if getattr(error, "retriable", False):
            cause = error
            error = errors.RetriableCommitFailedError(f"the commit failed with a retriable error: {cause}")
            error.__cause__ = cause
        commit.outcome.fail(error)

    def invoke_completed_callbacks(self) -> None:
        """Call the callbacks of completed asynchronous commits, in the order of the commits.

        Raises
        ------
        FencedInstanceIdError
            If a commit found that another consumer has taken over the ``group_instance_id``.
        BaseException
            Any exception of a callback. The next poll or commit calls the remaining callbacks.
        """
        while self._has_completed():
            self._open.popleft().call_back()
        if self._fenced is not None:
            raise errors.FencedInstanceIdError(
                f"another consumer has joined group {self._group_id!r} with "
                f"group_instance_id={self._config['group_instance_id']!r}"
            ) from self._fenced

    def _has_completed(self) -> bool:
        return bool(self._open) and self._open[0].outcome.is_done()

    # ---- Automatic commits -------------------------------------------------------------------------------
    def maybe_auto_commit_async(self, now_ms: float) -> None:
        """Commit the consumed offsets if ``auto_commit_interval_ms`` has passed."""
        if now_ms < self._next_auto_commit_ms:
            return
        self.restart_auto_commit_interval(now_ms)
        self.auto_commit_now()

    def auto_commit_now(self) -> RequestFuture[None] | None:
        """Send an automatic commit regardless of the interval; return ``None`` if nothing is to be committed.

        During a hold (``consumer.hold()``) nothing is committed, because the application is still processing
        its records.
        """
        if not self._config["enable_auto_commit"] or self._membership.is_held:
            return None
        offsets = self._consumed()
        return self.commit_async(offsets, self._auto_committed) if offsets else None

    def _auto_committed(self, offsets: Offsets, error: BaseException | None) -> None:
        if error is None:
            logger.debug("auto-commit of %s succeeded", Shown(offsets))
        elif isinstance(error, errors.RetriableCommitFailedError):
            logger.debug("auto-commit of %s failed and will be retried: %s", Shown(offsets), error.__cause__)
            self._next_auto_commit_ms = self._clock.monotonic_ms() + self._config["retry_backoff_ms"]
        elif isinstance(error, errors.RebalanceInProgressError):
            # Offsets of revoked partitions were committed before the revocation. The next automatic commit
            # includes the partitions that are still assigned.
            logger.debug("auto-commit of %s failed because the group is rebalancing", Shown(offsets))
        else:
            logger.warning("auto-commit of %s failed: %s", Shown(offsets), error)

    def auto_commit_sync(self, timer: Timer) -> None:
        """Commit the consumed offsets before closing. Log all errors, but raise ``WakeupError``."""
        if not self._config["enable_auto_commit"] or self._membership.is_held:
            return
        self._invoke_and_log()
        offsets = self._consumed()
        try:
            self.commit_sync(offsets, timer)
        except errors.WakeupError:
            raise
        except KafkaError as error:
            logger.warning(
                "auto-commit of %s failed, so records since the last commit may be read again: %s",
                Shown(offsets),
                error,
            )

    def _invoke_and_log(self) -> None:
        """Call completed callbacks, and log their exceptions so that closing continues."""
        while self._has_completed():
            try:
                self.invoke_completed_callbacks()
            except Exception:
                logger.exception("the callback of a commit raised an exception")

    def time_to_next_auto_commit_ms(self, now_ms: float) -> float:
        """Return the milliseconds until the next automatic commit; infinity without automatic commits."""
        return max(self._next_auto_commit_ms - now_ms, 0.0)

    def restart_auto_commit_interval(self, now_ms: float) -> None:
        """Start a new auto-commit interval at ``now_ms``."""
        self._next_auto_commit_ms = now_ms + self._auto_commit_interval_ms

    # ---- Requests ----------------------------------------------------------------------------------------
    def _send_commit(self, offsets: Offsets) -> RequestFuture[None]:
        """Send a commit of the current generation; return a failed future if that is not possible."""
        node = self._membership.coordinator()
        if node is None:
            return RequestFuture.failure(self._no_coordinator())
        generation = NO_GENERATION
        if self._is_member():
            if self._membership.is_rebalancing():
                return RequestFuture.failure(errors.RebalanceInProgressError(REBALANCING))
            generation = self._membership.generation()
            if generation.was_reset():
                return RequestFuture.failure(errors.CommitFailedError(NOT_A_MEMBER))
        topics = Topics(offsets, self._metadata.fetch())
        instance_id = self._config["group_instance_id"] if self._is_member() else None
        request = commit_request(self._group_id, generation, instance_id, offsets, topics)
        answered: RequestFuture[None] = RequestFuture()
        self._client.send(node, request, max_version=topics.max_version).add_callbacks(
            partial(self._on_commit_answer, offsets, topics, generation, answered),
            partial(self._on_lost, node, answered),
        )
        return answered

    def _is_member(self) -> bool:
        """Return whether the partitions are assigned by the group, not by the user."""
        return self._subscriptions.has_auto_assigned_partitions()

    def _on_commit_answer(
        self,
        offsets: Offsets,
        topics: Topics,
        sent: Generation,
        answered: RequestFuture[None],
        response: ClientResponse,
    ) -> None:
        error = commit_error(response.message, offsets, topics)
        if error is None:
            self._metrics.committed(response.latency_ms, self._clock.monotonic_ms())
            self._subscriptions.note_committed(offsets)
            answered.complete(None)
            return
        log = logger.warning if error.retriable else logger.error
        log("group %r: %s", self._group_id, error)
        answered.fail(self._handle_error(error, sent))

    def _handle_error(self, error: errors.BrokerResponseError, sent: Generation) -> KafkaError:
        """Update the membership after a failed commit, and return the error for the caller."""
        is_current = self._membership.generation() == sent
        match error:
            case (
                errors.CoordinatorNotAvailableError()
                | errors.NotCoordinatorError()
                | errors.RequestTimedOutError()
            ):
                self._membership.coordinator_failed(error.message)
            case errors.UnknownTopicIdError() | errors.UnknownTopicOrPartitionError():
                self._metadata.request_update()
            case errors.RebalanceInProgressError():
                self._membership.request_rejoin("a commit failed because the group is rebalancing")
                return errors.RebalanceInProgressError(REBALANCING)
            case errors.StaleMemberEpochError():
                stale = errors.CommitFailedError(
                    f"the epoch of this member of group {self._group_id!r} has changed since the commit was "
                    "sent: nothing was committed. Commit again the partitions that are still assigned"
                )
                stale.__cause__ = error
                return stale
            case errors.FencedInstanceIdError() if not is_current:
                return self._out_of_date()
            case errors.UnknownMemberIdError() | errors.IllegalGenerationError():
                if not self._is_member():
                    return errors.CommitFailedError(NOT_SUBSCRIBED)
                if is_current or not self._membership.is_rebalancing():
                    self._membership.reset_generation(error, sent, "commit")
                    return errors.CommitFailedError(self._rebalanced_message())
                return self._out_of_date()
        return error

    def _out_of_date(self) -> KafkaError:
        if self._membership.is_rebalancing():
            return errors.RebalanceInProgressError(REBALANCING)
        return errors.CommitFailedError(self._rebalanced_message())

    def _rebalanced_message(self) -> str:
        return (
            f"group {self._group_id!r} rebalanced without this consumer, and its partitions may belong to "
            "another member: nothing was committed. The usual cause is that more than "
            f"max_poll_interval_ms={self._config['max_poll_interval_ms']} passed between two calls of "
            "poll(): raise it, or lower max_poll_records. The next poll() joins the group again"
        )

    def close(self, timer: Timer) -> None:
        """Wait for asynchronous commits within ``timer`` and call their callbacks. Errors are logged."""
        self._invoke_and_log()
        try:
            self._await_open_commits(timer)
        except KafkaError as error:
            logger.warning("some asynchronous commits did not complete before the consumer closed: %s", error)
        self._invoke_and_log()


def _log_failure(offsets: Offsets, error: BaseException | None) -> None:
    """Log a failed commit; the default callback."""
    if error is not None:
        logger.error("commit of %s failed: %s", Shown(offsets), error)
