"""The cooperative sticky assignor, which moves partitions in two rebalances.

The first rebalance revokes a partition from its old owner. The second rebalance assigns it to the new owner.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kafkacore.coordinator.assignors.abstract import Partitions, RebalanceProtocol
from kafkacore.coordinator.assignors.sticky.sticky_assignor import AbstractStickyAssignor
from kafkacore.coordinator.assignors.sticky.user_data import MemberData, decode_generation, encode_generation
from kafkacore.coordinator.protocol import NO_GENERATION, Assignment, Subscription
from kafkacore.structs import ConsumerGroupMetadata, TopicPartition

#: Maximum number of consecutive rebalances that move partitions, for a group with racks. A partition whose
#: racks have no member is distributed again in each rebalance. Such partitions could therefore move back and
#: forth forever, as with the Java client. After this number of rebalances, racks are ignored.
MOST_ROUNDS_BY_RACKS = 5


class CooperativeStickyAssignor(AbstractStickyAssignor):
    """Java's ``CooperativeStickyAssignor`` (KIP-429): assigns like the sticky assignor, in two rebalances.

    The assignor also supports eager rebalances. A group can therefore switch to it from another assignor
    without stopping all members.
    """

    name = "cooperative-sticky"
    java_name = "CooperativeStickyAssignor"

    def __init__(self) -> None:
        self._generation = NO_GENERATION
        self._group: object = None
        self._unfinished_rounds = 0

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """Return both rebalance protocols, with the cooperative protocol first."""
        return [RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER]

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        """Return the generation of the owned partitions, for leaders whose client is older than KIP-792."""
        return encode_generation(self._generation)

    def on_assignment(self, assignment: Assignment, metadata: ConsumerGroupMetadata) -> None:
        """Store the generation, which is sent to the leader in the next rebalance."""
        self._generation = metadata.generation_id

    def member_data(self, subscription: Subscription) -> MemberData:
        """Return the owned partitions and the generation. Older members send the generation as user data."""
        generation = subscription.generation_id
        if generation < 0:
            generation = decode_generation(subscription.user_data)
        return MemberData(subscription.owned_partitions, generation)

    def assign(
        self, partitions: Partitions, subscriptions: Mapping[str, Subscription]
    ) -> dict[str, Assignment]:
        """Assign the partitions, except for partitions that another member has not revoked yet."""
        group = (
            {member: (sub.topics, sub.rack_id) for member, sub in subscriptions.items()},
            dict(partitions),
        )
        if group != self._group:
            self._group, self._unfinished_rounds = group, 0
        if self._unfinished_rounds >= MOST_ROUNDS_BY_RACKS:
            subscriptions = {member: sub._replace(rack_id=None) for member, sub in subscriptions.items()}
        given, transferred = self.distribute(partitions, subscriptions)
        if transferred is None:
            transferred = _transferred(given, subscriptions)
        if transferred:
            self._unfinished_rounds += 1
        elif self._unfinished_rounds < MOST_ROUNDS_BY_RACKS:
            self._unfinished_rounds = 0
        for member in set(transferred.values()):
            given[member] = [one for one in given[member] if transferred.get(one) != member]
        return {member: Assignment(mine) for member, mine in given.items()}


def _transferred(
    given: Mapping[str, Collection[TopicPartition]], subscriptions: Mapping[str, Subscription]
) -> dict[TopicPartition, str]:
    """Return the new owner of each partition that moves from one member to another."""
    added: dict[TopicPartition, str] = {}
    revoked: set[TopicPartition] = set()
    for member, mine in given.items():
        owned = set(subscriptions[member].owned_partitions)
        added.update((partition, member) for partition in mine if partition not in owned)
        revoked |= owned.difference(mine)
    return {partition: member for partition, member in added.items() if partition in revoked}
