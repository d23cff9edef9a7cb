"""Properties of every assignor for any group, whatever its members claim to own."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model.random_groups import Group, claiming, for_cooperative, random_group, with_random_claims

from kafkacore.coordinator.assignors import PartitionAssignor, assignors_for
from kafkacore.coordinator.assignors.cooperative_sticky import MOST_ROUNDS_BY_RACKS
from kafkacore.coordinator.protocol import Assignment
from kafkacore.structs import TopicPartition

STICKY = ("sticky", "cooperative-sticky")
ALL = ("range", "roundrobin", *STICKY)
#: Maximum rounds of a rebalance: usually two, three if claims conflict, and more with racks.
MOST_ROUNDS = MOST_ROUNDS_BY_RACKS + 3
SOME = settings(max_examples=40)
CHANCE = st.randoms(use_true_random=False)


def assigned(
    name: str, group: Group, leader: PartitionAssignor | None = None
) -> dict[str, list[TopicPartition]]:
    assignor = leader or assignors_for(name)[0]
    made: dict[str, Assignment] = assignor.assign(group.partitions, group.subscriptions)
    assert set(made) == set(group.subscriptions)
    return {member: list(assignment.partitions) for member, assignment in made.items()}


def settled(name: str, group: Group) -> dict[str, list[TopicPartition]]:
    """Return the assignment after all rounds, when revoked partitions have been given to their new owners."""
    (leader,) = assignors_for(name)
    made = assigned(name, group, leader)
    for _ in range(MOST_ROUNDS):
        if sum(map(len, made.values())) == len(group.every_partition):
            break
        made = assigned(name, for_cooperative(Random(1), owning(group, made)), leader)
    return made


def owning(group: Group, owned: dict[str, list[TopicPartition]]) -> Group:
    return claiming(group, owned, dict.fromkeys(owned, 7), Random(1))


def without_racks(group: Group) -> Group:
    nowhere = {member: sub._replace(rack_id=None) for member, sub in group.subscriptions.items()}
    return replace(group, subscriptions=nowhere)


def with_wild_claims(chance: Random, group: Group) -> Group:
    """Add claims to partitions that do not exist or whose topics no member subscribes to."""
    wild = [TopicPartition("t0", 99), TopicPartition("t0", -1), TopicPartition("unused", 0)]
    every = [*group.every_partition, *wild]
    members = list(group.subscriptions)
    owned = {member: chance.choices(every, k=chance.randint(0, 6)) for member in members}
    generation = {member: chance.randint(-2, 3) for member in members}
    group = claiming(group, owned, generation, chance)
    topics = {
        member: sub.topics if chance.random() < 0.8 else () for member, sub in group.subscriptions.items()
    }
    return replace(
        group,
        subscriptions={
            member: sub._replace(topics=topics[member]) for member, sub in group.subscriptions.items()
        },
    )


@pytest.mark.parametrize("name", ALL)
@SOME
@given(chance=CHANCE)
def test_every_partition_has_one_owner_who_subscribes(name: str, chance: Random) -> None:
    group = with_wild_claims(chance, random_group(chance))
    made = settled(name, group)
    assert Counter(one for mine in made.values() for one in mine) == Counter(group.every_partition)
    for member, mine in made.items():
        assert {partition.topic for partition in mine} <= set(group.subscriptions[member].topics)


@pytest.mark.parametrize("name", STICKY)
@SOME
@given(chance=CHANCE)
def test_nobody_could_take_from_one_who_has_two_more(name: str, chance: Random) -> None:
    group = with_random_claims(chance, random_group(chance))
    made = settled(name, group)
    for member, mine in made.items():
        wanted = set(group.subscriptions[member].topics)
        for others in made.values():
            assert len(others) < len(mine) + 2 or not wanted & {partition.topic for partition in others}


@pytest.mark.parametrize("name", STICKY)
@SOME
@given(chance=CHANCE)
def test_settled_group_without_racks_stays_as_it_is(name: str, chance: Random) -> None:
    # With racks, partitions that match no member's rack are assigned differently each time, as in Java.
    group = without_racks(random_group(chance))
    before = settled(name, group)
    again = settled(name, owning(group, before))
    assert {member: set(mine) for member, mine in again.items()} == {
        m: set(mine) for m, mine in before.items()
    }


@pytest.mark.parametrize("name", STICKY)
@SOME
@given(chance=CHANCE)
def test_who_leaves_moves_only_what_was_its(name: str, chance: Random) -> None:
    group = without_racks(random_group(chance))
    # All members subscribe to the same topics, so that no partition must move to balance the group.
    topics = next(iter(group.subscriptions.values())).topics
    same = {member: sub._replace(topics=topics) for member, sub in group.subscriptions.items()}
    group = replace(group, subscriptions=same)
    before = settled(name, group)
    gone = chance.choice(list(before))
    left = {member: mine for member, mine in before.items() if member != gone}
    rest = replace(group, subscriptions={member: group.subscriptions[member] for member in left})
    if left:
        after = settled(name, owning(rest, left))
        assert all(set(mine) <= set(after[member]) for member, mine in left.items())


@SOME
@given(chance=CHANCE)
def test_cooperative_never_gives_what_another_member_owns(chance: Random) -> None:
    group = with_random_claims(chance, random_group(chance))
    made = assigned("cooperative-sticky", for_cooperative(chance, group))
    for member, mine in made.items():
        for other, sub in group.subscriptions.items():
            # If two members claim the same partition, one of them may keep it. The other must revoke it.
            if other != member:
                assert not (set(mine) - set(group.subscriptions[member].owned_partitions)) & set(
                    sub.owned_partitions
                )


def test_partitions_that_go_to_and_fro_between_racks_come_to_rest() -> None:
    chance = Random(1050)
    group = with_wild_claims(chance, random_group(chance))
    made = assigned("cooperative-sticky", group)
    # A leader without memory of earlier rounds, like Java's, never assigns all partitions.
    for _ in range(20):
        assert sum(map(len, made.values())) < len(group.every_partition)
        made = assigned("cooperative-sticky", for_cooperative(Random(1), owning(group, made)))
    made = settled("cooperative-sticky", group)
    assert sum(map(len, made.values())) == len(group.every_partition)
