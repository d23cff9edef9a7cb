"""From one generation of a group to the next: who is waited for, how long, what is written and answered.

Changes of membership in; answers to JoinGroup and SyncGroup, and records of the group, out. Does not know:
who may join, requests. Source of the behaviour: Kafka's ``GroupMetadataManager``, its classic part.
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
    from kafkacore.broker.group.interfaces import CoordinatorLog, OnSafe
    from kafkacore.broker.purgatory.timer import Timer

logger = NameLogger(__name__)

#: A new member that waits for its JoinGroup longer than this is taken for gone: it cannot say that it lives.
NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000


class Rebalancer:
    """Used by the network thread alone.

    Parameters
    ----------
    log:
        Where groups are written.
    timer:
        Of all that waits in the broker.
    """

    def __init__(self, log: CoordinatorLog, config: BrokerConfig, clock: Clock, timer: Timer) -> None:
        self._log = log
        self._config = config
        self._clock = clock
        self.delayed_responses = DelayedResponses()
        self.join_purgatory = DelayedOperationPurgatory(timer)
        self.sync_purgatory = DelayedOperationPurgatory(timer)
        self.heartbeat_purgatory = DelayedOperationPurgatory(timer)

    def _deadline_ms(self, delay_ms: float) -> float:
        return self._clock.monotonic_ms() + delay_ms

    # ---- Signs of life --------------------------------------------------------------------------------

    def begin_session(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """The member, or one who was given this id, lives: its session ends ``timeout_ms`` from now."""
        self.end_session(group, member_id)
        session = DelayedHeartbeat(self._deadline_ms(timeout_ms), group, self, member_id)
        group.sessions[member_id] = session
        self.heartbeat_purgatory.try_complete_else_watch(session, ())

    def touch(self, group: ClassicGroup, member: ClassicGroupMember) -> None:
        """A sign of life: its session begins anew."""
        self.begin_session(group, member.member_id, member.session_timeout_ms)

    def end_session(self, group: ClassicGroup, member_id: str) -> None:
        session = group.sessions.pop(member_id, None)
        if session is not None:
            self.heartbeat_purgatory.cancel(session)

    def expire_session(self, group: ClassicGroup, member_id: str) -> None:
        """A session has run out."""
        group.sessions.pop(member_id, None)
        if group.is_in(GroupState.DEAD):
            return
        if member_id in group.pending_joins:
            logger.info(
                "group %s: %s was given its id and did not come back with it: forgotten",
                group.group_id,
                member_id,
            )
            group.remove(member_id)
            self._complete_if_all_joined(group)
        elif member_id in group and not group.member(member_id).is_excused:
            member = group.member(member_id)
            logger.info(
                "group %s: member %s has not been heard of for %d ms: removed",
                group.group_id,
                member_id,
                NEW_MEMBER_JOIN_TIMEOUT_MS if member.is_new else member.session_timeout_ms,
            )
            self.forget_member(group, member)
            if group.is_in(GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
                self.prepare(group, f"member {member_id} was removed, its session had run out")
            else:
                self._complete_if_all_joined(group)

    def forget_member(self, group: ClassicGroup, member: ClassicGroupMember) -> None:
        """Remove a member; a JoinGroup that waits fails with UNKNOWN_MEMBER_ID, so that it joins again."""
        self.end_session(group, member.member_id)
        group.answer_join(member, JoinResult(UnknownMemberIdError.errno))
        group.remove(member.member_id)

    # ---- Joining --------------------------------------------------------------------------------------

    def prepare_or_complete(self, group: ClassicGroup, reason: str) -> None:
        """The membership has changed: begin a rebalance, or end the one that goes on if all are there."""
        if group.can_rebalance:
            self.prepare(group, reason)
        else:
            self.maybe_complete(group)

    def prepare(self, group: ClassicGroup, reason: str) -> None:
        """Begin a rebalance: wait for the members to join again."""
        if group.is_in(GroupState.COMPLETING_REBALANCE):
            self._refuse_assignments(group, RebalanceInProgressError.errno)
        self._stop_waiting_for_syncs(group)
        is_initial = group.is_in(GroupState.EMPTY)
        group.transition_to(GroupState.PREPARING_REBALANCE)
        logger.info(
            "group %s: rebalance, generation %d ends (%s)", group.group_id, group.generation_id, reason
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
        """The delay of a first rebalance is over: wait once more if somebody came meanwhile."""
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
        """End the joining if nobody is missing; a first rebalance waits for its delay whatever comes."""
        self.join_purgatory.check_and_complete(group.group_id)

    def _complete_if_all_joined(self, group: ClassicGroup) -> None:
        # Even in a first rebalance: that is how Kafka sees it when somebody goes.
        if group.is_in(GroupState.PREPARING_REBALANCE) and group.has_all_members_joined:
            self.complete_join(group)

    def complete_join(self, group: ClassicGroup) -> None:
        """Nobody else is waited for: the next generation begins with those who are there."""
        if group.delayed_join is not None:
            self.join_purgatory.cancel(group.delayed_join)
            group.delayed_join = None
        self._remove_absent(group)
        if group.is_in(GroupState.DEAD):
            return
        if len(group) and not group.elect_joined_leader():
            logger.error(
                "group %s: none of its %d static members has rejoined, waiting on", group.group_id, len(group)
            )
            self._wait_for_members(group)
            return
        group.begin_generation()
        if group.is_in(GroupState.EMPTY):
            logger.info("group %s: empty, generation %d", group.group_id, group.generation_id)
            self._store_empty(group)
        else:
            logger.info(
                "group %s: generation %d has %d members, waiting for the assignment of leader %s",
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
                "group %s: removed, because they did not rejoin in time: %s",
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
        """The member has asked for its assignment."""
        group.pending_syncs.discard(member_id)
        self.sync_purgatory.check_and_complete(group.group_id)

    def expire_sync(self, group: ClassicGroup) -> None:
        """Some members of the generation have not asked for their assignment in time."""
        if not group.is_in(GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            return
        late = sorted(group.pending_syncs)
        for member_id in late:
            group.remove(member_id)
            self.end_session(group, member_id)
        self.prepare(group, f"{', '.join(late)} did not ask for an assignment in time")

    def _stop_waiting_for_syncs(self, group: ClassicGroup) -> None:
        group.pending_syncs.clear()
        if group.delayed_sync is not None:
            self.sync_purgatory.cancel(group.delayed_sync)
            group.delayed_sync = None

    def assign(self, group: ClassicGroup, assignments: Mapping[str, bytes], leader_id: str) -> None:
        """The leader has assigned: write it down, and hand it out once it is safe."""
        missing = [one.member_id for one in group if one.member_id not in assignments]
        if missing:
            logger.warning(
                "group %s: leader %s has assigned nothing to %s in generation %d",
                group.group_id,
                leader_id,
                ", ".join(missing),
                group.generation_id,
            )
        given = {one.member_id: assignments.get(one.member_id, NO_ASSIGNMENT) for one in group}
        generation_id = group.generation_id

        def on_safe(error_code: int) -> None:
            # Another member may have joined meanwhile; then this assignment is nobody's.
            if not group.is_in(GroupState.COMPLETING_REBALANCE) or group.generation_id != generation_id:
                return
            if error_code:
                self._refuse_assignments(group, error_code)
                self.prepare(group, f"the assignment could not be written: error {error_code}")
            else:
                self._send_assignments(group, given)

        self.store(group, given, on_safe)

    def _send_assignments(self, group: ClassicGroup, given: Mapping[str, bytes]) -> None:
        group.transition_to(GroupState.STABLE)
        logger.info(
            "group %s: stable in generation %d, %d members of which %d static",
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
                # A session that ran out while its member waited for us has not been begun again.
                self.touch(group, member)

    def _refuse_assignments(self, group: ClassicGroup, error_code: int) -> None:
        group.forget_assignments()
        for member in group.members():
            if group.answer_sync(member, SyncResult(error_code)):
                self.touch(group, member)

    # ---- The log --------------------------------------------------------------------------------------

    def store(self, group: ClassicGroup, assignments: Mapping[str, bytes], on_safe: OnSafe) -> None:
        """Write the group as it is, with these assignments."""

        def on_safe_once_open(error_code: int) -> None:
            with self.delayed_responses:
                on_safe(error_code)

        self._log.append(group.group_id, [record_of(group, assignments)], on_safe_once_open)

    def _store_empty(self, group: ClassicGroup) -> None:
        def on_safe(error_code: int) -> None:
            # The generation before comes back if the broker dies now, and ends as its sessions do.
            if error_code:
                logger.warning(
                    "group %s: that it is empty could not be written: error %d", group.group_id, error_code
                )

        self.store(group, {}, on_safe)

    # ---- Its end --------------------------------------------------------------------------------------

    def transition_to_dead(self, group: ClassicGroup, error_code: int) -> None:
        """Make a group dead that this node no longer has: waiting requests fail with ``error_code``."""
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
