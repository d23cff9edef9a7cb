"""Properties of the broker's assignors in random groups and their changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random
from uuid import UUID

import pytest
from model.random_consumer_groups import ConsumerGroupCase, changed_case, random_case

from kafkacore.broker.group.assignor import ASSIGNORS, Assignment, MemberSubscription, PartitionAssignorError

GROUPS = 300
A, B = UUID(int=1), UUID(int=2)


def assign(name: str, case: ConsumerGroupCase) -> dict[str, Assignment]:
    return ASSIGNORS[name].assign(case.members, case.partition_counts, is_homogeneous=case.is_homogeneous)


def cases(name: str) -> list[ConsumerGroupCase]:
    """Return random groups, each followed by changes with the last assignment."""
    found = []
    for seed in range(GROUPS):
        chance = Random(seed)
        case = random_case(chance)
        for _ in range(3):
            found.append(case)
            case = changed_case(chance, case, assign(name, case))
    return found


def group(topic_ids: set[UUID], **assigned: Assignment) -> dict[str, MemberSubscription]:
    return {name: MemberSubscription(None, frozenset(topic_ids), one) for name, one in assigned.items()}


@pytest.mark.parametrize("name", ASSIGNORS)
def test_each_partition_is_assigned_once_to_a_subscriber(name: str) -> None:
    for case in cases(name):
        owned = Counter[tuple[UUID, int]]()
        for member_id, assignment in assign(name, case).items():
            assert assignment.keys() <= case.members[member_id].topic_ids
            for topic_id, partitions in assignment.items():
                assert partitions
                assert list(partitions) == sorted(set(partitions))
                owned.update((topic_id, partition) for partition in partitions)
        subscribed = frozenset[UUID]().union(*(member.topic_ids for member in case.members.values()))
        assert owned == Counter(
            (topic_id, partition)
            for topic_id in subscribed
            for partition in range(case.partition_counts[topic_id])
        )


@pytest.mark.parametrize("name", ASSIGNORS)
def test_unchanged_assignment_is_the_same_object(name: str) -> None:
    for case in cases(name):
        for member_id, assignment in assign(name, case).items():
            before = case.members[member_id].assigned
            assert (assignment is before) == (assignment == before)


@pytest.mark.parametrize("name", ASSIGNORS)
def test_second_assignment_changes_nothing(name: str) -> None:
    for case in cases(name):
        if name == "uniform" and not case.is_homogeneous:
            # Kafka may stop before the group is balanced, and then the next assignment continues.
            continue
        first = assign(name, case)
        members = {
            member_id: MemberSubscription(member.instance_id, member.topic_ids, first[member_id])
            for member_id, member in case.members.items()
        }
        second = assign(name, ConsumerGroupCase(members, case.partition_counts, case.is_homogeneous))
        assert all(second[member_id] is first[member_id] for member_id in members)


def test_uniform_is_balanced_within_one_partition() -> None:
    for case in cases("uniform"):
        if case.is_homogeneous:
            loads = [sum(map(len, one.values())) for one in assign("uniform", case).values()]
            assert max(loads) - min(loads) <= 1


def test_uniform_moves_only_what_exceeds_the_quota() -> None:
    members = group({A}, a={A: (0, 1, 2, 3)}, b={A: (4, 5)}, c={})
    assert assign("uniform", ConsumerGroupCase(members, {A: 6}, True)) == {
        "a": {A: (0, 1)},
        "b": {A: (4, 5)},
        "c": {A: (2, 3)},
    }


def test_members_with_more_partitions_keep_the_extra_one() -> None:
    members = group({A}, a={}, b={A: (0, 1)}, c={A: (2,)})
    new = assign("uniform", ConsumerGroupCase(members, {A: 4}, True))
    assert new == {"a": {A: (3,)}, "b": {A: (0, 1)}, "c": {A: (2,)}}
    assert new["b"] is members["b"].assigned


def test_topics_that_are_no_longer_subscribed_are_revoked() -> None:
    for is_homogeneous in (True, False):
        members = group({A}, a={A: (0,), B: (0, 1)}, b={})
        new = assign("uniform", ConsumerGroupCase(members, {A: 2}, is_homogeneous))
        assert new == {"a": {A: (0,)}, "b": {A: (1,)}}


def test_partitions_that_do_not_exist_are_revoked() -> None:
    for name in ASSIGNORS:
        for is_homogeneous in (True, False):
            members = group({A}, a={A: (-1, 0, 7)}, b={A: (1, 2**40)} if name == "range" else {A: (1, 9)})
            new = assign(name, ConsumerGroupCase(members, {A: 2}, is_homogeneous))
            assert new == {"a": {A: (0,)}, "b": {A: (1,)}}


def test_uniform_balances_members_with_different_topics() -> None:
    members = {
        "a": MemberSubscription(None, frozenset([A]), {}),
        "b": MemberSubscription(None, frozenset([A, B]), {}),
    }
    new = assign("uniform", ConsumerGroupCase(members, {A: 3, B: 3}, False))
    assert new == {"a": {A: (0, 1, 2)}, "b": {B: (0, 1, 2)}}


def test_range_assigns_static_members_first() -> None:
    members = {
        "a": MemberSubscription(None, frozenset([A, B]), {}),
        "z": MemberSubscription("static-2", frozenset([A, B]), {}),
        "y": MemberSubscription("static-3", frozenset([A, B]), {}),
    }
    for is_homogeneous in (True, False):
        new = assign("range", ConsumerGroupCase(members, {A: 4, B: 4}, is_homogeneous))
        assert new == {"z": {A: (0, 1), B: (0, 1)}, "y": {A: (2,), B: (2,)}, "a": {A: (3,), B: (3,)}}


@pytest.mark.parametrize("name", ASSIGNORS)
@pytest.mark.parametrize("is_homogeneous", [True, False])
def test_topic_without_partitions_is_an_error(name: str, is_homogeneous: bool) -> None:
    with pytest.raises(PartitionAssignorError):
        assign(name, ConsumerGroupCase(group({A, B}, a={}), {A: 1}, is_homogeneous))


@pytest.mark.parametrize("name", ASSIGNORS)
@pytest.mark.parametrize("is_homogeneous", [True, False])
def test_group_without_members_or_topics_gets_nothing(name: str, is_homogeneous: bool) -> None:
    assert assign(name, ConsumerGroupCase({}, {A: 1}, is_homogeneous)) == {}
    members = group(set(), a={A: (0,)}, b={})
    new = assign(name, ConsumerGroupCase(members, {}, is_homogeneous))
    assert new == {"a": {}, "b": {}}
    assert new["b"] is members["b"].assigned


@pytest.mark.parametrize("characters", ["ab", "a\x00z", "a\x80\uffee\U0001f600"])
def test_range_sorts_member_ids_as_java(characters: str) -> None:
    """Shared beginnings of more than eight bytes, and ids that are the beginning of others."""
    chance = Random(1)
    starts = ["", "consumer-", "consumer-group-"]
    names = {
        chance.choice(starts) + "".join(chance.choices(characters, k=chance.randrange(12)))
        for _ in range(200)
    }
    members = group({A}, **{name: {} for name in names})
    new = assign("range", ConsumerGroupCase(members, {A: len(names)}, is_homogeneous=True))
    ordered = sorted(names, key=lambda name: name.encode("utf-16-be"))
    assert new == {name: {A: (number,)} for number, name in enumerate(ordered)}


@pytest.mark.parametrize("name", ASSIGNORS)
def test_assignment_of_one_topic_is_a_mapping(name: str) -> None:
    made = assign(name, ConsumerGroupCase(group({A}, a={}), {A: 2}, is_homogeneous=True))["a"]
    assert isinstance(made, Mapping)
    assert (len(made), list(made), list(made.values())) == (1, [A], [(0, 1)])
    assert made.keys() == {A}
    assert made.items() == {(A, (0, 1))}
    assert A in made
    assert B not in made
    assert (made[A], made.get(A), made.get(B), made.get(B, ())) == ((0, 1), (0, 1), None, ())
    with pytest.raises(KeyError):
        made[B]
    assert dict(made) == {A: (0, 1)} == made
    assert made == assign(name, ConsumerGroupCase(group({A}, a={}), {A: 2}, is_homogeneous=True))["a"]
    assert made not in ({}, {A: (0,)}, {B: (0, 1)}, {A: (0, 1), B: (0,)}, None)
    assert repr(made) == repr({A: (0, 1)})
