"""The coordinator of classic groups and consumer groups, as the request handlers use it.

Requests are answered at once or by a callback. The behaviour is that of Kafka's ``GroupCoordinatorService``
and ``GroupMetadataManager``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kafkacore.broker.config.group_limits import (
    MIN_GROUP_VERSION,
    allows_consumer_protocol,
    consumer_assignors,
)
from kafkacore.broker.coordinator.interfaces import CoordinatorRecord
from kafkacore.broker.error_answer import error_code
from kafkacore.broker.group.classic_group import ClassicGroup, GroupState
from kafkacore.broker.group.consumer._heartbeat import ConsumerHeartbeat
from kafkacore.broker.group.consumer._sessions import Sessions
from kafkacore.broker.group.consumer._steady import SteadyHeartbeats
from kafkacore.broker.group.consumer.classic_members import ClassicMembers
from kafkacore.broker.group.consumer.consumer_group import ConsumerGroup, GroupChange
from kafkacore.broker.group.consumer.group_topics import GroupTopics
from kafkacore.broker.group.consumer.heartbeats import ConsumerHeartbeats, OnHeartbeat
from kafkacore.broker.group.consumer.member_updates import MemberUpdates
from kafkacore.broker.group.consumer.migration import Migration
from kafkacore.broker.group.consumer.regular_expressions import RegularExpressions
from kafkacore.broker.group.consumer.target_assignments import TargetAssignments
from kafkacore.broker.group.group_record import born_record
from kafkacore.broker.group.joining import Admission, Joining
from kafkacore.broker.group.member import JoinResult, OnSynced, SyncResult
from kafkacore.broker.group.rebalancer import Rebalancer
from kafkacore.broker.group.registry import AnyGroup, GroupRegistry, tombstones_of
from kafkacore.broker.log_lines import NameLogger
from kafkacore.clock import Clock
from kafkacore.errors import (
    BrokerResponseError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    GroupIdNotFoundError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    InvalidGroupIdError,
    InvalidSessionTimeoutError,
    NotCoordinatorError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)

if TYPE_CHECKING:
    from kafkacore.broker.config.broker_config import BrokerConfig
    from kafkacore.broker.group.interfaces import CoordinatorLog
    from kafkacore.broker.metadata.cluster_metadata import ClusterMetadata
    from kafkacore.broker.purgatory.timer import Timer
    from kafkacore.broker.topics.topic_catalog import TopicCatalog

logger = NameLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Syncing:
    """The fields of a SyncGroup request.

    Parameters
    ----------
    protocol_type, protocol_name:
        Protocol that the member expects the group to use; ``None`` in request versions without these fields.
    assignments:
        Assignment of each member id. Only the leader sends them.
    on_synced:
        Called with the response.
    """

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: Mapping[str, bytes]
    on_synced: OnSynced


class GroupsFigures(NamedTuple):
    """Numbers of groups and rebalances, for the status page."""

    #: Number of groups by type and state.
    counts: Mapping[tuple[str, str], int]
    #: Rebalances of classic groups that ended with an assignment.
    completed_rebalance_count: int
    #: Rebalances of consumer groups, counted when they start.
    consumer_rebalance_count: int


class Leaving(NamedTuple):
    """A member to remove. With an empty ``member_id``, the group instance id selects the member (KIP-345)."""

    member_id: str
    group_instance_id: str | None
    reason: str


class GroupCoordinator:
    """Coordinator of the groups. Only the network thread may use it.

    In all methods, ``node_id`` is the node that received the request.

    Parameters
    ----------
    log:
        Log of the group coordinator, which also decides which node coordinates a group.
    config:
        Configuration of the broker.
    clock:
        Source of the time and of random member ids.
    timer:
        Timer of the broker.
    topics:
        Catalog of the topics.
    metadata:
        The metadata of the cluster, with the settings of groups and the feature ``group.version``.
    offset_tombstones:
        Returns the tombstones of all committed offsets of a group.
    """

    def __init__(
        self,
        log: CoordinatorLog,
        config: BrokerConfig,
        clock: Clock,
        timer: Timer,
        topics: TopicCatalog,
        metadata: ClusterMetadata,
        offset_tombstones: Callable[[str], Sequence[CoordinatorRecord]],
    ) -> None:
        self._log = log
        self._config = config
        self.rebalancer = Rebalancer(log, config, clock, timer)
        self._features = metadata.features
        self._allows_consumer_protocol = allows_consumer_protocol(config)
        limits, group_topics = metadata.group_limits, GroupTopics(topics)
        sessions = Sessions(timer, clock)
        self.registry = GroupRegistry(self.rebalancer, sessions, log.partition_for, config, limits, clock)
        assignments = TargetAssignments(group_topics, config, limits, clock)
        regexes = RegularExpressions(group_topics, config, clock)
        updates = MemberUpdates(self.registry, group_topics, assignments, regexes, sessions)
        migration = Migration(self.registry, self.rebalancer, sessions, group_topics, config, clock)
        self._updates = updates
        steady = SteadyHeartbeats(log, self.registry, limits, topics, self._features, sessions)
        #: Returns the response to a ConsumerGroupHeartbeat that changes nothing, if there is one at once.
        self.steady_answer = steady.answer if self._allows_consumer_protocol else _no_answer
        self._consumer_heartbeats = ConsumerHeartbeats(
            log, self.registry, config, limits, assignments, updates, migration, steady, sessions, clock
        )
        self._classic_members = ClassicMembers(
            log, config, assignments, updates, migration, self._consumer_heartbeats, sessions, clock
        )
        self._offset_tombstones = offset_tombstones
        self._admission = Admission(self.rebalancer, config, clock)

    def _check(self, group_id: str, node_id: int) -> None:
        """Raise an error if the group id is empty or ``node_id`` does not coordinate the group."""
        if not group_id:
            raise InvalidGroupIdError
        self._log.check(group_id, node_id)

    # ---- Consumer groups ------------------------------------------------------------------------------

    @property
    def serves_consumer_groups(self) -> bool:
        """Whether clients may use the consumer protocol (KIP-848)."""
        return self._allows_consumer_protocol and self._features.group_version >= MIN_GROUP_VERSION

    def consumer_heartbeat(
        self,
        heartbeat: ConsumerHeartbeat,
        node_id: int,
        may_describe: Callable[[str], bool],
        on_done: OnHeartbeat,
    ) -> None:
        """Handle a ConsumerGroupHeartbeat, as :meth:`ConsumerHeartbeats.heartbeat` does."""
        self._consumer_heartbeats.heartbeat(heartbeat, node_id, may_describe, on_done)

    # ---- Joining --------------------------------------------------------------------------------------

    def join(self, joining: Joining, node_id: int) -> None:
        """Handle a JoinGroup. ``on_joined`` is called when the next generation begins, or with an error.

        Raises
        ------
        BrokerResponseError
            The request is invalid, or this node does not coordinate the group. ``on_joined`` is not called.
        """
        self._check(joining.group_id, node_id)
        config = self._config
        shortest, longest = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
        if not shortest <= joining.session_timeout_ms <= longest:
            raise InvalidSessionTimeoutError
        consumer_group = self.registry.consumer_group(joining.group_id)
        if consumer_group is not None and not consumer_group.is_empty:
            try:
                self._classic_members.join(consumer_group, joining)
            except BrokerResponseError as error:
                # As in Kafka, the member id is not in this error, unlike in the error of a classic group.
                joining.refuse(error)
            return
        with self.rebalancer.delayed_responses as delayed_responses:
            joining = joining.answered_by(delayed_responses.later(joining.on_joined))
            group = self.registry.classic_group(joining.group_id)
            if group is not None:
                self._admission.join(group, joining)
            elif joining.member_id:
                joining.refuse(UnknownMemberIdError, joining.member_id)
            elif consumer_group is None or self._delete_empty(consumer_group, joining):
                group = self.registry.create(joining.group_id)
                self._admission.join(group, joining)
                self._store_born(group)

    def _delete_empty(self, group: ConsumerGroup, joining: Joining) -> bool:
        """Delete an empty consumer group, so that a classic group can take its place.

        If this fails, the JoinGroup is answered with the error, and the result is false.
        """
        errors: list[int] = []

        def on_safe(code: int) -> None:
            if code:
                logger.warning("group %s: failed to delete the empty group: error %d", group.group_id, code)
                errors.append(code)

        self._log.append(group.group_id, tombstones_of(group), on_safe)
        if errors:
            joining.on_joined(JoinResult(errors[0]))
        return not errors

    def _store_born(self, group: ClassicGroup) -> None:
        def on_safe(code: int) -> None:
            if code and self.registry.get(group.group_id) is group:
                logger.warning("group %s: failed to persist the new group: error %d", group.group_id, code)
                self.registry.remove(group.group_id, code)

        self._log.append(group.group_id, [born_record(group)], on_safe)

    # ---- Assignments ----------------------------------------------------------------------------------

    def sync(self, syncing: Syncing, node_id: int) -> None:
        """Handle a SyncGroup. ``on_synced`` is called when the generation has an assignment.

        Raises
        ------
        BrokerResponseError
            The error to return to the member. ``on_synced`` is not called.
        """
        self._check(syncing.group_id, node_id)
        consumer_group = self.registry.consumer_group(syncing.group_id)
        if consumer_group is not None:
            self._classic_members.sync(consumer_group, syncing)
            return
        group = self._group_of_member(syncing.group_id, syncing.member_id, syncing.group_instance_id, "sync")
        if syncing.generation_id != group.generation_id:
            raise IllegalGenerationError
        for said, is_so in (
            (syncing.protocol_type, group.protocol_type),
            (syncing.protocol_name, group.protocol_name),
        ):
            if said is not None and is_so is not None and said != is_so:
                raise InconsistentGroupProtocolError
        if group.is_in(GroupState.PREPARING_REBALANCE):
            raise RebalanceInProgressError
        with self.rebalancer.delayed_responses as delayed_responses:
            member = group.member(syncing.member_id)
            if group.is_in(GroupState.STABLE):
                answer = SyncResult(0, group.protocol_type, group.protocol_name, member.assignment)
                delayed_responses.later(syncing.on_synced)(answer)
            else:
                group.await_sync(member, delayed_responses.later(syncing.on_synced))
            self.rebalancer.sync_received(group, member.member_id)
            if group.is_in(GroupState.COMPLETING_REBALANCE) and group.is_leader(member.member_id):
                self.rebalancer.assign(group, syncing.assignments, member.member_id)

    def _group_of_member(
        self, group_id: str, member_id: str, instance_id: str | None, operation: str
    ) -> ClassicGroup:
        group = self.registry.known_classic_group(group_id)
        if group.is_in(GroupState.DEAD):
            raise CoordinatorNotAvailableError
        group.validate_member(member_id, instance_id, operation)
        return group

    # ---- Heartbeats -----------------------------------------------------------------------------------

    def heartbeat(
        self, group_id: str, member_id: str, instance_id: str | None, generation_id: int, node_id: int
    ) -> None:
        """Extend the session of a member.

        Raises
        ------
        RebalanceInProgressError
            The session was extended, and the member must rejoin the group.
        BrokerResponseError
            The sender is not a member, or belongs to another generation.
        """
        try:
            self._check(group_id, node_id)
        except CoordinatorLoadInProgressError:
            return  # Report success, because the member's session restarts when the group has been loaded.
        consumer_group = self.registry.consumer_group(group_id)
        if consumer_group is not None:
            self._classic_members.heartbeat(consumer_group, member_id, instance_id, generation_id)
            return
        group = self._group_of_member(group_id, member_id, instance_id, "heartbeat")
        if generation_id != group.generation_id:
            raise IllegalGenerationError
        self.rebalancer.touch(group, group.member(member_id))
        if group.is_in(GroupState.PREPARING_REBALANCE):
            raise RebalanceInProgressError

    # ---- Leaving --------------------------------------------------------------------------------------

    def leave(
        self,
        group_id: str,
        leaving: Sequence[Leaving],
        node_id: int,
        on_left: Callable[[int, list[int]], None],
    ) -> None:
        """Remove members from a group.

        Parameters
        ----------
        group_id:
            Id of the group.
        leaving:
            The members to remove.
        node_id:
            The node that received the request.
        on_left:
            Called when the group's state is durable, with the error code of the request and a list of the
            members' error codes.

        Raises
        ------
        BrokerResponseError
            The error of the whole request. ``on_left`` is not called.
        """
        self._check(group_id, node_id)
        group = self.registry.get(group_id)
        if isinstance(group, ConsumerGroup):
            self._classic_members.leave(group, leaving, on_left)
            return
        if group is None:
            on_left(0, [UnknownMemberIdError.errno] * len(leaving))
            return
        with self.rebalancer.delayed_responses:
            codes = [self._leave(group, one) for one in leaving]
            left = [one for one, code in zip(leaving, codes, strict=True) if not code]
            if left and not group.is_in(GroupState.EMPTY):
                names = ", ".join(one.member_id or str(one.group_instance_id) for one in left)
                self.rebalancer.prepare_or_complete(group, f"{names} left")
        if self.registry.get(group_id) is group:
            self._log.when_safe(group_id, lambda code: on_left(code, codes))
        else:
            # The log has failed, so this broker no longer coordinates the group.
            on_left(NotCoordinatorError.errno, codes)

    def _leave(self, group: ClassicGroup, leaving: Leaving) -> int:
        member_id, instance_id = leaving.member_id, leaving.group_instance_id
        if not member_id:
            member_id = group.static_member_id(instance_id) or "" if instance_id is not None else ""
            if not member_id:
                return UnknownMemberIdError.errno
        if member_id in group.pending_joins:
            self.rebalancer.end_session(group, member_id)
            group.remove(member_id)
            return 0
        try:
            group.validate_member(member_id, instance_id, "leave")
        except BrokerResponseError as error:
            return error.errno
        logger.info("group %s: member %s leaves (reason: %s)", group.group_id, member_id, leaving.reason)
        self.rebalancer.forget_member(group, group.member(member_id))
        return 0

    # ---- Administration -------------------------------------------------------------------------------

    def groups(self, node_id: int, states: Collection[str], kinds: Collection[str]) -> list[AnyGroup]:
        """Return the classic groups and the consumer groups that ``node_id`` coordinates.

        Parameters
        ----------
        node_id:
            The node that received the request.
        states, kinds:
            Case-insensitive names of the states and group types to return; empty for all.

        Raises
        ------
        CoordinatorLoadInProgressError
            Some groups have not been loaded yet.
        """
        if self._log.is_loading:
            raise CoordinatorLoadInProgressError
        wanted_states = {state.strip().lower() for state in states}
        wanted_kinds = {kind.strip().lower() for kind in kinds}
        return [
            group
            for group in self.registry
            if (not wanted_states or group.state.value.lower() in wanted_states)
            and (not wanted_kinds or group.kind.lower() in wanted_kinds)
            and self._is_coordinated_by(node_id, group)
        ]

    def _is_coordinated_by(self, node_id: int, group: AnyGroup) -> bool:
        try:
            self._log.check(group.group_id, node_id)
        except BrokerResponseError:
            return False  # Another node coordinates the group, and lists it.
        return True

    def figures(self) -> GroupsFigures:
        """Return the numbers of groups and rebalances, for the status page."""
        return GroupsFigures(
            Counter((group.kind, group.state.value) for group in self.registry),
            self.rebalancer.completed_count,
            self._updates.rebalance_count,
        )

    def describe(self, group_id: str, node_id: int) -> ClassicGroup:
        """Return the classic group with this id.

        Raises
        ------
        GroupIdNotFoundError
            The group does not exist, or is a consumer group.
        BrokerResponseError
            The group is being loaded or is coordinated by another node.
        """
        self._log.check(group_id, node_id)
        group = self.registry.found(group_id)
        if not isinstance(group, ClassicGroup):
            raise GroupIdNotFoundError(f"Group {group_id} is not a classic group.")
        return group

    def describe_consumer_group(self, group_id: str, node_id: int) -> ConsumerGroup:
        """Return the consumer group with this id, like :meth:`describe`."""
        self._log.check(group_id, node_id)
        group = self.registry.found(group_id)
        if not isinstance(group, ConsumerGroup):
            raise GroupIdNotFoundError(f"Group {group_id} is not a consumer group.")
        return group

    def assignor_of(self, group: ConsumerGroup) -> str:
        """Return the name of the assignor of a consumer group."""
        return group.preferred_assignor(GroupChange()) or consumer_assignors(self._config)[0]

    def delete(
        self, group_ids: Sequence[str], node_id: int, on_deleted: Callable[[dict[str, int]], None]
    ) -> None:
        """Delete empty groups and their offsets. ``on_deleted`` gets the error code of each group."""
        codes: dict[str, int] = {}

        def on_safe(group_id: str, code: int) -> None:
            codes[group_id] = code
            if len(codes) == len(group_ids):
                on_deleted(codes)

        if not group_ids:
            on_deleted(codes)
        for group_id in group_ids:
            try:
                self._log.check(group_id, node_id)
                group = self.registry.found(group_id)
                group.validate_delete()
                offsets = self._offset_tombstones(group_id)
                self._log.append(group_id, [*offsets, *tombstones_of(group)], partial(on_safe, group_id))
                logger.info("group %s: deleted with %d committed offsets", group_id, len(offsets))
            except Exception as error:  # noqa: BLE001 - does not affect other groups; error_code logs it
                on_safe(group_id, error_code(error))


def _no_answer(heartbeat: ConsumerHeartbeat, node_id: int, now_ms: float) -> None:
    """Leave every heartbeat to the general code, because the consumer protocol is not allowed."""
