"""Takes a group from one generation to the next: waits for members, persists assignments, answers requests.

The behaviour is that of the classic protocol in Kafka's ``GroupMetadataManager``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafkacore.broker.group.classic_group import ClassicGroup, GroupState
from kafkacore.broker.group.delayed import DelayedHeartbeat, DelayedJoin, DelayedSync, InitialDelayedJoin
from kafkacore.broker.group.delayed_responses import DelayedResponses
from kafkacore.broker.group.group_record import record_of
from kafkacore.broker.group.member import NO_ASSIGNMENT, ClassicGroupMember, JoinResult, SyncResult
from kafkacore.broker.log_lines import NameLogger
from kafkacore.broker.purgatory.delayed_operation import DelayedOperationPurgatory
from kafkacore.clock import Clock
from kafkacore.errors import RebalanceInProgressError, UnknownMemberIdError

if TYPE_CHECKING:
    from kafkacore.broker.config.broker_config import BrokerConfig
    from kafkacore.broker.coordinator.interfaces import OnSafe
    from kafkacore.broker.group.interfaces import CoordinatorLog
    from kafkacore.broker.purgatory.timer import Timer

logger = NameLogger(__name__)

#: Milliseconds after which a new member that still waits for its JoinGroup response is removed, because it
#: cannot send heartbeats before that response.
NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000


class Rebalancer:
    """Rebalances classic groups. Only the network thread may use it.

    Parameters
    ----------
    log:
        Log of the group coordinator, to which groups are written.
    config:
        Configuration of the broker, for ``group.initial.rebalance.delay.ms``.
    clock:
        Source of the monotonic time.
    timer:
        Timer of the broker.
    """

    def __init__(self, log: CoordinatorLog, config: BrokerConfig, clock: Clock, timer: Timer) -> None:
        self._log = log
        self._config = config
        self._clock = clock
        self.delayed_responses = DelayedResponses()
        self.join_purgatory = DelayedOperationPurgatory(timer)
        self.sync_purgatory = DelayedOperationPurgatory(timer)
        self.heartbeat_purgatory = DelayedOperationPurgatory(timer)
        #: Number of rebalances that have ended with an assignment since the start of the broker.
        self.completed_count = 0

    def _deadline_ms(self, delay_ms: float) -> float:
        return self._clock.monotonic_ms() + delay_ms

    # ---- Sessions -------------------------------------------------------------------------------------

    def begin_session(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """Start or restart the session of a (pending) member. The session expires after ``timeout_ms``."""
        self.end_session(group, member_id)
        session = DelayedHeartbeat(self._deadline_ms(timeout_ms), group, self, member_id)
        group.sessions[member_id] = session
        self.heartbeat_purgatory.try_complete_else_watch(session, ())

    def touch(self, group: ClassicGroup, member: ClassicGroupMember) -> None:
        """Restart the session of a member."""
        self.begin_session(group, member.member_id, member.session_timeout_ms)

    def end_session(self, group: ClassicGroup, member_id: str) -> None:
        session = group.sessions.pop(member_id, None)
        if session is not None:
            self.heartbeat_purgatory.cancel(session)

    def expire_session(self, group: ClassicGroup, member_id: str) -> None:
        """Remove a member whose session has expired, unless it waits for a response."""
        group.sessions.pop(member_id, None)
        if group.is_in(GroupState.DEAD):
            return
        if member_id in group.pending_joins:
            logger.info(
                "group %s: removed pending member %s, which did not rejoin with its new id in time",
                group.group_id,
                member_id,
            )
            group.remove(member_id)
            self._complete_if_all_joined(group)
        elif member_id in group and not group.member(member_id).is_excused:
            member = group.member(member_id)
            logger.info(
                "group %s: removed member %s, which sent no heartbeat for %d ms",
                group.group_id,
                member_id,
                NEW_MEMBER_JOIN_TIMEOUT_MS if member.is_new else member.session_timeout_ms,
            )
            self.forget_member(group, member)
            if group.is_in(GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
                self.prepare(group, f"the session of member {member_id} expired")
            else:
                self._complete_if_all_joined(group)

    def forget_member(self, group: ClassicGroup, member: ClassicGroupMember) -> None:
        """Remove a member. Its pending JoinGroup fails with UNKNOWN_MEMBER_ID, so that the client rejoins."""
        self.end_session(group, member.member_id)
        group.answer_join(member, JoinResult(UnknownMemberIdError.errno))
        group.remove(member.member_id)

    # ---- Joining --------------------------------------------------------------------------------------

    def prepare_or_complete(self, group: ClassicGroup, reason: str) -> None:
        """Start a rebalance after a change of membership, or complete the current join phase."""
        if group.can_rebalance:
            self.prepare(group, reason)
        else:
            self.maybe_complete(group)

    def prepare(self, group: ClassicGroup, reason: str) -> None:
        """Start a rebalance: wait for the members to rejoin."""
        if group.is_in(GroupState.COMPLETING_REBALANCE):
            self._refuse_assignments(group, RebalanceInProgressError.errno)
        self._stop_waiting_for_syncs(group)
        is_initial = group.is_in(GroupState.EMPTY)
        group.transition_to(GroupState.PREPARING_REBALANCE)
        logger.info(
            "group %s: preparing to rebalance, old generation %d (reason: %s)",
            group.group_id,
            group.generation_id,
            reason,
        )
        if is_initial:
            delay_ms = self._config.group_initial_rebalance_delay_ms
            self._wait_for_more(group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        else:
            self._wait_for_members(group)

    def _wait_for_more(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        deadline_ms = self._deadline_ms(delay_ms)
        group.delayed_join = InitialDelayedJoin(deadline_ms, group, self, delay_ms, remaining_ms)
        self.join_purgatory.try_complete_else_watch(group.delayed_join, (group.group_id,))

    def complete_initial_join(self, waited: InitialDelayedJoin) -> None:
        """End the delay of an initial rebalance, or extend it if a member has joined in the meantime."""
        group = waited.group
        if not group.new_member_added or waited.remaining_ms == 0:
            self.complete_join(group)
            return
        group.new_member_added = False
        delay_ms = min(self._config.group_initial_rebalance_delay_ms, waited.remaining_ms)
        self._wait_for_more(group, delay_ms, max(waited.remaining_ms - waited.delay_ms, 0))

    def _wait_for_members(self, group: ClassicGroup) -> None:
        group.delayed_join = DelayedJoin(self._deadline_ms(group.rebalance_timeout_ms), group, self)
        self.join_purgatory.try_complete_else_watch(group.delayed_join, (group.group_id,))

    def maybe_complete(self, group: ClassicGroup) -> None:
        """Complete the join phase if all members have joined, but not during an initial delay."""
        self.join_purgatory.check_and_complete(group.group_id)

    def _complete_if_all_joined(self, group: ClassicGroup) -> None:
        # As in Kafka, the removal of a member can end the delay of an initial rebalance early.
        if group.is_in(GroupState.PREPARING_REBALANCE) and group.has_all_members_joined:
            self.complete_join(group)

    def complete_join(self, group: ClassicGroup) -> None:
        """End the join phase: begin the next generation with the members that have joined."""
        if group.delayed_join is not None:
            self.join_purgatory.cancel(group.delayed_join)
            group.delayed_join = None
        self._remove_absent(group)
        if group.is_in(GroupState.DEAD):
            return
        if len(group) and not group.elect_joined_leader():
            logger.error(
                "group %s: none of its %d static members has rejoined; waiting for another rebalance timeout",
                group.group_id,
                len(group),
            )
            self._wait_for_members(group)
            return
        group.begin_generation()
        if group.is_in(GroupState.EMPTY):
            logger.info("group %s: now empty in generation %d", group.group_id, group.generation_id)
            self._store_empty(group)
        else:
            logger.info(
                "group %s: generation %d has %d members; waiting for the assignment of leader %s",
                group.group_id,
                group.generation_id,
                len(group),
                group.leader_id,
            )
            self._answer_joins(group)

    def _remove_absent(self, group: ClassicGroup) -> None:
        absent = [one for one in group.members() if not one.is_awaiting_join and not one.is_static]
        for member in absent:
            group.remove(member.member_id)
            self.end_session(group, member.member_id)
        if absent:
            logger.info(
                "group %s: removed members that did not rejoin in time: %s",
                group.group_id,
                ", ".join(member.member_id for member in absent),
            )

    def _answer_joins(self, group: ClassicGroup) -> None:
        for member in group.members():
            group.answer_join(member, group.current_generation(member.member_id))
            self.touch(group, member)
            member.is_new = False
            group.pending_syncs.add(member.member_id)
        group.delayed_sync = DelayedSync(self._deadline_ms(group.rebalance_timeout_ms), group, self)
        self.sync_purgatory.try_complete_else_watch(group.delayed_sync, (group.group_id,))

    # ---- Assignments ----------------------------------------------------------------------------------

    def sync_received(self, group: ClassicGroup, member_id: str) -> None:
        """Record that a member has sent SyncGroup."""
        group.pending_syncs.discard(member_id)
        self.sync_purgatory.check_and_complete(group.group_id)

    def expire_sync(self, group: ClassicGroup) -> None:
        """Remove members that have not sent a SyncGroup in time, and start a rebalance."""
        if not group.is_in(GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            return
        late = sorted(group.pending_syncs)
        for member_id in late:
            group.remove(member_id)
            self.end_session(group, member_id)
        self.prepare(group, f"members did not send SyncGroup in time: {', '.join(late)}")

    def _stop_waiting_for_syncs(self, group: ClassicGroup) -> None:
        group.pending_syncs.clear()
        if group.delayed_sync is not None:
            self.sync_purgatory.cancel(group.delayed_sync)
            group.delayed_sync = None

    def assign(self, group: ClassicGroup, assignments: Mapping[str, bytes], leader_id: str) -> None:
        """Persist the leader's assignments, and send them to the members when the record is durable."""
        missing = [one.member_id for one in group if one.member_id not in assignments]
        if missing:
            logger.warning(
                "group %s: leader %s sent no assignment for members %s in generation %d",
                group.group_id,
                leader_id,
                ", ".join(missing),
                group.generation_id,
            )
        given = {one.member_id: assignments.get(one.member_id, NO_ASSIGNMENT) for one in group}
        generation_id = group.generation_id

        def on_safe(error_code: int) -> None:
            # If another member has joined in the meantime, this assignment is obsolete.
            if not group.is_in(GroupState.COMPLETING_REBALANCE) or group.generation_id != generation_id:
                return
            if error_code:
                self._refuse_assignments(group, error_code)
                self.prepare(group, f"failed to persist the assignment: error {error_code}")
            else:
                self._send_assignments(group, given)

        self.store(group, given, on_safe)

    def _send_assignments(self, group: ClassicGroup, given: Mapping[str, bytes]) -> None:
        group.transition_to(GroupState.STABLE)
        self.completed_count += 1
        logger.info(
            "group %s: stable in generation %d with %d members (%d static)",
            group.group_id,
            group.generation_id,
            len(group),
            group.static_count,
        )
        for member in group.members():
            member.assignment = given.get(member.member_id, NO_ASSIGNMENT)
        for member in group.members():
            result = SyncResult(0, group.protocol_type, group.protocol_name, member.assignment)
            if group.answer_sync(member, result):
                # Restart the session, which may have expired while the member waited for this response.
                self.touch(group, member)

    def _refuse_assignments(self, group: ClassicGroup, error_code: int) -> None:
        group.forget_assignments()
        for member in group.members():
            if group.answer_sync(member, SyncResult(error_code)):
                self.touch(group, member)

    # ---- The log --------------------------------------------------------------------------------------

    def store(self, group: ClassicGroup, assignments: Mapping[str, bytes], on_safe: OnSafe) -> None:
        """Write a record of the group's current state with these assignments."""

        def on_safe_once_open(error_code: int) -> None:
            with self.delayed_responses:
                on_safe(error_code)

        self._log.append(group.group_id, [record_of(group, assignments)], on_safe_once_open)

    def _store_empty(self, group: ClassicGroup) -> None:
        def on_safe(error_code: int) -> None:
            # An error is only logged: after a crash, the broker loads the previous generation, and the
            # sessions of its members then expire.
            if error_code:
                logger.warning(
                    "group %s: failed to persist the empty group: error %d", group.group_id, error_code
                )

        self.store(group, {}, on_safe)

    # ---- Removal --------------------------------------------------------------------------------------

    def transition_to_dead(self, group: ClassicGroup, error_code: int) -> None:
        """Mark a removed group as dead. Requests that wait for the group fail with ``error_code``."""
        group.transition_to(GroupState.DEAD)
        self._stop_waiting_for_syncs(group)
        if group.delayed_join is not None:
            self.join_purgatory.cancel(group.delayed_join)
            group.delayed_join = None
        for member_id in list(group.sessions):
            self.end_session(group, member_id)
        for member in group.members():
            group.answer_join(member, JoinResult(error_code, member.member_id))
            group.answer_sync(member, SyncResult(error_code))
