"""SyncGroup, Heartbeat, LeaveGroup and session timeouts in every state of a group.

Cases of Kafka's GroupMetadataManagerTest.
"""

from __future__ import annotations

import pytest
from model.group_harness import DELAY_MS, GROUP, RANGE, REBALANCE_MS, SESSION_MS, GroupHarness

from kafkacore.broker.group.classic_group import GroupState
from kafkacore.broker.group.member import MemberProtocol
from kafkacore.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    NotCoordinatorError,
    RebalanceInProgressError,
    UnknownError,
    UnknownMemberIdError,
)

COOPERATIVE = (MemberProtocol("cooperative-sticky", RANGE[0].metadata),)


@pytest.fixture
def harness() -> GroupHarness:
    return GroupHarness()


# ---- SyncGroup ---------------------------------------------------------------------------------------------


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testSyncGroupFollowerAfterLeader",
    "GroupMetadataManagerTest.testSyncGroupLeaderAfterFollower",
)
@pytest.mark.parametrize("leader_first", [True, False])
def test_everybody_gets_what_the_leader_assigned(harness: GroupHarness, leader_first: bool) -> None:
    leader, follower = harness.joined(2)
    given = {leader: b"one", follower: b"two"}
    order = [leader, follower] if leader_first else [follower, leader]
    answers = {one: harness.sync(one, 1, given if one == leader else None) for one in order}
    assert {one: answer.got.assignment for one, answer in answers.items()} == given
    assert answers[leader].got.protocol_type == "consumer"
    assert answers[leader].got.protocol_name == "range"
    assert harness.state == "Stable"
    assert harness.sync(follower, 1).got.assignment == b"two", "a second SyncGroup in a stable group"


def test_assignment_is_written_before_it_is_told(harness: GroupHarness) -> None:
    leader, follower = harness.joined(2)
    harness.log.is_holding = True
    waiting = [harness.sync(follower, 1), harness.sync(leader, 1, {leader: b"one", follower: b"two"})]
    assert [one.result for one in waiting] == [None, None]
    assert harness.state == "CompletingRebalance"
    harness.log.settle()
    assert [one.got.assignment for one in waiting] == [b"two", b"one"]
    value = harness.log.last_value()
    assert (value.generation, value.protocol, value.leader, value.protocol_type) == (
        1,
        "range",
        leader,
        "consumer",
    )
    assert [
        (one.member_id, bytes(one.assignment), one.client_id, one.client_host) for one in value.members
    ] == [
        (leader, b"one", "client", "/127.0.0.1"),
        (follower, b"two", "client", "/127.0.0.1"),
    ]
    assert [(one.session_timeout, one.rebalance_timeout) for one in value.members] == [
        (SESSION_MS, REBALANCE_MS)
    ] * 2


@pytest.mark.kafka("GroupMetadataManagerTest.testSyncGroupAsLeaderAppendFailureTransformsError")
@pytest.mark.parametrize("code", [UnknownError.errno, CoordinatorNotAvailableError.errno])
def test_assignment_that_cannot_be_written_is_refused_and_the_group_rebalances(
    harness: GroupHarness, code: int
) -> None:
    leader, follower = harness.joined(2)
    waiting = harness.sync(follower, 1)
    harness.log.failures.append(code)
    refused = harness.sync(leader, 1, {leader: b"one"})
    assert [(one.got.error_code, one.got.assignment) for one in (waiting, refused)] == [(code, b"")] * 2
    assert harness.state == "PreparingRebalance"
    assert [harness.join(one).result is None for one in (leader, follower)] == [True, False]


def test_member_that_joins_while_an_assignment_is_written_makes_it_nobodys(harness: GroupHarness) -> None:
    (leader,) = harness.joined()
    harness.log.is_holding = True
    waiting = harness.sync(leader, 1, {leader: b"one"})
    harness.join()
    assert waiting.got.error_code == RebalanceInProgressError.errno
    harness.log.settle()
    assert harness.state == "PreparingRebalance"
    assert harness.group.member(leader).assignment == b""


