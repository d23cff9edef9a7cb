"""Group membership by the protocol of KIP-848, in which a member joins and leaves by heartbeats.

Heartbeats and their responses may be handled on the application's thread and on the heartbeat thread. Only
``poll()``, ``unsubscribe()`` and ``close()`` call the listener and change the assignment; in a
``consumer.hold()`` block, the heartbeat thread does both. A member that has nothing to report sends plain
heartbeats, which need no GIL. This is Kafka's ``ConsumerMembershipManager`` with its
``ConsumerHeartbeatRequestManager``.
"""

from __future__ import annotations

import math
import os
from base64 import urlsafe_b64encode
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

from kafkacore import errors, structs
from kafkacore.client import ClientResponse, Metadata
from kafkacore.client.exponential_backoff import ExponentialBackoff
from kafkacore.clock import Clock
from kafkacore.consumer._request_future import RequestFuture
from kafkacore.consumer.consumer_network_client import ConsumerNetworkClient
from kafkacore.consumer.group.consumer_state import ConsumerMemberState
from kafkacore.consumer.group.followed_topics import FollowedTopics
from kafkacore.consumer.group.generation import NO_GENERATION, Generation
from kafkacore.consumer.group.heartbeat import HeartbeatSender
from kafkacore.consumer.group.heartbeat_fields import JOIN_EPOCH, HeartbeatFields, assignment_in
from kafkacore.consumer.group.listener_calls import ListenerCalls
from kafkacore.consumer.group.lookup import MOVED, CoordinatorFinder
from kafkacore.consumer.group.membership import (
    BACKGROUND_CHECK_MS,
    HELD_CHECK_MS,
    REJOIN_CHECK_MS,
    SETTLED_CHECK_MS,
    GroupCommits,
)
from kafkacore.consumer.group.reconciliation import Reconciliation
from kafkacore.consumer.group.settings import GroupSettings
from kafkacore.consumer.group_metrics import GroupMetrics
from kafkacore.consumer.subscription_state import SubscriptionState
from kafkacore.consumer.timer import Timer
from kafkacore.errors import (
    BrokerResponseError,
    KafkaConnectionError,
    KafkaError,
    MalformedMessageError,
    for_code,
)
from kafkacore.logs import logger_of
from kafkacore.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from kafkacore.structs import ConsumerGroupMetadata, Node, TopicPartition
from kafkacore.wire import Uuid

logger = logger_of(__name__)

_State = ConsumerMemberState
_REBALANCING = (_State.JOINING, _State.RECONCILING, _State.ACKNOWLEDGING)
#: Errors after which the member releases its partitions and joins again. The last error means that the
#: coordinator has lost the whole group.
_FENCED = (errors.FencedMemberEpochError, errors.UnknownMemberIdError, errors.GroupIdNotFoundError)


