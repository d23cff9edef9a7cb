"""Static members (KIP-345, KIP-814): they rejoin with a new member id and keep their place.

Cases of Kafka's GroupMetadataManagerTest.
"""

from __future__ import annotations

import pytest
from model.group_harness import DELAY_MS, REBALANCE_MS, SESSION_MS, GroupHarness

from kafkacore.broker.group.member import MemberProtocol
from kafkacore.coordinator.protocol import Subscription, encode_subscription
from kafkacore.errors import (
    FencedInstanceIdError,
    NotCoordinatorError,
    UnknownError,
    UnknownMemberIdError,
)

OTHER_TOPICS = (MemberProtocol("range", encode_subscription(Subscription(["u"]))),)
BOTH = (MemberProtocol("roundrobin", b""), *OTHER_TOPICS)


@pytest.fixture
def harness() -> GroupHarness:
    return GroupHarness()


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testReplaceStaticMemberInStableStateNoError",
    "GroupMetadataManagerTest.testStaticMemberRejoinAsFollowerWithUnknownMemberId",
    "GroupMetadataManagerTest.testGetDifferentStaticMemberIdAfterEachRejoin",
)
def test_member_that_comes_back_keeps_its_assignment_without_a_rebalance(harness: GroupHarness) -> None:
    leader, follower = harness.stable(0, "a", "b")
    got = harness.join(instance_id="b", version=9).got
    assert (got.error_code, got.generation_id, got.leader, got.members) == (0, 1, leader, ())
    assert got.member_id not in (follower, "")
    assert harness.state == "Stable"
    assert harness.sync(got.member_id, 1, instance_id="b").got.assignment == follower.encode()


@pytest.mark.kafka("GroupMetadataManagerTest.testReplaceStaticMemberInStableStateSucceeds")
def test_new_id_is_written_before_it_is_told(harness: GroupHarness) -> None:
    _, follower = harness.stable(0, "a", "b")
    harness.log.is_holding = True
    answer = harness.join(instance_id="b", version=9)
    assert answer.result is None
    harness.log.settle()
    written = {one.group_instance_id: one for one in harness.log.last_value().members}
    assert written["b"].member_id == answer.got.member_id != follower
    assert bytes(written["b"].assignment) == follower.encode()


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testReplaceStaticMemberInStableStateErrors",
    "GroupMetadataManagerTest.testStaticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWhileSelectProtocolUnchangedPersistenceFailure",
)
def test_new_id_that_cannot_be_written_is_taken_back(harness: GroupHarness) -> None:
    leader, follower = harness.stable(0, "a", "b")
    harness.log.failures.append(UnknownError.errno)
    refused = harness.join(instance_id="b", protocols=OTHER_TOPICS, version=9).got
    assert (refused.error_code, refused.member_id, refused.leader) == (UnknownError.errno, "", leader)
    assert harness.heartbeat(follower, 1, "b") == 0
    member = harness.group.member(follower)
    assert (member.protocols != OTHER_TOPICS, member.assignment) == (True, follower.encode())
    harness.pass_ms(SESSION_MS - 1)
    assert follower in harness.group
    harness.pass_ms(1)
    assert follower not in harness.group