@pytest.mark.kafka("GroupMetadataManagerTest.testSyncGroupEmptyAssignment")
def test_who_is_assigned_nothing_gets_nothing(harness: GroupHarness) -> None:
    leader, follower = harness.joined(2)
    waiting = harness.sync(follower, 1)
    harness.sync(leader, 1, {leader: b"one"})
    assert (waiting.got.error_code, waiting.got.assignment) == (0, b"")


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testSyncGroupReturnsAnErrorWhenProtocolTypeIsInconsistent",
    "GroupMetadataManagerTest.testSyncGroupReturnsAnErrorWhenProtocolNameIsInconsistent",
    "GroupMetadataManagerTest.testSyncGroupSucceedWhenProtocolTypeAndNameAreNotProvided",
    "GroupMetadataManagerTest.testSyncGroupSucceedWhenProtocolTypeAndNameAreConsistent",
)
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, 0),
        ({"protocol_type": "consumer", "protocol_name": "range"}, 0),
        ({"protocol_type": "connect", "protocol_name": "range"}, InconsistentGroupProtocolError.errno),
        ({"protocol_type": "consumer", "protocol_name": "sticky"}, InconsistentGroupProtocolError.errno),
    ],
)
def test_protocol_that_a_member_names_is_the_groups(harness: GroupHarness, fields, code: int) -> None:
    (leader,) = harness.joined()
    assert harness.sync(leader, 1, {}, **fields).got.error_code == code
    assert harness.sync(leader, 1, {}, **fields).got.error_code == code, (
        "the second request has the same result"
    )


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testSyncGroupFromUnknownGroup",
    "GroupMetadataManagerTest.testSyncGroupFromUnknownMember",
    "GroupMetadataManagerTest.testSyncGroupFromIllegalGeneration",
)
def test_sync_of_no_group_no_member_or_another_generation_is_refused(harness: GroupHarness) -> None:
    assert harness.sync("a", 1).got.error_code == UnknownMemberIdError.errno
    (leader,) = harness.joined()
    assert harness.sync("a", 1).got.error_code == UnknownMemberIdError.errno
    assert harness.sync(leader, 2).got.error_code == IllegalGenerationError.errno
    harness.join(leader, protocols=(MemberProtocol("range", b"new"),))
    harness.group.state = GroupState.PREPARING_REBALANCE
    assert harness.sync(leader, harness.group.generation_id).got.error_code == RebalanceInProgressError.errno
    harness.group.state = GroupState.DEAD
    assert harness.sync(leader, 1).got.error_code == CoordinatorNotAvailableError.errno