class ConsumerMembership:
    """Membership by the protocol of KIP-848; see ``GroupMembership`` for the interface.

    Parameters
    ----------
    settings:
        Settings of this member.
    client, metadata, subscriptions, clock:
        Objects that are shared with the other parts of the consumer.
    released:
        Context manager that releases the consumer's lock while the listener runs.
    on_assignment_changed:
        Function that is called after the assignment has changed.
    on_partitions_removed:
        Function that is called before partitions are revoked or lost, with the partitions and whether they
        are lost.
    heartbeats:
        Sender of the plain heartbeats.
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
        released: Callable[[], AbstractContextManager[None]],
        on_assignment_changed: Callable[[], None],
        on_partitions_removed: Callable[[set[TopicPartition], bool], None],
        heartbeats: HeartbeatSender,
        metrics: GroupMetrics,
    ) -> None:
        self.settings = settings
        self.client = client
        self.clock = clock
        self.heartbeats = heartbeats
        self.metrics = metrics
        self.wake_background: Callable[[], None] = _nobody
        self._subscriptions = subscriptions
        self._backoff = ExponentialBackoff(clock, settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self.finder = CoordinatorFinder(
            client, metadata, clock, settings.group_id, self._backoff, self._coordinator_lost
        )
        self.topics = FollowedTopics(settings, metadata, subscriptions, clock)
        self.calls = ListenerCalls(settings.group_id, subscriptions, released, clock, metrics)
        self.reconciliation = Reconciliation(
            settings,
            metadata,
            subscriptions,
            clock,
            metrics,
            self.calls,
            on_partitions_removed,
            on_assignment_changed,
        )
        self._fields = HeartbeatFields(settings, subscriptions)
        self.state = _State.UNSUBSCRIBED
        #: The member keeps this id when it joins again.
        member_id = Uuid.from_random_bits(int.from_bytes(os.urandom(16)))
        self._member_id = urlsafe_b64encode(member_id.bytes).decode().rstrip("=")
        self._epoch = JOIN_EPOCH
        #: Number of times that the member has joined or left. A response is ignored if this number has
        #: changed since the heartbeat was sent.
        self._incarnation = 0
        self._interval_ms = settings.heartbeat_interval_ms
        #: Whether a heartbeat that is not plain is in flight.
        self._in_flight = False
        #: Number of interrupted polls when the member last checked for lost responses.
        self._interrupted_count = 0
        #: Number of failed heartbeats since the last response without an error, and the time of the next
        #: attempt.
        self._failures = 0
        self._retry_at_ms = -math.inf
        #: Coordinator, member id, epoch and interval of the current plain heartbeats.
        self._plain_for: tuple[Node, str, int, float] | None = None
        self._poll_deadline_ms = math.inf
        #: A member that has nothing to do checks its connection and its due work only after this time.
        self._next_check_ms = -math.inf
        #: Error of the heartbeat thread or of the broker, which the next poll raises once.
        self._background_error: BaseException | None = None
        #: Error that every poll raises until ``unsubscribe()``.
        self._fatal: BaseException | None = None
        self._leave_future: RequestFuture[ClientResponse] | None = None
        self.is_held = False
        self._is_closed = False

    @property
    def commits(self) -> GroupCommits | None:
        """See ``GroupMembership``."""
        return self.reconciliation.commits

    @commits.setter
    def commits(self, commits: GroupCommits | None) -> None:
        self.reconciliation.commits = commits

    # ---- Polling -----------------------------------------------------------------------------------------
    def poll(self) -> bool:
        """See ``GroupMembership``."""
        commits = self.commits
        if commits is not None:
            commits.invoke_completed_callbacks()
        if self._background_error is not None:
            error, self._background_error = self._background_error, None
            raise error
        now_ms = self.clock.monotonic_ms()
        if self.takes_part() and not self.calls.is_running:
            self.polled(now_ms)
            if now_ms >= self._next_check_ms or not self._is_settled():
                self._step()
                now_ms = self.clock.monotonic_ms()
                self._next_check_ms = now_ms + min(SETTLED_CHECK_MS, self.heartbeats.due_ms(now_ms))
        if commits is not None:
            commits.maybe_auto_commit_async(now_ms)
        return self._is_settled() or not self.takes_part()

    def takes_part(self) -> bool:
        """Return whether the group assigns the partitions, and the consumer is not closed."""
        return self._subscriptions.has_auto_assigned_partitions() and not self._is_closed

    def _is_settled(self) -> bool:
        """Return whether the member has nothing to do, as in most polls."""
        return (
            self.state is _State.STABLE
            and self.topics.is_current
            and self._background_error is None
            and self._plain_for is not None
        )

    def _step(self) -> None:
        """Do all work that is possible without waiting.

        Raises
        ------
        Exception
            The first exception of the listener, after everything else has been done.
        """
        error: Exception | None = None
        self.topics.follow()
        if self.state is _State.FATAL:
            self._raise_fatal()
        if self.state in (_State.FENCED, _State.STALE):
            error = self._release_lost()
        if self.state is _State.UNSUBSCRIBED and self.takes_part() and self.topics.has_matched_pattern():
            self._join()
        if self.state is _State.RECONCILING:
            error = self._reconcile() or error
        if not self._is_closed and self.finder.advance():
            self._beat(self.clock.monotonic_ms())
        if error is not None:
            raise error

    def _raise_fatal(self) -> None:
        # Keep the error here, because the listener may call unsubscribe(), which clears it.
        fatal = self._fatal
        assert fatal is not None
        # Ignore an exception of the listener, which was logged: the error that ended the membership is more
        # important.
        self.reconciliation.release(is_lost=True)
        raise fatal

    def _release_lost(self) -> Exception | None:
        error = self.reconciliation.release(is_lost=True)
        # The listener may have unsubscribed.
        if self.state in (_State.FENCED, _State.STALE):
            self._join()
        return error

    def _join(self) -> None:
        self._begin_incarnation()
        self._become(_State.JOINING)
        self.topics.joined()
        self._failures = 0
        self._retry_at_ms = -math.inf

    def _begin_incarnation(self) -> None:
        """Ignore responses to earlier heartbeats, and send all fields in the next heartbeat."""
        self._incarnation += 1
        self._epoch = JOIN_EPOCH
        self._in_flight = False
        self._next_check_ms = -math.inf
        self.end_heartbeats()
        self._fields.reset()
        self.reconciliation.forget()

    def _reconcile(self) -> Exception | None:
        must_acknowledge, error = self.reconciliation.step()
        if must_acknowledge and self.state is _State.RECONCILING:
            self._become(_State.ACKNOWLEDGING)
        return error

    def _become(self, state: ConsumerMemberState) -> None:
        assert state.follows(self.state), f"invalid transition from {self.state} to {state}"
        if state is not self.state:
            logger.debug(
                "group %r: member %r with epoch %d changes from %s to %s",
                self.settings.group_id,
                self._member_id,
                self._epoch,
                self.state.value,
                state.value,
            )
        self.state = state

    def time_to_next_poll_ms(self, now_ms: float) -> float:
        """See ``GroupMembership``."""
        wait_ms = math.inf if self.commits is None else self.commits.time_to_next_auto_commit_ms(now_ms)
        if not self.takes_part():
            return wait_ms
        if self._background_error is not None or self.state in (_State.FENCED, _State.STALE, _State.FATAL):
            return 0.0
        if self.state is _State.RECONCILING:
            wait_ms = min(wait_ms, self.reconciliation.time_to_next_step_ms(now_ms))
        if self.finder.node() is None:
            return min(wait_ms, self.finder.time_to_next_try_ms(now_ms))
        return min(wait_ms, self._time_to_next_beat_ms(now_ms))

    def polled(self, now_ms: float) -> None:
        """See ``GroupMembership``."""
        self._poll_deadline_ms = math.inf if self.is_held else now_ms + self.settings.max_poll_interval_ms
        self.heartbeats.polled(self._poll_deadline_ms)

    # ---- The heartbeat thread ----------------------------------------------------------------------------
    def background_turn(self, now_ms: float) -> float:
        """See ``GroupMembership``. The next :meth:`poll` raises any error."""
        if not self.state.is_member or self._background_error is not None:
            return math.inf
        try:
            return self._background(now_ms)
        except Exception as error:
            logger.exception("group %r: error in the heartbeat thread", self.settings.group_id)
            self._background_error = error
            return math.inf

    def _background(self, now_ms: float) -> float:
        self.client.poll_no_wakeup(0)
        if not self.state.is_member:
            return math.inf
        if not self.finder.advance():
            self.client.poll_no_wakeup(0)
            return min(self.finder.time_to_next_try_ms(now_ms), BACKGROUND_CHECK_MS)
        if now_ms >= self._poll_deadline_ms and self.state is not _State.PREPARE_LEAVING:
            self._poll_interval_is_over()
            return math.inf
        self._beat(now_ms)
        self.client.poll_no_wakeup(0)
        wait_ms = self._time_to_next_beat_ms(now_ms)
        if wait_ms == math.inf and not self._has_native_heartbeats():
            return BACKGROUND_CHECK_MS
        return min(wait_ms, self.heartbeats.read_due_ms(now_ms), self._poll_deadline_ms - now_ms)

    def _has_native_heartbeats(self) -> bool:
        return self._plain_for is not None and self.heartbeats.is_native

    def _poll_interval_is_over(self) -> None:
        logger.warning(
            "group %r: poll() was not called for max_poll_interval_ms=%.0f, so this consumer leaves the "
            "group and its partitions are reassigned. Processing the records of one poll() took too long: "
            "raise max_poll_interval_ms, or lower max_poll_records",
            self.settings.group_id,
            self.settings.max_poll_interval_ms,
        )
        self._become(_State.PREPARE_LEAVING)
        self._send_leave("max_poll_interval_ms has passed", then=_State.STALE)

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
        if isinstance(self._background_error, KafkaError) or self._fatal is not None:
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
        if not self.takes_part():
            return math.inf
        self._step()
        if self._is_closed:
            return math.inf
        self.client.poll_no_wakeup(0)
        if self.state is not _State.STABLE or self.finder.node() is None:
            return REJOIN_CHECK_MS
        return min(HELD_CHECK_MS, self._time_to_next_beat_ms(self.clock.monotonic_ms()))

    # ---- Sending heartbeats ------------------------------------------------------------------------------
    def _beat(self, now_ms: float) -> None:
        """Send the heartbeat that is due, without waiting."""
        node = self.finder.node()
        if node is None or not self.state.is_member:
            return
        if self._interrupted_count != self.client.interrupted_count:
            # A response with an assignment may have been lost. The broker repeats the assignment only if a
            # heartbeat contains all fields.
            self._interrupted_count = self.client.interrupted_count
            self._in_flight = False
            self._fields.reset()
        if self._plain_for is not None and self.heartbeats.session_expired(now_ms):
            self.coordinator_failed("it has not answered a heartbeat in time")
            return
        if not self._in_flight and self._has_news() and now_ms >= self._retry_at_ms:
            self._send(node, now_ms)
        elif self._plain_for is not None:
            self.heartbeats.turn(now_ms)

    def _has_news(self) -> bool:
        """Return whether the member has something to report, so that the next heartbeat is due at once."""
        if self.state is _State.PREPARE_LEAVING:
            return False
        return self.state in (_State.JOINING, _State.ACKNOWLEDGING) or self._fields.has_changed(
            self.reconciliation.current
        )

    def _time_to_next_beat_ms(self, now_ms: float) -> float:
        if self._in_flight or not self.state.is_member:
            return math.inf
        if self._has_news():
            return max(self._retry_at_ms - now_ms, 0.0)
        return self.heartbeats.due_ms(now_ms)

    def _send(self, node: Node, now_ms: float) -> None:
        self.end_heartbeats()
        is_joining = self.state is _State.JOINING
        try:
            self._in_flight = True
            request = self._fields.next(
                self._member_id, self._epoch, self.reconciliation.current, is_joining=is_joining
            )
            self.client.send(node, request).add_callbacks(
                partial(self._on_response, node, self._incarnation),
                partial(self._on_failure, node, self._incarnation),
            )
            if self.state is _State.ACKNOWLEDGING:
                self._become(_State.STABLE if self.reconciliation.is_reconciled else _State.RECONCILING)
        except BaseException:
            # A Ctrl-C may have come before the request was queued.
            self._in_flight = False
            self._fields.reset()
            raise
        self.metrics.heartbeat_sent(now_ms)
        self.wake_background()

    def _keep_alive(self, node: Node) -> None:
        """Send plain heartbeats from now on, unless there is something to report."""
        if self._in_flight or not self.state.is_member or self._has_news() or self.finder.node() != node:
            return
        wanted = (node, self._member_id, self._epoch, self._interval_ms)
        if wanted == self._plain_for:
            return
        self.end_heartbeats()
        if self._fields.has_changed(self.reconciliation.current):
            return  # A response was dropped, so the next heartbeat contains all fields.
        self._plain_for = wanted
        incarnation = self._incarnation
        self.heartbeats.begin(
            node,
            self._fields.plain(self._member_id, self._epoch),
            self._interval_ms,
            # The broker does not return the session timeout. The request timeout detects a silent broker.
            math.inf,
            lambda answer: self._on_plain(node, incarnation, answer),
        )
        self.wake_background()

    def end_heartbeats(self) -> None:
        """Stop plain heartbeats, because the member has something to report or no coordinator."""
        if self._plain_for is None:
            return
        self._plain_for = None
        self.heartbeats.end()
        if self.heartbeats.has_dropped_answer:
            # The response may have contained an assignment, which the broker does not repeat by itself.
            self._fields.reset()

    # ---- Responses ---------------------------------------------------------------------------------------
    def _on_response(self, node: Node, incarnation: int, response: ClientResponse) -> None:
        self.metrics.heartbeat_answered(response.latency_ms, self.clock.monotonic_ms())
        if incarnation == self._incarnation:
            self._in_flight = False
            self._handle(node, response.message)

    def _on_plain(
        self, node: Node, incarnation: int, answer: ConsumerGroupHeartbeatResponse | BaseException
    ) -> None:
        if isinstance(answer, BaseException):
            self._on_failure(node, incarnation, answer)
        elif incarnation == self._incarnation:
            self._handle(node, answer)

    def _handle(self, node: Node, answer: ConsumerGroupHeartbeatResponse) -> None:
        if not self.state.is_member:
            return
        if answer.error_code:
            self._on_error(for_code(answer.error_code), answer.error_message)
            return
        try:
            assigned = assignment_in(answer)
        except MalformedMessageError as error:
            self._fail(error)
            return
        self.finder.answered()
        self._failures = 0
        # Check again at the next poll, because the next heartbeat may be due before the time that was set.
        self._next_check_ms = -math.inf
        self._member_id = answer.member_id or self._member_id
        self._epoch = answer.member_epoch
        if answer.heartbeat_interval_ms > 0:
            self._interval_ms = answer.heartbeat_interval_ms
        if assigned is not None and self.state.can_take_assignment:
            if self.reconciliation.take_target(assigned):
                self._become(_State.RECONCILING)
            elif self.state in (_State.RECONCILING, _State.JOINING):
                self._become(_State.STABLE)
        if self.state is _State.JOINING:
            # The broker has returned no assignment, so ask again, but not at once.
            self._retry_later()
        self._keep_alive(node)

    def _on_error(self, error: type[BrokerResponseError], detail: str | None) -> None:
        self.end_heartbeats()
        self._fields.reset()
        # The broker's text comes from the network, so limit its length.
        text = f"{self._group_text()}: {(detail or error.message)[:500]}"
        if issubclass(error, MOVED):
            self.coordinator_failed(error.message)
        elif issubclass(error, _FENCED):
            self._fenced(text)
        elif error is errors.UnsupportedVersionError:
            self._die(self._unsupported())
        elif error is errors.TopicAuthorizationFailedError:
            self._background_error = error(text)
            self._retry_later()
        elif error.retriable:
            self._fail(error(text))
        elif error is errors.GroupAuthorizationFailedError:
            self._die(error(f"not authorized to access group {self.settings.group_id!r}"))
        else:
            self._die(error(text))

    def _on_failure(self, node: Node, incarnation: int, error: BaseException) -> None:
        self.request_failed(node, error)
        if incarnation != self._incarnation or not self.state.is_member:
            return
        self._in_flight = False
        self.end_heartbeats()
        if isinstance(error, errors.UnsupportedVersionError):
            self._die(self._unsupported())
        elif getattr(error, "retriable", False):
            self._fail(error)
        else:
            self._die(error)

    def _fail(self, error: BaseException) -> None:
        """Send the heartbeat again after a pause, with all fields."""
        logger.debug("group %r: heartbeat failed: %s", self.settings.group_id, error)
        self.end_heartbeats()
        self._fields.reset()
        self._retry_later()

    def _retry_later(self) -> None:
        self._retry_at_ms = self.clock.monotonic_ms() + self._backoff.backoff_ms(self._failures)
        self._failures += 1

    def _fenced(self, reason: str) -> None:
        if self.state is _State.PREPARE_LEAVING:
            # The listener is still releasing the partitions. The member need not leave the group any more,
            # because the broker has removed it.
            self._become(_State.UNSUBSCRIBED)
        else:
            self._become(_State.FENCED)
            logger.info(
                "group %r: the broker has removed this member, which joins again: %s",
                self.settings.group_id,
                reason,
            )
        self._begin_incarnation()

    def _die(self, error: BaseException) -> None:
        logger.error("group %r: the membership has ended: %s", self.settings.group_id, error)
        self._become(_State.FATAL)
        self._fatal = error
        self._begin_incarnation()

    def _group_text(self) -> str:
        instance = self.settings.group_instance_id
        of_instance = "" if instance is None else f" with group_instance_id={instance!r}"
        return f"heartbeat of group {self.settings.group_id!r}{of_instance} failed"

    def _unsupported(self) -> errors.UnsupportedVersionError:
        return errors.UnsupportedVersionError(
            f"group_id={self.settings.group_id!r}: the broker does not support group_protocol='consumer' "
            "(KIP-848). It needs Apache Kafka 4.0 or newer with the feature group.version=1: upgrade the "
            "feature, or set group_protocol='classic'"
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
        # The first heartbeat to the next coordinator is sent at once, and contains all fields.
        self._fields.reset()
        if self.state.is_member:
            self.wake_background()

    def request_failed(self, node: Node, error: BaseException) -> None:
        """See ``GroupMembership``."""
        if isinstance(error, KafkaConnectionError) and self.finder.is_known_as(node):
            self.coordinator_failed(str(error), disconnected=True)

    # ---- The member epoch --------------------------------------------------------------------------------
    def generation(self) -> Generation:
        """See ``GroupMembership``."""
        epoch = self._epoch
        return Generation(epoch, self._member_id) if epoch > JOIN_EPOCH else NO_GENERATION

    def generation_for_fetch(self) -> Generation:
        """See ``GroupMembership``."""
        return self.generation() if self._subscriptions.has_auto_assigned_partitions() else NO_GENERATION

    def is_rebalancing(self) -> bool:
        """See ``GroupMembership``."""
        return False

    def reset_generation(self, error: BaseException, sent: Generation, why: str) -> None:
        """See ``GroupMembership``. Only the response to a heartbeat shows whether the member was removed."""
        logger.debug("group %r: %s of %s was rejected: %r", self.settings.group_id, why, sent, error)

    def request_rejoin(self, reason: str) -> None:
        """See ``GroupMembership``. In this protocol only the broker starts rebalances."""
        logger.warning(
            "group %r: no rebalance was started (%s), because with group_protocol='consumer' the broker "
            "decides when to assign the partitions",
            self.settings.group_id,
            reason,
        )

    def subscription_changed(self) -> None:
        """See ``GroupMembership``."""
        self.topics.restart()
        self._next_check_ms = -math.inf
        if self._subscriptions.has_auto_assigned_partitions():
            self.topics.request()

    def group_metadata(self) -> ConsumerGroupMetadata:
        """See ``GroupMembership``."""
        current, generation = self.state, self.generation()
        if current in _REBALANCING:
            state = structs.MemberState.REBALANCING
        else:
            is_stable = current is _State.STABLE
            state = structs.MemberState.STABLE if is_stable else structs.MemberState.UNJOINED
        return ConsumerGroupMetadata(
            self.settings.group_id,
            generation.generation_id,
            generation.member_id,
            self.settings.group_instance_id,
            state,
        )

    # ---- Leaving -----------------------------------------------------------------------------------------
    def leave(self, reason: str) -> None:
        """See ``GroupMembership``."""
        error: Exception | None = None
        is_lost = not self.state.is_member or self._epoch <= JOIN_EPOCH
        try:
            if self.state.is_member:
                self._become(_State.PREPARE_LEAVING)
            if self._subscriptions.has_auto_assigned_partitions():
                error = self.reconciliation.release(is_lost=is_lost)
        finally:
            self._leave_group(reason)
        if error is not None:
            raise error

    def _leave_group(self, reason: str) -> None:
        self._leave_future = None
        self._fatal = self._background_error = None
        if self.state is _State.PREPARE_LEAVING:
            self._send_leave(reason, then=_State.UNSUBSCRIBED)
            return
        self._become(_State.UNSUBSCRIBED)
        self._begin_incarnation()

    def _send_leave(self, reason: str, then: ConsumerMemberState) -> None:
        """Send the heartbeat that leaves the group, once and without waiting for its response."""
        try:
            self._become(_State.LEAVING)
            node = self.finder.node()
            self._begin_incarnation()
            if node is None:
                logger.info(
                    "group %r: member %r cannot leave because the coordinator is not known. Its session "
                    "expires",
                    self.settings.group_id,
                    self._member_id,
                )
            else:
                logger.info("group %r: member %r leaves: %s", self.settings.group_id, self._member_id, reason)
                self._leave_future = self.client.send(node, self._fields.leave(self._member_id))
                self._leave_future.add_callbacks(_left, _not_left)
        finally:
            # Leave this state even after a Ctrl-C, because nothing would send the request again.
            self._become(then)
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
    answer: ConsumerGroupHeartbeatResponse = response.message
    if answer.error_code:
        logger.info("leaving the group failed: %s", for_code(answer.error_code).message)


def _not_left(error: BaseException) -> None:
    logger.info("leaving the group failed, so the member may still be in the group: %s", error)


def _nobody() -> None:
    """Do nothing: without a heartbeat thread there is nothing to wake."""
