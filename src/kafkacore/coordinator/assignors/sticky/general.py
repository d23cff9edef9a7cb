"""Sticky assignment of a group whose members subscribe to different topics.

Members keep the partitions that they own, the other partitions are assigned, and partitions are moved while
moves improve the balance. The steps and their order are those of Java's
``AbstractStickyAssignor.GeneralAssignmentBuilder``. Java iterates over the whole group to check the balance
in each step; this code maintains a sorted list instead.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping

from kafkacore.coordinator.assignors.abstract import Partitions, java_key
from kafkacore.coordinator.assignors.sticky.claims import Claims
from kafkacore.coordinator.assignors.sticky.partition_movements import PartitionMovements
from kafkacore.coordinator.assignors.sticky.racks import RackInfo
from kafkacore.coordinator.protocol import Subscription
from kafkacore.structs import TopicPartition


class GeneralAssignment:
    """One assignment of partitions to members; :meth:`assignment` returns the result.

    Members are numbered in the order of their ids. ``_fewest_first`` is a sorted list with one integer per
    member: the member's partition count times the number of members, plus the member's number. The first
    entry is the member with the fewest partitions. Of several members with equally few partitions, the member
    with the lowest id comes first.
    """

    def __init__(
        self,
        partitions: Partitions,
        claims: Claims,
        racks: RackInfo,
        subscriptions: Mapping[str, Subscription],
    ) -> None:
        self._members = sorted(subscriptions, key=java_key)
        numbers = {member: number for number, member in enumerate(self._members)}
        self._topics = [
            {topic for topic in subscriptions[member].topics if topic in partitions}
            for member in self._members
        ]
        self._subscribers: dict[str, list[int]] = {topic: [] for topic in partitions}
        for number, topics in enumerate(self._topics):
            for topic in topics:
                self._subscribers[topic].append(number)
        self._racks = racks
        self._sizes = {topic: len(entries) for topic, entries in partitions.items()}
        self._movements = PartitionMovements()
        self._has: list[dict[TopicPartition, None]] = [{} for _ in self._members]
        self._owner: dict[TopicPartition, int] = {}
        self._previous = {
            partition: numbers[member]
            for partition, member in claims.previous_owners().items()
            # Unlike Java, check whether the member still subscribes to the topic.
            if partition.topic in self._topics[numbers[member]]
        }
        self._must_revoke = self._keep_owned(claims)
        topics_in_order = sorted(partitions, key=lambda topic: (len(self._subscribers[topic]), topic))
        self._all = [
            TopicPartition(topic, number)
            for topic in topics_in_order
            for number in sorted(entry.partition for entry in partitions[topic])
        ]
        self._fewest_first = sorted(self._place(number) for number in range(len(self._members)))
        self._balance()

    def assignment(self) -> dict[str, list[TopicPartition]]:
        """Return the partitions of each member id."""
        return {member: list(mine) for member, mine in zip(self._members, self._has, strict=True)}

    def _place(self, member: int) -> int:
        return len(self._has[member]) * len(self._members) + member

    def _keep_owned(self, claims: Claims) -> bool:
        """Assign members the partitions that they owned; return whether a member must give up a partition."""
        must_revoke = False
        for number, member in enumerate(self._members):
            for partition in claims.owned[member]:
                if partition.topic not in self._topics[number] or self._racks.mismatch(member, partition):
                    must_revoke = True
                else:
                    self._has[number][partition] = None
                    self._owner[partition] = number
        return must_revoke

    def _balance(self) -> None:
        free = [partition for partition in self._all if partition not in self._owner]
        from_nothing = not self._owner
        for_all = free
        if self._racks:
            for_all = [partition for partition in free if not self._give(partition, near_only=True)]
        for partition in for_all:
            self._give(partition, near_only=False)

        # Leave out partitions that only one member subscribes to, because they never move. Leave out members
        # that can neither get nor lose a partition.
        free = [partition for partition in free if len(self._subscribers[partition.topic]) > 1]
        movable = [partition for partition in self._all if len(self._subscribers[partition.topic]) > 1]
        self._fewest_first = [
            place for place in self._fewest_first if self._may_take_part(place % len(self._members))
        ]
        before = [dict(mine) for mine in self._has]
        score_before = self._score()
        if not self._must_revoke:
            self._move_while_it_helps(free)
        moved = self._move_while_it_helps(movable)
        if not from_nothing and moved and self._score() >= score_before:
            self._has = before

    def _may_take_part(self, member: int) -> bool:
        """Return whether a partition can move to the member or away from it."""
        if len(self._has[member]) < sum(map(self._sizes.__getitem__, self._topics[member])):
            return True
        return any(len(self._subscribers[partition.topic]) > 1 for partition in self._has[member])

    def _score(self) -> int:
        """Return the imbalance: the sum of the differences in partition count over all pairs of members."""
        counts = [len(self._has[place % len(self._members)]) for place in self._fewest_first]
        counts.sort()
        last = len(counts) - 1
        return sum(count * (2 * index - last) for index, count in enumerate(counts))

    def _give(self, partition: TopicPartition, near_only: bool) -> bool:
        for place in self._fewest_first:
            member = place % len(self._members)
            if partition.topic not in self._topics[member]:
                continue
            if near_only and self._racks.mismatch(self._members[member], partition):
                continue
            self._change(member, partition, add=True)
            self._owner[partition] = member
            return True
        return False

    def _change(self, member: int, partition: TopicPartition, add: bool) -> None:
        place = self._place(member)
        del self._fewest_first[bisect_left(self._fewest_first, place)]
        if add:
            self._has[member][partition] = None
        else:
            del self._has[member][partition]
        insort(self._fewest_first, self._place(member))

    def _move_while_it_helps(self, partitions: list[TopicPartition]) -> bool:
        moved = False
        modified = bool(partitions)
        while modified:
            modified = False
            balanced = self._is_balanced()
            for partition in partitions:
                if balanced:
                    break
                taker = self._taker(partition)
                if taker is not None:
                    self._reassign(partition, taker)
                    modified = moved = True
                    balanced = self._is_balanced()
        return moved

    def _taker(self, partition: TopicPartition) -> int | None:
        """Return the member to move this partition to: its previous owner, or else another subscriber.

        The other subscriber is the member with the fewest partitions. Return ``None`` if a move would not
        improve the balance.
        """
        limit = len(self._has[self._owner[partition]]) - 1
        previous = self._previous.get(partition)
        if previous is not None and len(self._has[previous]) < limit:
            return previous
        return self._with_fewer(partition.topic, limit)

    def _with_fewer(self, topic: str, limit: int) -> int | None:
        """Return the subscriber with the fewest partitions, if it has fewer than ``limit``."""
        for place in self._fewest_first:
            count, member = divmod(place, len(self._members))
            if count >= limit:
                return None
            if topic in self._topics[member]:
                return member
        return None

    def _is_balanced(self) -> bool:
        """Return false if a partition could move to a member with at least two fewer partitions."""
        fewest = self._fewest_first[0] // len(self._members)
        most = self._fewest_first[-1] // len(self._members)
        if fewest >= most - 1:
            return True
        seen: dict[str, int] = {}
        for place in reversed(self._fewest_first):
            count, member = divmod(place, len(self._members))
            if count <= fewest + 1:
                return True
            for partition in self._has[member]:
                topic = partition.topic
                # The loop visits members by descending partition count, so the first member found with a
                # topic has the most partitions.
                if topic not in seen:
                    seen[topic] = count
                    if self._with_fewer(topic, count - 1) is not None:
                        return False
        return True

    def _reassign(self, partition: TopicPartition, new: int) -> None:
        old = self._owner[partition]
        instead = self._movements.instead_of(partition, old, new)
        between = self._owner[instead]
        if between != old:
            # ``partition`` and ``instead`` have both moved before. Without the following move, ``old`` would
            # keep one partition too many.
            self._move(partition, between)
        self._move(instead, new)

    def _move(self, partition: TopicPartition, new: int) -> None:
        old = self._owner[partition]
        self._movements.move(partition, old, new)
        self._change(old, partition, add=False)
        self._change(new, partition, add=True)
        self._owner[partition] = new
