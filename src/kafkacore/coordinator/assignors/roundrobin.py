"""The round robin assignor: assigns partitions to the members in turn."""

from __future__ import annotations

from collections.abc import Mapping

from kafkacore.coordinator.assignors.abstract import PartitionAssignor, Partitions, members_in_order
from kafkacore.coordinator.protocol import Assignment, Subscription
from kafkacore.structs import TopicPartition


class RoundRobinPartitionAssignor(PartitionAssignor):
    """Assigns all partitions, ordered by topic and number, to the subscribed members in turn.

    For every group, the result is the same as that of Java's ``RoundRobinAssignor``.
    """

    name = "roundrobin"
    java_name = "RoundRobinAssignor"

    def assign(
        self, partitions: Partitions, subscriptions: Mapping[str, Subscription]
    ) -> dict[str, Assignment]:
        """Assign the partitions; see :meth:`PartitionAssignor.assign`. All leaders get the same result."""
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
