"""Members of the classic protocol in consumer groups: their JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

The coordinator acts as the leader of these members. If a member must revoke partitions or can get other
partitions, its Heartbeat fails with ``REBALANCE_IN_PROGRESS``, so that it rejoins. The behaviour is that of
Kafka's ``GroupMetadataManager``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kafkacore.broker.coordinator.interfaces import CoordinatorRecord
from kafkacore.broker.group.consumer.consumer_group import ConsumerGroup
from kafkacore.broker.group.consumer.consumer_member import (
    ClassicMember,
    ConsumerGroupMember,
    MemberState,
)
from kafkacore.broker.group.consumer.deadline import Deadline
from kafkacore.broker.group.consumer.heartbeats import checked_static, new_member_id
from kafkacore.broker.group.member import JoinResult, SyncResult
from kafkacore.broker.log_lines import NameLogger
from kafkacore.coordinator.protocol import PROTOCOL_TYPE, decode_subscription
from kafkacore.errors import (
    BrokerResponseError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    MalformedMessageError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnknownError,
    UnknownMemberIdError,
)

if TYPE_CHECKING:
    from kafkacore.broker.config.broker_config import BrokerConfig
    from kafkacore.broker.group.consumer._sessions import Sessions
    from kafkacore.broker.group.consumer.heartbeats import ConsumerHeartbeats
    from kafkacore.broker.group.consumer.member_updates import MemberUpdates
    from kafkacore.broker.group.consumer.migration import Migration
    from kafkacore.broker.group.consumer.reconciliation import ReportedPartitions
    from kafkacore.broker.group.consumer.target_assignments import TargetAssignments
    from kafkacore.broker.group.group_coordinator import Leaving, Syncing
    from kafkacore.broker.group.interfaces import CoordinatorLog
    from kafkacore.broker.group.joining import Joining
    from kafkacore.clock import Clock

logger = NameLogger(__name__)


class ClassicMembers:
    """Handles the requests of classic members of consumer groups. Only the network thread may use it.

    Parameters
    ----------
    log:
        Log of the group coordinator.
    config:
        Configuration of the broker, for ``group.consumer.max.size``.
    assignments:
        Computes target assignments.
    updates:
        Computes the records of a changed member.
    migration:
        Changes the type of groups.
    heartbeats:
        Removes members.
    sessions:
        Deadlines of the members.
    clock:
        Source of random member ids.
    """

    def __init__(
        self,
        log: CoordinatorLog,
        config: BrokerConfig,
        assignments: TargetAssignments,
        updates: MemberUpdates,
        migration: Migration,
        heartbeats: ConsumerHeartbeats,
        sessions: Sessions,
        clock: Clock,
    ) -> None:
        self._log = log
        self._config = config
        self._assignments = assignments
        self._updates = updates
        self._migration = migration
        self._heartbeats = heartbeats
        self._sessions = sessions
        self._clock = clock

    # ---- Joining --------------------------------------------------------------------------------------

    def join(self, group: ConsumerGroup, joining: Joining) -> None:
        """Handle a JoinGroup. ``on_joined`` is called when the effect of the request is durable.

        Raises
        ------
        BrokerResponseError
            The member may not join. ``on_joined`` is not called.
        """
        if self._migration.is_disabled:
            raise InconsistentGroupProtocolError
        member_id = joining.member_id or new_member_id(self._clock)
        group.check_room(member_id, self._config.group_consumer_max_size)
        if not group.supports_classic_protocols(joining.protocol_type, joining.protocol_names):
            raise InconsistentGroupProtocolError
        is_dynamic = joining.group_instance_id is None
        if not joining.member_id and joining.must_know_its_id and is_dynamic:
            joining.on_joined(JoinResult(MemberIdRequiredError.errno, member_id))
            return
        batch: list[CoordinatorRecord] = []
        before = self._member_before(group, joining)
        if before is None:
            member = ConsumerGroupMember(member_id=member_id)
        elif before.member_id != member_id:
            member = self._updates.replace_static(group, before, member_id, batch)
        else:
            member = before
        # A JoinGroup changes the type of the group only if it replaces a static member.
        downgrades = (
            not is_dynamic
            and before is not None
            and self._migration.may_downgrade_with_replaced(group, before)
        )
        updated, reported = self._joined(member, joining)
        update = self._updates.update(
            group, before, member, updated, reported, batch, keeps_target=downgrades
        )
        # Unlike in Kafka, the assignment is also stale if a member still owns partitions of another one.
        is_stale = downgrades and not all(
            one.is_reconciled_to(update.epoch) for one in [update.member, *group] if one is not before
        )
        with self._migration.delayed_responses as delayed_responses:
            joining = joining.answered_by(delayed_responses.later(joining.on_joined))
            self._write(group, joining, batch, update.member, before if downgrades else None)
            self._updates.written(group, update)
            if downgrades:
                reason = f"Downgrade group {group.group_id} from consumer to classic with stale assignment."
                self._migration.begin_classic_group(group.group_id, reason if is_stale else None)

    def _write(
        self,
        group: ConsumerGroup,
        joining: Joining,
        batch: list[CoordinatorRecord],
        member: ConsumerGroupMember,
        replaced: ConsumerGroupMember | None,
    ) -> None:
        """Write the records of a JoinGroup and answer it. ``replaced`` is set if the group is downgraded."""
        group_id = group.group_id
        if replaced is not None:
            self._migration.downgrade(group, [replaced], batch, member)
        else:
            self._sessions.end(group_id, member.member_id, Deadline.JOIN)
            self._sessions.begin(group_id, member.member_id, Deadline.SESSION, joining.session_timeout_ms)
            self._sessions.begin(group_id, member.member_id, Deadline.SYNC, joining.rebalance_timeout_ms)
        result = JoinResult(
            0, member.member_id, member.member_epoch, PROTOCOL_TYPE, joining.protocols[0].name
        )

        def on_safe(code: int) -> None:
            joining.on_joined(result if not code else JoinResult(code, member.member_id))

        if batch:
            self._log.append(group_id, batch, on_safe)
        else:
            self._log.when_safe(group_id, on_safe)

    @staticmethod
    def _member_before(group: ConsumerGroup, joining: Joining) -> ConsumerGroupMember | None:
        """Return the member that joins or the static member that it replaces; ``None`` for a new member."""
        if joining.group_instance_id is None:
            return group.get(joining.member_id)
        member = group.static_member(joining.group_instance_id)
        if joining.member_id:
            return checked_static(member, joining.group_instance_id, joining.member_id)
        return member

    def _joined(
        self, member: ConsumerGroupMember, joining: Joining
    ) -> tuple[ConsumerGroupMember, ReportedPartitions]:
        """Return the member with the fields of a JoinGroup, and the partitions that it reports as owned."""
        try:
            subscription = decode_subscription(joining.protocols[0].metadata)
        except MalformedMessageError as error:
            logger.warning(
                "group %s: invalid subscription of member %s: %s", joining.group_id, member.member_id, error
            )
            raise UnknownError from None
        is_dynamic = joining.group_instance_id is None
        updated = replace(
            member,
            instance_id=member.instance_id if is_dynamic else joining.group_instance_id,
            rack_id=subscription.rack_id or member.rack_id,
            rebalance_timeout_ms=joining.rebalance_timeout_ms,
            subscribed_topic_names=frozenset(subscription.topics),
            subscribed_topic_regex="",
            client_id=joining.client_id,
            client_host=joining.client_host,
            classic=ClassicMember(joining.session_timeout_ms, joining.protocols),
        )
        return updated, self._migration.by_topic_id(subscription.owned_partitions).items()

    # ---- Staying in the group -------------------------------------------------------------------------

    def sync(self, group: ConsumerGroup, syncing: Syncing) -> None:
        """Handle a SyncGroup: return the partitions of the member.

        Raises
        ------
        BrokerResponseError
            The error to return to the member. ``on_synced`` is not called.
        """
        group_id = group.group_id
        member = self._member(group, syncing.member_id, syncing.group_instance_id, syncing.generation_id)
        assert member.classic is not None
        protocol = member.classic.protocols[0]
        for said, is_so in (
            (syncing.protocol_type, PROTOCOL_TYPE),
            (syncing.protocol_name, protocol.name),
        ):
            if said is not None and said != is_so:
                raise InconsistentGroupProtocolError
        is_behind = group.assignment_epoch > member.member_epoch
        if is_behind and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._must_rejoin(group_id, member)
        self._sessions.end(group_id, member.member_id, Deadline.SYNC)
        self._begin_session(group_id, member)
        assigned = {topic_id: list(owned) for topic_id, owned in member.assigned.items()}
        result = SyncResult(
            0,
            syncing.protocol_type,
            syncing.protocol_name,
            self._migration.encoded(assigned, protocol.metadata),
        )
        self._log.when_safe(group_id, lambda code: syncing.on_synced(SyncResult(code) if code else result))

    def heartbeat(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int
    ) -> None:
        """Extend the session of a member.

        Raises
        ------
        RebalanceInProgressError
            The session was extended, and the member must rejoin the group.
        BrokerResponseError
            The sender is not a classic member, or the generation in the request is not the member epoch.
        """
        member = self._member(group, member_id, instance_id, generation_id)
        self._begin_session(group.group_id, member)
        can_get_more = member.state is MemberState.UNRELEASED_PARTITIONS and not group.waits_for_unreleased(
            member
        )
        # Unlike in Kafka. Only JoinGroup and the heartbeats of members of the consumer protocol compute an
        # assignment, and the group may have no such member.
        needs_assignment = group.classic_count == len(group) and (
            self._assignments.is_due(group, group.epoch) or self._assignments.have_topics_changed(group)
        )
        is_behind = needs_assignment or member.member_epoch < group.assignment_epoch
        if is_behind or member.state is MemberState.UNREVOKED_PARTITIONS or can_get_more:
            self._must_rejoin(group.group_id, member)

    def _must_rejoin(self, group_id: str, member: ConsumerGroupMember) -> None:
        timeout_ms = member.rebalance_timeout_ms
        self._sessions.begin_if_absent(group_id, member.member_id, Deadline.JOIN, timeout_ms)
        raise RebalanceInProgressError

    def _begin_session(self, group_id: str, member: ConsumerGroupMember) -> None:
        assert member.classic is not None
        timeout_ms = member.classic.session_timeout_ms
        self._sessions.begin(group_id, member.member_id, Deadline.SESSION, timeout_ms)

    @staticmethod
    def _member(
        group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int
    ) -> ConsumerGroupMember:
        """Return the classic member that sent a request, after a check of its generation."""
        if instance_id is None:
            member = group.member(member_id)
        else:
            member = checked_static(group.static_member(instance_id), instance_id, member_id)
        if not member.uses_classic_protocol:
            raise UnknownMemberIdError(f"Member {member.member_id} does not use the classic protocol.")
        if member.member_epoch != generation_id:
            raise IllegalGenerationError
        return member

    # ---- Leaving --------------------------------------------------------------------------------------

    def leave(
        self,
        group: ConsumerGroup,
        leaving: Sequence[Leaving],
        on_left: Callable[[int, list[int]], None],
    ) -> None:
        """Remove members. ``on_left`` is called as in :meth:`GroupCoordinator.leave`."""
        codes: list[int] = []
        members: dict[str, ConsumerGroupMember] = {}
        for one in leaving:
            try:
                member = self._leaving_member(group, one)
            except BrokerResponseError as error:
                codes.append(error.errno)
            else:
                logger.info(
                    "group %s: member %s leaves (reason: %s)", group.group_id, member.member_id, one.reason
                )
                members[member.member_id] = member
                codes.append(0)
        if members:
            self._heartbeats.remove(group, list(members.values()), lambda code: on_left(code, codes))
        else:
            on_left(0, codes)

    @staticmethod
    def _leaving_member(group: ConsumerGroup, leaving: Leaving) -> ConsumerGroupMember:
        instance_id = leaving.group_instance_id
        if instance_id is None:
            return group.member(leaving.member_id)
        member = group.static_member(instance_id)
        # An admin client may identify a static member by its instance id alone.
        known_id = leaving.member_id or (member.member_id if member is not None else "")
        return checked_static(member, instance_id, known_id)
