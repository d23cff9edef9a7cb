"""One rebalance from start to end: prepare, JoinGroup, SyncGroup, and apply the assignment.

Each call of :meth:`GroupJoin.advance` does the next step without waiting. This is ``joinGroupIfNeeded`` of
Kafka's ``AbstractCoordinator`` with its response handlers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from kafkacore import errors
from kafkacore.client import ClientResponse
from kafkacore.client.exponential_backoff import ExponentialBackoff
from kafkacore.consumer._request_future import CallbackInterruptedError, RequestFuture
from kafkacore.consumer.group.commit_before_revoke import CommitBeforeRevoke
from kafkacore.consumer.group.generation import Generation, MemberState
from kafkacore.consumer.group.lookup import MOVED
from kafkacore.consumer.group.rebalance import Rebalance
from kafkacore.consumer.group.requests import join_request, sync_request
from kafkacore.coordinator.protocol import PROTOCOL_TYPE
from kafkacore.logs import logger_of
from kafkacore.protocol.generated.join_group import JoinGroupResponse
from kafkacore.protocol.generated.sync_group import SyncGroupResponse
from kafkacore.structs import printable

if TYPE_CHECKING:
    from kafkacore.consumer.group.classic import ClassicMembership

logger = logger_of(__name__)

#: Retries without a pause before backing off, so that a member that is always rejected does not busy-loop.
IMMEDIATE_RETRIES = 3
#: Errors after which the group is joined again at once.
REJOIN_AT_ONCE = (
    errors.UnknownMemberIdError,
    errors.IllegalGenerationError,
    errors.RebalanceInProgressError,
    errors.MemberIdRequiredError,
)


class GroupJoin:
    """Decides whether the group must be joined, and joins it.

    Parameters
    ----------
    member:
        Membership that sends the requests, and whose generation changes.
    rebalance:
        Object that builds the subscription for JoinGroup, and applies the assignment that the group returns.
    backoff:
        Backoff after a failure.
    """

    def __init__(
        self,
        member: ClassicMembership,
        rebalance: Rebalance,
        backoff: ExponentialBackoff,
    ) -> None:
        self._member = member
        self._rebalance = rebalance
        self._backoff = backoff
        self._is_wanted = True
        self._reason = ""
        self._is_prepared = False
        self._commit = CommitBeforeRevoke(member.settings.group_id, member.settings.retry_backoff_ms)
        #: Future of the assignment, from sending JoinGroup until the assignment has been applied.
        self._future: RequestFuture[bytes] | None = None
        #: Generation, JoinGroup response and future of the assignment while the leader waits for metadata;
        #: ``None`` at all other times.
        self._leading: tuple[Generation, JoinGroupResponse, RequestFuture[bytes]] | None = None
        self._failures = 0
        self._retry_at_ms = -math.inf
        self._began_ms: float | None = None

    # ---- State -------------------------------------------------------------------------------------------
    def request(self, reason: str) -> None:
        """Make one of the next polls join the group. The JoinGroup request carries ``reason`` (KIP-800)."""
        if not self._is_wanted:
            logger.info("group %r: requesting to rejoin: %s", self._member.settings.group_id, reason)
        self._is_wanted = True
        self._reason = reason

    def restart(self, reason: str) -> None:
        """Join again after the generation was reset.

        The preparation is repeated first, because the listener must be called for lost partitions.
        """
        self._is_wanted, self._reason = True, reason
        self._is_prepared = False

    def is_needed(self) -> bool:
        """Return whether the group must be joined, or a join is in progress."""
        reason = self._rebalance.rejoin_reason()
        if reason is not None and not self._is_wanted:
            self.request(reason)
        return self._is_wanted or self._future is not None

    @property
    def is_settled(self) -> bool:
        """Whether no join is requested or in progress."""
        return not self._is_wanted and self._future is None

    def is_in_flight(self) -> bool:
        """Return whether JoinGroup is in flight. The broker reads no other request until it has responded."""
        return self._future is not None and self._member.state is MemberState.PREPARING_REBALANCE

    def time_to_next_step_ms(self, now_ms: float) -> float:
        """Return the milliseconds until the next step, or infinity while a response is pending."""
        if self._future is not None:
            return 0.0 if self._future.is_done() else math.inf
        if self._commit.has_begun:
            return self._commit.time_to_next_step_ms(now_ms)
        if not self._is_wanted or not self._rebalance.topics.has_matched_pattern():
            return math.inf
        return max(self._retry_at_ms - now_ms, 0.0)

    # ---- Steps -------------------------------------------------------------------------------------------
    def advance(self) -> bool:
        """Do all steps that need not wait; return whether the member has joined and has its assignment.

        Raises
        ------
        KafkaError
            An error that is not retriable.
        Exception
            Any exception of the listener.
        """
        while self.is_needed():
            if self._future is None and not self._begin():
                return False
            assert self._future is not None
            self.advance_in_background()
            if not self._future.is_done():
                return False
            if self._future.succeeded():
                self._on_join_complete(self._future)
            elif not self._fail(self._future):
                return False
            if self._member.coordinator() is None:
                return False
        return True

    def _begin(self) -> bool:
        now_ms = self._member.clock.monotonic_ms()
        if now_ms < self._retry_at_ms or not self._rebalance.topics.has_matched_pattern():
            return False
        if not self._member.takes_part():
            # The listener unsubscribed in its callback.
            return False
        if not self._is_prepared and not self._prepare(now_ms):
            return False
        if self._began_ms is None:
            self._began_ms = now_ms
        self._member.state = MemberState.PREPARING_REBALANCE
        self._member.end_heartbeats()
        settings, generation = self._member.settings, self._member.generation()
        logger.info("group %r: joining (%s)", settings.group_id, self._reason or "for the first time")
        self._future = self._member.send_request(
            join_request(settings, generation, self._rebalance.protocols(generation), self._reason),
            self._on_joined,
            settings.join_timeout_ms,
        )
        self._member.wake_background()
        return True

    def _prepare(self, now_ms: float) -> bool:
        """Commit offsets, then revoke partitions that the member must give up; return whether both are done.

        The method does not wait for the commit. A later call continues after the commit.
        """
        commits = self._member.commits
        if (
            not self._commit.has_begun
            and self._rebalance.begin_to_prepare(self._member.generation())
            and commits is not None
        ):
            self._commit.begin(commits, now_ms, self._member.settings.rebalance_timeout_ms)
        if not self._commit.is_over(now_ms):
            return False
        # Set the flag before the call, so that a listener that raises is not called again. If the generation
        # is reset during the call, the flag is cleared, and the member prepares again.
        self._is_prepared = True
        try:
            self._rebalance.prepare(self._member.generation())
        except BaseException as error:
            if isinstance(error, errors.WakeupError) or not isinstance(error, Exception):
                self._is_prepared = False
            raise
        return self._is_prepared

    def _on_join_complete(self, future: RequestFuture[bytes]) -> None:
        member = self._member
        generation = member.generation()
        if generation.was_reset() or member.state is not MemberState.STABLE:
            self._future = None
            member.reset_lost("the member was removed from the group before it had its assignment")
            return
        try:
            completion = self._rebalance.complete(generation, future.value())
        except errors.WakeupError:
            raise  # The next poll applies the assignment again, as after a Ctrl-C.
        except errors.KafkaError as error:
            self._done()
            self.request(f"could not apply the assignment: {type(error).__name__}")
            raise
        failures = self._failures
        self._done()
        if not completion.is_taken:
            self._failures = failures + 1
            self._pause()
        if completion.rejoin_reason is not None:
            self.request(completion.rejoin_reason)
        if member.commits is not None:
            member.commits.restart_auto_commit_interval(member.clock.monotonic_ms())
        if completion.error is not None:
            raise completion.error

    def _done(self) -> None:
        self._future = None
        self._is_prepared = False
        self._failures = 0
        self._retry_at_ms = -math.inf

    def _fail(self, future: RequestFuture[bytes]) -> bool:
        """Handle a failed join; return whether to retry at once. Raise an error that is not retriable."""
        error = future.exception()
        self._future = self._leading = None
        self._member.metrics.rebalance_failed(self._member.clock.monotonic_ms())
        if not isinstance(error, errors.MemberIdRequiredError):
            self.request(f"rebalance failed due to {type(error).__name__}")
        self._failures += 1
        if isinstance(error, REJOIN_AT_ONCE):
            self._pause()
            return True
        if isinstance(error, errors.UnsupportedVersionError):
            raise self._no_groups(error)
        if not getattr(error, "retriable", False):
            self._failures = 0
            raise error
        self._pause(at_once=0)
        return False

    def _pause(self, at_once: int = IMMEDIATE_RETRIES) -> None:
        """Delay the next try with a growing backoff, except for the first ``at_once`` failures."""
        if self._failures > at_once:
            now_ms = self._member.clock.monotonic_ms()
            self._retry_at_ms = now_ms + self._backoff.backoff_ms(self._failures - 1)

    def _no_groups(self, error: BaseException) -> errors.UnsupportedVersionError:
        settings = self._member.settings
        if settings.is_static and "JoinGroup" not in str(error):
            return errors.UnsupportedVersionError(f"the broker does not support group_instance_id: {error}")
        return errors.UnsupportedVersionError(
            f"group_id={settings.group_id!r}: the broker supports no version of the group requests that "
            f"kafkacore can send ({error}): upgrade the broker, or use assign(), or subscribe() with "
            "group_id=None"
        )

    # ---- Responses ---------------------------------------------------------------------------------------
    def _on_joined(self, sent: Generation, response: ClientResponse, future: RequestFuture[bytes]) -> None:
        answer: JoinGroupResponse = response.message
        if answer.error_code:
            future.fail(self._join_error(sent, answer))
        elif answer.protocol_type not in (None, PROTOCOL_TYPE):
            future.fail(_inconsistent(f"its protocol type is {answer.protocol_type!r}"))
        elif answer.generation_id < 0 or not answer.member_id:
            future.fail(
                errors.MalformedMessageError(
                    f"JoinGroup returned an invalid member id {answer.member_id!r} or generation "
                    f"{answer.generation_id}"
                )
            )
        elif self._member.state is not MemberState.PREPARING_REBALANCE:
            # The consumer has left the group since it sent the request.
            future.fail(errors.UnknownMemberIdError("the member left the group while it was joining"))
        else:
            generation = Generation(answer.generation_id, answer.member_id, answer.protocol_name or "")
            self._member.joined(generation)
            now_ms = self._member.clock.monotonic_ms()
            self._member.metrics.joined(response.latency_ms, now_ms)
            logger.info("group %r: joined as %s", self._member.settings.group_id, generation)
            if answer.leader == answer.member_id:
                self._rebalance.lead(answer.members)
                self._leading = (generation, answer, future)
                self.advance_in_background()
            else:
                self._sync(generation, [], future)

    def advance_in_background(self) -> None:
        """As the leader, assign partitions once the metadata of all topics are known."""
        if self._leading is None or not self._rebalance.can_assign():
            return
        (generation, answer, future), self._leading = self._leading, None
        if future.is_done():
            # A Ctrl-C has failed the future in the meantime.
            return
        if generation != self._member.generation() or self._member.state.has_not_joined():
            future.fail(errors.IllegalGenerationError("the generation ended before partitions were assigned"))
            return
        try:
            assignments = self._rebalance.assign(generation.protocol_name, answer.skip_assignment)
            self._sync(generation, assignments, future)
        except Exception as error:
            logger.exception("group %r: assigning partitions failed", self._member.settings.group_id)
            future.fail(error)
        except BaseException:
            # An interruption such as Ctrl-C may come after SyncGroup was sent and before a handler for its
            # response was set. Therefore fail the future here.
            future.fail_unless_done(CallbackInterruptedError("interrupted while partitions were assigned"))
            raise

    def _sync(
        self, generation: Generation, assignments: list[tuple[str, bytes]], future: RequestFuture[bytes]
    ) -> None:
        request = sync_request(self._member.settings, generation, assignments)
        self._member.send_request(request, self._on_synced).chain(future)

    def _on_synced(self, sent: Generation, response: ClientResponse, future: RequestFuture[bytes]) -> None:
        answer: SyncGroupResponse = response.message
        member = self._member
        if answer.error_code:
            future.fail(self._sync_error(sent, answer))
        elif answer.protocol_type not in (None, PROTOCOL_TYPE):
            future.fail(_inconsistent(f"its protocol type is {answer.protocol_type!r}"))
        elif self._future is None or self._future.is_done():
            # A Ctrl-C has ended this join, so nothing would apply the assignment.
            future.fail(errors.IllegalGenerationError("joining was interrupted"))
        elif sent != member.generation() or member.state is not MemberState.COMPLETING_REBALANCE:
            future.fail(errors.IllegalGenerationError("the generation ended during SyncGroup"))
        elif answer.protocol_name not in (None, sent.protocol_name):
            why = f"it uses assignor {answer.protocol_name!r}, not {sent.protocol_name!r}"
            future.fail(_inconsistent(why))
        else:
            member.state = MemberState.STABLE
            now_ms = member.clock.monotonic_ms()
            member.metrics.synced(response.latency_ms, now_ms)
            member.metrics.rebalanced(now_ms - (self._began_ms or now_ms), now_ms)
            self._began_ms = None
            self._is_wanted = False
            self._reason = ""
            future.complete(bytes(answer.assignment))

    # ---- Errors ------------------------------------------------------------------------------------------
    def _join_error(self, sent: Generation, answer: JoinGroupResponse) -> BaseException:
        error = errors.for_code(answer.error_code)
        settings = self._member.settings
        if error is errors.UnknownMemberIdError:
            self._member.reset_generation(error(), sent, "JoinGroup")
        elif error is errors.GroupMaxSizeReachedError:
            return error(f"group {settings.group_id!r} already has group.max.size members")
        elif error is errors.MemberIdRequiredError:
            self._member.take_member_id(answer.member_id)
            self.request(f"need to join with the given member id: {printable(answer.member_id)}")
        elif error is errors.InconsistentGroupProtocolError:
            return _inconsistent("all members must share an assignor in partition_assignment_strategy")
        elif error is errors.InvalidSessionTimeoutError:
            return error(
                f"session_timeout_ms={settings.session_timeout_ms} is not between the brokers' "
                "group.min.session.timeout.ms and group.max.session.timeout.ms"
            )
        return self._refused(error, "JoinGroup")

    def _sync_error(self, sent: Generation, answer: SyncGroupResponse) -> BaseException:
        error = errors.for_code(answer.error_code)
        if error in (errors.UnknownMemberIdError, errors.IllegalGenerationError):
            self._member.reset_generation(error(), sent, "SyncGroup")
        return self._refused(error, "SyncGroup")

    def _refused(self, error: type[errors.BrokerResponseError], what: str) -> BaseException:
        """Handle the errors that any request of a member may return, and return the exception."""
        if error in MOVED:
            self._member.coordinator_failed(error.message)
        elif error is errors.FencedInstanceIdError:
            return self._member.fenced()
        elif error is errors.GroupAuthorizationFailedError:
            return error(f"not authorized to access group {self._member.settings.group_id!r}")
        return error(f"{what} failed")


def _inconsistent(why: str) -> errors.InconsistentGroupProtocolError:
    return errors.InconsistentGroupProtocolError(f"this consumer cannot join the group: {why}")
