"""The consumer's part in rebalances of its group.

This module decides when to rejoin, builds the subscription, assigns partitions if this member is the leader,
applies the assignment, and calls the listener in the right order. This is the rebalancing half of Kafka's
``ConsumerCoordinator``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from kafkacore.client import Cluster, Metadata
from kafkacore.clock import Clock
from kafkacore.consumer.group.followed_topics import FollowedTopics
from kafkacore.consumer.group.generation import Generation
from kafkacore.consumer.group.listener_calls import ListenerCalls, listed
from kafkacore.consumer.group.settings import GroupSettings
from kafkacore.consumer.group_metrics import GroupMetrics
from kafkacore.consumer.subscription_state import SubscriptionState, SubscriptionType
from kafkacore.coordinator.assignors import (
    PartitionAssignor,
    PartitionRacks,
    RebalanceProtocol,
    common_protocol,
)
from kafkacore.coordinator.protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kafkacore.errors import (
    IllegalStateError,
    InconsistentGroupProtocolError,
    MalformedMessageError,
)
from kafkacore.logs import logger_of
from kafkacore.protocol.generated.join_group import JoinGroupResponse
from kafkacore.structs import ConsumerGroupMetadata, TopicPartition, partition_name

logger = logger_of(__name__)

#: Cooperative assignor whose result is not checked, as in Kafka. This assignor itself considers in which
#: generation members owned their partitions.
_TRUSTED_COOPERATIVE = "cooperative-sticky"

#: Topic → partition numbers and, if the consumer has a rack, the racks of their replicas.
_Snapshot = dict[str, tuple[object, ...]]


class Completion(NamedTuple):
    """Result of a rebalance.

    Attributes
    ----------
    rejoin_reason:
        Why the group must be joined again at once, or ``None``.
    error:
        First exception of the listener or the assignor, or ``None``.
    is_taken:
        Whether the assignment matched the subscription and was applied.
    """

    rejoin_reason: str | None
    error: Exception | None
    is_taken: bool = True


class Rebalance:
    """The subscription, assignment and callbacks of one member.

    Parameters
    ----------
    settings:
        Settings of this member.
    assignors:
        Assignors that the member offers to the group, in order of preference.
    metadata, subscriptions:
        Objects that all parts of the consumer share.
    released:
        Context manager that releases the consumer's lock while the listener runs.
    on_assignment_changed:
        Function that is called after the assignment has changed.
    clock, metrics:
        Clock and metrics for the time that the listener's methods take.
    """

    def __init__(
        self,
        settings: GroupSettings,
        assignors: Sequence[PartitionAssignor],
        metadata: Metadata,
        subscriptions: SubscriptionState,
        released: Callable[[], AbstractContextManager[None]],
        on_assignment_changed: Callable[[], None],
        clock: Clock,
        metrics: GroupMetrics,
    ) -> None:
        self._settings = settings
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self.protocol = common_protocol(assignors)
        self._metadata = metadata
        self._subscriptions = subscriptions
        self.topics = FollowedTopics(settings, metadata, subscriptions, clock)
        self.listener_calls = ListenerCalls(settings.group_id, subscriptions, released, clock, metrics)
        self._on_assignment_changed = on_assignment_changed
        #: Function that is called with partitions before they are revoked or lost. The second argument is
        #: true if they are lost.
        self.on_partitions_removed: Callable[[set[TopicPartition], bool], None] = _ignore
        self.is_leader = False
        self._members: dict[str, Subscription] = {}
        self._needed_version = -1
        self._joined_subscription: frozenset[str] | None = None
        self._snapshot: _Snapshot = {}
        self._assigned_by: _Snapshot | None = None
        #: Topics that our assignor assigned although no member subscribes to them. A topic is removed when
        #: its metadata arrive.
        self._unsubscribed: set[str] = set()
        self._undelivered: set[TopicPartition] = set()
        self._times_left = 0

    # ---- Rejoining ---------------------------------------------------------------------------------------
    def subscription_changed(self) -> None:
        """Request metadata of the new subscription's topics.

        The next :meth:`follow_metadata` handles the new topics even if the metadata have not changed.
        """
        self.topics.restart()
        if not self._subscriptions.has_auto_assigned_partitions():
            self._joined_subscription = self._assigned_by = None
            self._subscriptions.group_subscription = frozenset()
            return
        self.topics.request()

    def follow_metadata(self) -> None:
        """Match a pattern subscription against the existing topics, and store the topics' partitions."""
        cluster = self.topics.follow()
        if cluster is None:
            return
        self._snapshot = self._take_snapshot(cluster)
        if self._assigned_by is not None:
            for topic in self._unsubscribed & self._snapshot.keys():
                self._assigned_by[topic] = self._snapshot[topic]
                self._unsubscribed.discard(topic)

    def _take_snapshot(self, cluster: Cluster) -> _Snapshot:
        topics = self._subscriptions.subscription | self._subscriptions.group_subscription
        found: _Snapshot = {}
        for topic in topics:
            numbers = cluster.partitions_for_topic(topic)
            if numbers is not None:
                racks: Iterable[object] = ()
                if self._settings.client_rack:
                    racks = [_racks(cluster, TopicPartition(topic, number)) for number in numbers]
                found[topic] = (numbers, *racks)
        return found

    def rejoin_reason(self) -> str | None:
        """Return why the group must be joined again, or ``None``."""
        if self._assigned_by is not None and self._assigned_by != self._snapshot:
            changed = [
                topic
                for topic in sorted(self._assigned_by.keys() | self._snapshot.keys())
                if self._assigned_by.get(topic) != self._snapshot.get(topic)
            ]
            return f"the partitions of {', '.join(changed)} have changed"
        joined = self._joined_subscription
        if joined is not None and joined != self._subscriptions.subscription:
            return "the subscription has changed"
        return None

    # ---- Joining -----------------------------------------------------------------------------------------
    def begin_to_prepare(self, generation: Generation) -> bool:
        """Stop returning records of partitions that will be revoked.

        Return whether any partitions are assigned. If so, the caller must first commit their positions.
        """
        assigned = self._subscriptions.assigned_partitions()
        if not assigned or generation.was_reset():
            return False
        self._subscriptions.mark_pending_revocation(assigned.difference(self._kept()))
        return True

    def _kept(self) -> list[TopicPartition]:
        """Return the partitions that this member keeps while it joins the group."""
        if self.protocol is RebalanceProtocol.EAGER:
            return []
        topics = self._subscriptions.subscription
        return [tp for tp in self._subscriptions.assigned_in_order() if tp.topic in topics]

    def prepare(self, generation: Generation) -> None:
        """Revoke the partitions that this member may not keep while it joins, and call the listener.

        Raises
        ------
        Exception
            Any exception of the listener. It is raised when all other preparations are complete.
        WakeupError
            If the listener raised it. This method must then be called again.
        """
        assigned = self._subscriptions.assigned_partitions()
        error: Exception | None = None
        if generation.was_reset() or not generation.has_member_id():
            error = self._lose(assigned)
        else:
            kept = self._kept()
            gone = assigned.difference(kept)
            # Mark the partitions as pending revocation again, because the subscription may have changed while
            # the offsets were being committed.
            self._subscriptions.mark_pending_revocation(gone)
            if gone or self.protocol is RebalanceProtocol.EAGER:
                error = self._revoke(gone, kept)
        self.is_leader = False
        self._undelivered = set()
        self._subscriptions.group_subscription = frozenset()
        if error is not None:
            raise error

    def _lose(self, partitions: set[TopicPartition]) -> Exception | None:
        if not partitions:
            return None
        logger.info(
            "group %r: lost %s because this consumer is not a member of the group any more",
            self._settings.group_id,
            listed(partitions),
        )
        self.on_partitions_removed(partitions, True)
        error = self.listener_calls.invoke("on_partitions_lost", partitions)
        self._assign([])
        return error

    def _revoke(self, gone: set[TopicPartition], kept: list[TopicPartition]) -> Exception | None:
        logger.info("group %r: revoking %s", self._settings.group_id, listed(gone))
        self.on_partitions_removed(gone, False)
        error = self.listener_calls.invoke("on_partitions_revoked", gone)
        self._assign(kept)
        return error

    def _assign(self, partitions: Iterable[TopicPartition]) -> None:
        if self._subscriptions.has_auto_assigned_partitions():
            self._subscriptions.assign_from_subscribed(partitions)
            self._on_assignment_changed()

    def protocols(self, generation: Generation) -> list[tuple[str, bytes]]:
        """Return, for JoinGroup, the name of each assignor with the encoded subscription."""
        topics = self._subscriptions.subscription
        self._joined_subscription = frozenset(topics)
        self.topics.joined()
        return [
            (
                name,
                encode_subscription(
                    Subscription(
                        sorted(topics),
                        assignor.subscription_user_data(topics),
                        self._subscriptions.assigned_in_order(),
                        generation.generation_id,
                        self._settings.client_rack,
                    )
                ),
            )
            for name, assignor in self._assignors.items()
        ]

    # ---- Assigning as the leader -------------------------------------------------------------------------
    def lead(self, members: Sequence[JoinGroupResponse.JoinGroupResponseMember]) -> None:
        """Become the group's leader, and follow the metadata of all members' topics until the next rebalance.

        A member whose subscription cannot be decoded counts as a member without topics. That member gets no
        partitions, and the other members get their partitions as usual.
        """
        self._members = {member.member_id: self._subscription_of(member) for member in members}
        self.is_leader = True
        self._follow_group({topic for each in self._members.values() for topic in each.topics})

    def _subscription_of(self, member: JoinGroupResponse.JoinGroupResponseMember) -> Subscription:
        try:
            return decode_subscription(member.metadata, member.group_instance_id)
        except MalformedMessageError as error:
            logger.warning(
                "group %r: member %r gets no partitions because its subscription cannot be read: %s",
                self._settings.group_id,
                member.member_id,
                error,
            )
            return Subscription((), group_instance_id=member.group_instance_id)

    def _follow_group(self, topics: set[str]) -> None:
        self._subscriptions.group_subscription = frozenset(topics)
        self.topics.request()
        requested = self._metadata.update_requested
        self._needed_version = self._metadata.update_version + 1 if requested else -1
        self.topics.restart()

    def can_assign(self) -> bool:
        """Return whether the metadata include the topics of all members."""
        return self._metadata.update_version >= self._needed_version

    def assign(self, protocol_name: str, skip: bool) -> list[tuple[str, bytes]]:
        """Assign partitions as the leader, and return the encoded assignment of each member.

        Return an empty list if the coordinator wants no assignment (``skip``, KIP-814).

        Raises
        ------
        InconsistentGroupProtocolError
            If the group uses an assignor that this member did not offer.
        IllegalStateError
            If a cooperative assignor assigns a partition to another member before its owner has revoked it.
        """
        self.follow_metadata()
        self._assigned_by = self._snapshot
        self._unsubscribed = set()
        if skip:
            logger.info(
                "group %r: the leader rejoined, and the coordinator wants no new assignment",
                self._settings.group_id,
            )
            return []
        assignor = self._assignor(protocol_name)
        topics = {topic for each in self._members.values() for topic in each.topics}
        made = assignor.assign(_partitions(self._metadata.fetch(), topics), self._members)
        if self.protocol is RebalanceProtocol.COOPERATIVE and assignor.name != _TRUSTED_COOPERATIVE:
            self._refuse_unsafe(assignor.name, made)
        self._follow_assigned(topics, made)
        return [(member, encode_assignment(assignment)) for member, assignment in made.items()]

    def _assignor(self, name: str) -> PartitionAssignor:
        assignor = self._assignors.get(name)
        if assignor is None:
            raise InconsistentGroupProtocolError(
                f"group {self._settings.group_id!r} uses assignor {name!r}, which is not in this consumer's "
                f"partition_assignment_strategy: {', '.join(self._assignors)}"
            )
        return assignor

    def _refuse_unsafe(self, name: str, made: dict[str, Assignment]) -> None:
        owners = {tp: member for member, each in self._members.items() for tp in each.owned_partitions}
        for member, assignment in made.items():
            for tp in assignment.partitions:
                owner = owners.get(tp, member)
                if owner != member and tp not in made.get(owner, Assignment(())).partitions:
                    raise IllegalStateError(
                        f"assignor {name!r} assigned {partition_name(tp)} to another member before its owner "
                        "revoked it, which a cooperative assignor must not do"
                    )

    def _follow_assigned(self, topics: set[str], made: dict[str, Assignment]) -> None:
        given = {tp.topic for assignment in made.values() for tp in assignment.partitions}
        for topic in sorted(topics - given):
            logger.warning("group %r: no member reads subscribed topic %r", self._settings.group_id, topic)
        if given - topics:
            # The assignor has assigned topics that no member subscribes to. When the metadata of these topics
            # arrive, they must not cause another rebalance.
            self._subscriptions.group_subscription = frozenset(topics | given)
            self.topics.request()
            self.topics.restart()
            self.follow_metadata()
            self._assigned_by = self._snapshot
            self._unsubscribed = given - topics - self._snapshot.keys()

    # ---- Applying the assignment -------------------------------------------------------------------------
    def complete(self, generation: Generation, blob: bytes) -> Completion:
        """Apply the assignment that the leader made for this member.

        Raises
        ------
        MalformedMessageError
            If the assignment cannot be decoded.
        WakeupError
            If a callback raised it. This method must then be called again.
        """
        if not self.is_leader:
            self._assigned_by = None
            self.topics.request()
        assignor = self._assignor(generation.protocol_name)
        assignment = decode_assignment(blob)
        wanted = list(dict.fromkeys(assignment.partitions))
        if not self._subscriptions.matches(wanted):
            logger.warning(
                "group %r: rejected assignment of %s, which do not all match the subscription",
                self._settings.group_id,
                listed(wanted),
            )
            return Completion("received an assignment that does not match the subscription", None, False)
        rejoin: str | None = None
        owned_partitions = self._subscriptions.assigned_partitions()
        error: Exception | None = None
        if self.protocol is RebalanceProtocol.COOPERATIVE and (
            revoked := owned_partitions.difference(wanted)
        ):
            kept = [tp for tp in self._subscriptions.assigned_in_order() if tp not in revoked]
            times_left = self._times_left
            error = self._revoke(revoked, kept)
            if times_left != self._times_left:
                return Completion(None, error)
            rejoin = "need to revoke partitions and re-join"
        metadata = ConsumerGroupMetadata(
            self._settings.group_id,
            generation.generation_id,
            generation.member_id,
            self._settings.group_instance_id,
        )
        try:
            assignor.on_assignment(assignment, metadata)
        except Exception as raised:
            logger.exception(
                "group %r: on_assignment() of the assignor raised an exception", self._settings.group_id
            )
            error = error or raised
        self._undelivered |= set(wanted) - owned_partitions
        self._assign(wanted)
        self._add_topics({tp.topic for tp in wanted})
        logger.info("group %r: assigned %s", self._settings.group_id, listed(wanted))
        later = self.listener_calls.invoke("on_partitions_assigned", set(self._undelivered))
        self._undelivered = set()
        return Completion(rejoin, error or later)

    def _add_topics(self, topics: set[str]) -> None:
        """Subscribe to assigned topics that match the pattern but are not in this member's metadata yet."""
        if self._subscriptions.subscription_type is not SubscriptionType.AUTO_PATTERN:
            return
        if self._joined_subscription is None or topics <= self._joined_subscription:
            return
        self._joined_subscription |= topics
        self._subscriptions.subscribe_from_pattern(self._subscriptions.subscription | topics)

    def leave(self, generation: Generation, is_rebalancing: bool) -> None:
        """Revoke all partitions before leaving the group.

        Raises
        ------
        Exception
            Any exception of the listener.
        """
        assigned = self._subscriptions.assigned_partitions()
        if not assigned or not self._subscriptions.has_auto_assigned_partitions():
            return
        self._times_left += 1
        gone = assigned - self.listener_calls.being_revoked
        error: Exception | None = None
        if not gone:
            self._assign([])
        elif generation.was_reset() or not generation.has_member_id() or is_rebalancing:
            error = self._lose(gone)
        else:
            error = self._revoke(gone, [])
        if error is not None:
            raise error


def _ignore(partitions: set[TopicPartition], is_lost: bool) -> None:
    """Do nothing."""


def _racks(cluster: Cluster, tp: TopicPartition) -> frozenset[str]:
    partition = cluster.partition(tp)
    nodes = [cluster.node_by_id(each) for each in partition.replica_ids] if partition else []
    return frozenset(node.rack for node in nodes if node is not None and node.rack)


def _partitions(cluster: Cluster, topics: Iterable[str]) -> dict[str, list[PartitionRacks]]:
    has_racks = any(node.rack for node in cluster.nodes)
    found: dict[str, list[PartitionRacks]] = {}
    for topic in topics:
        numbers = cluster.partitions_for_topic(topic)
        if numbers:
            found[topic] = [
                PartitionRacks(number, _racks(cluster, TopicPartition(topic, number)))
                if has_racks
                else PartitionRacks(number)
                for number in numbers
            ]
    return found