@pytest.mark.kafka("GroupMetadataManagerTest.testStaticMemberRejoinWithLeaderIdAndUnknownMemberId")
@pytest.mark.parametrize(("version", "skips"), [(9, True), (8, False)])
def test_leader_that_comes_back_assigns_nothing(harness: GroupHarness, version: int, skips: bool) -> None:
    leader, _ = harness.stable(0, "a", "b")
    got = harness.join(instance_id="a", version=version).got
    assert (got.error_code, got.generation_id, got.skip_assignment) == (0, 1, skips)
    assert harness.group.leader_id == got.member_id
    if skips:
        assert got.leader == got.member_id
        assert {one.group_instance_id for one in got.members} == {"a", "b"}
    else:
        # The member must not take itself for the leader, because it would compute an assignment.
        assert (got.leader, got.members) == (leader, ())


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testStaticMemberFenceDuplicateRejoinedFollower",
    "GroupMetadataManagerTest.testLeaveGroupWithFencedInstanceId",
    "GroupMetadataManagerTest.testStaticMembersFencedInstanceBatchLeaveGroup",
)
def test_old_id_is_fenced_everywhere(harness: GroupHarness) -> None:
    _, old = harness.stable(0, "a", "b")
    harness.join(instance_id="b", version=9)
    fenced = FencedInstanceIdError.errno
    assert harness.heartbeat(old, 1, "b") == fenced
    assert harness.sync(old, 1, instance_id="b").got.error_code == fenced
    assert harness.join(old, instance_id="b").got.error_code == fenced
    assert harness.leave((old, "b")) == [fenced]
    assert harness.heartbeat(old, 1) == UnknownMemberIdError.errno
    assert harness.state == "Stable"


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testReplaceStaticMemberInCompletingRebalanceStateTriggersRebalance",
    "GroupMetadataManagerTest.testStaticMemberFenceDuplicateSyncingFollowerAfterMemberIdChanged",
)
def test_sync_that_waits_under_the_old_id_is_fenced(harness: GroupHarness) -> None:
    _, old = harness.joined(0, "a", "b")
    waiting = harness.sync(old, 1, instance_id="b")
    harness.join(instance_id="b")
    assert waiting.got.error_code == FencedInstanceIdError.errno
    assert harness.state == "PreparingRebalance", "the leader may have assigned partitions to the old id"


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testJoinGroupReplaceStaticMember",
    "GroupMetadataManagerTest.testStaticMemberFenceDuplicateRejoiningFollowerAfterMemberIdChanged",
)
def test_join_that_waits_under_the_old_id_is_fenced(harness: GroupHarness) -> None:
    first = harness.join(instance_id="a")
    second = harness.join(instance_id="a")
    assert first.got.error_code == FencedInstanceIdError.errno
    harness.pass_ms(DELAY_MS)
    assert (second.got.error_code, len(second.got.members)) == (0, 1)


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testReplaceStaticMemberInStableStateWithUpdatedProtocolTriggersRebalance",
    "GroupMetadataManagerTest.testStaticMemberRejoinWithFollowerIdAndChangeOfProtocol",
    "GroupMetadataManagerTest.testStaticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWithSelectedProtocolChanged",
)
def test_member_that_comes_back_by_another_protocol_has_everybody_rejoin() -> None:
    harness = GroupHarness()
    leader, _ = harness.stable(0, "a", "b", protocols=BOTH)
    assert harness.group.protocol_name == "roundrobin"
    answer = harness.join(instance_id="b", protocols=OTHER_TOPICS, version=9)
    assert (answer.result, harness.state) == (None, "PreparingRebalance")
    other = harness.join(leader, instance_id="a", protocols=BOTH)
    assert answer.got.protocol_name == other.got.protocol_name == "range"


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testStaticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWhileSelectProtocolUnchanged",
)
def test_member_that_comes_back_with_other_topics_is_written_with_them(harness: GroupHarness) -> None:
    harness.stable(0, "a", "b")
    got = harness.join(instance_id="b", protocols=OTHER_TOPICS, version=9).got
    assert (got.error_code, harness.state) == (0, "Stable")
    written = {one.group_instance_id: bytes(one.subscription) for one in harness.log.last_value().members}
    assert written["b"] == OTHER_TOPICS[0].metadata


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testStaticMemberRejoinWithKnownMemberId",
    "GroupMetadataManagerTest.testStaticMemberRejoinWithLeaderIdAndKnownMemberId",
    "GroupMetadataManagerTest.testStaticMemberRejoinWithKnownLeaderIdToTriggerRebalanceAndFollowerWithChangeOfProtocol",
    "GroupMetadataManagerTest.testStaticMemberRejoinAsFollowerWithKnownMemberIdAndNoProtocolChange",
)
def test_leader_that_rejoins_by_its_id_has_everybody_rejoin_a_follower_does_not(
    harness: GroupHarness,
) -> None:
    leader, follower = harness.stable(0, "a", "b")
    assert harness.join(follower, instance_id="b").got.generation_id == 1
    answer = harness.join(leader, instance_id="a")
    assert (answer.result, harness.state) == (None, "PreparingRebalance")


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testStaticMemberRejoinWithExplicitUnknownMemberId",
    "GroupMetadataManagerTest.testStaticMemberRejoinAsFollowerWithMismatchedInstanceId",
    "GroupMetadataManagerTest.testStaticMemberRejoinAsLeaderWithMismatchedInstanceId",
    "GroupMetadataManagerTest.testStaticMemberSyncAsLeaderWithInvalidMemberId",
    "GroupMetadataManagerTest.testStaticMemberJoinWithUnknownInstanceIdAndKnownMemberId",
    "GroupMetadataManagerTest.testStaticMemberHeartbeatLeaderWithInvalidMemberId",
)
def test_instance_of_another_member_or_of_nobody_is_refused(harness: GroupHarness) -> None:
    leader, follower = harness.stable(0, "a", "b")
    assert harness.join(follower, instance_id="a").got.error_code == FencedInstanceIdError.errno
    assert harness.join(leader, instance_id="b").got.error_code == FencedInstanceIdError.errno
    assert harness.join(leader, instance_id="c").got.error_code == UnknownMemberIdError.errno
    assert harness.sync("invalid", 1, instance_id="a").got.error_code == FencedInstanceIdError.errno
    assert harness.heartbeat("invalid", 1, "a") == FencedInstanceIdError.errno
    assert harness.state == "Stable"


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testStaticMemberFollowerFailToRejoinBeforeRebalanceTimeout",
    "GroupMetadataManagerTest.testStaticMemberLeaderFailToRejoinBeforeRebalanceTimeout",
    "GroupMetadataManagerTest.testGroupStuckInRebalanceTimeoutDueToNonjoinedStaticMember",
)
def test_static_member_that_does_not_rejoin_is_waited_for_until_its_session_ends(
    harness: GroupHarness,
) -> None:
    static, dynamic = harness.stable(1, "a", session_ms=90_000)[::-1]
    answer = harness.join(dynamic, session_ms=90_000)
    harness.pass_ms(REBALANCE_MS)
    assert {one.member_id for one in answer.got.members} == {static, dynamic}, "it is still a member"
    assert answer.got.generation_id == 2


