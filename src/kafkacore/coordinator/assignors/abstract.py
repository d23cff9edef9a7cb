"""What an assignor is: ours, and the form in which kafka-python's users write their own.

In: partitions by topic, subscriptions by member. Out: assignments by member. Does not know: bytes, requests,
how the leader was chosen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, ClassVar, NamedTuple

from kafkacore import structs
from kafkacore.coordinator.protocol import Assignment, Subscription
from kafkacore.structs import ConsumerGroupMetadata


class RebalanceProtocol(IntEnum):
    """How members let go of partitions (KIP-429).

    ``EAGER``: all of them before they join. ``COOPERATIVE``: they keep what they have, the leader takes away
    what has to move, and a second round gives it to its next owner.
    """

    EAGER = 0
    COOPERATIVE = 1


class PartitionRacks(NamedTuple):
    """A partition of a topic, and the racks of its replicas (KIP-881); none where brokers say no rack."""

    partition: int
    racks: frozenset[str] = frozenset()


#: Topic → its partitions. A topic without metadata is not in it.
Partitions = Mapping[str, Sequence[PartitionRacks]]


class PartitionAssignor(ABC):
    """Distributes the partitions of a group's topics among its members (Kafka's
    ``ConsumerPartitionAssignor``).

    One object serves one consumer for as long as it lives; the leader's does the distributing.
    """

    #: By this name members of a group, of whatever language, agree on an assignor.
    name: str = ""
    #: Class of Kafka's Java client that distributes alike, by which a setting may name it; empty for none.
    java_name: ClassVar[str] = ""

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """How members that use this assignor may rebalance."""
        return [RebalanceProtocol.EAGER]

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        """What this member tells the leader's assignor beside its topics; ``None`` for nothing."""
        return None

    @abstractmethod
    def assign(
        self, partitions: Partitions, subscriptions: Mapping[str, Subscription]
    ) -> dict[str, Assignment]:
        """Distribute.

        Parameters
        ----------
        partitions:
            The partitions of each topic that somebody subscribes to and that exists.
        subscriptions:
            By member id, of every member of the group.

        Returns
        -------
        dict
            The assignment of every member, also of one that gets nothing.
        """

    def on_assignment(self, assignment: Assignment, metadata: ConsumerGroupMetadata) -> None:
        """What this member got, in which generation; called after every rebalance."""
        return


class AbstractPartitionAssignor(ABC):
    """Base of an assignor as kafka-python's users write it (``kafka.coordinator.assignors.abstract``, 3.0).

    A class of this form, or one derived from kafka-python's own, may stand in
    ``partition_assignment_strategy``.
    """

    name: Any = ""

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """How members that use this assignor may rebalance, best first."""
        return [RebalanceProtocol.EAGER]

    @abstractmethod
    def assign(self, cluster: Any, members: Any) -> Mapping[str, Any]:
        """Distribute: ``{member_id: ConsumerProtocolAssignment}``.

        Parameters
        ----------
        cluster:
            Has ``topics()`` and ``partitions_for_topic(topic)``, which gives a set of numbers, or ``None``.
        members:
            Objects with ``member_id``, ``group_instance_id`` and ``metadata``, a
            :class:`ConsumerProtocolSubscription`.
        """

    @abstractmethod
    def metadata(self, topics: Any) -> Any:
        """The :class:`ConsumerProtocolSubscription` of this member, which subscribes to ``topics``."""

    @abstractmethod
    def on_assignment(self, assignment: Any, generation: int) -> None:
        """What this member got (a :class:`ConsumerProtocolAssignment`), in which generation."""


class TopicPartitions(NamedTuple):
    """Some partitions of one topic; unpacks as ``(topic, partitions)``."""

    topic: str
    partitions: list[int]


class ConsumerProtocolSubscription:
    """A member's metadata, as an assignor of kafka-python's form reads and makes it."""

    TopicPartition = TopicPartitions

    def __init__(
        self,
        version: int = 0,
        topics: Iterable[str] = (),
        user_data: Any = b"",
        owned_partitions: Iterable[TopicPartitions] = (),
        generation_id: int = -1,
        rack_id: str | None = None,
    ) -> None:
        self.version = version
        self.topics = list(topics)
        self.user_data = user_data
        self.owned_partitions = list(owned_partitions)
        self.generation_id = generation_id
        self.rack_id = rack_id

    @property
    def subscription(self) -> list[str]:
        """The topics, by the name that kafka-python 2 had for them."""
        return self.topics


class ConsumerProtocolAssignment:
    """A member's assignment, as an assignor of kafka-python's form makes it."""

    TopicPartition = TopicPartitions

    def __init__(
        self,
        version: int = 0,
        assigned_partitions: Iterable[tuple[str, Iterable[int]]] = (),
        user_data: Any = b"",
    ) -> None:
        self.version = version
        self.assigned_partitions = [
            TopicPartitions(topic, list(numbers)) for topic, numbers in assigned_partitions
        ]
        self.user_data = user_data

    @property
    def assignment(self) -> list[TopicPartitions]:
        """The same by the name that kafka-python 2 had for it."""
        return self.assigned_partitions

    def partitions(self) -> list[structs.TopicPartition]:
        """The partitions, one by one."""
        return [
            structs.TopicPartition(topic, number)
            for topic, numbers in self.assigned_partitions
            for number in numbers
        ]


def java_key(text: str) -> bytes:
    """Sort key that puts strings in Java's order: of their UTF-16 code units, not of their code points."""
    return text.encode("utf-16-be", "surrogatepass")


def members_in_order(subscriptions: Mapping[str, Subscription]) -> list[str]:
    """Member ids: static members by their instance ids (KIP-345), then the others by their member ids."""

    def place(member: str) -> tuple[bool, bytes]:
        instance = subscriptions[member].group_instance_id
        return (instance is None, java_key(member if instance is None else instance))

    return sorted(subscriptions, key=place)