@pytest.mark.kafka("GroupMetadataManagerTest.testLeaderFailureInSyncGroup")
def test_leader_whose_session_ends_before_it_assigns_has_the_others_rejoin(harness: GroupHarness) -> None:
    leader, follower = harness.joined(2)
    waiting = harness.sync(follower, 1)
    harness.pass_ms(SESSION_MS)
    assert waiting.got.error_code == RebalanceInProgressError.errno
    answer = harness.join(follower)
    assert (answer.got.leader, answer.got.generation_id) == (follower, 2)
    assert leader not in harness.group


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testRebalanceTimesOutWhenSyncRequestIsNotReceived",
    "GroupMetadataManagerTest.testRebalanceTimesOutWhenSyncRequestIsNotReceivedFromFollowers",
    "GroupMetadataManagerTest.testRebalanceTimesOutWhenSyncRequestIsNotReceivedFromLeaders",
)
@pytest.mark.parametrize("late", ["no member", "a follower", "the leader"])
def test_who_does_not_ask_for_its_assignment_in_the_rebalance_timeout_is_removed(
    harness: GroupHarness, late: str
) -> None:
    leader, follower = members = harness.joined(2)
    asks = {"no member": [], "a follower": [leader], "the leader": [follower]}[late]
    waiting = [harness.sync(one, 1, {one: b"x"} if one == leader else None) for one in asks]
    for _ in range(REBALANCE_MS // 5_000 - 1):
        harness.pass_ms(5_000)
        assert [harness.heartbeat(one, 1) for one in members] == [0, 0]
    harness.pass_ms(5_000)
    assert [one.member_id for one in harness.group] == asks
    assert harness.state == ("PreparingRebalance" if asks else "Empty")
    if late == "the leader":
        assert waiting[0].got.error_code == RebalanceInProgressError.errno


@pytest.mark.kafka("GroupMetadataManagerTest.testRebalanceDoesNotTimeOutWhenAllSyncAreReceived")
def test_group_in_which_all_have_asked_stays(harness: GroupHarness) -> None:
    members = harness.stable(2)
    for _ in range(3 * REBALANCE_MS // 5_000):
        harness.pass_ms(5_000)
        assert [harness.heartbeat(one, 1) for one in members] == [0, 0]
    assert harness.state == "Stable"


# ---- Heartbeat ---------------------------------------------------------------------------------------------


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testHeartbeatDuringPreparingRebalance",
    "GroupMetadataManagerTest.testHeartbeatDuringCompletingRebalance",
    "GroupMetadataManagerTest.testValidHeartbeat",
    "GroupMetadataManagerTest.testClassicGroupMemberHeartbeatMaintainsSession",
    "GroupMetadataManagerTest.testHeartbeatDuringRebalanceCausesRebalanceInProgress",
)
def test_heartbeat_keeps_a_session_and_tells_of_a_rebalance(harness: GroupHarness) -> None:
    (member,) = harness.joined()
    assert harness.heartbeat(member, 1) == 0, "a heartbeat is valid before the assignment, too"
    harness.sync(member, 1, {member: b"x"})
    for _ in range(3):
        harness.pass_ms(SESSION_MS - 1)
        assert harness.heartbeat(member, 1) == 0
    harness.join()
    assert harness.heartbeat(member, 1) == RebalanceInProgressError.errno
    harness.pass_ms(SESSION_MS - 1)
    assert harness.heartbeat(member, 1) == RebalanceInProgressError.errno


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testHeartbeatUnknownGroup",
    "GroupMetadataManagerTest.testHeartbeatDeadGroup",
    "GroupMetadataManagerTest.testHeartbeatEmptyGroup",
    "GroupMetadataManagerTest.testHeartbeatUnknownMemberExistingGroup",
    "GroupMetadataManagerTest.testHeartbeatIllegalGeneration",
)
def test_heartbeat_of_no_group_no_member_or_another_generation_is_refused(harness: GroupHarness) -> None:
    unknown = UnknownMemberIdError.errno
    assert harness.heartbeat("a", 1) == unknown
    (member,) = harness.stable()
    assert harness.heartbeat("a", 1) == unknown
    assert harness.heartbeat(member, 2) == IllegalGenerationError.errno
    harness.leave((member, None))
    assert (harness.state, harness.heartbeat(member, 1)) == ("Empty", unknown)
    harness.group.state = GroupState.DEAD
    assert harness.heartbeat(member, 1) == CoordinatorNotAvailableError.errno


def test_heartbeat_while_the_groups_are_read_is_good(harness: GroupHarness) -> None:
    harness.log.refusal = CoordinatorLoadInProgressError()
    assert harness.heartbeat("a", 1) == 0
    harness.log.refusal = NotCoordinatorError()
    assert harness.heartbeat("a", 1) == NotCoordinatorError.errno


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testHeartbeatExpirationShouldRemoveMember",
    "GroupMetadataManagerTest.testClassicGroupMemberSessionTimeout",
)
def test_member_that_is_not_heard_of_is_removed_and_the_others_rejoin(harness: GroupHarness) -> None:
    leader, follower = harness.stable(2)
    harness.pass_ms(SESSION_MS - 1)
    assert harness.heartbeat(follower, 1) == 0
    harness.pass_ms(1)
    assert harness.heartbeat(leader, 1) == UnknownMemberIdError.errno
    assert harness.heartbeat(follower, 1) == RebalanceInProgressError.errno
    answer = harness.join(follower)
    assert (answer.got.leader, [one.member_id for one in answer.got.members]) == (follower, [follower])


@pytest.mark.kafka("GroupMetadataManagerTest.testClassicGroupMemberSessionTimeoutDuringRebalance")
def test_member_that_waits_for_the_others_lives(harness: GroupHarness) -> None:
    leader, follower = harness.stable(2)
    waiting = harness.join(leader)
    for _ in range(5):
        harness.pass_ms(SESSION_MS - 1)
        harness.heartbeat(follower, 1)
    assert (waiting.result, leader in harness.group) == (None, True)
    harness.join(follower)
    assert waiting.got.generation_id == 2
    harness.pass_ms(SESSION_MS)
    assert harness.state == "Empty", "the session restarted when the rebalance completed"


