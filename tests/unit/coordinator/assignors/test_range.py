"""The range assignor, with the examples of its documentation. test_as_java.py compares it with Java's."""

from __future__ import annotations

from kafkacore.coordinator.assignors import PartitionRacks
from kafkacore.coordinator.assignors.range import RangePartitionAssignor
from kafkacore.coordinator.protocol import Subscription


def numbers(
    partitions: dict[str, list[frozenset[str]]], subscriptions: dict[str, Subscription]
) -> dict[str, list[tuple[str, int]]]:
    infos = {
        topic: [PartitionRacks(number, racks) for number, racks in enumerate(each)]
        for topic, each in partitions.items()
    }
    made = RangePartitionAssignor().assign(infos, subscriptions)
    return {member: [tuple(one) for one in assignment.partitions] for member, assignment in made.items()}


def plain(count: int) -> list[frozenset[str]]:
    return [frozenset()] * count


def test_first_members_get_one_more() -> None:
    both = Subscription(("t0", "t1"))
    assert numbers({"t0": plain(3), "t1": plain(3)}, {"b": both, "a": both}) == {
        "a": [("t0", 0), ("t0", 1), ("t1", 0), ("t1", 1)],
        "b": [("t0", 2), ("t1", 2)],
    }


def test_member_of_a_topic_that_is_missing_gets_nothing() -> None:
    assert numbers({}, {"a": Subscription(("gone",))}) == {"a": []}


def test_more_members_than_partitions_leave_the_last_without() -> None:
    one = Subscription(("t",))
    assert numbers({"t": plain(1)}, {"a": one, "b": one}) == {"a": [("t", 0)], "b": []}


def test_static_members_come_first_by_their_instance_ids() -> None:
    assert numbers(
        {"t": plain(3)},
        {
            "a": Subscription(("t",)),
            "z": Subscription(("t",), group_instance_id="i1"),
            "y": Subscription(("t",), group_instance_id="i2"),
        },
    ) == {"z": [("t", 0)], "y": [("t", 1)], "a": [("t", 2)]}


def test_members_get_partitions_of_their_rack() -> None:
    racks = [frozenset({"r1"}), frozenset({"r2"})]
    assert numbers(
        {"t": racks}, {"a": Subscription(("t",), rack_id="r2"), "b": Subscription(("t",), rack_id="r1")}
    ) == {"a": [("t", 1)], "b": [("t", 0)]}


def test_topics_of_equal_shape_stay_partitioned_alike_across_racks() -> None:
    racks = [frozenset({"r2"}), frozenset({"r1"})]
    members = {rack: Subscription(("t", "u"), rack_id=rack) for rack in ("r1", "r2")}
    assert numbers({"t": racks, "u": racks}, members) == {
        "r1": [("t", 1), ("u", 1)],
        "r2": [("t", 0), ("u", 0)],
    }


def test_order_of_member_ids_is_that_of_utf_16() -> None:
    one = Subscription(("t",))
    beyond, below = "\U00010000", "\uffff"
    assert beyond > below
    assert numbers({"t": plain(1)}, {below: one, beyond: one}) == {beyond: [("t", 0)], below: []}
