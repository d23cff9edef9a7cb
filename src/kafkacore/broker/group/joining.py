"""Decides whether a JoinGroup is accepted and whether it triggers a rebalance.

The behaviour is that of Kafka's ``GroupMetadataManager.classicGroupJoin`` (KIP-62, 345, 394, 800, 814).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kafkacore.broker.group.classic_group import ClassicGroup, GroupState
from kafkacore.broker.group.member import ClassicGroupMember, JoinResult, MemberProtocol, OnJoined
from kafkacore.broker.group.rebalancer import NEW_MEMBER_JOIN_TIMEOUT_MS, Rebalancer
from kafkacore.broker.log_lines import NameLogger
from kafkacore.clock import Clock
from kafkacore.errors import (
    BrokerResponseError,
    CoordinatorNotAvailableError,
    GroupMaxSizeReachedError,
    InconsistentGroupProtocolError,
    MemberIdRequiredError,
    UnknownMemberIdError,
)

if TYPE_CHECKING:
    from kafkacore.broker.config.broker_config import BrokerConfig

logger = NameLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Joining:
    """The fields of a JoinGroup request.

    Parameters
    ----------
    member_id:
        Id of the member; empty if the member does not have an id yet.
    must_know_its_id:
        Whether a new dynamic member gets an id first and has to rejoin with it (since version 4, KIP-394).
    may_skip_assignment:
        Whether a static leader that has restarted may skip the assignment (since version 9, KIP-814).
    on_joined:
        Called with the response.
    """

    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[MemberProtocol, ...]
    reason: str
    must_know_its_id: bool
    may_skip_assignment: bool
    on_joined: OnJoined

    @property
    def protocol_names(self) -> frozenset[str]:
        return frozenset(protocol.name for protocol in self.protocols)

    def answered_by(self, on_joined: OnJoined) -> Joining:
        """Return a copy with another ``on_joined``."""
        return replace(self, on_joined=on_joined)

    def refuse(self, error: type[BrokerResponseError] | BrokerResponseError, member_id: str = "") -> None:
        self.on_joined(JoinResult(error.errno, member_id))


class Admission:
    """Admits members to groups. Only the network thread may use it.

    Parameters
    ----------
    rebalancer:
        Starts or completes the rebalance that a join requires.
    config:
        Configuration of the broker, for ``group.max.size``.
    clock:
        Source of random member ids.
    """

    def __init__(self, rebalancer: Rebalancer, config: BrokerConfig, clock: Clock) -> None:
        self._rebalancer = rebalancer
        self._config = config
        self._clock = clock

    def join(self, group: ClassicGroup, joining: Joining) -> None:
        """Add a member to the group, or answer its JoinGroup with an error."""
        member_id = joining.member_id
        if not self._has_room(group, member_id):
            self._rebalancer.end_session(group, member_id)
            group.remove(member_id)
            joining.refuse(GroupMaxSizeReachedError)
        elif group.is_in(GroupState.DEAD):
            joining.refuse(CoordinatorNotAvailableError, member_id)
        elif not group.supports(joining.protocol_type, joining.protocol_names):
            joining.refuse(InconsistentGroupProtocolError, member_id)
        elif member_id:
            self._join_by_id(group, joining)
        else:
            self._join_without_id(group, joining)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        most = self._config.group_max_size
        if group.is_in(GroupState.EMPTY, GroupState.DEAD):
            return True
        if group.is_in(GroupState.PREPARING_REBALANCE):
            # Count only the members that have rejoined. Other members may have left, or may exceed a lowered
            # limit.
            is_there = member_id in group and group.member(member_id).is_awaiting_join
            return is_there or group.awaiting_join_count < most
        return member_id in group or len(group) < most

    # ---- Joining without a member id ------------------------------------------------------------------

    def _join_without_id(self, group: ClassicGroup, joining: Joining) -> None:
        instance_id = joining.group_instance_id
        bits = self._clock.random.getrandbits(128)
        new_id = group.new_member_id(joining.client_id, instance_id, bits)
        known_id = None if instance_id is None else group.static_member_id(instance_id)
        if known_id is not None:
            logger.info(
                "group %s: static member %s has rejoined: member id %s replaces %s",
                group.group_id,
                instance_id,
                new_id,
                known_id,
            )
            self._replace_static(group, joining, known_id, new_id)
        elif instance_id is None and joining.must_know_its_id:
            group.pending_joins.add(new_id)
            self._rebalancer.begin_session(group, new_id, joining.session_timeout_ms)
            joining.refuse(MemberIdRequiredError, new_id)
        else:
            self._add(group, joining, new_id)

    def _add(self, group: ClassicGroup, joining: Joining, member_id: str) -> None:
        member = ClassicGroupMember(
            member_id,
            joining.group_instance_id,
            joining.client_id,
            joining.client_host,
            joining.rebalance_timeout_ms,
            joining.session_timeout_ms,
            joining.protocol_type,
            joining.protocols,
        )
        member.is_new = True
        if group.is_in(GroupState.PREPARING_REBALANCE) and group.previous_state is GroupState.EMPTY:
            group.new_member_added = True
        group.add(member, joining.on_joined)
        logger.info(
            "group %s: member %s joined from %s (client id %s, %s; reason: %s)",
            group.group_id,
            member_id,
            joining.client_host,
            joining.client_id,
            "dynamic" if joining.group_instance_id is None else f"instance id {joining.group_instance_id}",
            joining.reason,
        )
        # A new member sends no heartbeats until it gets the response. Without this timeout, the group could
        # wait forever for a member that has disconnected.
        self._rebalancer.begin_session(group, member_id, NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._rebalancer.prepare_or_complete(group, f"member {member_id} joined")

    # ---- Joining with a member id ---------------------------------------------------------------------

    def _join_by_id(self, group: ClassicGroup, joining: Joining) -> None:
        member_id = joining.member_id
        if member_id in group.pending_joins:
            if joining.group_instance_id is not None:
                joining.refuse(UnknownMemberIdError, member_id)
            else:
                self._add(group, joining, member_id)
            return
        try:
            group.validate_member(member_id, joining.group_instance_id, "join")
        except BrokerResponseError as error:
            joining.refuse(error, member_id)
            return
        member = group.member(member_id)
        reason = self._reason_to_rebalance(group, member, joining)
        if reason is not None:
            self._rejoin(group, member, joining, reason)
        elif group.is_in(GroupState.EMPTY):
            logger.warning(
                "group %s: member %s rejoined although the group is empty", group.group_id, member_id
            )
            joining.refuse(UnknownMemberIdError, member_id)
        else:
            # The member may have missed the response to its last JoinGroup. No rebalance is needed.
            joining.on_joined(group.current_generation(member_id))

    @staticmethod
    def _reason_to_rebalance(group: ClassicGroup, member: ClassicGroupMember, joining: Joining) -> str | None:
        """Return the reason why the rejoin requires a rebalance, or ``None`` if no rebalance is needed."""
        given_reason = f"; reason: {joining.reason}"
        if group.is_in(GroupState.PREPARING_REBALANCE):
            return f"member {member.member_id} rejoined{given_reason}"
        if group.is_in(GroupState.STABLE) and group.is_leader(member.member_id):
            # The leader rejoins to compute a new assignment after a change outside of the group, such as new
            # partitions of a topic.
            return f"leader {member.member_id} rejoined{given_reason}"
        if not group.is_in(GroupState.EMPTY) and member.protocols != joining.protocols:
            return f"member {member.member_id} changed its protocols{given_reason}"
        return None

    def _rejoin(self, group: ClassicGroup, member: ClassicGroupMember, joining: Joining, reason: str) -> None:
        self._update(group, member, joining)
        self._rebalancer.prepare_or_complete(group, reason)

    @staticmethod
    def _update(group: ClassicGroup, member: ClassicGroupMember, joining: Joining) -> None:
        group.update(
            member,
            joining.protocols,
            joining.rebalance_timeout_ms,
            joining.session_timeout_ms,
            joining.on_joined,
        )

    # ---- Static members that rejoin -------------------------------------------------------------------

    def _replace_static(self, group: ClassicGroup, joining: Joining, old_id: str, new_id: str) -> None:
        assert joining.group_instance_id is not None
        leader_before = group.leader_id or ""
        self._rebalancer.end_session(group, old_id)
        member = group.replace_static(joining.group_instance_id, old_id, new_id)
        before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
        self._update(group, member, joining)
        self._rebalancer.touch(group, member)
        given_reason = f"; reason: {joining.reason}"
        if group.is_in(GroupState.COMPLETING_REBALANCE):
            # Rebalance, because the leader may be computing an assignment for the old member id.
            self._rebalancer.prepare(
                group, f"static member {joining.group_instance_id} rejoined{given_reason}"
            )
        elif not group.is_in(GroupState.STABLE):
            self._rebalancer.maybe_complete(group)
        elif group.select_protocol() != group.protocol_name:
            self._rebalancer.prepare(
                group,
                f"static member {joining.group_instance_id} rejoined and changed the protocol{given_reason}",
            )
        else:
            self._keep_generation(group, joining, member, old_id, before, leader_before)

    def _keep_generation(
        self,
        group: ClassicGroup,
        joining: Joining,
        member: ClassicGroupMember,
        old_id: str,
        before: tuple[tuple[MemberProtocol, ...], int, int],
        leader_before: str,
    ) -> None:
        """Persist the new member id, and answer with the current generation."""
        generation_id = group.generation_id

        def on_safe(error_code: int) -> None:
            is_here = member.member_id in group and group.member(member.member_id) is member
            if not is_here or group.generation_id != generation_id or not group.is_in(GroupState.STABLE):
                return  # The member has got a response, or waits for the end of a rebalance.
            if error_code:
                self._go_back(group, joining, member, old_id, before)
                refused = group.current_generation(old_id)._replace(
                    error_code=error_code, member_id="", members=(), leader=leader_before
                )
                joining.on_joined(refused)
            elif joining.may_skip_assignment:
                skips = group.is_leader(member.member_id)
                result = group.current_generation(member.member_id, skip_assignment=skips)
                group.answer_join(member, result)
            else:
                # Return the old leader id. A client whose own id is the leader id would compute an
                # assignment.
                result = group.current_generation(member.member_id)
                group.answer_join(member, result._replace(leader=leader_before, members=()))

        assignments = {one.member_id: one.assignment for one in group}
        self._rebalancer.store(group, assignments, on_safe)

    def _go_back(
        self,
        group: ClassicGroup,
        joining: Joining,
        member: ClassicGroupMember,
        old_id: str,
        before: tuple[tuple[MemberProtocol, ...], int, int],
    ) -> None:
        assert joining.group_instance_id is not None
        logger.warning(
            "group %s: failed to persist that member %s replaces %s; %s remains the member",
            group.group_id,
            member.member_id,
            old_id,
            old_id,
        )
        group.update(member, *before, None)
        self._rebalancer.end_session(group, member.member_id)
        old = group.replace_static(joining.group_instance_id, member.member_id, old_id)
        self._rebalancer.touch(group, old)
