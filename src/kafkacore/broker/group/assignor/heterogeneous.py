"""The uniform assignment of a group whose members subscribe to different topics.

The behaviour is that of Kafka's ``UniformHeterogeneousAssignmentBuilder``. Where Kafka follows the order of
a hash table, members come in the order of the group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from kafkacore.broker.group.assignor.interfaces import Assignment, MemberSubscription

#: Maximum number of times that all topics are balanced.
MAX_ROUNDS: Final = 16
NOBODY: Final = -1


class HeterogeneousAssignment:
    """Assigns the partitions of topics to the members that subscribe to them.

    Parameters
    ----------
    members:
        The members by id.
    partition_counts:
        Number of partitions of each topic.
    """

    def __init__(
        self, members: Mapping[str, MemberSubscription], partition_counts: Mapping[UUID, int]
    ) -> None:
        self._members = list(members.items())
        self._subscribers: dict[UUID, list[int]] = {}
        for place, (_, member) in enumerate(self._members):
            for topic_id in member.topic_ids:
                self._subscribers.setdefault(topic_id, []).append(place)
        #: Member of each partition of each topic.
        self._owners = {topic_id: [NOBODY] * partition_counts[topic_id] for topic_id in self._subscribers}
        #: Number of partitions of each member.
        self._loads = [0] * len(self._members)
        self._has_changed = [False] * len(self._members)

    def build(self) -> dict[str, Assignment]:
        """Return the new target assignment of each member."""
        self._keep()
        self._assign_free()
        self._balance()
        return self._assignments()

    def _keep(self) -> None:
        """Let members keep the partitions of the topics that they still subscribe to."""
        for place, (_, member) in enumerate(self._members):
            for topic_id, partitions in member.assigned.items():
                if topic_id not in member.topic_ids:
                    self._has_changed[place] = True
                    continue
                owners = self._owners[topic_id]
                for partition in partitions:
                    if partition < len(owners):
                        owners[partition] = place
                        self._loads[place] += 1
                    else:
                        self._has_changed[place] = True

    def _sorted(self, topic_ids: Sequence[UUID]) -> list[UUID]:
        """Return topics with many partitions for each subscriber first: they have the least choice."""

        def order(topic_id: UUID) -> tuple[float, int, tuple[int, int]]:
            subscribers = len(self._subscribers[topic_id])
            return -len(self._owners[topic_id]) / subscribers, subscribers, _java_order(topic_id)

        return sorted(topic_ids, key=order)

    def _assign_free(self) -> None:
        free = {
            topic_id: [partition for partition, owner in enumerate(owners) if owner == NOBODY]
            for topic_id, owners in self._owners.items()
        }
        for topic_id in self._sorted([topic_id for topic_id, partitions in free.items() if partitions]):
            loads = _Loads(self._loads, self._subscribers[topic_id])
            for partition in free[topic_id]:
                self._give(topic_id, partition, loads.next_least())

    def _balance(self) -> None:
        topic_ids = self._sorted([one for one, members in self._subscribers.items() if len(members) > 1])
        last_changed: UUID | None = None
        for _ in range(MAX_ROUNDS):
            for topic_id in topic_ids:
                if topic_id == last_changed:
                    return  # All topics are balanced since this one has last changed.
                if self._balance_topic(topic_id) or last_changed is None:
                    last_changed = topic_id

    def _balance_topic(self, topic_id: UUID) -> bool:
        """Move partitions of a topic from the members with most partitions to those with least."""
        owners = self._owners[topic_id]
        loads = _Loads(self._loads, self._subscribers[topic_id])
        if loads.imbalance <= 1:
            return False
        of_member: dict[int, list[int]] = {}
        for partition, owner in enumerate(owners):
            of_member.setdefault(owner, []).append(partition)
        has_moved = False
        while not loads.is_balanced:
            most = loads.next_most()
            if most == NOBODY:
                break
            movable = of_member.get(most)
            if not movable:
                loads.exclude_most()
                continue
            partition = movable.pop()
            least = loads.next_least()
            if loads.is_balanced:
                break
            self._give(topic_id, partition, least)
            has_moved = True
        return has_moved

    def _give(self, topic_id: UUID, partition: int, place: int) -> None:
        owners = self._owners[topic_id]
        before = owners[partition]
        if before != NOBODY:
            self._loads[before] -= 1
            self._has_changed[before] = True
        owners[partition] = place
        self._loads[place] += 1
        self._has_changed[place] = True

    def _assignments(self) -> dict[str, Assignment]:
        new: list[dict[UUID, list[int]]] = [{} for _ in self._members]
        for topic_id, owners in self._owners.items():
            for partition, place in enumerate(owners):
                if place != NOBODY and self._has_changed[place]:
                    new[place].setdefault(topic_id, []).append(partition)
        assigned: dict[str, Assignment] = {}
        for (member_id, member), has_changed, topics in zip(
            self._members, self._has_changed, new, strict=True
        ):
            after = {topic_id: tuple(partitions) for topic_id, partitions in topics.items()}
            assigned[member_id] = after if has_changed and after != member.assigned else member.assigned
        return assigned


class _Loads:
    """Finds the members of a topic with the least and the most partitions, one after the other.

    The members are sorted by their load once. The least loaded ones form a range at the begin, and the most
    loaded ones a range at the end. The caller gives a partition to each least loaded member in turn, which
    makes all of them equal, and then the range grows by the members with that load; the other end works
    alike.

    Parameters
    ----------
    loads:
        Number of partitions of each member. The caller changes it.
    members:
        Members that subscribe to the topic.
    """

    def __init__(self, loads: list[int], members: Sequence[int]) -> None:
        self._loads = loads
        self._sorted = sorted(members, key=lambda place: (loads[place], place))
        count = len(self._sorted)
        self._least_end = 0
        self._least_load = loads[self._sorted[0]] - 1
        self._next_least = 0
        self._most_start = self._most_end = count
        self._most_load = loads[self._sorted[-1]] + 1
        self._next_most = count - 1
        #: Difference between the most and the least partitions of a member.
        self.imbalance = loads[self._sorted[-1]] - loads[self._sorted[0]]

    @property
    def is_balanced(self) -> bool:
        return self._most_load - self._least_load <= 1

    def next_least(self) -> int:
        """Return the next member to which the caller gives a partition."""
        if self._next_least >= self._least_end:
            self._least_load += 1
            while (
                self._least_end < len(self._sorted)
                and self._loads[self._sorted[self._least_end]] == self._least_load
            ):
                self._least_end += 1
            self._next_least = 0
        place = self._sorted[self._next_least]
        self._next_least += 1
        return place

    def next_most(self) -> int:
        """Return the next member from which the caller takes a partition, or ``NOBODY``."""
        if self._next_most < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                self._most_load = self._loads[self._sorted[self._most_start - 1]]
            else:
                self._most_load -= 1
            while self._most_start > 0 and self._loads[self._sorted[self._most_start - 1]] == self._most_load:
                self._most_start -= 1
            self._next_most = self._most_end - 1
        if self._next_most < 0:
            return NOBODY
        place = self._sorted[self._next_most]
        self._next_most -= 1
        return place

    def exclude_most(self) -> None:
        """Leave out the member that :meth:`next_most` has returned: it has no partition of the topic."""
        here, last = self._next_most + 1, self._most_end - 1
        self._sorted[here], self._sorted[last] = self._sorted[last], self._sorted[here]
        self._most_end -= 1


def _java_order(topic_id: UUID) -> tuple[int, int]:
    """Return the sort key of Kafka's ``Uuid``: two signed 64-bit numbers."""
    high, low = divmod(topic_id.int, 1 << 64)
    return high - ((high >> 63) << 64), low - ((low >> 63) << 64)
