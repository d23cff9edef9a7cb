"""A consumer group counts its members, topics and owners as its records say."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from kafkacore.broker.group.consumer.consumer_group import (
    ConsumerGroup,
    ConsumerGroupState,
    GroupChange,
    ResolvedRegularExpression,
)
from kafkacore.broker.group.consumer.consumer_member import ClassicMember, ConsumerGroupMember, MemberState
from kafkacore.broker.group.member import MemberProtocol
from kafkacore.errors import (
    IllegalGenerationError,
    NonEmptyGroupError,
    StaleMemberEpochError,
    UnknownMemberIdError,
    UnsupportedVersionError,
)

TOPIC = UUID(int=1)
CLASSIC = ClassicMember(10_000, (MemberProtocol("range", b""), MemberProtocol("sticky", b"")))


def member(name: str, **fields: object) -> ConsumerGroupMember:
    return ConsumerGroupMember(member_id=name, **fields)  # type: ignore[arg-type]


def group_of(*members: ConsumerGroupMember) -> ConsumerGroup:
    group = ConsumerGroup("g")
    for one in members:
        group.apply_member(one)
    return group


def test_state_follows_the_epochs_and_the_members() -> None:
    group = ConsumerGroup("g")
    assert group.state is ConsumerGroupState.EMPTY
    group.apply_member(member("a"))
    group.apply_epoch(2, 0)
    assert group.state is ConsumerGroupState.ASSIGNING
    group.apply_target_epoch(2, 1)
    assert group.state is ConsumerGroupState.RECONCILING
    group.apply_member(member("a", member_epoch=2))
    assert group.state is ConsumerGroupState.STABLE
    group.apply_member(member("b", member_epoch=2, state=MemberState.UNRELEASED_PARTITIONS))
    assert group.state is ConsumerGroupState.RECONCILING
    group.apply_removal("b")
    assert group.state is ConsumerGroupState.STABLE
    group.apply_target_epoch(3, 1)
    assert group.state is ConsumerGroupState.RECONCILING
    group.apply_removal("a")
    group.apply_removal("a")
    assert group.state is ConsumerGroupState.EMPTY


def test_topics_of_a_change_are_those_of_the_names_and_of_the_regular_expressions() -> None:
    first = member("a", subscribed_topic_names=frozenset({"x", "y"}))
    second = member("b", subscribed_topic_names=frozenset({"y"}), subscribed_topic_regex="z.*")
    group = group_of(first, second)
    group.apply_resolved("z.*", ResolvedRegularExpression(frozenset({"z1", "y"}), 1, 1))
    assert group.subscribed_topics(GroupChange()) == {"x", "y", "z1"}
    assert group.subscribed_topics(GroupChange((first,))) == {"y", "z1"}
    assert group.subscribed_topics(GroupChange((second,))) == {"x", "y"}
    assert group.subscribed_topics(GroupChange((first, second))) == set()
    other = replace(second, subscribed_topic_regex="q")
    found = {"q": ResolvedRegularExpression(frozenset({"q"}), 1, 1)}
    assert group.subscribed_topics(GroupChange((second,), other, found)) == {"x", "y", "q"}
    assert group.topics_of(second) == {"y", "z1"}
    assert group.topics_of(other) == {"y"}
    assert group.topics_of(first) is first.subscribed_topic_names
    assert [group.is_subscribed_to(topic) for topic in ("x", "z1", "q")] == [True, True, False]


def test_assignor_of_most_members_is_preferred() -> None:
    first, second = member("a", server_assignor="range"), member("b", server_assignor="uniform")
    group = group_of(first, second)
    assert group.preferred_assignor(GroupChange((first,))) == "uniform"
    assert group.preferred_assignor(GroupChange((), member("c", server_assignor="range"))) == "range"
    assert group.preferred_assignor(GroupChange((first, second))) is None


def test_partition_has_an_owner_until_its_member_has_released_it() -> None:
    group = group_of(
        member("a", member_epoch=2, assigned={TOPIC: {1: 2}}, pending_revocation={TOPIC: {2: 2}})
    )
    assert group.is_owned(TOPIC, 1)
    assert group.is_owned(TOPIC, 2)
    group.apply_member(member("a", member_epoch=3, assigned={TOPIC: {1: 2}}))
    assert group.is_owned(TOPIC, 1)
    assert not group.is_owned(TOPIC, 2)
    group.apply_removal("a")
    assert not group.is_owned(TOPIC, 1)


def test_owner_of_now_keeps_a_partition_when_the_record_of_the_previous_one_comes_later() -> None:
    group = group_of(member("a", member_epoch=2, assigned={TOPIC: {1: 2}}))
    group.apply_member(member("b", member_epoch=3, assigned={TOPIC: {1: 3}}))
    group.apply_removal("a")
    assert group.is_owned(TOPIC, 1)


def test_static_member_is_found_by_its_instance_id() -> None:
    group = group_of(member("a", instance_id="i"))
    group.apply_member(member("b", instance_id="i"))
    group.apply_removal("a")
    found = group.static_member("i")
    assert found is not None
    assert found.member_id == "b"
    assert group.static_member(None) is group.static_member("other") is None


def test_members_of_the_classic_protocol_need_a_protocol_of_all() -> None:
    group = group_of(member("a", classic=CLASSIC), member("b"))
    assert group.classic_count == 1
    assert group.supports_classic_protocols("consumer", frozenset({"sticky", "other"}))
    assert not group.supports_classic_protocols("consumer", frozenset({"other"}))
    assert not group.supports_classic_protocols("connect", frozenset({"sticky"}))
    group.apply_member(member("a"))
    assert group.classic_count == 0


def test_commit_needs_the_epoch_of_the_member_or_of_the_partition() -> None:
    group = group_of(
        member("a", member_epoch=5, assigned={TOPIC: {1: 3}}, pending_revocation={TOPIC: {2: 4}})
    )
    assert group.validate_offset_commit("a", None, 5) is None
    check = group.validate_offset_commit("a", None, 3)
    assert check is not None
    check("t", TOPIC, 1)
    with pytest.raises(
        StaleMemberEpochError, match="epoch 3 is older than assignment epoch 4 for partition t-2"
    ):
        check("t", TOPIC, 2)
    with pytest.raises(StaleMemberEpochError, match="t-3 is not assigned"):
        check("t", TOPIC, 3)
    with pytest.raises(StaleMemberEpochError, match="epoch 6 is newer than current member epoch 5"):
        group.validate_offset_commit("a", None, 6)
    with pytest.raises(UnknownMemberIdError, match="Member b is not a member of group g"):
        group.validate_offset_commit("b", None, 5)
    with pytest.raises(UnknownMemberIdError):
        group.validate_offset_commit("", None, -1)
    with pytest.raises(UnsupportedVersionError, match="version 9"):
        group.validate_offset_commit("a", None, 5, version=8)
    assert group.validate_offset_commit("", None, -1, is_transactional=True) is None
    with pytest.raises(NonEmptyGroupError):
        group.validate_delete()


def test_commit_of_a_classic_member_reports_its_generation() -> None:
    group = group_of(member("a", member_epoch=5, classic=CLASSIC))
    assert group.validate_offset_commit("a", None, 5, version=8) is None
    with pytest.raises(IllegalGenerationError, match="generation id 6 is newer"):
        group.validate_offset_commit("a", None, 6)
    with pytest.raises(IllegalGenerationError, match="generation id 4 does not match"):
        group.validate_offset_fetch("a", 4)


def test_fetch_needs_the_epoch_of_the_member() -> None:
    group = group_of(member("a", member_epoch=5))
    group.validate_offset_fetch(None, -1)
    group.validate_offset_fetch("a", 5)
    with pytest.raises(
        StaleMemberEpochError, match="member epoch 4 does not match the expected member epoch 5"
    ):
        group.validate_offset_fetch("a", 4)
    with pytest.raises(UnknownMemberIdError):
        group.validate_offset_fetch("b", 5)


def test_empty_group_accepts_commits_without_an_epoch_and_can_be_deleted() -> None:
    group = ConsumerGroup("g")
    assert group.validate_offset_commit("", None, -1) is None
    group.validate_delete()
    group.validate_offset_delete()
    assert group.offset_expiry().since_ms is None
