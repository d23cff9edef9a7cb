"""Group membership by the classic protocol: find the coordinator, join, send heartbeats, leave.

Every step starts only when it is due, and does not wait: a later poll checks the future of a request. A
wakeup, an error, or a poll with no time left therefore loses no progress. This is Kafka's
``AbstractCoordinator``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from kafkacore import structs
from kafkacore.client import ClientResponse, Metadata
from kafkacore.client.exponential_backoff import ExponentialBackoff
from kafkacore.clock import Clock
from kafkacore.consumer._request_future import RequestFuture
from kafkacore.consumer.consumer_network_client import ConsumerNetworkClient
from kafkacore.consumer.group.generation import NO_GENERATION, Generation, MemberState
from kafkacore.consumer.group.heartbeat import HeartbeatSender
from kafkacore.consumer.group.join import GroupJoin
from kafkacore.consumer.group.lookup import MAX_NODE_ID, MOVED, CoordinatorFinder
from kafkacore.consumer.group.membership import (
    BACKGROUND_CHECK_MS,
    HELD_CHECK_MS,
    REJOIN_CHECK_MS,
    SETTLED_CHECK_MS,
    GroupCommits,
)
from kafkacore.consumer.group.rebalance import Rebalance
from kafkacore.consumer.group.requests import heartbeat_request, leave_request
from kafkacore.consumer.group.settings import GroupSettings
from kafkacore.consumer.group_metrics import GroupMetrics
from kafkacore.consumer.subscription_state import SubscriptionState
from kafkacore.consumer.timer import Timer
from kafkacore.errors import (
    BrokerResponseError,
    CoordinatorNotAvailableError,
    FencedInstanceIdError,
    GroupAuthorizationFailedError,
    IllegalGenerationError,
    KafkaConnectionError,
    KafkaError,
    RebalanceInProgressError,
    UnknownMemberIdError,
    for_code,
)
from kafkacore.logs import logger_of
from kafkacore.protocol import Request
from kafkacore.protocol.generated.heartbeat import HeartbeatResponse
from kafkacore.protocol.generated.leave_group import LeaveGroupResponse
from kafkacore.structs import ConsumerGroupMetadata, Node

logger = logger_of(__name__)

_STATES = {
    MemberState.UNJOINED: structs.MemberState.UNJOINED,
    MemberState.PREPARING_REBALANCE: structs.MemberState.REBALANCING,
    MemberState.COMPLETING_REBALANCE: structs.MemberState.REBALANCING,
    MemberState.STABLE: structs.MemberState.STABLE,
}


class ClassicMembership:
    """Membership by the classic protocol; see ``GroupMembership`` for the interface.

    Parameters
    ----------
    settings:
        Settings of this member.
    client, metadata, subscriptions, clock:
        Objects that are shared with the other parts of the consumer.
    rebalance:
        Object that builds the subscription and applies the assignment.
    heartbeats:
        Sender of the heartbeats while the member has a generation.
    metrics:
        Metrics of the group.
    """

    def __init__(
        self,
        settings: GroupSettings,
        client: ConsumerNetworkClient,
        metadata: Metadata,
        subscriptions: SubscriptionState,
        clock: Clock,
        rebalance: Rebalance,
        heartbeats: HeartbeatSender,
        metrics: GroupMetrics,
    ) -> None:
        self.settings = settings
        self.client = client
        self.clock = clock
        self.rebalance = rebalance
        self.heartbeats = heartbeats
        self.metrics = metrics
        self.commits: GroupCommits | None = None
        self.wake_background: Callable[[], None] = _nobody
        self._subscriptions = subscriptions
        backoff = ExponentialBackoff(clock, settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self.finder = CoordinatorFinder(
            client, metadata, clock, settings.group_id, backoff, self._coordinator_lost
        )
        self.join = GroupJoin(self, rebalance, backoff)
        self.state = MemberState.UNJOINED
        self._generation = NO_GENERATION
        self._background_error: BaseException | None = None
        self._poll_deadline_ms = math.inf
        #: A member that has nothing to do checks its connection and its due work only after this time.
        self._next_check_ms = -math.inf
        self._leave_future: RequestFuture[ClientResponse] | None = None
        self.is_held = False
        self._is_closed = False
        #: Coordinator and generation of the current heartbeats; ``None`` while no heartbeats are sent.
        self._heartbeats_for: tuple[Node, Generation] | None = None

    # ---- Polling -----------------------------------------------------------------------------------------
    def poll(self) -> bool:
        """See ``GroupMembership``."""
        commits = self.commits
        if commits is not None:
            commits.invoke_completed_callbacks()
        if self._background_error is not None:
            error, self._background_error = self._background_error, None
            raise error
        is_active = True
        now_ms = self.clock.monotonic_ms()
        if self.takes_part() and not self.rebalance.listener_calls.is_running:
            self.polled(now_ms)
            if now_ms >= self._next_check_ms or not self._is_settled():
                is_active = self._step()
                self._beat()
                now_ms = self.clock.monotonic_ms()
                self._next_check_ms = now_ms + min(SETTLED_CHECK_MS, self.heartbeats.due_ms(now_ms))
        if commits is not None:
            commits.maybe_auto_commit_async(now_ms)
        return is_active

    def takes_part(self) -> bool:
        """Return whether the group assigns the partitions, and the consumer is not closed."""
        return self._subscriptions.has_auto_assigned_partitions() and not self._is_closed

    def _is_settled(self) -> bool:
        """Return whether the member has nothing to do, as in most polls."""
        return self.state is MemberState.STABLE and self.join.is_settled and self.rebalance.topics.is_current

    def _step(self) -> bool:
        """Do all work that is possible without waiting; return whether the member has its assignment."""
        self.rebalance.follow_metadata()
        if not self.finder.advance():
            return not self.join.is_needed() and self.state is MemberState.STABLE
        return self.join.advance()

    def time_to_next_poll_ms(self, now_ms: float) -> float:
        """See ``GroupMembership``."""
        wait_ms = math.inf if self.commits is None else self.commits.time_to_next_auto_commit_ms(now_ms)
        if not self._subscriptions.has_auto_assigned_partitions():
            return wait_ms
        if self.finder.node() is None:
            return min(wait_ms, self.finder.time_to_next_try_ms(now_ms))
        return min(wait_ms, self.heartbeats.due_ms(now_ms), self.join.time_to_next_step_ms(now_ms))

    def polled(self, now_ms: float) -> None:
        """See ``GroupMembership``."""
        self._poll_deadline_ms = math.inf if self.is_held else now_ms + self.settings.max_poll_interval_ms
        self.heartbeats.polled(self._poll_deadline_ms)

    def background_turn(self, now_ms: float) -> float:
        """See ``GroupMembership``. The next :meth:`poll` raises any error."""
        if self.state is MemberState.UNJOINED or self._background_error is not None:
            return math.inf
        try:
            return self._background(now_ms)
        except Exception as error:
            logger.exception("group %r: error in the heartbeat thread", self.settings.group_id)
            self._background_error = error
            return math.inf

    # ---- Holds -------------------------------------------------------------------------------------------
    def hold(self, is_held: bool, now_ms: float) -> None:
        """See ``GroupMembership``."""
        self.is_held = is_held
        if self._subscriptions.has_auto_assigned_partitions():
            self.polled(now_ms)
            self.wake_background()

    def held_turn(self, now_ms: float) -> float:
        """See ``GroupMembership``."""
        if not self.is_held:
            return self.background_turn(now_ms)
        if isinstance(self._background_error, KafkaError):
            return math.inf
        # A wakeup is meant for the next call of the application, and not for this thread.
        self.client.disable_wakeups()
        try:
            return self._held_step()
        except BaseException as error:
            # Catch even a listener's SystemExit: nothing else would report it on this thread.
            logger.exception("group %r: error in the heartbeat thread during a hold", self.settings.group_id)
            self._background_error = self._background_error or error
            return HELD_CHECK_MS
        finally:
            self.client.enable_wakeups()

    def _held_step(self) -> float:
        self.client.poll_no_wakeup(0)
        if not self._subscriptions.has_auto_assigned_partitions():
            return math.inf
        is_active = self._step()
        if self._is_closed:
            return math.inf
        self._beat()
        self.client.poll_no_wakeup(0)
        if not is_active or self.join.is_needed() or self.finder.node() is None:
            return REJOIN_CHECK_MS
        return min(HELD_CHECK_MS, self.heartbeats.due_ms(self.clock.monotonic_ms()))

    def _background(self, now_ms: float) -> float:
        self.client.poll_no_wakeup(0)
        if self.state is MemberState.UNJOINED:
            return math.inf
        if not self.finder.advance():
            self.client.poll_no_wakeup(0)
            return min(self.finder.time_to_next_try_ms(now_ms), BACKGROUND_CHECK_MS)
        if self.state is MemberState.PREPARING_REBALANCE:
            return BACKGROUND_CHECK_MS
        if self.heartbeats.session_expired(now_ms):
            self.coordinator_failed("the session timed out without a heartbeat response")
            return 0.0
        if now_ms >= self._poll_deadline_ms:
            self._poll_interval_is_over()
            return math.inf
        self.join.advance_in_background()
        self._resume_heartbeats()
        self.heartbeats.turn(now_ms)
        self.client.poll_no_wakeup(0)
        due_ms = self.heartbeats.due_ms(now_ms)
        is_awaited = due_ms == math.inf and not self.heartbeats.is_native
        if is_awaited or self.state is not MemberState.STABLE:
            return BACKGROUND_CHECK_MS
        return min(due_ms, self.heartbeats.read_due_ms(now_ms), self._poll_deadline_ms - now_ms)

    def _poll_interval_is_over(self) -> None:
        logger.warning(
            "group %r: poll() was not called for max_poll_interval_ms=%.0f, so this consumer leaves the "
            "group and its partitions are reassigned. Processing the records of one poll() took too long: "
            "raise max_poll_interval_ms, or lower max_poll_records",
            self.settings.group_id,
            self.settings.max_poll_interval_ms,
        )
        self._leave_group("consumer poll timeout has expired.")

    # ---- Heartbeats --------------------------------------------------------------------------------------
    def begin_heartbeats(self) -> None:
        """Start heartbeats for the current generation."""
        node = self.finder.node()
        if node is None:
            return
        sent = self._generation
        self.heartbeats.begin(
            node,
            heartbeat_request(self.settings, sent),
            self.settings.heartbeat_interval_ms,
            self.settings.session_timeout_ms,
            lambda answer: self._on_heartbeat(node, sent, answer),
        )
        self._heartbeats_for = (node, sent)
        self.wake_background()

    def end_heartbeats(self) -> None:
        """Stop heartbeats, because the member has no generation or no coordinator."""
        self._heartbeats_for = None
        self.heartbeats.end()

    def _resume_heartbeats(self) -> None:
        """Start heartbeats again after the coordinator was lost and found."""
        if self._heartbeats_for is None and not self.state.has_not_joined():
            self.begin_heartbeats()

    def _beat(self) -> None:
        if self.state.has_not_joined():
            return
        self._resume_heartbeats()
        now_ms = self.clock.monotonic_ms()
        if self.heartbeats.session_expired(now_ms):
            self.coordinator_failed("the session timed out without a heartbeat response")
        self.heartbeats.turn(now_ms)

    def _on_heartbeat(self, node: Node, sent: Generation, answer: HeartbeatResponse | BaseException) -> None:
        if isinstance(answer, BaseException):
            self.request_failed(node, answer)
            return
        error = for_code(answer.error_code)
        if not answer.error_code:
            self.finder.answered()
        elif error in MOVED:
            self.coordinator_failed(error.message)
        elif error is RebalanceInProgressError:
            if self.state is MemberState.STABLE and sent == self._generation:
                self.join.request("group is already rebalancing")
        elif error in (IllegalGenerationError, UnknownMemberIdError, FencedInstanceIdError):
            is_current = sent == self._generation
            self.reset_generation(error(), sent, "heartbeat")
            if is_current and error is FencedInstanceIdError:
                self._background_error = self.fenced()
        elif error is GroupAuthorizationFailedError:
            self._background_error = error(f"not authorized to access group {self.settings.group_id!r}")
        elif error.retriable:
            logger.debug("group %r: heartbeat failed: %s", self.settings.group_id, error.message)
        else:
            self._background_error = error(f"heartbeat of group {self.settings.group_id!r} failed")

    def fenced(self) -> FencedInstanceIdError:
        """Return the error for a member whose ``group_instance_id`` another consumer has taken over."""
        return FencedInstanceIdError(
            f"another consumer has joined group {self.settings.group_id!r} with "
            f"group_instance_id={self.settings.group_instance_id!r}"
        )

    # ---- The coordinator ---------------------------------------------------------------------------------
    def coordinator(self) -> Node | None:
        """See ``GroupMembership``."""
        return self.finder.node()

    def ensure_coordinator(self, timer: Timer) -> bool:
        """See ``GroupMembership``."""
        return self.finder.ensure(timer)

    def lookup_coordinator(self) -> RequestFuture[None]:
        """See ``GroupMembership``."""
        return self.finder.lookup()

    def coordinator_failed(self, cause: str, *, disconnected: bool = False) -> None:
        """See ``GroupMembership``."""
        self.finder.failed(cause, disconnected=disconnected)

    def _coordinator_lost(self) -> None:
        self._next_check_ms = -math.inf
        self.end_heartbeats()
        if self.state is not MemberState.UNJOINED:
            self.wake_background()

    def send_request(
        self,
        request: Request[Any],
        handle: Callable[[Generation, ClientResponse, RequestFuture[bytes]], None],
        timeout_ms: float | None = None,
    ) -> RequestFuture[bytes]:
        """Send ``request`` to the coordinator.

        ``handle`` is called with the generation at the time of sending, the response, and the future to
        complete.
        """
        node = self.finder.node()
        if node is None:
            return RequestFuture.failure(CoordinatorNotAvailableError("the coordinator is not known"))
        sent = self._generation
        answer = self.client.send(node, request, timeout_ms=timeout_ms)
        answer.add_callbacks(lambda _: None, lambda error: self.request_failed(node, error))
        return answer.compose(lambda response, future: handle(sent, response, future))

    def request_failed(self, node: Node, error: BaseException) -> None:
        """See ``GroupMembership``."""
        if isinstance(error, KafkaConnectionError) and self.finder.is_known_as(node):
            self.coordinator_failed(str(error), disconnected=True)

    # ---- The generation ----------------------------------------------------------------------------------
    def generation(self) -> Generation:
        """See ``GroupMembership``."""
        return self._generation

    def generation_for_fetch(self) -> Generation:
        """See ``GroupMembership``."""
        return NO_GENERATION

    def is_rebalancing(self) -> bool:
        """See ``GroupMembership``."""
        return self.state in (MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE)

    def joined(self, generation: Generation) -> None:
        """Set the generation that the JoinGroup response contains, and start heartbeats."""
        self.finder.answered()
        self._generation = generation
        self.state = MemberState.COMPLETING_REBALANCE
        self.begin_heartbeats()

    def take_member_id(self, member_id: str) -> None:
        """Set the member id that the coordinator assigned. The member joins again with this id (KIP-394)."""
        self._generation = Generation(member_id=member_id)

    def reset_generation(self, error: BaseException, sent: Generation, why: str) -> None:
        """See ``GroupMembership``. If only the generation was rejected, the member id is kept."""
        if sent != self._generation:
            logger.info(
                "group %r: ignoring %r, the error of a request from the earlier %s",
                self.settings.group_id,
                error,
                sent,
            )
            return
        name = error.message if isinstance(error, BrokerResponseError) else str(error)
        self._reset(f"{why} failed: {name}", keep_member_id=isinstance(error, IllegalGenerationError))

    def _reset(self, reason: str, *, keep_member_id: bool = False) -> None:
        logger.info(
            "group %r: resetting generation %d: %s", self.settings.group_id, self._generation[0], reason
        )
        self.end_heartbeats()
        self.state = MemberState.UNJOINED
        self._generation = Generation(member_id=self._generation.member_id if keep_member_id else "")
        self.join.restart(reason)

    def reset_lost(self, reason: str) -> None:
        """Reset a generation that ended before its assignment was applied."""
        self._reset(reason)

    def request_rejoin(self, reason: str) -> None:
        """See ``GroupMembership``."""
        self.join.request(reason)

    def subscription_changed(self) -> None:
        """See ``GroupMembership``."""
        self.rebalance.subscription_changed()

    def group_metadata(self) -> ConsumerGroupMetadata:
        """See ``GroupMembership``."""
        generation = self._generation
        return ConsumerGroupMetadata(
            self.settings.group_id,
            generation.generation_id,
            generation.member_id,
            self.settings.group_instance_id,
            _STATES[self.state],
        )

    # ---- Leaving -----------------------------------------------------------------------------------------
    def leave(self, reason: str) -> None:
        """See ``GroupMembership``."""
        try:
            self.rebalance.leave(self._generation, self.is_rebalancing())
        finally:
            self._leave_group(reason)

    def _leave_group(self, reason: str) -> None:
        self._leave_future = None
        node = self.finder.node()
        generation = self._generation
        is_member = self.state is not MemberState.UNJOINED and generation.has_member_id()
        if node is not None and self.join.is_in_flight():
            # Use another connection. The broker reads the next request of this connection only after it has
            # answered JoinGroup, and it answers only when all members, including this one, have joined or
            # left.
            node = Node(MAX_NODE_ID - node.node_id, node.host, node.port)
        if self.state is not MemberState.UNJOINED:
            self._reset("the consumer leaves the group")
        else:
            # A listener may unsubscribe in its on_partitions_lost().
            self.join.restart("")
        if node is not None and is_member and not self.settings.is_static:
            logger.info(
                "group %r: member %r is leaving: %s", self.settings.group_id, generation.member_id, reason
            )
            self._leave_future = self.client.send(node, leave_request(self.settings, generation, reason))
            self._leave_future.add_callbacks(_left, _not_left)
            self.client.poll_no_wakeup(0)

    def close(self, timer: Timer) -> None:
        """See ``GroupMembership``.

        Raises
        ------
        Exception
            Any exception of the listener, after everything has been closed.
        """
        try:
            self.leave("the consumer is being closed")
        finally:
            self._is_closed = True
            self.end_heartbeats()
            self._await_requests(timer)

    def _await_requests(self, timer: Timer) -> None:
        while not timer.expired and self._has_requests():
            try:
                self.client.poll(timer, self._has_requests, disable_wakeup=True)
            except KafkaError as error:
                logger.debug("error while waiting for requests during close: %s", error)

    def _has_requests(self) -> bool:
        if self._leave_future is not None:
            return not self._leave_future.is_done()
        node = self.finder.node()
        return node is not None and self.client.pending_request_count(node) > 0


def _left(response: ClientResponse) -> None:
    answer: LeaveGroupResponse = response.message
    for code in [answer.error_code, *(member.error_code for member in answer.members)]:
        if code:
            logger.info("LeaveGroup failed: %s", for_code(code).message)


def _not_left(error: BaseException) -> None:
    logger.info("LeaveGroup failed, so the member may still be in the group: %s", error)


def _nobody() -> None:
    """Do nothing: without a heartbeat thread there is nothing to wake."""
