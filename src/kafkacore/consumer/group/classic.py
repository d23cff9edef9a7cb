"""Membership by the classic protocol: turns of the wheel in, requests to the coordinator, a generation out.

Every step is made when its time has come and waits for nothing: what has been sent is a future that is looked
at by a later turn, so that a wakeup, an error or a poll with no time loses nothing. Does not know: what an
assignment means (``rebalance.py``), offsets. (Kafka's ``AbstractCoordinator``.)
"""

from __future__ import annotations

import logging
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
from kafkacore.consumer.group.membership import GroupCommits
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
from kafkacore.protocol import Request
from kafkacore.protocol.generated.heartbeat import HeartbeatResponse
from kafkacore.protocol.generated.leave_group import LeaveGroupResponse
from kafkacore.structs import ConsumerGroupMetadata, Node

logger = logging.getLogger(__name__)

#: While an answer is on its way the heartbeat thread looks for it this often.
BACKGROUND_LOOK_MS = 100.0
#: While records are held: for metadata, and while the group is joined anew.
HELD_LOOK_MS = 500.0
REJOIN_LOOK_MS = 20.0
#: A member for which nothing is to be done looks whether its coordinator is still there this often.
LOOK_MS = 20.0
#: The coordinator is another, or none.


_STATES = {
    MemberState.UNJOINED: structs.MemberState.UNJOINED,
    MemberState.PREPARING_REBALANCE: structs.MemberState.REBALANCING,
    MemberState.COMPLETING_REBALANCE: structs.MemberState.REBALANCING,
    MemberState.STABLE: structs.MemberState.STABLE,
}


