"""Measure the leader's cost of a rebalance: an assignment of all partitions to all members.

    python -m pytest bench/micro/assignors.py --benchmark-enable

The peer is kafka-python's sticky assignor. Java's assignor is measured by ``best_nanos`` of
``tests/support/peers/java/Assignors.java``, with 1,000 members and 2,000 partitions. If all members subscribe
to the same topics, it takes 2 to 4 ms once the JVM has compiled it, and 90 ms the first time. Otherwise it
takes 500 to 800 ms, and 1,500 ms the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from kafkacore.coordinator.assignors import PartitionRacks, assignors_for
from kafkacore.coordinator.assignors.foreign import TopicsOfGroup
from kafkacore.coordinator.protocol import Subscription

TOPICS = 10


class Member(NamedTuple):
    """A group member with the attributes that kafka-python's assignors read."""

    member_id: str
    group_instance_id: str | None
    metadata: Any


def topics_of(member: int, alike: bool) -> tuple[str, ...]:
    """Return all topics, or six of them."""
    return tuple(f"topic-{(member + n) % TOPICS}" for n in range(TOPICS if alike else 6))


def kafkacore_assignor(
    name: str, members: int, partitions: int, alike: bool
) -> Callable[[], Mapping[str, Any]]:
    (assignor,) = assignors_for(name)
    subscriptions = {f"consumer-{n}-{n:032x}": Subscription(topics_of(n, alike)) for n in range(members)}
    return lambda: assignor.assign(infos(partitions), subscriptions)


def kafka_python_sticky(
    _: str, members: int, partitions: int, alike: bool
) -> Callable[[], Mapping[str, Any]]:
    assignor = StickyPartitionAssignor()
    joined = [
        Member(
            f"consumer-{n}-{n:032x}", None, ConsumerProtocolSubscription(0, list(topics_of(n, alike)), b"")
        )
        for n in range(members)
    ]
    return lambda: assignor.assign(TopicsOfGroup(infos(partitions)), joined)


def infos(partitions: int) -> dict[str, list[PartitionRacks]]:
    return {f"topic-{n}": [PartitionRacks(p) for p in range(partitions // TOPICS)] for n in range(TOPICS)}


def note_rate(benchmark: Any, partitions: int) -> None:
    if benchmark.stats is not None:
        benchmark.extra_info["partitions/s"] = round(partitions / benchmark.stats.stats.min)


@pytest.mark.parametrize("alike", [True, False], ids=["same topics", "different topics"])
@pytest.mark.parametrize(
    ("contender", "name"),
    [
        ("kafkacore", "sticky"),
        ("kafkacore", "range"),
        ("kafkacore", "cooperative-sticky"),
        ("kafka-python", "sticky"),
    ],
)
def test_assign(
    benchmark: Any, request: pytest.FixtureRequest, contender: str, name: str, alike: bool
) -> None:
    # kafka-python takes minutes with ten times as many.
    members, partitions = (5, 20) if request.config.getoption("--small") else (100, 200)
    benchmark.group = (
        f"{members} members of {'the same' if alike else 'different'} topics, {partitions} partitions"
    )
    make = kafkacore_assignor if contender == "kafkacore" else kafka_python_sticky
    made = benchmark.pedantic(make(name, members, partitions, alike), rounds=5, iterations=1)
    assert len(made) == members
    note_rate(benchmark, partitions)


@pytest.mark.parametrize("alike", [True, False], ids=["same topics", "different topics"])
@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_assign_to_many(benchmark: Any, request: pytest.FixtureRequest, name: str, alike: bool) -> None:
    members, partitions = (10, 40) if request.config.getoption("--small") else (1_000, 2_000)
    benchmark.group = (
        f"{members} members of {'the same' if alike else 'different'} topics, {partitions} partitions"
    )
    made = benchmark.pedantic(kafkacore_assignor(name, members, partitions, alike), rounds=5, iterations=1)
    assert len(made) == members
    note_rate(benchmark, partitions)
