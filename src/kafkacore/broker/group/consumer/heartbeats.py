"""Handles ConsumerGroupHeartbeat: members join, stay in the group, receive their partitions, and leave.

The behaviour is that of Kafka's ``GroupCoordinatorService`` and ``GroupMetadataManager``.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from kafkacore.broker.config.group_limits import consumer_assignors
from kafkacore.broker.coordinator.interfaces import CoordinatorRecord
from kafkacore.broker.group import records
from kafkacore.broker.group.consumer._heartbeat import ConsumerHeartbeat
from kafkacore.broker.group.consumer._steady import SteadyHeartbeats
from kafkacore.broker.group.consumer.consumer_group import ConsumerGroup
from kafkacore.broker.group.consumer.consumer_member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    NO_PARTITIONS,
    STATIC_LEAVE_EPOCH,
    UNCHANGED_TIMEOUT,
    ConsumerGroupMember,
    OwnedPartitions,
)
from kafkacore.broker.group.consumer.deadline import Deadline
from kafkacore.broker.group.consumer.member_records import partitions_record
from kafkacore.broker.group.consumer.removal import removal_of_members
from kafkacore.broker.log_lines import NameLogger
from kafkacore.errors import (
    FencedInstanceIdError,
    FencedMemberEpochError,
    GroupIdNotFoundError,
    InvalidRequestError,
    UnknownMemberIdError,
    UnreleasedInstanceIdError,
    UnsupportedAssignorError,
)

if TYPE_CHECKING:
    from kafkacore.broker.config.broker_config import BrokerConfig
    from kafkacore.broker.config.group_limits import GroupLimits
    from kafkacore.broker.group.consumer._sessions import Sessions
    from kafkacore.broker.group.consumer.member_updates import MemberUpdates
    from kafkacore.broker.group.consumer.migration import Migration
    from kafkacore.broker.group.consumer.reconciliation import ReportedPartitions
    from kafkacore.broker.group.consumer.target_assignments import TargetAssignments
    from kafkacore.broker.group.interfaces import CoordinatorLog
    from kafkacore.broker.group.registry import GroupRegistry
    from kafkacore.clock import Clock

logger = NameLogger(__name__)

#: Milliseconds before the broker retries the removal of a member if its records could not be written.
RETRY_MS = 1_000
#: First version in which a member generates its own id.
FIRST_VERSION_WITH_OWN_ID = 1


class HeartbeatResult(NamedTuple):
    """The fields of the response to a heartbeat."""

    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int = 0
    #: Partitions of the member; ``None`` if they have not changed.
    assignment: OwnedPartitions | None = None


#: Function that is called with an error code and the result of a heartbeat.
OnHeartbeat = Callable[[int, HeartbeatResult], None]


class ConsumerHeartbeats:
    """Handles the heartbeats of members of the consumer protocol. Only the network thread may use it.

    Parameters
    ----------
    log:
        Log of the group coordinator.
    registry:
        The groups.
    config:
        Configuration of the broker, for ``group.consumer.max.size`` and ``group.consumer.assignors``.
    limits:
        Timeouts of the groups.
    assignments:
        Computes epochs and target assignments.
    updates:
        Computes the records of a changed member.
    migration:
        Changes the type of groups.
    steady:
        Finds the heartbeats that change nothing.
    sessions:
        Deadlines of the members.
    clock:
        Source of random member ids.
    """

    def __init__(
        self,
        log: CoordinatorLog,
        registry: GroupRegistry,
        config: BrokerConfig,
        limits: GroupLimits,
        assignments: TargetAssignments,
        updates: MemberUpdates,
        migration: Migration,
        steady: SteadyHeartbeats,
        sessions: Sessions,
        clock: Clock,
    ) -> None:
        self._log = log
        self._registry = registry
        self._config = config
        self._assignors = consumer_assignors(config)
        self._limits = limits
        self._assignments = assignments
        self._updates = updates
        self._migration = migration
        self._sessions = sessions
        self._clock = clock
        self._steady = steady
        sessions.on_missed = self._deadline_missed

    def heartbeat(
        self,
        heartbeat: ConsumerHeartbeat,
        node_id: int,
        may_describe: Callable[[str], bool],
        on_done: OnHeartbeat,
    ) -> None:
        """Handle a heartbeat that a node has received.

        Parameters
        ----------
        heartbeat:
            The heartbeat.
        node_id:
            Node that received the heartbeat.
        may_describe:
            Returns whether the client may describe a topic. Other topics do not match the member's regular
            expression.
        on_done:
            Called when the effect of the heartbeat is durable.

        Raises
        ------
        BrokerResponseError
            The heartbeat is invalid, the member is not known or is fenced, or this node does not coordinate
            the group. ``on_done`` is not called.
        """
        self._validate(heartbeat)
        self._log.check(heartbeat.group_id, node_id)
        if heartbeat.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            self._leave(heartbeat, on_done)
        else:
            self._stay(heartbeat, may_describe, on_done)

    def _validate(self, heartbeat: ConsumerHeartbeat) -> None:
        epoch = heartbeat.member_epoch
        has_own_id = heartbeat.version >= FIRST_VERSION_WITH_OWN_ID
        needs_id = has_own_id or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH
        for name, value in (
            ("MemberId", heartbeat.member_id if needs_id else None),
            ("GroupId", heartbeat.group_id),
            ("InstanceId", heartbeat.instance_id),
            ("RackId", heartbeat.rack_id),
        ):
            if value is not None and not value.strip():
                raise InvalidRequestError(f"{name} can't be empty.")
        if heartbeat.joins:
            if heartbeat.rebalance_timeout_ms == UNCHANGED_TIMEOUT:
                raise InvalidRequestError("RebalanceTimeoutMs must be provided in first request.")
            if heartbeat.topic_partitions is None or heartbeat.topic_partitions:
                raise InvalidRequestError("TopicPartitions must be empty when (re-)joining.")
            if heartbeat.subscribed_topic_names is None and heartbeat.subscribed_topic_regex is None:
                raise InvalidRequestError(
                    "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
                )
        elif epoch == STATIC_LEAVE_EPOCH and heartbeat.instance_id is None:
            raise InvalidRequestError("InstanceId can't be null.")
        elif epoch < STATIC_LEAVE_EPOCH:
            raise InvalidRequestError("MemberEpoch is invalid.")
        assignor = heartbeat.server_assignor
        if assignor is not None and assignor not in self._assignors:
            supported = ", ".join(self._assignors)
            raise UnsupportedAssignorError(
                f"ServerAssignor {assignor} is not supported. Supported assignors: {supported}."
            )

    # ---- Staying in the group -------------------------------------------------------------------------

    def _stay(
        self, heartbeat: ConsumerHeartbeat, may_describe: Callable[[str], bool], on_done: OnHeartbeat
    ) -> None:
        group_id = heartbeat.group_id
        if (steady := self._steady.member_of(heartbeat)) is not None:
            self._begin_session(group_id, steady.member_id)
            interval_ms = self._limits.of(group_id).heartbeat_interval_ms
            result = HeartbeatResult(steady.member_id, steady.member_epoch, interval_ms)
            self._log.when_safe(group_id, lambda code: on_done(code, result))
            return
        batch: list[CoordinatorRecord] = []
        group = self._group(heartbeat, batch)
        group.check_room(heartbeat.member_id, self._config.group_consumer_max_size)
        before = self._member_of(group, heartbeat)
        member = self._identified(group, before, heartbeat, batch)
        if member.uses_classic_protocol:
            self._sessions.end(group_id, member.member_id, Deadline.JOIN)
            self._sessions.end(group_id, member.member_id, Deadline.SYNC)
        updated = _updated(member, heartbeat)
        update = self._updates.update(group, before, member, updated, heartbeat.topic_partitions, batch)
        now = update.member
        self._begin_session(group_id, now.member_id)
        has_new_partitions = now.assigned is not member.assigned and now.assigned != member.assigned
        needs_partitions = heartbeat.joins or has_new_partitions or heartbeat.is_full
        result = HeartbeatResult(
            now.member_id,
            now.member_epoch,
            self._limits.of(group_id).heartbeat_interval_ms,
            now.assigned if needs_partitions else None,
        )
        if not batch:
            self._updates.written(group, update)
            self._log.when_safe(group_id, lambda code: on_done(code, result))
        else:
            # An upgrade answers the requests that wait for the classic group. Their clients may send new
            # requests at once, which must see the complete change.
            with self._migration.delayed_responses as delayed_responses:
                self._log.append(group_id, batch, delayed_responses.later(lambda code: on_done(code, result)))
                self._updates.written(group, update)
        if now.subscribed_topic_regex:
            self._match_expression(group_id, now.member_id, may_describe)

    def _match_expression(self, group_id: str, member_id: str, may_describe: Callable[[str], bool]) -> None:
        """Match the regular expression of a member if that is due. The next heartbeat uses the result."""
        group = self._registry.consumer_group(group_id)
        member = None if group is None else group.get(member_id)
        # The member does not exist if its records could not be written.
        regex = None if member is None else member.subscribed_topic_regex
        if group is None or not regex:
            return
        batch: list[CoordinatorRecord] = []
        found = self._updates.match(group, regex, may_describe, batch)
        if found is None:
            return

        def on_safe(code: int) -> None:
            if code:
                logger.warning(
                    "group %s: failed to store the topics that match %r: error %d", group_id, regex, code
                )

        if batch:
            self._log.append(group_id, batch, on_safe)
        self._updates.matched(group, regex, found)

    def _begin_session(self, group_id: str, member_id: str) -> None:
        timeout_ms = self._limits.of(group_id).session_timeout_ms
        self._sessions.begin(group_id, member_id, Deadline.SESSION, timeout_ms)

    def _group(self, heartbeat: ConsumerHeartbeat, batch: list[CoordinatorRecord]) -> ConsumerGroup:
        """Return the group. A member that joins may create the group, or replace an empty classic group."""
        group_id = heartbeat.group_id
        group = self._registry.consumer_group(group_id)
        if group is not None:
            return group
        classic = self._registry.classic_group(group_id)
        if not heartbeat.joins:
            if classic is None:
                raise GroupIdNotFoundError(f"Consumer group {group_id} not found.")
            raise GroupIdNotFoundError(f"Group {group_id} is not a consumer group.")
        if classic is not None:
            if not classic.is_empty:
                return self._migration.upgrade(classic, batch)
            batch.append(records.group_metadata_tombstone(group_id))
        return ConsumerGroup(group_id)

    @staticmethod
    def _member_of(group: ConsumerGroup, heartbeat: ConsumerHeartbeat) -> ConsumerGroupMember | None:
        """Return the member that sends the heartbeat, or the static member that it replaces.

        Returns ``None`` for a member that joins for the first time.
        """
        member_id, instance_id = heartbeat.member_id, heartbeat.instance_id
        if instance_id is None:
            member = group.get(member_id) if heartbeat.joins else group.member(member_id)
            if member is not None:
                _check_epoch(member, heartbeat)
            return member
        member = group.static_member(instance_id)
        if member is None and heartbeat.joins:
            # A dynamic member may become a static member.
            return group.get(member_id)
        if not heartbeat.joins:
            member = checked_static(member, instance_id, member_id)
            _check_epoch(member, heartbeat)
        elif (
            member is not None
            # Kafka refuses the member itself too. Its join would then fail if the response to the first one
            # was lost.
            and member.member_id != member_id
            and not member.uses_classic_protocol
            and member.member_epoch != STATIC_LEAVE_EPOCH
        ):
            raise UnreleasedInstanceIdError(
                f"Static member {member_id} with instance id {instance_id} cannot join the group because "
                f"the instance id is owned by {member.member_id} member."
            )
        return member

    def _identified(
        self,
        group: ConsumerGroup,
        before: ConsumerGroupMember | None,
        heartbeat: ConsumerHeartbeat,
        batch: list[CoordinatorRecord],
    ) -> ConsumerGroupMember:
        """Return the member with its current id, before its fields are updated.

        A static member that joins again gets the target and the partitions of the member that it replaces.
        """
        member_id = heartbeat.member_id or new_member_id(self._clock)
        if before is None:
            logger.info("group %s: member %s joins the consumer group", group.group_id, member_id)
            return ConsumerGroupMember(member_id=member_id)
        is_static = before.instance_id is not None and before.instance_id == heartbeat.instance_id
        if not heartbeat.joins or not is_static:
            return before
        return self._updates.replace_static(group, before, member_id, batch)

    # ---- Leaving --------------------------------------------------------------------------------------

    def _leave(self, heartbeat: ConsumerHeartbeat, on_done: OnHeartbeat) -> None:
        group_id, instance_id = heartbeat.group_id, heartbeat.instance_id
        group = self._registry.consumer_group(group_id)
        if group is None:
            self._registry.found(group_id)
            raise GroupIdNotFoundError(f"Group {group_id} is not a consumer group.")
        if instance_id is None:
            member = group.member(heartbeat.member_id)
        else:
            member = checked_static(group.static_member(instance_id), instance_id, heartbeat.member_id)
        result = HeartbeatResult(heartbeat.member_id, heartbeat.member_epoch)
        if heartbeat.member_epoch == STATIC_LEAVE_EPOCH:
            logger.info("group %s: static member %s leaves temporarily", group_id, member.member_id)
            away = replace(
                member,
                member_epoch=STATIC_LEAVE_EPOCH,
                assigned={topic_id: dict.fromkeys(owned, 0) for topic_id, owned in member.assigned.items()},
                pending_revocation=NO_PARTITIONS,
            )
            batch = [partitions_record(group_id, away)]
            self._log.append(group_id, batch, lambda code: on_done(code, result))
            return
        logger.info("group %s: member %s leaves", group_id, member.member_id)
        self.remove(group, [member], lambda code: on_done(code, result))

    def remove(
        self, group: ConsumerGroup, members: Sequence[ConsumerGroupMember], on_safe: Callable[[int], None]
    ) -> None:
        """Remove members. ``on_safe`` is called with an error code when the removal is durable.

        If only members of the classic protocol are left, the group becomes a classic group.
        """
        group_id = group.group_id
        downgrades = self._migration.may_downgrade_without(group, members)
        if downgrades:
            batch: list[CoordinatorRecord] = []
            self._migration.downgrade(group, members, batch)
        else:
            batch = removal_of_members(group, members, self._assignments)
        with self._migration.delayed_responses as delayed_responses:
            self._log.append(group_id, batch, delayed_responses.later(on_safe))
            for member in members:
                # A member whose removal could not be written keeps its deadlines.
                if member.member_id not in group:
                    self._sessions.end_member(group_id, member.member_id)
            if downgrades:
                self._migration.begin_classic_group(
                    group_id, f"Downgrade group {group_id} from consumer to classic for member leaving."
                )

    def _deadline_missed(self, group_id: str, member_id: str, kind: Deadline) -> None:
        group = self._registry.consumer_group(group_id)
        member = None if group is None else group.get(member_id)
        if group is None or member is None:
            self._sessions.end_member(group_id, member_id)
            return
        if kind is Deadline.REVOCATION and not member.pending_revocation:
            # A static member that has left temporarily has nothing to revoke, but keeps its state.
            return

        def on_safe(code: int) -> None:
            if code:
                logger.warning("group %s: failed to remove member %s: error %d", group_id, member_id, code)

        logger.info("group %s: member %s is removed because %s", group_id, member_id, kind.value)
        try:
            self.remove(group, [member], on_safe)
        finally:
            if self._registry.consumer_group(group_id) is group and member_id in group:
                self._sessions.begin(group_id, member_id, kind, RETRY_MS)


def new_member_id(clock: Clock) -> str:
    """Return a member id for a client that has none, in the form of Kafka's ids."""
    return urlsafe_b64encode(clock.random.randbytes(16)).rstrip(b"=").decode()


