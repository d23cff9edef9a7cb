"""Adapts assignors with kafka-python's interface to :class:`PartitionAssignor`.

Such an assignor has ``assign(cluster, members)``, ``metadata(topics)`` and ``on_assignment(assignment,
generation)``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, Protocol

from kafkacore.coordinator.assignors.abstract import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    PartitionAssignor,
    Partitions,
    RebalanceProtocol,
    TopicPartitions,
)
from kafkacore.coordinator.protocol import Assignment, Subscription
from kafkacore.errors import KafkaConfigurationError
from kafkacore.structs import ConsumerGroupMetadata, TopicPartition


class GroupMember(NamedTuple):
    """A member of the group, as kafka-python's assignors receive it."""

    member_id: str
    group_instance_id: str | None
    metadata: ConsumerProtocolSubscription


class TopicsOfGroup:
    """The methods of kafka-python's cluster metadata that kafka-python's assignors use."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions

    def topics(self) -> set[str]:
        """Return the existing topics that a member subscribes to."""
        return set(self._partitions)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Return the topic's partition numbers, or ``None`` if the topic is unknown."""
        found = self._partitions.get(topic)
        return {entry.partition for entry in found} if found else None

    # Users' assignors may also call this method, which kafka-python's cluster metadata have.
    available_partitions_for_topic = partitions_for_topic


class ForeignMetadata(Protocol):
    """The member metadata that a kafka-python assignor returns.

    User data is bytes, or an object with ``encode()``.
    """

    user_data: bytes | None


class ForeignAssignment(Protocol):
    """The member's assignment that a kafka-python assignor returns."""

    user_data: bytes | None

    def partitions(self) -> Iterable[tuple[str, int]]: ...


class ForeignAssignor(Protocol):
    """The interface of a kafka-python assignor."""

    @property
    def name(self) -> object: ...
    def assign(
        self, cluster: TopicsOfGroup, members: list[GroupMember], /
    ) -> Mapping[str, ForeignAssignment]: ...
    def metadata(self, topics: set[str], /) -> ForeignMetadata: ...
    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int, /) -> None: ...


class KafkaPythonAssignor(PartitionAssignor):
    """Adapter for ``inner``, a kafka-python assignor."""

    def __init__(self, inner: ForeignAssignor) -> None:
        self.inner = inner
        name = inner.name
        if not isinstance(name, str) or not name:
            raise KafkaConfigurationError(
                f"assignor {type(inner).__name__} has no name: set its attribute 'name'"
            )
        self.name = name

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """Return the rebalance protocols of ``inner``; eager if ``inner`` has no method to report them."""
        supported = getattr(self.inner, "supported_protocols", None)
        return (
            [RebalanceProtocol(int(one)) for one in supported()] if supported else [RebalanceProtocol.EAGER]
        )

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        """Return the user data that ``inner`` puts into its member metadata."""
        user_data = self.inner.metadata(set(topics)).user_data
        if user_data is not None and hasattr(user_data, "encode"):
            user_data = user_data.encode()
        return None if user_data is None else bytes(user_data)

    def assign(
        self, partitions: Partitions, subscriptions: Mapping[str, Subscription]
    ) -> dict[str, Assignment]:
        """Call ``inner`` to assign the partitions. Members missing in the result get no partitions."""
        members = [
            GroupMember(member, sub.group_instance_id, _metadata_of(sub))
            for member, sub in subscriptions.items()
        ]
        made = self.inner.assign(TopicsOfGroup(partitions), members)
        return {
            member: _assignment_of(made[member]) if member in made else Assignment(())
            for member in subscriptions
        }

    def on_assignment(self, assignment: Assignment, metadata: ConsumerGroupMetadata) -> None:
        """Pass the assignment to ``inner``."""
        by_topic = _grouped(assignment.partitions)
        self.inner.on_assignment(
            ConsumerProtocolAssignment(0, by_topic, assignment.user_data or b""), metadata.generation_id
        )


def _grouped(partitions: Collection[TopicPartition]) -> list[TopicPartitions]:
    found: dict[str, list[int]] = {}
    for topic, number in partitions:
        found.setdefault(topic, []).append(number)
    return [TopicPartitions(topic, numbers) for topic, numbers in found.items()]


def _metadata_of(sub: Subscription) -> ConsumerProtocolSubscription:
    owned = _grouped(sub.owned_partitions)
    return ConsumerProtocolSubscription(
        3, sub.topics, sub.user_data or b"", owned, sub.generation_id, sub.rack_id
    )


def _assignment_of(made: ForeignAssignment) -> Assignment:
    user_data = made.user_data
    partitions = [TopicPartition(topic, number) for topic, number in made.partitions()]
    return Assignment(partitions, bytes(user_data) if user_data else None)
