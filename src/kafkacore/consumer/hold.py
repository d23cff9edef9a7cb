"""``with consumer.hold():`` — a member that stays in its group while the program takes its time.

Partitions in, paused for the while and watched; what has gone away out. Does not know: how a group is joined,
threads. (No other client has it; the pattern is what their users write by hand around ``pause``.)
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
    """One ``with`` block; made by ``KafkaConsumer.hold``.

    Its properties and :meth:`check` may be used by any thread.
    """

    def __init__(self, holds: Holds, guard: SingleOwnerGuard) -> None:
        self._holds = holds
        self._guard = guard
        self._held: frozenset[TopicPartition] = frozenset()
        self._revoked: frozenset[TopicPartition] = frozenset()
        self._lost: frozenset[TopicPartition] = frozenset()
        #: To be resumed at the end.
        self.paused: set[TopicPartition] = set()

    @property
    def revoked(self) -> frozenset[TopicPartition]:
        """Partitions that another member may have now, or that begin anew at what is committed."""
        return self._revoked

    @property
    def lost(self) -> frozenset[TopicPartition]:
        """As :attr:`revoked`, without a rebalance that had asked for them: the group had gone on alone."""
        return self._lost

    def check(self, partition: TopicPartition) -> bool:
        """Whether ``partition`` has been this consumer's all the time since the block began."""
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

    def gone(self, partitions: Iterable[TopicPartition], *, is_lost: bool) -> None:
        """They are about to be somebody else's."""
        if is_lost:
            self._lost |= self._held.intersection(partitions)
        else:
            self._revoked |= self._held.intersection(partitions)

    def came_back(self, partition: TopicPartition) -> None:
        """Nobody else has had it."""
        self._revoked -= {partition}


class _Place(NamedTuple):
    position: FetchPosition
    was_paused: bool


class Holds:
    """The blocks that are open, outermost first.

    Parameters
    ----------
    subscriptions:
        Whose partitions are paused.
    membership:
        Kept up meanwhile; ``None`` without a group.
    end_iteration:
        Sets positions back to where the loop over the consumer stands.
    now_ms:
        The clock.
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
        #: Where revoked partitions stood, and the generation in which that was.
        self._places: dict[TopicPartition, _Place] = {}
        self._generation_id = -1

    def begin(self, hold: Hold) -> frozenset[TopicPartition]:
        """Pause what is assigned and runs; all that is assigned."""
        self._open.append(hold)
        assigned = self._subscriptions.assigned_partitions()
        self._pause(hold, assigned)
        if self._membership is not None:
            self._membership.hold(True, self._now_ms())
        return frozenset(assigned)

    def end(self, hold: Hold) -> None:
        """Resume what the block has paused, as far as it is still assigned."""
        if hold not in self._open:
            return
        self._open.remove(hold)
        for partition in hold.paused:
            if self._subscriptions.is_assigned(partition):
                self._subscriptions.resume(partition)
        if not self._open:
            self._places.clear()
            if self._membership is not None:
                self._membership.hold(False, self._now_ms())

    def _pause(self, hold: Hold, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            if not self._subscriptions.is_paused(partition):
                self._subscriptions.pause(partition)
                hold.paused.add(partition)

    # ---- What the group does meanwhile -------------------------------------------------------------------
    def on_gone(self, partitions: Iterable[TopicPartition], is_lost: bool) -> None:
        """Before partitions are revoked, or lost, and the listener is told."""
        if not self._open:
            return
        gone = list(partitions)
        for hold in self._open:
            hold.gone(gone, is_lost=is_lost)
        # The records that the loop has not come to yet are not this consumer's any more.
        self._end_iteration()
        # A listener takes what is revoked for gone: for it, partitions begin anew at what is committed.
        if is_lost or self._subscriptions.listener is not None or self._membership is None:
            return
        self._generation_id = self._membership.generation().generation_id
        for partition in gone:
            position = self._subscriptions.position(partition)
            if position is not None:
                was_paused = not any(partition in hold.paused for hold in self._open)
                self._places[partition] = _Place(position, was_paused)

    def on_assignment_changed(self) -> None:
        """After partitions have gone or come. Those that come are not read before the block ends.

        An eager rebalance revokes everything. What comes back in the very next generation has had no owner in
        between: it goes on where it stood, so that the records in hand are not handed out once more.
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
            # It was certain before; a commit within the block is to know it at once.
            self._subscriptions.seek(partition, place.position)
            if place.was_paused:
                self._subscriptions.pause(partition)
            for hold in self._open:
                hold.came_back(partition)
        self._pause(self._open[0], assigned)