@pytest.mark.kafka("GroupMetadataManagerTest.testCompleteJoinPhaseNoMembersRejoinedExtendsJoinPhase")
def test_rebalance_of_static_members_that_have_all_gone_ends_with_their_sessions() -> None:
    harness = GroupHarness()
    static, dynamic = harness.stable(1, "a", session_ms=150_000)[::-1]
    harness.leave((dynamic, None))
    assert harness.state == "PreparingRebalance"
    harness.pass_ms(2 * REBALANCE_MS)
    assert (harness.state, [one.member_id for one in harness.group]) == ("PreparingRebalance", [static])
    harness.pass_ms(150_000 - 2 * REBALANCE_MS)
    assert (harness.state, len(harness.group)) == ("Empty", 0)


def test_static_member_may_be_gone_for_its_whole_session(harness: GroupHarness) -> None:
    leader, _ = harness.stable(0, "a", "b")
    harness.pass_ms(SESSION_MS - 1)
    assert harness.heartbeat(leader, 1, "a") == 0
    got = harness.join(instance_id="b", version=9).got
    harness.pass_ms(SESSION_MS - 1)
    assert harness.heartbeat(leader, 1, "a") == 0
    assert harness.heartbeat(got.member_id, 1, "b") == 0
    assert harness.state == "Stable"


def test_answer_to_who_came_back_waits_for_the_rebalance_that_began_meanwhile(harness: GroupHarness) -> None:
    leader, _, _ = harness.stable(0, "a", "b", "c")
    harness.log.is_holding = True
    back = harness.join(instance_id="b", version=9)
    rejoined = harness.join(leader, instance_id="a")
    harness.log.settle()
    assert (back.result, rejoined.result) == (None, None)
    third = harness.join(instance_id="c")
    assert [one.got.generation_id for one in (back, rejoined, third)] == [2, 2, 2]


def test_member_that_leaves_while_its_new_id_is_written_is_answered_once(harness: GroupHarness) -> None:
    harness.stable(0, "a", "b")
    harness.log.is_holding = True
    back = harness.join(instance_id="b", version=9)
    harness.leave_held(("", "b"))
    harness.log.settle(NotCoordinatorError.errno)
    assert back.got.error_code == UnknownMemberIdError.errno
    assert harness.group.static_member_id("b") is None


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testLeaveGroupStaticMemberWithUnknownMemberId",
    "GroupMetadataManagerTest.testStaticMembersValidBatchLeaveGroup",
    "GroupMetadataManagerTest.testStaticMembersUnknownInstanceBatchLeaveGroup",
)
def test_static_members_are_removed_by_their_instance_alone(harness: GroupHarness) -> None:
    _, _, third = harness.stable(0, "a", "b", "c")
    unknown = UnknownMemberIdError.errno
    assert harness.leave(("", "a"), ("", "unknown"), ("", None), (third, "c")) == [0, unknown, unknown, 0]
    assert [one.group_instance_id for one in harness.group] == ["b"]
    assert harness.state == "PreparingRebalance"
