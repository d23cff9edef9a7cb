"""The cooperative sticky assignor: what moves is first taken away, and given to its next owner in a second
round.

In: partitions, subscriptions with what members own. Out: assignments. Does not know: requests.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kafkacore.coordinator.assignors.abstract import Partitions, RebalanceProtocol
from kafkacore.coordinator.assignors.sticky.sticky_assignor import AbstractStickyAssignor
from kafkacore.coordinator.assignors.sticky.user_data import MemberData, decode_generation, encode_generation
from kafkacore.coordinator.protocol import NO_GENERATION, Assignment, Subscription
from kafkacore.structs import ConsumerGroupMetadata, TopicPartition

#: Rounds that a leader lets one group take. With racks what fits nobody's is dealt out anew each time, so
#: that the same partitions may go to and fro for ever, and Java's do; from then on this group is assigned
#: without racks.
MOST_ROUNDS_BY_RACKS = 5


class CooperativeStickyAssignor(AbstractStickyAssignor):
    """Java's ``CooperativeStickyAssignor`` (KIP-429): distributes as the sticky one, in two rounds.

    It also rebalances eagerly, beside an assignor that can do nothing else; so a group is moved to it without
    a halt.
    """

    name = "cooperative-sticky"
    java_name = "CooperativeStickyAssignor"

    def __init__(self) -> None:
        self._generation = NO_GENERATION
        self._group: object = None
        self._unfinished_rounds = 0

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """Both, cooperative first."""
        return [RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER]

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        """The generation of what this member owns: leaders before KIP-792 read it here."""
        return encode_generation(self._generation)

    def on_assignment(self, assignment: Assignment, metadata: ConsumerGroupMetadata) -> None:
        """Remember the generation for the next time."""
        self._generation = metadata.generation_id

    def member_data(self, subscription: Subscription) -> MemberData:
        """From the subscription; the generation of an older member from its user data."""
        generation = subscription.generation_id
        if generation < 0:
            generation = decode_generation(subscription.user_data)
        return MemberData(subscription.owned_partitions, generation)

    def assign(
        self, partitions: Partitions, subscriptions: Mapping[str, Subscription]
    ) -> dict[str, Assignment]:
        """Distribute; what another member still owns is left out until that one has let go of it."""
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
    """What somebody gets that it did not own, and somebody owned that does not get it."""
    added: dict[TopicPartition, str] = {}
    revoked: set[TopicPartition] = set()
    for member, mine in given.items():
        owned = set(subscriptions[member].owned_partitions)
        added.update((partition, member) for partition in mine if partition not in owned)
        revoked |= owned.difference(mine)
    return {partition: member for partition, member in added.items() if partition in revoked}
