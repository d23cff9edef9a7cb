"""Raises the epoch of a group when its subscriptions change, and computes its target assignment.

The behaviour is that of Kafka's ``GroupMetadataManager`` and ``TargetAssignmentBuilder``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kafkacore.broker.config.group_limits import consumer_assignors
from kafkacore.broker.coordinator.interfaces import CoordinatorRecord
from kafkacore.broker.group import records
from kafkacore.broker.group.assignor import ASSIGNORS, MemberSubscription, PartitionAssignorError
from kafkacore.broker.group.consumer.consumer_group import NO_ASSIGNMENT, ConsumerGroup, GroupChange
from kafkacore.broker.group.consumer.consumer_member import Assignment, ConsumerGroupMember
from kafkacore.broker.log_lines import NameLogger
from kafkacore.errors import UnknownError

if TYPE_CHECKING:
    from kafkacore.broker.config.broker_config import BrokerConfig
    from kafkacore.broker.config.group_limits import GroupLimits
    from kafkacore.broker.group.consumer.group_topics import GroupTopics
    from kafkacore.clock import Clock

logger = NameLogger(__name__)


class Target(NamedTuple):
    """The target assignment of one member."""

    epoch: int
    assignment: Assignment


class TargetAssignments:
    """Computes the records of new epochs and new target assignments. Only the network thread may use it.

    Parameters
    ----------
    topics:
        The topics.
    config:
        Configuration of the broker, for ``group.consumer.assignors``.
    limits:
        Intervals of the assignments of the groups.
    clock:
        Source of the wall-clock time.
    """

    def __init__(self, topics: GroupTopics, config: BrokerConfig, limits: GroupLimits, clock: Clock) -> None:
        self._topics = topics
        self._default_assignor = consumer_assignors(config)[0]
        self._limits = limits
        self._clock = clock

    def raise_epoch(
        self, group: ConsumerGroup, change: GroupChange, batch: list[CoordinatorRecord], *, must_rise: bool
    ) -> int:
        """Add a record of the next group epoch if ``must_rise`` or if the subscribed topics have changed.

        Parameters
        ----------
        group:
            The group before the change.
        change:
            The change.
        batch:
            Records to which the record is added.
        must_rise:
            Whether the epoch rises even if the subscribed topics are the same.

        Returns
        -------
        int
            The group epoch after the change.
        """
        metadata_hash = self._topics.metadata_hash(group.subscribed_topics(change))
        if not must_rise and metadata_hash == group.metadata_hash:
            return group.epoch
        epoch = group.epoch + 1
        batch.append(records.consumer_group_metadata(group.group_id, epoch, metadata_hash))
        if group.has_partition_metadata:
            batch.append(records.partition_metadata_tombstone(group.group_id))
        logger.info("group %s: group epoch %d", group.group_id, epoch)
        return epoch

    def have_topics_changed(self, group: ConsumerGroup) -> bool:
        """Return whether the subscribed topics have changed since the last change of the group epoch."""
        version = self._topics.version
        if group.topics_version != version:
            names = group.subscribed_topics(GroupChange())
            if self._topics.metadata_hash(names) != group.metadata_hash:
                return True
            group.topics_version = version
        return False

    def target(
        self, group: ConsumerGroup, epoch: int, change: GroupChange, batch: list[CoordinatorRecord]
    ) -> Target:
        """Return the target assignment of the changed member, and add the records of a new assignment.

        An assignment is computed at most once per ``group.consumer.assignment.interval.ms``. Until then, the
        members keep the previous assignment.

        Parameters
        ----------
        group:
            The group before the change.
        epoch:
            The group epoch after the change.
        change:
            The change, which adds a member.
        batch:
            Records to which the records of the assignment are added.
        """
        member = change.added
        assert member is not None, "a member that leaves has no target"
        if not self.is_due(group, epoch):
            return Target(group.assignment_epoch, self._last_target(group, member))
        return Target(epoch, self._assign(group, epoch, change, member, batch))

    def is_due(self, group: ConsumerGroup, epoch: int) -> bool:
        """Return whether an assignment for this group epoch can be computed now."""
        if group.assignment_epoch >= epoch:
            return False
        last_ms = group.assignment_timestamp_ms
        interval_ms = self._limits.of(group.group_id).assignment_interval_ms
        return not last_ms or self._clock.wall_ms() >= last_ms + interval_ms

    @staticmethod
    def _last_target(group: ConsumerGroup, member: ConsumerGroupMember) -> Assignment:
        """Return the current target of a member, or of the static member that it replaces."""
        replaced = group.static_member(member.instance_id)
        return group.target_of(member.member_id if replaced is None else replaced.member_id)

    def _assign(
        self,
        group: ConsumerGroup,
        epoch: int,
        change: GroupChange,
        member: ConsumerGroupMember,
        batch: list[CoordinatorRecord],
    ) -> Assignment:
        began_ms = self._clock.monotonic_ms()
        name = group.preferred_assignor(change) or self._default_assignor
        left = {one.member_id for one in change.removed}
        members = [one for one in group if one.member_id not in left]
        subscriptions = {one.member_id: self._subscription(group, change, one) for one in [*members, member]}
        kinds = {(one.subscribed_topic_names, one.subscribed_topic_regex or "") for one in [*members, member]}
        topic_ids = frozenset().union(*{one.topic_ids for one in subscriptions.values()})
        counts = self._topics.partition_counts(topic_ids)
        try:
            assigned = ASSIGNORS[name].assign(subscriptions, counts, is_homogeneous=len(kinds) == 1)
        except PartitionAssignorError as error:
            message = f"Failed to compute a new target assignment for epoch {epoch}: {error}"
            logger.error("group %s: %s", group.group_id, message)
            raise UnknownError(message) from error
        for member_id, assignment in assigned.items():
            if assignment is not subscriptions[member_id].assigned or member_id not in group.target:
                batch.append(records.target_assignment(group.group_id, member_id, assignment))
        batch.append(records.target_assignment_metadata(group.group_id, epoch, self._clock.wall_ms()))
        logger.info(
            "group %s: new target assignment in epoch %d by the assignor %s for %d members in %.0f ms",
            group.group_id,
            epoch,
            name,
            len(subscriptions),
            self._clock.monotonic_ms() - began_ms,
        )
        return assigned.get(member.member_id, NO_ASSIGNMENT)

    def _subscription(
        self, group: ConsumerGroup, change: GroupChange, member: ConsumerGroupMember
    ) -> MemberSubscription:
        return MemberSubscription(
            member.instance_id,
            self._topics.ids(group.topics_of(member)),
            self._last_target(group, member) if member is change.added else group.target_of(member.member_id),
        )