def test_member_that_waits_for_an_assignment_lives(harness: GroupHarness) -> None:
    leader, follower = harness.joined(2)
    waiting = harness.sync(follower, 1)
    for _ in range(5):
        harness.pass_ms(SESSION_MS - 1)
        assert harness.heartbeat(leader, 1) == 0
    harness.sync(leader, 1, {follower: b"two"})
    assert waiting.got.assignment == b"two"
    harness.pass_ms(SESSION_MS - 1)
    assert harness.heartbeat(follower, 1) == 0


@pytest.mark.kafka("GroupMetadataManagerTest.testNewMemberFailureAfterJoinGroupCompletion")
def test_rebalance_ends_when_those_who_are_missing_are_given_up(harness: GroupHarness) -> None:
    members = harness.stable(3)
    waiting = harness.join(members[0])
    harness.join(members[1])
    harness.pass_ms(SESSION_MS)
    assert [one.member_id for one in waiting.got.members] == members[:2]


# ---- LeaveGroup --------------------------------------------------------------------------------------------


def test_member_that_leaves_has_the_others_rejoin_at_once(harness: GroupHarness) -> None:
    leader, follower = harness.stable(2)
    assert harness.leave((leader, None)) == [0]
    assert harness.heartbeat(follower, 1) == RebalanceInProgressError.errno
    assert harness.join(follower).got.leader == follower


@pytest.mark.kafka("GroupMetadataManagerTest.testValidLeaveGroup")
def test_last_member_leaves_an_empty_group_that_is_written(harness: GroupHarness) -> None:
    (member,) = harness.stable()
    assert harness.leave((member, None)) == [0]
    assert harness.state == "Empty"
    value = harness.log.last_value()
    assert (value.generation, value.protocol_type, value.protocol, list(value.members)) == (
        2,
        "consumer",
        None,
        [],
    )
    assert len(harness.timer) == 0


def test_leaving_is_answered_when_it_is_safe(harness: GroupHarness) -> None:
    (member,) = harness.stable()
    harness.log.is_holding = True
    answer = harness.leave_held((member, None))
    assert answer.result is None
    harness.log.settle()
    assert answer.got == [0]


def test_group_whose_log_fails_sends_everybody_away(harness: GroupHarness) -> None:
    away = NotCoordinatorError.errno
    leader, follower = harness.joined(2)
    waiting = harness.sync(follower, 1)
    harness.log.failures.append(away)
    refused = harness.sync(leader, 1, {leader: b"one"})
    assert [one.got.error_code for one in (waiting, refused)] == [away] * 2
    assert harness.heartbeat(leader, 1) == harness.join().got.error_code == away
    assert (harness.registry.exists(GROUP), len(harness.timer)) == (False, 0)


def test_last_member_that_leaves_a_group_whose_log_fails_is_sent_away(harness: GroupHarness) -> None:
    (member,) = harness.stable()
    harness.log.failures.append(NotCoordinatorError.errno)
    assert harness.leave((member, None)) == [NotCoordinatorError.errno]
    assert not harness.registry.exists(GROUP)


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testLeaveGroupUnknownGroup",
    "GroupMetadataManagerTest.testLeaveGroupUnknownMemberIdExistingGroup",
    "GroupMetadataManagerTest.testStaticMembersLeaveUnknownGroup",
)
def test_who_is_no_member_cannot_leave(harness: GroupHarness) -> None:
    assert harness.leave(("a", None)) == [UnknownMemberIdError.errno]
    harness.stable()
    assert harness.leave(("a", None), ("", None)) == [UnknownMemberIdError.errno] * 2
    assert harness.state == "Stable"


def test_member_that_waits_for_its_join_and_leaves_is_told_to_begin_anew(harness: GroupHarness) -> None:
    leader, _ = harness.stable(2)
    waiting = harness.join(leader)
    harness.leave((leader, None))
    assert waiting.got.error_code == UnknownMemberIdError.errno
    assert harness.state == "PreparingRebalance"


