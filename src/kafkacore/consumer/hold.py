"""``with consumer.hold():`` keeps a consumer in its group while records take long to process.

A hold pauses the assigned partitions and records which of them are revoked or lost during the hold. Users of
other clients call ``pause`` and ``resume`` themselves for this purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import NamedTuple, Self

from kafkacore.consumer.group.membership import GroupMembership
from kafkacore.consumer.guard import SingleOwnerGuard
from kafkacore.consumer.subscription_state import FetchPosition, SubscriptionState
from kafkacore.structs import TopicPartition


class Hold:
    """Context manager that ``KafkaConsumer.hold`` returns.

    Any thread may use its properties and :meth:`check`.
    """

    def __init__(self, holds: Holds, guard: SingleOwnerGuard) -> None:
        self._holds = holds
        self._guard = guard
        self._held: frozenset[TopicPartition] = frozenset()
        self._revoked: frozenset[TopicPartition] = frozenset()
        self._lost: frozenset[TopicPartition] = frozenset()
        #: Partitions that the block paused and that the end of the block resumes.
        self.paused: set[TopicPartition] = set()

    def __repr__(self) -> str:
        held = sum(map(self.check, self._held))
        return f"<Hold {held} partitions held, {len(self._revoked)} revoked, {len(self._lost)} lost>"

    @property
    def revoked(self) -> frozenset[TopicPartition]:
        """Partitions that were revoked in a rebalance. Another member may own them now.

        A partition that was assigned to this consumer again is included if the consumer now reads it from
        the committed offset.
        """
        return self._revoked

    @property
    def lost(self) -> frozenset[TopicPartition]:
        """Partitions that this consumer lost because the group rebalanced without it."""
        return self._lost

    def check(self, partition: TopicPartition) -> bool:
        """Return whether this consumer has owned ``partition`` since the block began."""
        return partition in self._held and partition not in self._revoked and partition not in self._lost

    def __enter__(self) -> Self:
        with self._guard:
            self._held = self._holds.begin(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._guard.in_other_process():
            with self._guard:
                self._holds.end(self)

    def partitions_removed(self, partitions: Iterable[TopicPartition], *, is_lost: bool) -> None:
        """Record partitions that are about to be revoked or lost."""
        if is_lost:
            self._lost |= self._held.intersection(partitions)
        else:
            self._revoked |= self._held.intersection(partitions)

    def partition_returned(self, partition: TopicPartition) -> None:
        """Remove ``partition`` from :attr:`revoked`: it is assigned again, and no other member owned it."""
        self._revoked -= {partition}


class _Place(NamedTuple):
    position: FetchPosition
    was_paused: bool


class Holds:
    """The open holds of one consumer, outermost first.

    Parameters
    ----------
    subscriptions:
        State of the partitions to pause and resume.
    membership:
        Membership to keep alive during a hold; ``None`` without a group.
    end_iteration:
        Function that ends a ``for`` loop over the consumer, and moves the positions back to the first records
        that the loop has not read.
    now_ms:
        Function that returns the time in monotonic milliseconds.
    """

    def __init__(
        self,
        subscriptions: SubscriptionState,
        membership: GroupMembership | None,
        end_iteration: Callable[[], None],
        now_ms: Callable[[], float],
    ) -> None:
        self._subscriptions = subscriptions
        self._membership = membership
        self._end_iteration = end_iteration
        self._now_ms = now_ms
        self._open: list[Hold] = []
        self._rejoins_anyway = False
        #: Positions of revoked partitions, and the generation in which they were revoked.
        self._places: dict[TopicPartition, _Place] = {}
        self._generation_id = -1

    def begin(self, hold: Hold) -> frozenset[TopicPartition]:
        """Pause the assigned partitions that are not paused yet; return all assigned partitions."""
        self._open.append(hold)
        assigned = self._subscriptions.assigned_partitions()
        self._pause(hold, assigned)
        self._hold_membership()
        return frozenset(assigned)

    def end(self, hold: Hold) -> None:
        """Resume the partitions that the block paused and that are still assigned."""
        if hold not in self._open:
            return
        self._open.remove(hold)
        for partition in hold.paused:
            if self._subscriptions.is_assigned(partition):
                self._subscriptions.resume(partition)
        if not self._open:
            self._places.clear()
            self._hold_membership()

    def rejoin_anyway(self, wanted: bool) -> None:
        """Let rebalances run in the background even while no block is open, or only within blocks."""
        if wanted != self._rejoins_anyway:
            self._rejoins_anyway = wanted
            self._hold_membership()

    def _hold_membership(self) -> None:
        if self._membership is not None:
            self._membership.hold(self._rejoins_anyway or bool(self._open), self._now_ms())

    def _pause(self, hold: Hold, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            if not self._subscriptions.is_paused(partition):
                self._subscriptions.pause(partition)
                hold.paused.add(partition)

    # ---- Rebalances during a hold ------------------------------------------------------------------------
    def on_partitions_removed(self, partitions: Iterable[TopicPartition], is_lost: bool) -> None:
        """Handle partitions that are about to be revoked or lost, before the rebalance listener is called."""
        if not self._open:
            return
        removed = list(partitions)
        for hold in self._open:
            hold.partitions_removed(removed, is_lost=is_lost)
        # Records that the loop has not read yet do not belong to this consumer any more.
        self._end_iteration()
        # A rebalance listener has seen the revocation. If the partition is assigned again, the listener
        # expects it to start at the committed offset.
        if is_lost or self._subscriptions.listener is not None or self._membership is None:
            return
        self._generation_id = self._membership.generation().generation_id
        for partition in removed:
            position = self._subscriptions.position(partition)
            if position is not None:
                was_paused = not any(partition in hold.paused for hold in self._open)
                self._places[partition] = _Place(position, was_paused)

    def on_assignment_changed(self) -> None:
        """Handle a changed assignment, and pause newly assigned partitions until the block ends.

        An eager rebalance revokes all partitions. A partition that is assigned again in the very next
        generation had no other owner. Its position is kept, so that its records are not returned twice.
        """
        if not self._open or self._membership is None:
            return
        assigned = self._subscriptions.assigned_partitions()
        if not assigned:
            return
        is_next = self._membership.generation().generation_id == self._generation_id + 1
        places, self._places = self._places, {}
        for partition in assigned:
            place = places.get(partition)
            if place is None or not is_next:
                continue
            # The position was valid before the rebalance. Set it now, so that a commit in the block
            # can use it.
            self._subscriptions.seek(partition, place.position)
            if place.was_paused:
                self._subscriptions.pause(partition)
            for hold in self._open:
                hold.partition_returned(partition)
        self._pause(self._open[0], assigned)
