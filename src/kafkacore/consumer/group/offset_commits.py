"""A group's offsets: positions in, commits out, synchronous, asynchronous and automatic.

Callbacks come in the order of the commits. Any protocol of groups may be behind the membership, or none
(partitions assigned by the user): then only the coordinator is asked for. Does not know: joining, heartbeats,
records. (The part of Kafka's ``ConsumerCoordinator`` that commits.)
"""

from __future__ import annotations

import logging
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
from kafkacore.structs import OffsetAndMetadata, TopicPartition

logger = logging.getLogger(__name__)

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
#: Offsets, and the error or ``None``.
CommitCallback = Callable[[Any, BaseException | None], object]

REBALANCING = (
    "the consumer is between two generations of its group, in which nobody owns a partition: let poll() end "
    "the rebalance, then commit what you still own"
)
NOT_A_MEMBER = (
    "the consumer is no member of its group now, and its partitions may be another's: poll() joins (again). "
    "Either it has not polled since subscribe(), or the group has thrown it out"
)
NOT_WHO_OWNS = (
    "the group has members, who are given its partitions; who takes them by assign() cannot commit for the "
    "group as well: use another group_id, or subscribe()"
)


class _Asynchronous(NamedTuple):
    """A commit whose callback has not been called yet."""

    offsets: Offsets
    callback: CommitCallback
    outcome: RequestFuture[None]

    def call_back(self) -> None:
        self.callback(self.offsets, self.outcome.exception() if self.outcome.failed() else None)


