"""An assignor of kafka-python's form, worn as one of ours.

In: an object with kafka-python's ``assign(cluster, members)``, ``metadata(topics)``,
``on_assignment(assignment, generation)``. Out: a :class:`PartitionAssignor`. Does not know: how it
distributes.
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
    """A member, as kafka-python's assignors see it."""

    member_id: str
    group_instance_id: str | None
    metadata: ConsumerProtocolSubscription


class TopicsOfGroup:
    """What kafka-python's assignors ask a cluster."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions

    def topics(self) -> set[str]:
        """The topics that exist, of those that somebody subscribes to."""
        return set(self._partitions)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Numbers of the topic's partitions, or ``None``."""
        found = self._partitions.get(topic)
        return {entry.partition for entry in found} if found else None

    # A user's assignor may look for what only some have; kafka-python has it under this name.
    available_partitions_for_topic = partitions_for_topic


class ForeignMetadata(Protocol):
    """The metadata of a member that a kafka-python assignor returns. User data is bytes or an object with
    ``encode()``.
    """

    user_data: bytes | None


class ForeignAssignment(Protocol):
    """The assignment of a member that a kafka-python assignor returns."""

    user_data: bytes | None

    def partitions(self) -> Iterable[tuple[str, int]]: ...


class ForeignAssignor(Protocol):
    """The methods of an assignor in kafka-python's form."""

    @property
    def name(self) -> object: ...
    def assign(
        self, cluster: TopicsOfGroup, members: list[GroupMember], /
    ) -> Mapping[str, ForeignAssignment]: ...
    def metadata(self, topics: set[str], /) -> ForeignMetadata: ...
    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int, /) -> None: ...


class KafkaPythonAssignor(PartitionAssignor):
    """``inner``, of kafka-python's form."""

    def __init__(self, inner: ForeignAssignor) -> None:
        self.inner = inner
        name = inner.name
        if not isinstance(name, str) or not name:
            raise KafkaConfigurationError(f"{type(inner).__name__} has no name")
        self.name = name

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """What ``inner`` says; eager if it was written before KIP-429."""
        asked = getattr(self.inner, "supported_protocols", None)
        return [RebalanceProtocol(int(one)) for one in asked()] if asked else [RebalanceProtocol.EAGER]

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        """What ``inner``'s metadata carry beside the topics."""
        user_data = self.inner.metadata(set(topics)).user_data
        if user_data is not None and hasattr(user_data, "encode"):
            user_data = user_data.encode()
        return None if user_data is None else bytes(user_data)

    def assign(
        self, partitions: Partitions, subscriptions: Mapping[str, Subscription]
    ) -> dict[str, Assignment]:
        """Let ``inner`` distribute; a member that it leaves out gets nothing."""
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
        """Tell ``inner``."""
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
