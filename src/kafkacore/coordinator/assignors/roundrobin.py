"""The round robin assignor: partition by partition, to one member after the other.

In: partitions by topic, subscriptions. Out: assignments. Does not know: racks, what members had before.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkacore.coordinator.assignors.abstract import PartitionAssignor, Partitions, members_in_order
from kafkacore.coordinator.protocol import Assignment, Subscription
from kafkacore.structs import TopicPartition


class RoundRobinPartitionAssignor(PartitionAssignor):
    """All partitions, by topic and number, to the members in turn; who does not subscribe to a topic is
    passed over.

    The same as Java's ``RoundRobinAssignor``, for every group.
    """

    name = "roundrobin"
    java_name = "RoundRobinAssignor"

    def assign(
        self, partitions: Partitions, subscriptions: Mapping[str, Subscription]
    ) -> dict[str, Assignment]:
        """Distribute; see :meth:`PartitionAssignor.assign`. Any member as the leader gives the same."""
        members = members_in_order(subscriptions)
        wanted = [frozenset(subscriptions[member].topics) for member in members]
        given: list[list[TopicPartition]] = [[] for _ in members]
        turn = 0
        for topic in sorted(frozenset().union(*wanted)):
            for number in sorted(entry.partition for entry in partitions.get(topic, ())):
                while topic not in wanted[turn]:
                    turn = (turn + 1) % len(members)
                given[turn].append(TopicPartition(topic, number))
                turn = (turn + 1) % len(members)
        return {member: Assignment(mine) for member, mine in zip(members, given, strict=True)}
