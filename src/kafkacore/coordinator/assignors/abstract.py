"""Base classes of assignors: kafkacore's own class, and the class that users of kafka-python derive from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, ClassVar, NamedTuple

from kafkacore import structs
from kafkacore.coordinator.protocol import Assignment, Subscription
from kafkacore.structs import ConsumerGroupMetadata


class RebalanceProtocol(IntEnum):
    """How members give up partitions in a rebalance (KIP-429).

    With ``EAGER``, members revoke all partitions before they join. With ``COOPERATIVE``, members keep their
    partitions while they join. The first rebalance revokes only the partitions that must move, and a second
    rebalance assigns them to their new owners.
    """

    EAGER = 0
    COOPERATIVE = 1


class PartitionRacks(NamedTuple):
    """A partition with the racks of its replicas (KIP-881). ``racks`` is empty if no broker has a rack."""

    partition: int
    racks: frozenset[str] = frozenset()


#: Topic → partitions, for all topics with known metadata.
Partitions = Mapping[str, Sequence[PartitionRacks]]


class PartitionAssignor(ABC):
    """Assigns the partitions of a group's topics to its members.

    This is Kafka's ``ConsumerPartitionAssignor``. Each consumer creates its own instance and uses it in every
    rebalance. The instance in the group's leader assigns the partitions.
    """

    #: Name of the assignor in JoinGroup, by which clients in any language agree on an assignor.
    name: str = ""
    #: Name of the equivalent class in Kafka's Java client, which users may also give in
    #: ``partition_assignment_strategy``. Empty if there is no such class.
    java_name: ClassVar[str] = ""

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """Return the rebalance protocols that members with this assignor can use."""
        return [RebalanceProtocol.EAGER]

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        """Return the user data to send to the leader's assignor, or ``None`` to send none."""
        return None

    @abstractmethod
    def assign(
        self, partitions: Partitions, subscriptions: Mapping[str, Subscription]
    ) -> dict[str, Assignment]:
        """Assign the partitions to the members.

        Parameters
        ----------
        partitions:
            Partitions of each existing topic that a member subscribes to.
        subscriptions:
            Member id → subscription, for every member of the group.

        Returns
        -------
        dict
            Member id → assignment. Members that get no partitions are included.
        """

    def on_assignment(self, assignment: Assignment, metadata: ConsumerGroupMetadata) -> None:
        """Receive this member's assignment and generation after every rebalance."""
        return


class AbstractPartitionAssignor(ABC):
    """Base of assignors with the interface of kafka-python 3.0 (``kafka.coordinator.assignors.abstract``).

    ``partition_assignment_strategy`` accepts classes derived from this class, or from the same class of
    kafka-python.
    """

    name: Any = ""

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """Return the rebalance protocols that members with this assignor can use, best first."""
        return [RebalanceProtocol.EAGER]

    @abstractmethod
    def assign(self, cluster: Any, members: Any) -> Mapping[str, Any]:
        """Return the assignment of each member: ``{member_id: ConsumerProtocolAssignment}``.

        Parameters
        ----------
        cluster:
            Object with ``topics()`` and ``partitions_for_topic(topic)``, which returns a set of partition
            numbers or ``None``.
        members:
            Objects with ``member_id``, ``group_instance_id`` and ``metadata``, a
            :class:`ConsumerProtocolSubscription`.
        """

    @abstractmethod
    def metadata(self, topics: Any) -> Any:
        """Return the :class:`ConsumerProtocolSubscription` of this member for ``topics``."""

    @abstractmethod
    def on_assignment(self, assignment: Any, generation: int) -> None:
        """Receive this member's :class:`ConsumerProtocolAssignment` and generation after a rebalance."""


class TopicPartitions(NamedTuple):
    """Partitions of one topic, as a tuple ``(topic, partitions)``."""

    topic: str
    partitions: list[int]


class ConsumerProtocolSubscription:
    """A member's subscription, as assignors with kafka-python's interface read and return it."""

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
        """The topics. This attribute has the name that kafka-python 2 used."""
        return self.topics


class ConsumerProtocolAssignment:
    """A member's assignment, as assignors with kafka-python's interface return it."""

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
        """The assigned partitions. This attribute has the name that kafka-python 2 used."""
        return self.assigned_partitions

    def partitions(self) -> list[structs.TopicPartition]:
        """Return the assigned partitions as a flat list."""
        return [
            structs.TopicPartition(topic, number)
            for topic, numbers in self.assigned_partitions
            for number in numbers
        ]


def java_key(text: str) -> bytes:
    """Return a key that sorts strings as Java does: by UTF-16 code units, not by code points."""
    return text.encode("utf-16-be", "surrogatepass")


def members_in_order(subscriptions: Mapping[str, Subscription]) -> list[str]:
    """Return the member ids: first static members by instance id (KIP-345), then dynamic members by id."""

    def place(member: str) -> tuple[bool, bytes]:
        instance = subscriptions[member].group_instance_id
        return (instance is None, java_key(member if instance is None else instance))

    return sorted(subscriptions, key=place)
