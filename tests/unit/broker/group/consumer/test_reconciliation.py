"""A member gives up partitions first, and gets a partition only after its previous owner has released it."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkacore.broker.group.consumer.consumer_member import ConsumerGroupMember, MemberState
from kafkacore.broker.group.consumer.reconciliation import Reconciliation
from kafkacore.errors import FencedMemberEpochError

A, B = UUID(int=1), UUID(int=2)
STABLE, UNREVOKED, UNRELEASED = (
    MemberState.STABLE,
    MemberState.UNREVOKED_PARTITIONS,
    MemberState.UNRELEASED_PARTITIONS,
)


def owned(epoch: int, *partitions: int) -> dict[int, int]:
    return dict.fromkeys(partitions, epoch)


def step(
    member: ConsumerGroupMember,
    target_epoch: int,
    target: Mapping[UUID, tuple[int, ...]],
    *,
    reported: Mapping[UUID, list[int]] | None = None,
    others: Mapping[UUID, set[int]] | None = None,
    subscribed: frozenset[UUID] = frozenset({A, B}),
    changed: bool = False,
) -> ConsumerGroupMember:
    """Reconcile a member. ``others`` are the partitions that other members own."""
    held = {A: set((others or {}).get(A, ())), B: set((others or {}).get(B, ()))}
    for mine in (member.assigned, member.pending_revocation):
        for topic_id, partitions in mine.items():
            held[topic_id] |= partitions.keys()
    pairs = None if reported is None else list(reported.items())
    reconciliation = Reconciliation(
        member, target_epoch, target, subscribed, pairs, lambda topic_id, one: one in held[topic_id]
    )
    return reconciliation.next(subscription_changed=changed)


def test_new_member_gets_free_partitions_in_the_epoch_of_the_target() -> None:
    member = step(ConsumerGroupMember(member_id="m"), 5, {A: (1, 2)}, reported={})
    assert (member.state, member.member_epoch, member.previous_member_epoch) == (STABLE, 5, 0)
    assert member.assigned == {A: owned(5, 1, 2)}


def test_member_that_has_its_target_stays_as_it_is() -> None:
    member = ConsumerGroupMember(member_id="m", member_epoch=5, assigned={A: owned(5, 1)})
    assert step(member, 5, {A: (1,)}) is member


def test_member_keeps_its_epoch_until_it_has_revoked() -> None:
    member = ConsumerGroupMember(member_id="m", member_epoch=5, assigned={A: owned(4, 1, 2, 3)})
    asked = step(member, 6, {A: (1,), B: (7,)}, reported={A: [1, 2, 3]})
    assert (asked.state, asked.member_epoch) == (UNREVOKED, 5)
    assert asked.assigned == {A: owned(4, 1)}
    assert asked.pending_revocation == {A: owned(4, 2, 3)}
    for reported in (None, {A: [1, 3]}):
        assert step(asked, 6, {A: (1,), B: (7,)}, reported=reported) is asked
    done = step(asked, 6, {A: (1,), B: (7,)}, reported={A: [1]})
    assert (done.state, done.member_epoch, done.previous_member_epoch) == (STABLE, 6, 5)
    assert done.assigned == {A: owned(4, 1), B: owned(6, 7)}
    assert done.pending_revocation == {}


def test_partition_of_another_member_comes_when_it_is_released() -> None:
    member = ConsumerGroupMember(member_id="m", member_epoch=5, assigned={A: owned(5, 1)})
    waiting = step(member, 6, {A: (1, 2, 3)}, others={A: {2}})
    assert (waiting.state, waiting.member_epoch) == (UNRELEASED, 6)
    assert waiting.assigned == {A: {1: 5, 3: 6}}
    done = step(waiting, 6, {A: (1, 2, 3)})
    assert (done.state, done.assigned) == (STABLE, {A: {1: 5, 2: 6, 3: 6}})


def test_partition_that_a_member_gives_up_and_gets_back_is_received_again() -> None:
    member = ConsumerGroupMember(
        member_id="m",
        member_epoch=5,
        state=UNREVOKED,
        assigned={A: owned(4, 1)},
        pending_revocation={A: owned(4, 2)},
    )
    back = step(member, 7, {A: (1, 2)}, reported={A: [1]})
    assert (back.state, back.member_epoch) == (STABLE, 7)
    assert back.assigned == {A: {1: 4, 2: 7}}


def test_unsubscribed_topic_is_revoked_before_there_is_a_new_target() -> None:
    member = ConsumerGroupMember(member_id="m", member_epoch=5, assigned={A: owned(5, 1), B: owned(5, 2)})
    target = {A: (1,), B: (2,)}
    asked = step(member, 5, target, reported={A: [1], B: [2]}, subscribed=frozenset({B}), changed=True)
    assert (asked.state, asked.member_epoch) == (UNREVOKED, 5)
    assert (asked.assigned, asked.pending_revocation) == ({B: owned(5, 2)}, {A: owned(5, 1)})
    gone = step(member, 5, target, reported={B: [2]}, subscribed=frozenset({B}), changed=True)
    assert (gone.state, gone.assigned, gone.pending_revocation) == (STABLE, {B: owned(5, 2)}, {})


def test_target_does_not_give_topics_that_the_member_does_not_subscribe_to() -> None:
    member = step(ConsumerGroupMember(member_id="m"), 5, {A: (1,), B: (2,)}, subscribed=frozenset({B}))
    assert member.assigned == {B: owned(5, 2)}


def test_member_of_unknown_state_must_give_up_everything() -> None:
    member = ConsumerGroupMember(
        member_id="m", member_epoch=5, state=MemberState.UNKNOWN, assigned={A: owned(5, 1)}
    )
    for reported in (None, {A: [1]}):
        with pytest.raises(FencedMemberEpochError, match="unknown state"):
            step(member, 6, {A: (1,)}, reported=reported)
    assert step(member, 6, {A: (1,)}, reported={}).state is STABLE


@given(st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)), st.integers(1, 3))
def test_member_never_gets_a_partition_of_another_one_and_arrives_at_its_target(
    mine: set[int], target: set[int], others: set[int], epoch: int
) -> None:
    others -= mine
    start = {A: owned(1, *sorted(mine))} if mine else {}
    member = ConsumerGroupMember(member_id="m", member_epoch=1, assigned=start)
    wanted = {A: tuple(sorted(target))} if target else {}
    for free in (False, True):
        for _ in range(3):
            held = set() if free else others
            member = step(
                member,
                1 + epoch,
                wanted,
                reported={topic_id: list(ones) for topic_id, ones in member.assigned.items()},
                others={A: held},
            )
            assert not held & member.assigned.get(A, {}).keys()
            assert member.assigned.get(A, {}).keys() <= mine | target
    assert member.state is STABLE
    assert member.member_epoch == 1 + epoch
    assert member.assigned.get(A, {}).keys() == target
