"""The sticky assignors by example, and their user data."""

from __future__ import annotations

import pytest

from kafkacore.coordinator.assignors import PartitionRacks, RebalanceProtocol
from kafkacore.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafkacore.coordinator.assignors.java_order import PartitionHashSet, hash_map_order
from kafkacore.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafkacore.coordinator.assignors.sticky.partition_movements import PartitionMovements
from kafkacore.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafkacore.coordinator.assignors.sticky.user_data import (
    MemberData,
    decode_generation,
    decode_previous_assignment,
    encode_generation,
    encode_previous_assignment,
)
from kafkacore.coordinator.protocol import Assignment, Subscription
from kafkacore.structs import ConsumerGroupMetadata, TopicPartition

T0, T1, T2, T3 = (TopicPartition("t", number) for number in range(4))
FOUR = {"t": [PartitionRacks(number) for number in range(4)]}


def given_to(made: dict[str, Assignment]) -> dict[str, list[TopicPartition]]:
    return {member: sorted(assignment.partitions) for member, assignment in made.items()}


def owning(generation: int, *owned: TopicPartition) -> Subscription:
    return Subscription(("t",), owned_partitions=owned, generation_id=generation)


def said(generation: int, *owned: TopicPartition) -> Subscription:
    return Subscription(("t",), encode_previous_assignment(MemberData(owned, generation)))


def test_partitions_stay_where_they_were_when_a_member_leaves() -> None:
    made = StickyPartitionAssignor().assign(FOUR, {"a": said(1, T1), "b": said(1, T3, T2)})
    assert given_to(made) == {"a": [T0, T1], "b": [T2, T3]}


def test_later_generation_has_the_better_claim() -> None:
    made = CooperativeStickyAssignor().assign(FOUR, {"a": owning(2, T0, T1), "b": owning(3, T0, T1)})
    assert given_to(made) == {"a": [T2, T3], "b": [T0, T1]}


def test_two_claims_of_one_generation_are_both_refused() -> None:
    made = CooperativeStickyAssignor().assign(FOUR, {"a": owning(3, T0, T1), "b": owning(3, T0, T2)})
    assert given_to(made) == {"a": [T1], "b": [T2, T3]}


def test_cooperative_takes_away_first_and_gives_in_the_next_round() -> None:
    assignor = CooperativeStickyAssignor()
    made = assignor.assign(FOUR, {"a": owning(1, T0, T1, T2, T3), "b": Subscription(("t",))})
    assert given_to(made) == {"a": [T0, T1], "b": []}
    made = assignor.assign(FOUR, {"a": owning(2, T0, T1), "b": owning(2)})
    assert given_to(made) == {"a": [T0, T1], "b": [T2, T3]}


def test_cooperative_of_different_topics_takes_away_first_too() -> None:
    partitions = FOUR | {"u": [PartitionRacks(0)]}
    mine = Subscription(("t", "u"), owned_partitions=(T0, T1, T2, T3), generation_id=1)
    made = CooperativeStickyAssignor().assign(partitions, {"a": mine, "b": Subscription(("t",))})
    assert given_to(made) == {"a": [T2, T3, TopicPartition("u", 0)], "b": []}


def test_members_near_a_partition_are_preferred() -> None:
    partitions = {"t": [PartitionRacks(0, frozenset({"r1"})), PartitionRacks(1, frozenset({"r2"}))]}
    near = {"a": Subscription(("t",), rack_id="r2"), "b": Subscription(("t",), rack_id="r1")}
    assert given_to(StickyPartitionAssignor().assign(partitions, near)) == {"a": [T1], "b": [T0]}


def test_member_that_subscribes_to_nothing_gets_nothing() -> None:
    made = StickyPartitionAssignor().assign(FOUR, {"a": Subscription(()), "b": Subscription(("t",))})
    assert given_to(made) == {"a": [], "b": [T0, T1, T2, T3]}


def test_partition_is_not_given_back_to_one_who_does_not_subscribe_any_more() -> None:
    partitions = FOUR | {"u": [PartitionRacks(0)]}
    before = encode_previous_assignment(MemberData((T0, T1), 1))
    made = StickyPartitionAssignor().assign(
        partitions, {"a": Subscription(("u",), before), "b": said(2, T0, T1, T2, T3), "c": said(2)}
    )
    assert given_to(made)["a"] == [TopicPartition("u", 0)]