def _updated(member: ConsumerGroupMember, heartbeat: ConsumerHeartbeat) -> ConsumerGroupMember:
    """Return the member with the fields of a heartbeat; the same object if nothing changes."""
    changes: dict[str, object] = {}
    if heartbeat.instance_id is not None and heartbeat.instance_id != member.instance_id:
        changes["instance_id"] = heartbeat.instance_id
    if heartbeat.rack_id is not None and heartbeat.rack_id != member.rack_id:
        changes["rack_id"] = heartbeat.rack_id
    if heartbeat.rebalance_timeout_ms not in (UNCHANGED_TIMEOUT, member.rebalance_timeout_ms):
        changes["rebalance_timeout_ms"] = heartbeat.rebalance_timeout_ms
    if heartbeat.server_assignor is not None and heartbeat.server_assignor != member.server_assignor:
        changes["server_assignor"] = heartbeat.server_assignor
    if heartbeat.subscribed_topic_names is not None:
        changes["subscribed_topic_names"] = frozenset(heartbeat.subscribed_topic_names)
    if heartbeat.subscribed_topic_regex is not None:
        changes["subscribed_topic_regex"] = heartbeat.subscribed_topic_regex
    if heartbeat.client_id != member.client_id:
        changes["client_id"] = heartbeat.client_id
    if heartbeat.client_host != member.client_host:
        changes["client_host"] = heartbeat.client_host
    if member.classic is not None:
        changes["classic"] = None
    return replace(member, **changes) if changes else member  # type: ignore[arg-type]


