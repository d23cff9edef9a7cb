"""A single group: its states, the votes for a protocol, its leader and the permitted operations.

Cases of Kafka's ClassicGroupTest.
"""

from __future__ import annotations

import pytest
from model.group_harness import Answer

from kafkacore.broker.group.classic_group import ClassicGroup, GroupState
from kafkacore.broker.group.interfaces import OffsetExpiry
from kafkacore.broker.group.member import ClassicGroupMember, JoinResult, MemberProtocol, SyncResult
from kafkacore.coordinator.protocol import Subscription, encode_subscription
from kafkacore.errors import (
    CoordinatorNotAvailableError,
    FencedInstanceIdError,
    GroupIdNotFoundError,
    IllegalGenerationError,
    NonEmptyGroupError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = GroupState
ALLOWED = {
    EMPTY: {PREPARING, DEAD},
    PREPARING: {COMPLETING, EMPTY, DEAD},
    COMPLETING: {STABLE, PREPARING, DEAD},
    STABLE: {PREPARING, DEAD},
    DEAD: {DEAD},
}


def protocols(*names: str, topics: tuple[str, ...] = ("t",)) -> tuple[MemberProtocol, ...]:
    encoded = encode_subscription(Subscription(topics))
    return tuple(MemberProtocol(name, encoded) for name in names)


def member(member_id: str, *names: str, instance_id: str | None = None, kind: str = "consumer"):
    return ClassicGroupMember(
        member_id, instance_id, "client", "/h", 60_000, 10_000, kind, protocols(*(names or ("range",)))
    )


@pytest.fixture
def group() -> ClassicGroup:
    return ClassicGroup("g", lambda: 1_000)


def in_state(group: ClassicGroup, state: GroupState) -> ClassicGroup:
    group.state = state
    return group


@pytest.mark.kafka(
    "ClassicGroupTest.testCanRebalanceWhenStable",
    "ClassicGroupTest.testCanRebalanceWhenCompletingRebalance",
    "ClassicGroupTest.testCannotRebalanceWhenPreparingRebalance",
    "ClassicGroupTest.testCannotRebalanceWhenDead",
    "ClassicGroupTest.testStableToPreparingRebalanceTransition",
    "ClassicGroupTest.testStableToDeadTransition",
    "ClassicGroupTest.testAwaitingRebalanceToPreparingRebalanceTransition",
    "ClassicGroupTest.testPreparingRebalanceToDeadTransition",
    "ClassicGroupTest.testPreparingRebalanceToEmptyTransition",
    "ClassicGroupTest.testEmptyToDeadTransition",
    "ClassicGroupTest.testAwaitingRebalanceToStableTransition",
    "ClassicGroupTest.testEmptyToStableIllegalTransition",
    "ClassicGroupTest.testStableToStableIllegalTransition",
    "ClassicGroupTest.testEmptyToAwaitingRebalanceIllegalTransition",
    "ClassicGroupTest.testPreparingRebalanceToPreparingRebalanceIllegalTransition",
    "ClassicGroupTest.testPreparingRebalanceToStableIllegalTransition",
    "ClassicGroupTest.testAwaitingRebalanceToAwaitingRebalanceIllegalTransition",
    "ClassicGroupTest.testDeadToDeadIllegalTransition",
    "ClassicGroupTest.testDeadToStableIllegalTransition",
    "ClassicGroupTest.testDeadToPreparingRebalanceIllegalTransition",
    "ClassicGroupTest.testDeadToAwaitingRebalanceIllegalTransition",
)
@pytest.mark.parametrize("state", GroupState)
@pytest.mark.parametrize("following", GroupState)
def test_states_follow_each_other_as_drawn(
    group: ClassicGroup, state: GroupState, following: GroupState
) -> None:
    in_state(group, state)
    assert group.can_rebalance == (PREPARING in ALLOWED[state])
    if following in ALLOWED[state]:
        group.transition_to(following)
        assert (group.state, group.previous_state) == (following, state)
    else:
        with pytest.raises(AssertionError):
            group.transition_to(following)
        assert group.state is state


@pytest.mark.kafka(
    "ClassicGroupTest.testSelectProtocol",
    "ClassicGroupTest.testSelectProtocolChoosesCompatibleProtocol",
)
def test_protocol_that_most_like_best_of_those_that_all_know_wins(group: ClassicGroup) -> None:
    group.add(member("a", "range", "roundrobin"))
    assert group.select_protocol() == "range"
    in_state(group, PREPARING)
    group.add(member("b", "roundrobin", "range"))
    assert group.select_protocol() in ("range", "roundrobin")
    group.add(member("c", "roundrobin", "range"))
    assert group.select_protocol() == "roundrobin"
    group.add(member("d", "sticky", "range"))
    assert group.select_protocol() == "range"


@pytest.mark.kafka("ClassicGroupTest.testSupportsProtocols")
def test_group_supports_who_knows_a_protocol_of_all_and_is_of_its_type(group: ClassicGroup) -> None:
    assert group.supports("consumer", {"range"})
    assert group.supports("any", {"range"})
    assert not group.supports("", {"range"})
    assert not group.supports("consumer", set())
    group.add(member("a", "range", "roundrobin"))
    in_state(group, PREPARING)
    group.add(member("b", "range", "sticky"))
    assert group.supports("consumer", {"range", "foo"})
    assert not group.supports("consumer", {"roundrobin", "sticky"})
    assert not group.supports("connect", {"range"})
    group.remove("b")
    assert group.supports("consumer", {"roundrobin"})


@pytest.mark.kafka(
    "ClassicGroupTest.testSubscribedTopics",
    "ClassicGroupTest.testInitNextGeneration",
    "ClassicGroupTest.testInitNextGenerationEmptyGroup",
    "ClassicGroupTest.testIsSubscribedToTopic",
)
def test_generation_begins_with_a_protocol_and_the_topics_of_all(group: ClassicGroup) -> None:
    group.add(member("a"), Answer().give)
    in_state(group, PREPARING)
    assert group.is_subscribed_to("other"), "subscriptions are unknown until a generation begins"
    group.begin_generation()
    assert (group.generation_id, group.protocol_name, group.state) == (1, "range", COMPLETING)
    assert group.subscribed_topics == {"t"}
    assert (group.is_subscribed_to("t"), group.is_subscribed_to("other")) == (True, False)
    in_state(group, PREPARING)
    group.remove("a")
    group.begin_generation()
    assert (group.generation_id, group.protocol_name, group.state) == (2, None, EMPTY)
    assert not group.is_subscribed_to("t")


@pytest.mark.parametrize("version", [1, 2, 3, 9, -1])
def test_subscription_without_the_fields_of_its_version_is_read(
    group: ClassicGroup, caplog: pytest.LogCaptureFixture, version: int
) -> None:
    """Some older clients send a later version without its owned partitions (KIP-429)."""
    encoded = version.to_bytes(2, "big", signed=True) + encode_subscription(Subscription(("t",)), 0)[2:]
    group.add(member("a"))
    group.member("a").protocols = (MemberProtocol("range", encoded),)
    group.protocol_name = "range"
    assert group.topics_of_members() == {"t"}
    assert caplog.messages == []


@pytest.mark.kafka(
    "ClassicGroupTest.testSubscribedTopics",
    "ClassicGroupTest.testSubscribedTopicsNonConsumerGroup",
    "ClassicGroupTest.testIsSubscribedToTopic",
)
def test_topics_are_unknown_where_a_subscription_cannot_be_read_or_is_none(group: ClassicGroup) -> None:
    group.add(member("a"))
    group.member("a").protocols = (MemberProtocol("range", b"?"),)
    group.protocol_name = "range"
    assert group.topics_of_members() is None
    assert group.is_subscribed_to("anything")
    connect = ClassicGroup("connect", lambda: 0)
    connect.add(member("w", kind="connect"))
    connect.protocol_name = "range"
    assert connect.topics_of_members() is None
    assert not connect.is_subscribed_to("t")


@pytest.mark.kafka("ClassicGroupTest.testUpdateMember")
def test_member_that_joins_again_votes_anew(group: ClassicGroup) -> None:
    group.add(member("a", "range"))
    group.update(group.member("a"), protocols("roundrobin"), 1, 2, None)
    in_state(group, STABLE)
    assert group.supports("consumer", {"roundrobin"})
    assert not group.supports("consumer", {"range"})
    assert (group.member("a").rebalance_timeout_ms, group.member("a").session_timeout_ms) == (1, 2)
    assert group.rebalance_timeout_ms == 1


@pytest.mark.kafka(
    "ClassicGroupTest.testCompleteJoinFuture",
    "ClassicGroupTest.testNotCompleteJoinFuture",
)
def test_who_awaits_its_join_is_counted_whatever_happens_to_it(group: ClassicGroup) -> None:
    answers = [Answer[JoinResult]() for _ in range(3)]
    group.add(member("a"), answers[0].give)
    in_state(group, PREPARING)
    group.add(member("b"))
    assert (group.awaiting_join_count, group.has_all_members_joined) == (1, False)
    group.update(group.member("b"), protocols("range"), 1, 1, answers[1].give)
    assert (group.awaiting_join_count, group.has_all_members_joined) == (2, True)
    group.pending_joins.add("c")
    assert not group.has_all_members_joined
    group.remove("c")
    group.update(group.member("b"), protocols("range"), 1, 1, answers[2].give)
    assert group.awaiting_join_count == 2
    assert group.answer_join(group.member("a"), JoinResult())
    assert not group.answer_join(group.member("a"), JoinResult())
    assert group.awaiting_join_count == 1
    group.remove("b")
    assert (group.awaiting_join_count, len(group)) == (0, 1)


@pytest.mark.kafka(
    "ClassicGroupTest.testCompleteSyncFuture",
    "ClassicGroupTest.testNotCompleteSyncFuture",
)
def test_sync_is_answered_once(group: ClassicGroup) -> None:
    group.add(member("a"))
    answer = Answer[SyncResult]()
    group.member("a").on_synced = answer.give
    assert group.answer_sync(group.member("a"), SyncResult(assignment=b"x"))
    assert not group.answer_sync(group.member("a"), SyncResult())
    assert answer.got.assignment == b"x"


def test_first_member_leads_and_the_oldest_after_it(group: ClassicGroup) -> None:
    for name in "abc":
        group.add(member(name))
        in_state(group, PREPARING)
    assert group.is_leader("a")
    group.remove("a")
    assert group.is_leader("b")
    group.remove("c")
    group.remove("b")
    assert group.leader_id is None


@pytest.mark.kafka(
    "ClassicGroupTest.testElectNewJoinedLeader",
    "ClassicGroupTest.testMaybeElectNewJoinedLeaderChooseExisting",
)
def test_leader_that_has_not_rejoined_is_replaced_by_one_who_has(group: ClassicGroup) -> None:
    group.add(member("a"))
    in_state(group, PREPARING)
    assert not group.elect_joined_leader()
    group.add(member("b"), Answer().give)
    assert group.elect_joined_leader()
    assert group.is_leader("b")
    assert group.elect_joined_leader(), "a leader that has joined is kept"
    assert group.is_leader("b")


@pytest.mark.kafka(
    "ClassicGroupTest.testReplaceGroupInstanceWithNonExistingMember",
    "ClassicGroupTest.testReplaceGroupInstance",
)
def test_static_member_is_replaced_and_the_old_one_fenced(group: ClassicGroup) -> None:
    old = member("a", instance_id="i")
    joined, synced = Answer[JoinResult](), Answer[SyncResult]()
    group.add(old, joined.give)
    old.on_synced, old.assignment = synced.give, b"mine"
    new = group.replace_static("i", "a", "a2")
    assert joined.got == JoinResult(FencedInstanceIdError.errno, "a")
    assert synced.got == SyncResult(FencedInstanceIdError.errno)
    assert (group.static_member_id("i"), group.leader_id, group.awaiting_join_count) == ("a2", "a2", 0)
    assert (new.assignment, new.protocols, new.is_awaiting_join) == (b"mine", old.protocols, False)
    assert [one.member_id for one in group] == ["a2"]
    with pytest.raises(KeyError):
        group.replace_static("i", "a", "a3")


@pytest.mark.kafka("ClassicGroupTest.testCannotAddStaticMemberIfAlreadyPresent")
def test_instance_is_in_a_group_once(group: ClassicGroup) -> None:
    group.add(member("a", instance_id="i"))
    in_state(group, PREPARING)
    with pytest.raises(AssertionError):
        group.add(member("b", instance_id="i"))


@pytest.mark.kafka(
    "ClassicGroupTest.testRemovalFromPendingAfterMemberIsStable",
    "ClassicGroupTest.testRemovalFromPendingWhenMemberIsRemoved",
    "ClassicGroupTest.testCanAddAndRemovePendingSyncMember",
    "ClassicGroupTest.testRemovalFromPendingSyncWhenMemberIsRemoved",
)
def test_pending_member_is_pending_until_it_joins_or_goes(group: ClassicGroup) -> None:
    group.pending_joins.update(("a", "b"))
    group.add(member("a"))
    assert group.pending_joins == {"b"}
    group.remove("b")
    assert group.pending_joins == set()
    group.pending_syncs.add("a")
    group.remove("a")
    assert group.pending_syncs == set()


@pytest.mark.kafka("ClassicGroupTest.testNewGenerationClearsPendingSyncMembers")
def test_new_generation_waits_for_nobodys_sync(group: ClassicGroup) -> None:
    group.add(member("a"))
    group.pending_syncs.add("a")
    in_state(group, PREPARING).begin_generation()
    assert group.pending_syncs == set()


def test_member_is_who_has_the_id_that_goes_with_its_instance(group: ClassicGroup) -> None:
    group.add(member("a", instance_id="i"))
    group.validate_member("a", "i", "test")
    group.validate_member("a", None, "test")
    with pytest.raises(FencedInstanceIdError):
        group.validate_member("b", "i", "test")
    with pytest.raises(UnknownMemberIdError):
        group.validate_member("a", "j", "test")
    with pytest.raises(UnknownMemberIdError):
        group.validate_member("b", None, "test")


@pytest.mark.kafka("ClassicGroupTest.testValidateOffsetCommit")
def test_offsets_are_committed_by_members_of_the_generation_or_into_an_empty_group(
    group: ClassicGroup,
) -> None:
    group.validate_offset_commit("", None, -1)
    group.validate_offset_commit("whoever", None, -1)
    with pytest.raises(UnknownMemberIdError):
        group.validate_offset_commit("a", None, 0)
    group.add(member("a", instance_id="i"))
    in_state(group, STABLE).generation_id = 3
    group.validate_offset_commit("a", "i", 3)
    with pytest.raises(IllegalGenerationError):
        group.validate_offset_commit("a", "i", 2)
    with pytest.raises(FencedInstanceIdError):
        group.validate_offset_commit("b", "i", 3)
    with pytest.raises(UnknownMemberIdError):
        group.validate_offset_commit("", None, -1)
    in_state(group, PREPARING).validate_offset_commit("a", "i", 3)
    with pytest.raises(RebalanceInProgressError):
        in_state(group, COMPLETING).validate_offset_commit("a", "i", 3)
    group.validate_offset_commit("a", "i", 3, is_transactional=True)
    with pytest.raises(CoordinatorNotAvailableError):
        in_state(group, DEAD).validate_offset_commit("a", "i", 3)


@pytest.mark.kafka(
    "ClassicGroupTest.testValidateOffsetDelete",
    "ClassicGroupTest.testValidateDeleteGroup",
)
@pytest.mark.parametrize("state", [PREPARING, COMPLETING, STABLE])
def test_only_an_empty_group_is_deleted_and_offsets_only_of_consumers(
    group: ClassicGroup, state: GroupState
) -> None:
    group.validate_delete()
    group.validate_offset_delete()
    in_state(group, state).protocol_type = "connect"
    with pytest.raises(NonEmptyGroupError):
        group.validate_delete()
    with pytest.raises(NonEmptyGroupError):
        group.validate_offset_delete()
    group.protocol_type = "consumer"
    group.validate_offset_delete()
    in_state(group, DEAD)
    for refused in (group.validate_delete, group.validate_offset_delete):
        with pytest.raises(GroupIdNotFoundError):
            refused()


@pytest.mark.kafka("ClassicGroupTest.testOffsetExpirationCondition")
def test_offsets_age_from_the_commit_or_since_the_group_is_empty_or_not_at_all(group: ClassicGroup) -> None:
    assert group.offset_expiry() == OffsetExpiry(None), "a group without a protocol type"
    group.protocol_type = "consumer"
    assert group.offset_expiry() == OffsetExpiry(1_000)
    group.state_timestamp_ms = -1
    assert group.offset_expiry() == OffsetExpiry(None), "loaded from a record without a state timestamp"
    group.subscribed_topics = frozenset({"t"})
    assert in_state(group, STABLE).offset_expiry() == OffsetExpiry(None)
    assert in_state(group, PREPARING).offset_expiry() is None
    group.subscribed_topics = None
    assert in_state(group, STABLE).offset_expiry() is None