@pytest.mark.parametrize("assignor", [StickyPartitionAssignor(), CooperativeStickyAssignor()])
def test_partition_that_is_gone_is_forgotten(assignor: StickyPartitionAssignor) -> None:
    gone = TopicPartition("t", 9)
    member = owning(1, gone, T0)._replace(user_data=encode_previous_assignment(MemberData((gone, T0), 1)))
    assert given_to(assignor.assign(FOUR, {"a": member})) == {"a": [T0, T1, T2, T3]}


def test_round_robin_deals_in_turn_and_passes_over() -> None:
    partitions = {topic: [PartitionRacks(0), PartitionRacks(1)] for topic in ("t", "u")}
    made = RoundRobinPartitionAssignor().assign(
        partitions, {"b": Subscription(("t", "u")), "a": Subscription(("u",))}
    )
    u0, u1 = TopicPartition("u", 0), TopicPartition("u", 1)
    assert given_to(made) == {"b": [T0, T1, u1], "a": [u0]}


# ---- User data -------------------------------------------------------------------------------------------
def test_sticky_says_what_it_had_from_its_first_assignment_on() -> None:
    assignor = StickyPartitionAssignor()
    assert assignor.subscription_user_data({"t"}) is None
    assignor.on_assignment(Assignment((T1, TopicPartition("u", 3), T0)), ConsumerGroupMetadata("g", 4))
    data = decode_previous_assignment(assignor.subscription_user_data({"t"}))
    assert data == MemberData([T1, T0, TopicPartition("u", 3)], 4)
    assert assignor.supported_protocols() == [RebalanceProtocol.EAGER]


def test_cooperative_says_its_generation() -> None:
    assignor = CooperativeStickyAssignor()
    assert assignor.subscription_user_data({"t"}) == b"\xff\xff\xff\xff"
    assignor.on_assignment(Assignment(()), ConsumerGroupMetadata("g", 258))
    assert assignor.subscription_user_data({"t"}) == b"\x00\x00\x01\x02"
    assert assignor.supported_protocols() == [RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER]


def test_generation_of_an_old_member_is_read_from_its_user_data() -> None:
    old = Subscription(("t",), encode_generation(6), (T0, T1))
    made = CooperativeStickyAssignor().assign(FOUR, {"a": owning(5, T0, T1), "b": old})
    assert given_to(made) == {"a": [T2, T3], "b": [T0, T1]}


@pytest.mark.parametrize("size", range(len(encode_previous_assignment(MemberData((T0, T1), 3)))))
def test_user_data_cut_at_any_length_is_nothing_or_of_version_0(size: int) -> None:
    data = encode_previous_assignment(MemberData((T0, T1), 3))
    expected = MemberData([T0, T1]) if size >= len(data) - 4 else MemberData()
    assert decode_previous_assignment(data[:size]) == expected


@pytest.mark.parametrize("data", [b"\x7f\xff\xff\xff" * 3, b"\x00\x00\x00\x01\xff\xff" * 4])
def test_user_data_of_nonsense_is_nothing(data: bytes) -> None:
    assert decode_previous_assignment(data) == MemberData()


@pytest.mark.parametrize(("data", "generation"), [(None, -1), (b"", -1), (b"\0\0\0", -1), (b"\0\0\0\7x", 7)])
def test_generation_that_is_missing_is_none(data: bytes | None, generation: int) -> None:
    assert decode_generation(data) == generation


# ---- Java's iteration orders -----------------------------------------------------------------------------
def test_short_keys_come_out_by_their_hash() -> None:
    # "Aa" and "BB" have the same hash, so they keep their order of insertion.
    assert hash_map_order(["c", "BB", "a", "Aa", "b"]) == ["BB", "Aa", "a", "b", "c"]


def test_set_of_partitions_begins_with_the_lowest_bucket() -> None:
    partitions = PartitionHashSet()
    assert not partitions
    for one in (T3, T0, T2):
        partitions.add(one)
    first = partitions.first()
    partitions.remove(first)
    assert partitions.first() != first


def test_partition_that_went_the_other_way_is_taken_back_instead() -> None:
    movements = PartitionMovements()
    movements.move(T0, old=1, new=2)
    assert movements.instead_of(T1, old=2, new=1) == T0
    assert movements.instead_of(TopicPartition("u", 0), old=2, new=1) == TopicPartition("u", 0)
    movements.move(T0, old=2, new=1)
    assert movements.instead_of(T1, old=2, new=1) == T1