def _check_epoch(member: ConsumerGroupMember, heartbeat: ConsumerHeartbeat) -> None:
    """Check the epoch of a heartbeat. A member that missed a response may still send its previous epoch."""
    epoch, expected = heartbeat.member_epoch, member.member_epoch
    if epoch in (JOIN_EPOCH, expected):
        return
    if epoch < expected:
        owned = heartbeat.topic_partitions
        if epoch == member.previous_member_epoch and owned is not None and _has_all(member.assigned, owned):
            return
        comparison = "smaller"
    else:
        comparison = "greater"
    raise FencedMemberEpochError(
        f"The consumer group member has a {comparison} member epoch ({epoch}) than the one known by the "
        f"group coordinator ({expected}). The member must abandon all its partitions and rejoin."
    )


def _has_all(assigned: OwnedPartitions, owned: ReportedPartitions) -> bool:
    return all(
        partition in assigned.get(topic_id, ()) for topic_id, partitions in owned for partition in partitions
    )


def checked_static(
    member: ConsumerGroupMember | None, instance_id: str, member_id: str
) -> ConsumerGroupMember:
    """Check that a request was sent by this static member, and return the member."""
    if member is None:
        raise UnknownMemberIdError(f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise FencedInstanceIdError(
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.member_id}."
        )
    return member