def test_rebalance_goes_on_when_the_one_who_was_missing_leaves(harness: GroupHarness) -> None:
    leader, follower = harness.stable(2)
    waiting = harness.join(leader)
    harness.leave((follower, None))
    assert waiting.got.generation_id == 2


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testPendingMembersLeaveGroup",
    "GroupMetadataManagerTest.testPendingMemberBatchLeaveGroup",
    "GroupMetadataManagerTest.testJoinedMemberPendingMemberBatchLeaveGroup",
    "GroupMetadataManagerTest.testJoinedMemberPendingMemberBatchLeaveGroupWithUnknownMember",
)
def test_id_that_was_given_may_leave_without_having_joined(harness: GroupHarness) -> None:
    (member,) = harness.stable()
    pending = harness.join(version=4).got.member_id
    waiting = harness.join(member)
    assert harness.leave((pending, None), ("unknown", None)) == [0, UnknownMemberIdError.errno]
    assert waiting.got.generation_id == 2
    assert len(harness.timer) > 0


def test_several_leave_at_once_and_the_group_rebalances_once(harness: GroupHarness) -> None:
    members = harness.stable(3)
    assert harness.leave((members[0], None), (members[1], None)) == [0, 0]
    assert harness.join(members[2]).got.generation_id == 2


# ---- Cooperative groups ------------------------------------------------------------------------------------


def test_cooperative_members_keep_the_generation_until_they_rejoin_and_then_once_more(
    harness: GroupHarness,
) -> None:
    (first,) = harness.stable(protocols=COOPERATIVE)
    second = harness.join(protocols=COOPERATIVE)
    assert harness.heartbeat(first, 1) == RebalanceInProgressError.errno
    harness.registry.validate_commit(GROUP, first, None, 1, 9)
    rejoined = harness.join(first, protocols=COOPERATIVE)
    assert (rejoined.got.protocol_name, rejoined.got.leader) == ("cooperative-sticky", first)
    new = second.got.member_id
    harness.sync(new, 2)
    harness.sync(first, 2, {first: b"less", new: b""})
    # The member has given up the partitions of the other one, and rejoins without them.
    released = (MemberProtocol("cooperative-sticky", b"owns less"),)
    again = harness.join(first, protocols=released)
    harness.join(new, protocols=COOPERATIVE)
    assert again.got.generation_id == 3
    harness.sync(new, 3)
    harness.sync(first, 3, {first: b"less", new: b"the rest"})
    assert harness.sync(new, 3).got.assignment == b"the rest"
    assert harness.state == "Stable"


def test_commit_is_a_sign_of_life(harness: GroupHarness) -> None:
    (member,) = harness.stable()
    for _ in range(3):
        harness.pass_ms(SESSION_MS - 1)
        harness.registry.validate_commit(GROUP, member, None, 1, 9)
    harness.pass_ms(SESSION_MS)
    assert harness.state == "Empty"


def test_transactional_commit_is_no_sign_of_life_and_may_come_during_a_rebalance(
    harness: GroupHarness,
) -> None:
    (member,) = harness.stable()
    harness.pass_ms(SESSION_MS - 1)
    harness.registry.validate_transactional_commit(GROUP, member, None, 1)
    # Clients before KIP-447 send neither a member id nor a generation.
    harness.registry.validate_transactional_commit(GROUP, "", None, -1)
    with pytest.raises(IllegalGenerationError):
        harness.registry.validate_transactional_commit(GROUP, member, None, 0)
    with pytest.raises(UnknownMemberIdError):
        harness.registry.validate_transactional_commit(GROUP, "other", None, 1)
    harness.pass_ms(1)
    assert harness.state == "Empty"
    with pytest.raises(UnknownMemberIdError):
        harness.registry.validate_transactional_commit(GROUP, member, None, 1)


def test_storm_of_joins_ends_in_one_generation(harness: GroupHarness) -> None:
    answers = [harness.join() for _ in range(20)]
    harness.pass_ms(2 * DELAY_MS)
    assert {answer.got.generation_id for answer in answers} == {1}
    assert len(harness.group) == 20
