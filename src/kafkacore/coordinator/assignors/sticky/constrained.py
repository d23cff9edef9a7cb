"""Sticky assignment of a group whose members all subscribe to the same topics.

The number of partitions per member is known from the start. The steps and their order are those of Java's
``AbstractStickyAssignor.ConstrainedAssignmentBuilder``, so the result is the same.
"""

from __future__ import annotations

from collections import deque
from operator import itemgetter

from kafkacore.coordinator.assignors.abstract import java_key
from kafkacore.coordinator.assignors.sticky.claims import Claims
from kafkacore.coordinator.assignors.sticky.racks import RackInfo
from kafkacore.structs import TopicPartition

_by_number_then_topic = itemgetter(1, 0)


class ConstrainedAssignment:
    """One assignment of partitions to members.

    Each member gets ``least`` partitions, and as many members as necessary get one more. The result, member
    id → partitions, is in ``given``. ``transferred`` maps each partition that changes its owner to the new
    owner.
    """

    def __init__(self, partitions: list[TopicPartition], claims: Claims, racks: RackInfo) -> None:
        members = list(claims.owned)
        self.least, self._with_more_wanted = divmod(len(partitions), len(members))
        self.most = self.least + (self._with_more_wanted > 0)
        self.given: dict[str, list[TopicPartition]] = {member: [] for member in members}
        self.transferred: dict[TopicPartition, str] = {}
        self._claims = claims
        self._racks = racks
        self._with_more = 0
        self._given_up: dict[TopicPartition, str] = {}
        #: ``_below`` has the members with fewer than ``least`` partitions. ``_at_least`` has the members that
        #: have ``least`` partitions and may get one more.
        self._below: list[str] = []
        self._at_least: list[str] = []

        self._keep_owned()
        kept = {partition for mine in self.given.values() for partition in mine}
        free = [partition for partition in partitions if partition not in kept]
        self._below.sort(key=java_key)
        self._at_least.sort(key=java_key)
        if racks:
            free = self._give_near(racks.fewest_near_first(free))
        self._give_in_turn(free)
        assert all(len(mine) >= self.least for mine in self.given.values())

    def _keep_owned(self) -> None:
        contested = self._claims.contested
        for member, claimed in self._claims.owned.items():
            owned = claimed
            if self._racks:
                owned = [one for one in claimed if not self._racks.mismatch(member, one)]
                self._given_up.update((one, member) for one in claimed if self._racks.mismatch(member, one))
            if contested:
                owned = [one for one in owned if one not in contested]
            owned = sorted(owned, key=_by_number_then_topic)
            if len(owned) < self.least:
                self.given[member] = owned
                self._below.append(member)
                continue
            keep = self.least
            if len(owned) >= self.most and self._with_more < self._with_more_wanted:
                keep = self.most
                self._one_more_with_more()
            elif self._with_more < self._with_more_wanted:
                self._at_least.append(member)
            self.given[member] = owned[:keep]
            self._given_up.update((one, member) for one in owned[keep:])

    def _one_more_with_more(self) -> None:
        self._with_more += 1
        if self._with_more == self._with_more_wanted:
            self._at_least.clear()

    def _give_near(self, free: list[TopicPartition]) -> list[TopicPartition]:
        """Assign partitions to members in the same rack, within their quotas; return the partitions left."""
        left = []
        turn = 0
        for partition in free:
            index = self._racks.next_near(partition, self._below, turn)
            if index >= 0:
                member = self._below[index]
                count = self._give(partition, member)
                if count >= self.least:
                    del self._below[index]
                    if count < self.most and self._with_more < self._with_more_wanted:
                        self._at_least.append(member)
                else:
                    index += 1
                turn = index % len(self._below) if self._below else 0
                continue
            index = self._racks.next_near(partition, self._at_least, 0)
            if index < 0:
                left.append(partition)
                continue
            member = self._at_least[index]
            if self._give(partition, member) == self.most:
                del self._at_least[index]
                self._one_more_with_more()
        return left

    def _give_in_turn(self, free: list[TopicPartition]) -> None:
        at_least = deque(self._at_least)
        this_turn = iter(self._below)
        next_turn: list[str] = []
        for partition in free:
            member = next(this_turn, None)
            if member is None and next_turn:
                this_turn, next_turn = iter(next_turn), []
                member = next(this_turn)
            if member is None:
                self._give(partition, at_least.popleft())
            elif self._give(partition, member) == self.least:
                at_least.append(member)
            else:
                next_turn.append(member)

    def _give(self, partition: TopicPartition, member: str) -> int:
        mine = self.given[member]
        mine.append(partition)
        if self._given_up.get(partition, member) != member or partition in self._claims.contested:
            self.transferred[partition] = member
        return len(mine)
