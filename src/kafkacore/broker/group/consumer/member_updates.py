"""Computes the records of a change of a member: its fields, the group epoch, the target and its partitions.

The steps are the same for members of both protocols. The behaviour is that of Kafka's
``GroupMetadataManager``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from kafkacore.broker.coordinator.interfaces import CoordinatorRecord
from kafkacore.broker.group import records
from kafkacore.broker.group.consumer.consumer_group import (
    ConsumerGroup,
    GroupChange,
    ResolvedRegularExpression,
)
from kafkacore.broker.group.consumer.consumer_member import JOIN_EPOCH, ConsumerGroupMember, MemberState
from kafkacore.broker.group.consumer.deadline import Deadline
from kafkacore.broker.group.consumer.member_records import partitions_record, subscription_record
from kafkacore.broker.group.consumer.reconciliation import Reconciliation, ReportedPartitions
from kafkacore.broker.group.consumer.removal import member_tombstones
from kafkacore.broker.log_lines import NameLogger
from kafkacore.protocol.generated.group_records import ConsumerGroupRegularExpressionValue

if TYPE_CHECKING:
    from kafkacore.broker.group.consumer._sessions import Sessions
    from kafkacore.broker.group.consumer.group_topics import GroupTopics
    from kafkacore.broker.group.consumer.regular_expressions import RegularExpressions
    from kafkacore.broker.group.consumer.target_assignments import TargetAssignments
    from kafkacore.broker.group.registry import GroupRegistry

logger = NameLogger(__name__)


class MemberUpdate(NamedTuple):
    """A change of a member whose records have not been written yet."""

    member: ConsumerGroupMember
    #: Group epoch after the change.
    epoch: int
    #: Version of the topics for which the change was computed.
    topics_version: int
    #: Id of the member before the change; ``None`` for a new member.
    previous_id: str | None


class MemberUpdates:
    """Computes the records of a change. Only the network thread may use it.

    Parameters
    ----------
    registry:
        The groups.
    topics:
        The topics.
    assignments:
        Computes epochs and target assignments.
    regexes:
        Matches regular expressions to topics.
    sessions:
        Deadlines of the members.
    """

    def __init__(
        self,
        registry: GroupRegistry,
        topics: GroupTopics,
        assignments: TargetAssignments,
        regexes: RegularExpressions,
        sessions: Sessions,
    ) -> None:
        self._registry = registry
        self._topics = topics
        self._assignments = assignments
        self._regexes = regexes
        self._sessions = sessions
        #: Number of times that a heartbeat or subscription has raised a group epoch since the start of the
        #: broker.
        self.rebalance_count = 0

    def replace_static(
        self,
        group: ConsumerGroup,
        before: ConsumerGroupMember,
        member_id: str,
        batch: list[CoordinatorRecord],
    ) -> ConsumerGroupMember:
        """Replace a static member. Return the new member, with the old member's target and partitions."""
        group_id = group.group_id
        member = replace(
            before, member_id=member_id, member_epoch=JOIN_EPOCH, previous_member_epoch=JOIN_EPOCH
        )
        batch.extend(member_tombstones(group_id, before.member_id))
        batch.append(subscription_record(group_id, member))
        batch.append(records.target_assignment(group_id, member_id, group.target_of(before.member_id)))
        batch.append(partitions_record(group_id, member))
        logger.info(
            "group %s: static member %s (instance id %s) replaces %s",
            group_id,
            member_id,
            before.instance_id,
            before.member_id,
        )
        return member

    def update(
        self,
        group: ConsumerGroup,
        before: ConsumerGroupMember | None,
        member: ConsumerGroupMember,
        updated: ConsumerGroupMember,
        reported: ReportedPartitions | None,
        batch: list[CoordinatorRecord],
        *,
        keeps_target: bool = False,
    ) -> MemberUpdate:
        """Add the records that give a member its new fields and take it one step towards its target.

        Parameters
        ----------
        group:
            The group, which does not change yet.
        before:
            The member before the change, or the static member that is replaced; ``None`` for a new member.
        member, updated:
            The member with its previous fields, and with its new fields.
        reported:
            Partitions that the member reports as owned.
        batch:
            List to which the records of the change are added.
        keeps_target:
            Whether to keep the last target assignment. If this assignment is older than the group epoch, the
            partitions of the member do not change either.

        Raises
        ------
        InvalidRegularExpressionError, FencedMemberEpochError
            See :meth:`RegularExpressions.replace` and :meth:`Reconciliation.next`.
        """
        if updated is not member and updated != member:
            batch.append(subscription_record(group.group_id, updated))
        has_new_names = updated.subscribed_topic_names != member.subscribed_topic_names
        has_new_regex = (updated.subscribed_topic_regex or "") != (member.subscribed_topic_regex or "")
        has_new_subscription = has_new_names or has_new_regex
        must_rise = self._regexes.replace(group, before, updated, batch) or has_new_names
        change = GroupChange(() if before is None else (before,), updated)
        topics_version = self._topics.version
        epoch = group.epoch
        if must_rise or group.topics_version != topics_version:
            epoch = self._assignments.raise_epoch(group, change, batch, must_rise=must_rise)
            self.rebalance_count += epoch != group.epoch
        if keeps_target and group.assignment_epoch < epoch:
            now = updated
        else:
            now = self._reconciled(group, change, epoch, reported, has_new_subscription, batch)
        previous_id = None if before is None else before.member_id
        return MemberUpdate(now, epoch, topics_version, previous_id)

    def written(self, group: ConsumerGroup, update: MemberUpdate) -> None:
        """Store the version of the topics in the group. Call this once the records have been applied.

        If a static member has been replaced, also end its deadlines.
        """
        stored = self._registry.consumer_group(group.group_id)
        if stored is not None and update.previous_id is not None and update.previous_id not in stored:
            self._sessions.end_member(group.group_id, update.previous_id)
        if stored is not None and stored.epoch == update.epoch:
            stored.topics_version = update.topics_version

    def match(
        self,
        group: ConsumerGroup,
        regex: str,
        may_describe: Callable[[str], bool],
        batch: list[CoordinatorRecord],
    ) -> ResolvedRegularExpression | None:
        """Match a regular expression if that is due. Add the records if other topics match than before.

        See :meth:`RegularExpressions.match` for the parameters and the result.
        """
        found = self._regexes.match(group, regex, may_describe)
        known = group.resolved.get(regex)
        if found is None or (known is not None and known.topics == found.topics):
            return found
        value = ConsumerGroupRegularExpressionValue(
            topics=sorted(found.topics), version=found.version, timestamp=found.timestamp_ms
        )
        batch.append(records.regular_expression(group.group_id, regex, value))
        # A new expression that matches no topic does not change the subscribed topics.
        must_rise = known is not None or bool(found.topics)
        change = GroupChange(resolved={regex: found})
        epoch = self._assignments.raise_epoch(group, change, batch, must_rise=must_rise)
        self.rebalance_count += epoch != group.epoch
        return found

    def matched(self, group: ConsumerGroup, regex: str, found: ResolvedRegularExpression) -> None:
        """Store when the expression was matched, unless its records could not be written."""
        stored = group.resolved.get(regex)
        if stored is not None and stored.topics == found.topics:
            group.regex_checks[regex] = (found.version, found.timestamp_ms)

    def _reconciled(
        self,
        group: ConsumerGroup,
        change: GroupChange,
        epoch: int,
        reported: ReportedPartitions | None,
        subscription_changed: bool,
        batch: list[CoordinatorRecord],
    ) -> ConsumerGroupMember:
        """Take the changed member one step towards its target assignment."""
        member = change.added
        assert member is not None
        target = self._assignments.target(group, epoch, change, batch)
        if not subscription_changed and member.is_reconciled_to(target.epoch):
            return member
        step = Reconciliation(
            member,
            target.epoch,
            target.assignment,
            self._topics.ids(group.topics_of(member)),
            reported,
            group.is_owned,
        )
        reconciled = step.next(subscription_changed=subscription_changed)
        if reconciled == member:
            return member
        batch.append(partitions_record(group.group_id, reconciled))
        if reconciled.state is MemberState.UNREVOKED_PARTITIONS and not reconciled.uses_classic_protocol:
            self._sessions.begin(
                group.group_id, member.member_id, Deadline.REVOCATION, reconciled.rebalance_timeout_ms
            )
        else:
            self._sessions.end(group.group_id, member.member_id, Deadline.REVOCATION)
        return reconciled
