"""Takes a member one step towards its target assignment.

A member first revokes the partitions that it must give up. It gets a partition only after the previous
owner has released it. The behaviour is that of Kafka's ``CurrentAssignmentBuilder``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from kafkacore.broker.group.consumer.consumer_member import (
    NO_PARTITIONS,
    Assignment,
    ConsumerGroupMember,
    MemberState,
    OwnedPartitions,
)
from kafkacore.errors import FencedMemberEpochError
from kafkacore.wire import Uuid

#: Topic ids and partitions that a member reports as owned.
ReportedPartitions = Collection[tuple[Uuid, Collection[int]]]

_Partitions = dict[Uuid, dict[int, int]]


class Reconciliation:
    """One step of a member towards its target assignment.

    Parameters
    ----------
    member:
        The member.
    target_epoch:
        Epoch of the target assignment.
    target:
        The member's target assignment.
    subscribed:
        Ids of the topics that the member subscribes to. The member gets no partitions of other topics.
    reported:
        Partitions that the member reports as owned; ``None`` if the heartbeat does not contain this field.
    is_owned:
        Returns whether any member owns a partition.
    """

    def __init__(
        self,
        member: ConsumerGroupMember,
        target_epoch: int,
        target: Assignment,
        subscribed: Collection[Uuid],
        reported: ReportedPartitions | None,
        is_owned: Callable[[Uuid, int], bool],
    ) -> None:
        self._member = member
        self._target_epoch = target_epoch
        self._target = target
        self._subscribed = subscribed
        self._reported = reported
        self._is_owned = is_owned

    def next(self, *, subscription_changed: bool) -> ConsumerGroupMember:
        """Return the member after the step. Without a change, the result equals the member before the step.

        Parameters
        ----------
        subscription_changed:
            Whether the heartbeat has changed the member's subscription. The member then gives up partitions
            of topics to which it no longer subscribes, even before a new target assignment exists.

        Raises
        ------
        FencedMemberEpochError
            The member's state is unknown, and it still owns partitions.
        """
        member = self._member
        if member.state is MemberState.STABLE and member.member_epoch == self._target_epoch:
            return self._without_unsubscribed() if subscription_changed else member
        if member.state is MemberState.UNREVOKED_PARTITIONS and self._reports_any_of(
            member.pending_revocation
        ):
            return self._without_unsubscribed() if subscription_changed else member
        if member.state is MemberState.UNKNOWN:
            if self._reported is None or self._reported:
                raise FencedMemberEpochError(
                    "The consumer group member is in a unknown state. "
                    "The member must abandon all its partitions and rejoin."
                )
            return self._towards_target(self._target_epoch)
        return self._towards_target(member.member_epoch)

    def _reports_any_of(self, revoked: OwnedPartitions) -> bool:
        """Return whether the member may still own some of these partitions."""
        if self._reported is None:
            return True
        return any(
            partition in revoked.get(topic_id, ())
            for topic_id, partitions in self._reported
            for partition in partitions
        )

    def _without_unsubscribed(self) -> ConsumerGroupMember:
        member = self._member
        lost = [topic_id for topic_id in member.assigned if topic_id not in self._subscribed]
        if not lost:
            return member
        assigned = {
            topic_id: partitions for topic_id, partitions in member.assigned.items() if topic_id not in lost
        }
        revoked: _Partitions = {
            topic_id: dict(partitions) for topic_id, partitions in member.pending_revocation.items()
        }
        for topic_id in lost:
            revoked.setdefault(topic_id, {}).update(member.assigned[topic_id])
        if not self._reports_any_of(revoked):
            return self._moved(member.member_epoch, member.state, assigned, member.pending_revocation)
        return self._moved(member.member_epoch, MemberState.UNREVOKED_PARTITIONS, assigned, revoked)

    def _towards_target(self, member_epoch: int) -> ConsumerGroupMember:
        member = self._member
        assigned: _Partitions = {}
        revoked: _Partitions = {}
        has_unreleased = False
        for topic_id in dict.fromkeys([*self._target, *member.assigned]):
            target = self._target.get(topic_id, ()) if topic_id in self._subscribed else ()
            owned = member.assigned.get(topic_id, {})
            kept: dict[int, int] = {}
            for partition in target:
                if partition in owned:
                    kept[partition] = owned[partition]
                elif self._is_free(topic_id, partition):
                    kept[partition] = self._target_epoch
                else:
                    has_unreleased = True
            lost = {partition: epoch for partition, epoch in owned.items() if partition not in kept}
            if kept:
                assigned[topic_id] = kept
            if lost:
                revoked[topic_id] = lost
        if revoked and self._reports_any_of(revoked):
            return self._moved(
                member_epoch, MemberState.UNREVOKED_PARTITIONS, self._only_owned(assigned), revoked
            )
        state = MemberState.UNRELEASED_PARTITIONS if has_unreleased else MemberState.STABLE
        return self._moved(self._target_epoch, state, assigned, NO_PARTITIONS)

    def _is_free(self, topic_id: Uuid, partition: int) -> bool:
        # A partition that the member itself has just released can be assigned to the member again.
        return not self._is_owned(topic_id, partition) or partition in self._member.pending_revocation.get(
            topic_id, ()
        )

    def _only_owned(self, assigned: _Partitions) -> _Partitions:
        """Return the partitions that the member owns already."""
        before = self._member.assigned
        owned = {
            topic_id: {one: epoch for one, epoch in partitions.items() if one in before.get(topic_id, ())}
            for topic_id, partitions in assigned.items()
        }
        return {topic_id: partitions for topic_id, partitions in owned.items() if partitions}

    def _moved(
        self, epoch: int, state: MemberState, assigned: OwnedPartitions, revoked: OwnedPartitions
    ) -> ConsumerGroupMember:
        return replace(
            self._member,
            member_epoch=epoch,
            previous_member_epoch=self._member.member_epoch,
            state=state,
            assigned=assigned,
            pending_revocation=revoked,
        )
