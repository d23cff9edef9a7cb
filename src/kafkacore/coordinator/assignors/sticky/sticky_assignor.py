"""The sticky assignor, with eager rebalances: balanced, and as much as can be stays where it was.

In: partitions, subscriptions with what members had, in their user data. Out: assignments. Does not know:
requests.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping

from kafkacore.coordinator.assignors.abstract import PartitionAssignor, Partitions
from kafkacore.coordinator.assignors.sticky.claims import Claims
from kafkacore.coordinator.assignors.sticky.constrained import ConstrainedAssignment
from kafkacore.coordinator.assignors.sticky.general import GeneralAssignment
from kafkacore.coordinator.assignors.sticky.racks import RackInfo
from kafkacore.coordinator.assignors.sticky.user_data import (
    MemberData,
    decode_previous_assignment,
    encode_previous_assignment,
)
from kafkacore.coordinator.protocol import Assignment, Subscription
from kafkacore.structs import ConsumerGroupMetadata, TopicPartition


class AbstractStickyAssignor(PartitionAssignor):
    """What both sticky assignors do (Kafka's class of this name)."""

    @abstractmethod
    def member_data(self, subscription: Subscription) -> MemberData:
        """What the member owned, and in which generation."""

    def assign(
        self, partitions: Partitions, subscriptions: Mapping[str, Subscription]
    ) -> dict[str, Assignment]:
        """Distribute; see :meth:`PartitionAssignor.assign`."""
        given, _ = self.distribute(partitions, subscriptions)
        return {member: Assignment(mine) for member, mine in given.items()}

    def distribute(
        self, partitions: Partitions, subscriptions: Mapping[str, Subscription]
    ) -> tuple[dict[str, list[TopicPartition]], dict[TopicPartition, str] | None]:
        """Who gets what in the end; and what changes hands, with its next owner, ``None`` if that is not
        known.
        """
        wanted = {member: frozenset(sub.topics) for member, sub in subscriptions.items()}
        topics = frozenset().union(*wanted.values())
        found = {topic: entries for topic in sorted(topics) if (entries := partitions.get(topic))}
        every = [
            TopicPartition(topic, number)
            for topic, entries in found.items()
            for number in sorted(entry.partition for entry in entries)
        ]
        claims = Claims(subscriptions, set(every), self.member_data)
        racks = RackInfo(found, subscriptions)
        if all(mine == topics for mine in wanted.values()):
            constrained = ConstrainedAssignment(every, claims, racks)
            return constrained.given, constrained.transferred
        return GeneralAssignment(found, claims, racks, subscriptions).assignment(), None


class StickyPartitionAssignor(AbstractStickyAssignor):
    """Java's ``StickyAssignor`` (KIP-54, KIP-341): as balanced as can be, and then as little moves as can be.

    Members give everything up before they join, so that what they had travels in the user data.
    """

    name = "sticky"
    java_name = "StickyAssignor"

    def __init__(self) -> None:
        self._previous: MemberData | None = None

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        """What this member had last, and in which generation."""
        return None if self._previous is None else encode_previous_assignment(self._previous)

    def on_assignment(self, assignment: Assignment, metadata: ConsumerGroupMetadata) -> None:
        """Remember it for the next time."""
        self._previous = MemberData(tuple(assignment.partitions), metadata.generation_id)

    def member_data(self, subscription: Subscription) -> MemberData:
        """From the user data alone: a member that rebalances eagerly owns nothing when it joins."""
        return decode_previous_assignment(subscription.user_data)