class OffsetCommits(GroupRequests):
    """Commits a group's offsets.

    Parameters
    ----------
    parts:
        Shared with the rest of the consumer.
    consumed:
        What the application has been given: partition → the offset to go on from.
    interceptors:
        Told of every commit that succeeded.
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
        #: In the order of the commits, which need not be that of their outcomes.
        self._open: deque[_Asynchronous] = deque()
        self._fenced: BaseException | None = None

    # ---- Commits that are waited for ---------------------------------------------------------------------
    def commit_sync(self, offsets: Offsets, timer: Timer) -> None:
        """Commit ``offsets``, trying again what may go better, until ``timer`` ends.

        The callbacks of all asynchronous commits before it have been called when it returns.

        Raises
        ------
        CommitFailedError
            The consumer is no member of the group any more.
        RebalanceInProgressError
            It is about to be another generation's; :meth:`KafkaConsumer.poll` and commit again.
        FencedInstanceIdError
            Another consumer has taken its ``group_instance_id``.
        KafkaTimeoutError
            It took too long; the offsets may be committed or not.
        KafkaError
            What else the coordinator said and trying again will not cure.
        """
        self.invoke_completed_callbacks()
        if not offsets:
            self._await_open_commits(timer)
            return
        self._ask_until(
            lambda: self._send_commit(offsets),
            timer,
            lambda: f"commit {Shown(offsets)}",
            # Those before it were answered before it, and are told so before it is.
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
                raise self._timed_out(f"have answers to {len(self._open)} asynchronous commits", timer)
            if self._membership.coordinator() is None:
                self._pause(attempts, timer)
                attempts += 1

    # ---- Commits that are not ----------------------------------------------------------------------------
    def commit_async(self, offsets: Offsets, callback: CommitCallback | None = None) -> RequestFuture[None]:
        """Send ``offsets`` off, once: a second try could pass a later commit.

        ``callback(offsets, error)`` is called by a later poll or commit, in the order of the commits; without
        one ``default_offset_commit_callback`` is. What trying again could cure comes as
        :class:`RetriableCommitFailedError` with its cause.
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
            # A Ctrl-C: one without an outcome would hold up all behind it.
            self._settle(commit, error)
            raise
        # On its way at least, be it the question for the coordinator.
        self._client.poll_no_wakeup()
        return commit.outcome

    def _send_async(self, commit: _Asynchronous) -> None:
        settle = partial(self._settle, commit)
        if commit.offsets:
            self._send_commit(commit.offsets).add_callbacks(settle, settle)
        else:
            settle(None)

    def _send_found(self, commit: _Asynchronous) -> None:
        """The coordinator is known now, in the middle of a poll which may be the last for long."""
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
            error = errors.RetriableCommitFailedError(f"the commit failed, and may be tried again: {cause}")
            error.__cause__ = cause
        commit.outcome.fail(error)

    def invoke_completed_callbacks(self) -> None:
        """Call the callbacks of asynchronous commits that have an outcome, in the order of the commits.

        Raises
        ------
        FencedInstanceIdError
            If one of them found that another consumer has this one's ``group_instance_id``.
        BaseException
            What a callback raises; those behind it are called by the next poll or commit.
        """
        while self._has_completed():
            self._open.popleft().call_back()
        if self._fenced is not None:
            raise errors.FencedInstanceIdError(
                f"group_instance_id {self._config['group_instance_id']!r} of group {self._group_id!r} is "
                "another consumer's now"
            ) from self._fenced

    def _has_completed(self) -> bool:
        return bool(self._open) and self._open[0].outcome.is_done()

    # ---- Commits that nobody asked for -------------------------------------------------------------------
    def maybe_auto_commit_async(self, now_ms: float) -> None:
        """Commit what was consumed if ``auto_commit_interval_ms`` is over."""
        if now_ms < self._next_auto_commit_ms:
            return
        self.restart_auto_commit_interval(now_ms)
        self.auto_commit_now()

    def auto_commit_now(self) -> RequestFuture[None] | None:
        """Send what was consumed, whatever the interval; ``None`` if there is nothing to wait for. While the
        program holds records it is not done with them.
        """
        if not self._config["enable_auto_commit"] or self._membership.is_held:
            return None
        offsets = self._consumed()
        return self.commit_async(offsets, self._auto_committed) if offsets else None

    def _auto_committed(self, offsets: Offsets, error: BaseException | None) -> None:
        if error is None:
            logger.debug("auto-commit of %s", Shown(offsets))
        elif isinstance(error, errors.RetriableCommitFailedError):
            logger.debug("auto-commit of %s failed and is tried again: %s", Shown(offsets), error.__cause__)
            self._next_auto_commit_ms = self._clock.monotonic_ms() + self._config["retry_backoff_ms"]
        elif isinstance(error, errors.RebalanceInProgressError):
            # What goes has been committed before; what stays is by the next interval.
            logger.debug("auto-commit of %s during a rebalance", Shown(offsets))
        else:
            logger.warning("auto-commit of %s failed: %s", Shown(offsets), error)

    def auto_commit_sync(self, timer: Timer) -> None:
        """Commit what was consumed, for it is the end. What goes wrong is logged; only a wakeup is raised."""
        if not self._config["enable_auto_commit"] or self._membership.is_held:
            return
        self._invoke_what_can_be()
        offsets = self._consumed()
        try:
            self.commit_sync(offsets, timer)
        except errors.WakeupError:
            raise
        except KafkaError as error:
            logger.warning(
                "auto-commit of %s failed, what lies behind the last one may be read once more: %s",
                Shown(offsets),
                error,
            )

    def _invoke_what_can_be(self) -> None:
        """A broken callback, or being fenced, must not keep the rest from its way."""
        while self._has_completed():
            try:
                self.invoke_completed_callbacks()
            except Exception:
                logger.exception("a commit's callback failed")

    def time_to_next_auto_commit_ms(self, now_ms: float) -> float:
        """Milliseconds; infinity without auto-commit."""
        return max(self._next_auto_commit_ms - now_ms, 0.0)

    def restart_auto_commit_interval(self, now_ms: float) -> None:
        """Let the interval begin now."""
        self._next_auto_commit_ms = now_ms + self._auto_commit_interval_ms

    # ---- A commit's request ------------------------------------------------------------------------------
    def _send_commit(self, offsets: Offsets) -> RequestFuture[None]:
        """The commit of the generation as it is now; fails at once where there can be none."""
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
        """Whether partitions come from the group: otherwise it has this consumer's commits, and no more."""
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
            answered.complete(None)
            return
        logger.log(
            logging.WARNING if error.retriable else logging.ERROR, "group %r: %s", self._group_id, error
        )
        answered.fail(self._meaning(error, sent))

    def _meaning(self, error: errors.BrokerResponseError, sent: Generation) -> KafkaError:
        """What an error in the answer to a commit means for the membership, and for the caller."""
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
                self._membership.request_rejoin("a commit was refused, for the group is rebalancing")
                return errors.RebalanceInProgressError(REBALANCING)
            case errors.FencedInstanceIdError() if not is_current:
                return self._out_of_date()
            case errors.UnknownMemberIdError() | errors.IllegalGenerationError():
                if not self._is_member():
                    return errors.CommitFailedError(NOT_WHO_OWNS)
                if is_current or not self._membership.is_rebalancing():
                    self._membership.reset_generation(error, sent, "a commit was refused")
                    return errors.CommitFailedError(self._gone_on())
                return self._out_of_date()
        return error

    def _out_of_date(self) -> KafkaError:
        if self._membership.is_rebalancing():
            return errors.RebalanceInProgressError(REBALANCING)
        return errors.CommitFailedError(self._gone_on())

    def _gone_on(self) -> str:
        return (
            f"group {self._group_id!r} has gone on without this consumer, and its partitions may be another "
            "member's: nothing was committed. Mostly more than "
            f"max_poll_interval_ms={self._config['max_poll_interval_ms']} has passed between two polls: make "
            "that longer, or max_poll_records smaller. The next poll() joins the group again"
        )

    def close(self, timer: Timer) -> None:
        """Have asynchronous commits answered, in time, and their callbacks called. What goes wrong is
        logged.
        """
        self._invoke_what_can_be()
        try:
            self._await_open_commits(timer)
        except KafkaError as error:
            logger.warning("closing: %s", error)
        self._invoke_what_can_be()


def _log_failure(offsets: Offsets, error: BaseException | None) -> None:
    """The callback of a commit without one."""
    if error is not None:
        logger.error("commit of %s failed: %s", Shown(offsets), error)