class ClassicMembership:
    """A member that joins, syncs, beats and leaves; see ``GroupMembership`` for what is promised.

    Parameters
    ----------
    settings:
        Of this member.
    client, metadata, subscriptions, clock:
        Shared with the rest of the consumer.
    rebalance:
        Knows what joining and being assigned means.
    heartbeats:
        Beats once there is a generation.
    metrics:
        Told what happens.
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
        self.join = GroupJoin(self, rebalance, subscriptions, backoff)
        self.state = MemberState.UNJOINED
        self._generation = NO_GENERATION
        self._background_error: BaseException | None = None
        self._poll_deadline_ms = math.inf
        #: Till when a settled member need not look at its connection and at what is due.
        self._look_at_ms = -math.inf
        self._farewell: RequestFuture[ClientResponse] | None = None
        self.is_held = False
        self._is_closed = False
        #: Whom the heartbeats go to, and for which generation; ``None`` while there are none.
        self._beats_at: tuple[Node, Generation] | None = None

    # ---- The wheel ---------------------------------------------------------------------------------------
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
        if self.takes_part() and not self.rebalance.in_callback:
            self.polled(now_ms)
            if now_ms >= self._look_at_ms or not self._is_settled():
                is_active = self._step()
                self._beat()
                now_ms = self.clock.monotonic_ms()
                self._look_at_ms = now_ms + min(LOOK_MS, self.heartbeats.due_ms(now_ms))
        if commits is not None:
            commits.maybe_auto_commit_async(now_ms)
        return is_active

    def takes_part(self) -> bool:
        """Whether partitions come from the group, and the consumer has not been closed in a callback."""
        return self._subscriptions.has_auto_assigned_partitions() and not self._is_closed

    def _is_settled(self) -> bool:
        """Whether nothing is known that a turn would have to act on; most are of a program's polls for its
        next records.
        """
        return (
            self.state is MemberState.STABLE and self.join.is_settled and self.rebalance.is_following_metadata
        )

    def _step(self) -> bool:
        """Do what can be done at once; whether the member is active."""
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
        """See ``GroupMembership``. What goes wrong is raised by the next :meth:`poll`."""
        if self.state is MemberState.UNJOINED or self._background_error is not None:
            return math.inf
        try:
            return self._background(now_ms)
        except Exception as error:
            logger.exception("group %r: in the background", self.settings.group_id)
            self._background_error = error
            return math.inf

    # ---- While the program holds its records -------------------------------------------------------------
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
        # A wakeup is for the application's next call.
        self.client.disable_wakeups()
        try:
            return self._keep_up()
        except BaseException as error:
            # Also a listener's sys.exit(): on this thread nobody would hear of it.
            logger.exception("group %r: while the records are held", self.settings.group_id)
            self._background_error = self._background_error or error
            return HELD_LOOK_MS
        finally:
            self.client.enable_wakeups()

    def _keep_up(self) -> float:
        self.client.poll_no_wakeup(0)
        if not self._subscriptions.has_auto_assigned_partitions():
            return math.inf
        is_active = self._step()
        if self._is_closed:
            return math.inf
        self._beat()
        self.client.poll_no_wakeup(0)
        if not is_active or self.join.is_needed() or self.finder.node() is None:
            return REJOIN_LOOK_MS
        return min(HELD_LOOK_MS, self.heartbeats.due_ms(self.clock.monotonic_ms()))

    def _background(self, now_ms: float) -> float:
        self.client.poll_no_wakeup(0)
        if self.state is MemberState.UNJOINED:
            return math.inf
        if not self.finder.advance():
            self.client.poll_no_wakeup(0)
            return min(self.finder.time_to_next_try_ms(now_ms), BACKGROUND_LOOK_MS)
        if self.state is MemberState.PREPARING_REBALANCE:
            return BACKGROUND_LOOK_MS
        if self.heartbeats.session_expired(now_ms):
            self.coordinator_failed("no heartbeat was answered in time")
            return 0.0
        if now_ms >= self._poll_deadline_ms:
            self._poll_interval_is_over()
            return math.inf
        self.join.advance_in_background()
        self._resume_heartbeats()
        self.heartbeats.turn(now_ms)
        self.client.poll_no_wakeup(0)
        due_ms = self.heartbeats.due_ms(now_ms)
        is_awaited = due_ms == math.inf and not self.heartbeats.beats_alone
        if is_awaited or self.state is not MemberState.STABLE:
            return BACKGROUND_LOOK_MS
        return min(due_ms, self._poll_deadline_ms - now_ms)

    def _poll_interval_is_over(self) -> None:
        logger.warning(
            "group %r: poll() was not called for max_poll_interval_ms=%.0f, so this consumer leaves its "
            "group and its partitions go to others. The program took too long over the records of one "
            "poll(): raise max_poll_interval_ms, or lower max_poll_records",
            self.settings.group_id,
            self.settings.max_poll_interval_ms,
        )
        self._leave_group("consumer poll timeout has expired.")

    # ---- Heartbeats --------------------------------------------------------------------------------------
    def begin_heartbeats(self) -> None:
        """There is a generation: beat for it."""
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
        self._beats_at = (node, sent)
        self.wake_background()

    def end_heartbeats(self) -> None:
        """No generation, or no coordinator, to beat for."""
        self._beats_at = None
        self.heartbeats.end()

    def _resume_heartbeats(self) -> None:
        """The coordinator was lost and has been found again."""
        if self._beats_at is None and not self.state.has_not_joined():
            self.begin_heartbeats()

    def _beat(self) -> None:
        if self.state.has_not_joined():
            return
        self._resume_heartbeats()
        now_ms = self.clock.monotonic_ms()
        if self.heartbeats.session_expired(now_ms):
            self.coordinator_failed("no heartbeat was answered in time")
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
            self._background_error = error(f"no permission to be in group {self.settings.group_id!r}")
        elif error.retriable:
            logger.debug("group %r: heartbeat: %s", self.settings.group_id, error.message)
        else:
            self._background_error = error("in answer to a heartbeat")

    def fenced(self) -> FencedInstanceIdError:
        """Another consumer has taken our place."""
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
        self._look_at_ms = -math.inf
        self.end_heartbeats()
        if self.state is not MemberState.UNJOINED:
            self.wake_background()

    def ask(
        self,
        request: Request[Any],
        handle: Callable[[Generation, ClientResponse, RequestFuture[bytes]], None],
        timeout_ms: float | None = None,
    ) -> RequestFuture[bytes]:
        """Send ``request`` to the coordinator. ``handle`` gets the generation at the time of sending, the
        response, and the future to complete.
        """
        node = self.finder.node()
        if node is None:
            return RequestFuture.failure(CoordinatorNotAvailableError("it is not known"))
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

    def is_rebalancing(self) -> bool:
        """See ``GroupMembership``."""
        return self.state in (MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE)

    def joined(self, generation: Generation) -> None:
        """JoinGroup was answered."""
        self.finder.answered()
        self._generation = generation
        self.state = MemberState.COMPLETING_REBALANCE
        self.begin_heartbeats()

    def take_member_id(self, member_id: str) -> None:
        """The coordinator has one for us, to join with (KIP-394)."""
        self._generation = Generation(member_id=member_id)

    def reset_generation(self, error: BaseException, sent: Generation, why: str) -> None:
        """See ``GroupMembership``. The member id is kept if it is only the generation that was refused."""
        if sent != self._generation:
            logger.info("group %r: %r of the past %s is ignored", self.settings.group_id, error, sent)
            return
        name = error.message if isinstance(error, BrokerResponseError) else str(error)
        self._reset(f"{name} in answer to {why}", keep_member_id=isinstance(error, IllegalGenerationError))

    def _reset(self, reason: str, *, keep_member_id: bool = False) -> None:
        logger.info("group %r: out of generation %d: %s", self.settings.group_id, self._generation[0], reason)
        self.end_heartbeats()
        self.state = MemberState.UNJOINED
        self._generation = Generation(member_id=self._generation.member_id if keep_member_id else "")
        self.join.restart(reason)

    def reset_lost(self, reason: str) -> None:
        """The generation went away before its assignment could be taken over."""
        self._reset(reason)

    def request_rejoin(self, reason: str) -> None:
        """See ``GroupMembership``."""
        self.join.request(reason)

    def subscription_changed(self) -> None:
        """See ``GroupMembership``."""
        self.rebalance.subscription_changed()

    def group_metadata(self) -> ConsumerGroupMetadata:
        """See ``GroupMembership``."""
        return ConsumerGroupMetadata(
            self.settings.group_id,
            self._generation.generation_id,
            self._generation.member_id,
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
        self._farewell = None
        node = self.finder.node()
        generation = self._generation
        is_member = self.state is not MemberState.UNJOINED and generation.has_member_id()
        if node is not None and self.join.is_in_flight():
            # Behind JoinGroup it would not be read before all have joined, this member among them.
            node = Node(MAX_NODE_ID - node.node_id, node.host, node.port)
        if self.state is not MemberState.UNJOINED:
            self._reset("the consumer leaves by itself")
        else:
            # A listener may leave the group in its on_partitions_lost().
            self.join.restart("")
        if node is not None and is_member and not self.settings.is_static:
            logger.info(
                "group %r: member %r leaves: %s", self.settings.group_id, generation.member_id, reason
            )
            self._farewell = self.client.send(node, leave_request(self.settings, generation, reason))
            self._farewell.add_callbacks(_left, _not_left)
            self.client.poll_no_wakeup(0)

    def close(self, timer: Timer) -> None:
        """See ``GroupMembership``.

        Raises
        ------
        Exception
            What the listener raised; all is closed nevertheless.
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
                logger.debug("while closing: %s", error)

    def _has_requests(self) -> bool:
        if self._farewell is not None:
            return not self._farewell.is_done()
        node = self.finder.node()
        return node is not None and self.client.pending_request_count(node) > 0


def _left(response: ClientResponse) -> None:
    answer: LeaveGroupResponse = response.message
    for code in [answer.error_code, *(member.error_code for member in answer.members)]:
        if code:
            logger.info("the group did not let the member go: %s", for_code(code).message)


def _not_left(error: BaseException) -> None:
    logger.info("nobody knows whether the member has left: %s", error)


def _nobody() -> None:
    """There is no heartbeat thread."""
