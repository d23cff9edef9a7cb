"""The sticky assignor for eager rebalances: a balanced assignment that moves few partitions."""

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
    """Base of both sticky assignors. This is Kafka's class of the same name."""

    @abstractmethod
    def member_data(self, subscription: Subscription) -> MemberData:
        """Return the partitions that the member owned, and the generation in which it owned them."""

    def assign(
        self, partitions: Partitions, subscriptions: Mapping[str, Subscription]
    ) -> dict[str, Assignment]:
        """Assign the partitions; see :meth:`PartitionAssignor.assign`."""
        given, _ = self.distribute(partitions, subscriptions)
        return {member: Assignment(mine) for member, mine in given.items()}

    def distribute(
        self, partitions: Partitions, subscriptions: Mapping[str, Subscription]
    ) -> tuple[dict[str, list[TopicPartition]], dict[TopicPartition, str] | None]:
        """Return the partitions of each member, and the new owner of each partition that changes its owner.

        The second value is ``None`` if the algorithm does not track such partitions.
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
    """Java's ``StickyAssignor`` (KIP-54, KIP-341): a balanced assignment that moves few partitions.

    Members revoke all partitions before they join, so they send the previous assignment as user data.
    """

    name = "sticky"
    java_name = "StickyAssignor"

    def __init__(self) -> None:
        self._previous: MemberData | None = None

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        """Return the previous assignment of this member, and its generation."""
        return None if self._previous is None else encode_previous_assignment(self._previous)

    def on_assignment(self, assignment: Assignment, metadata: ConsumerGroupMetadata) -> None:
        """Store the assignment, which is sent to the leader in the next rebalance."""
        self._previous = MemberData(tuple(assignment.partitions), metadata.generation_id)

    def member_data(self, subscription: Subscription) -> MemberData:
        """Decode the previous assignment from the user data; a member owns no partitions when it joins."""
        return decode_previous_assignment(subscription.user_data)
