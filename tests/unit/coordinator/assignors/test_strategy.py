"""Values of partition_assignment_strategy, including assignors in kafka-python's form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from kafkacore.coordinator.assignors import (
    PartitionAssignor,
    PartitionRacks,
    RebalanceProtocol,
    assignors_for,
    common_protocol,
)
from kafkacore.coordinator.assignors.abstract import (
    AbstractPartitionAssignor,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from kafkacore.coordinator.assignors.range import RangePartitionAssignor
from kafkacore.coordinator.protocol import Assignment, Subscription
from kafkacore.errors import KafkaConfigurationError
from kafkacore.structs import ConsumerGroupMetadata, TopicPartition


class FirstTakesAll(AbstractPartitionAssignor):
    """A custom assignor in kafka-python's form."""

    name = "first"
    seen: Any = None

    def assign(self, cluster: Any, members: Any) -> dict[str, ConsumerProtocolAssignment]:
        topics = sorted({topic for member in members for topic in member.metadata.topics})
        taken = [(topic, sorted(cluster.partitions_for_topic(topic) or ())) for topic in topics]
        return {members[0].member_id: ConsumerProtocolAssignment(0, taken, b"")}

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolSubscription:
        return ConsumerProtocolSubscription(0, topics, b"hello")

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        self.seen = (assignment.partitions(), generation)


@pytest.mark.parametrize(
    "strategy",
    [
        "range",
        "org.apache.kafka.clients.consumer.RangeAssignor",
        ["range"],
        RangePartitionAssignor,
        RangePartitionAssignor(),
        (RangePartitionAssignor,),
    ],
)
def test_range_has_many_spellings(strategy: Any) -> None:
    (made,) = assignors_for(strategy)
    assert isinstance(made, RangePartitionAssignor)


@pytest.mark.kafka(
    "KafkaConsumerTest.testSubscriptionWithEmptyPartitionAssignment",
    "KafkaConsumerTest.testAssignorNameConflict",
)
@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        ("", "name at least one assignor"),
        ([], "name at least one assignor"),
        ("rangy", "unknown assignor 'rangy'"),
        (["range", RangePartitionAssignor], "two assignors named 'range'"),
        ([3], "3 is not a partition assignor"),
        ([object], "is not a partition assignor"),
    ],
)
def test_strategy_that_cannot_work_is_refused(strategy: Any, message: str) -> None:
    with pytest.raises(KafkaConfigurationError, match=message):
        assignors_for(strategy)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("roundrobin", "roundrobin"),
        ("RoundRobinAssignor", "roundrobin"),
        ("org.apache.kafka.clients.consumer.StickyAssignor", "sticky"),
        ("org.apache.kafka.clients.consumer.CooperativeStickyAssignor", "cooperative-sticky"),
    ],
)
def test_every_assignor_of_java_has_a_name_here(spelling: str, name: str) -> None:
    (made,) = assignors_for(spelling)
    assert made.name == name


def test_assignors_are_found_by_their_files() -> None:
    with pytest.raises(KafkaConfigurationError) as raised:
        assignors_for("unheard-of")
    assert str(raised.value) == (
        "unknown assignor 'unheard-of'; known assignors are CooperativeStickyAssignor, RangeAssignor, "
        "RoundRobinAssignor, StickyAssignor, cooperative-sticky, range, roundrobin, sticky"
    )


def test_javas_default_is_a_list_behind_a_comma() -> None:
    made = assignors_for("range, cooperative-sticky")
    assert [assignor.name for assignor in made] == ["range", "cooperative-sticky"]
    assert common_protocol(made) is RebalanceProtocol.EAGER


class Cooperative(RangePartitionAssignor):
    name = "together"

    def supported_protocols(self) -> list[RebalanceProtocol]:
        return [RebalanceProtocol.COOPERATIVE]


@pytest.mark.kafka("ConsumerCoordinatorTest.testSelectRebalanceProtocol")
def test_assignors_without_a_common_protocol_are_refused() -> None:
    with pytest.raises(KafkaConfigurationError, match="range, together share no"):
        assignors_for([RangePartitionAssignor, Cooperative])


@pytest.mark.kafka("ConsumerCoordinatorTest.testSelectRebalanceProtocol")
def test_cooperative_is_taken_if_all_support_it() -> None:
    assert common_protocol([Cooperative()]) is RebalanceProtocol.COOPERATIVE
    assert common_protocol([RangePartitionAssignor()]) is RebalanceProtocol.EAGER


@pytest.mark.parametrize("strategy", [FirstTakesAll, FirstTakesAll()])
def test_assignor_of_kafka_pythons_form_is_taken(strategy: Any) -> None:
    (made,) = assignors_for([strategy])
    assert isinstance(made, PartitionAssignor)
    assert made.name == "first"
    assert made.subscription_user_data({"t"}) == b"hello"
    subscriptions = {"a": Subscription(("t", "gone")), "b": Subscription(("t",))}
    assert made.assign({"t": [PartitionRacks(0), PartitionRacks(1)]}, subscriptions) == {
        "a": Assignment([TopicPartition("t", 0), TopicPartition("t", 1)]),
        "b": Assignment(()),
    }


def test_assignor_of_kafka_pythons_form_hears_its_assignment() -> None:
    user = FirstTakesAll()
    (made,) = assignors_for([user])
    partitions = (TopicPartition("t", 1), TopicPartition("u", 0), TopicPartition("t", 0))
    made.on_assignment(Assignment(partitions), ConsumerGroupMetadata("g", 4))
    assert user.seen == ([("t", 1), ("t", 0), ("u", 0)], 4)


def test_kafka_pythons_own_assignors_work() -> None:
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

    (made,) = assignors_for([RoundRobinPartitionAssignor])
    partitions = {"t": [PartitionRacks(0), PartitionRacks(1)]}
    subscriptions = {"a": Subscription(("t",)), "b": Subscription(("t",))}
    assert made.assign(partitions, subscriptions) == {
        "a": Assignment([TopicPartition("t", 0)]),
        "b": Assignment([TopicPartition("t", 1)]),
    }
    (sticky,) = assignors_for([CooperativeStickyAssignor])
    assert sticky.supported_protocols() == [RebalanceProtocol.COOPERATIVE]
    owned = {"a": Subscription(("t",), b"", (TopicPartition("t", 1),), 3), "b": Subscription(("t",))}
    assert sticky.assign(partitions, owned) == {
        "a": Assignment([TopicPartition("t", 1)]),
        "b": Assignment([TopicPartition("t", 0)]),
    }
