"""JoinGroup: which members are accepted, what they receive, and how long a first rebalance waits.

Cases of Kafka's GroupMetadataManagerTest.
"""

from __future__ import annotations

import re

import pytest
from model.group_harness import DELAY_MS, GROUP, RANGE, REBALANCE_MS, SESSION_MS, GroupHarness

from kafkacore.broker.group.classic_group import GroupState
from kafkacore.broker.group.member import MemberProtocol
from kafkacore.broker.group.rebalancer import NEW_MEMBER_JOIN_TIMEOUT_MS
from kafkacore.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    GroupMaxSizeReachedError,
    InconsistentGroupProtocolError,
    InvalidGroupIdError,
    InvalidSessionTimeoutError,
    MemberIdRequiredError,
    NotCoordinatorError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)

STICKY = (MemberProtocol("sticky", RANGE[0].metadata),)
BOTH = (MemberProtocol("roundrobin", RANGE[0].metadata), *RANGE)


@pytest.fixture
def harness() -> GroupHarness:
    return GroupHarness()


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testJoinGroupReturnsTheProtocolType",
    "GroupMetadataManagerTest.testDelayInitialRebalanceByGroupInitialRebalanceDelayOnEmptyGroup",
)
def test_first_member_leads_the_first_generation_after_the_delay(harness: GroupHarness) -> None:
    answer = harness.join()
    assert harness.state == "PreparingRebalance"
    harness.pass_ms(DELAY_MS - 1)
    assert answer.result is None
    harness.pass_ms(1)
    got = answer.got
    assert (got.error_code, got.generation_id, got.leader) == (0, 1, got.member_id)
    assert (got.protocol_type, got.protocol_name, got.skip_assignment) == ("consumer", "range", False)
    assert [(one.member_id, one.metadata) for one in got.members] == [(got.member_id, RANGE[0].metadata)]
    assert harness.state == "CompletingRebalance"


def test_only_the_leader_hears_of_the_others(harness: GroupHarness) -> None:
    answers = [harness.join(), harness.join(instance_id="i")]
    harness.pass_ms(2 * DELAY_MS)
    leader, follower = (answer.got for answer in answers)
    assert [(one.member_id, one.group_instance_id) for one in leader.members] == [
        (leader.member_id, None),
        (follower.member_id, "i"),
    ]
    assert follower.members == ()
    assert leader.generation_id == follower.generation_id == 1
    assert follower.leader == leader.member_id


def test_member_ids_are_the_clients_name_or_its_instances_and_nobody_elses(harness: GroupHarness) -> None:
    ids = harness.joined(2, "static", client_id="app")
    assert [one.rpartition("-")[0][:4] for one in ids] == ["app-", "app-", "stat"]
    assert len(set(ids)) == 3
    assert all(len(one.split("-", 1)[1]) == 36 for one in ids)


def test_member_id_fits_its_field_however_long_its_clients_name_is(harness: GroupHarness) -> None:
    longest = "ü" * 16_383
    answers = [harness.join(client_id=longest), harness.join(instance_id=longest)]
    harness.pass_ms(2 * DELAY_MS)
    for answer in answers:
        assert re.fullmatch("ü{255}-[0-9a-f-]{36}", answer.got.member_id)


@pytest.mark.kafka("GroupMetadataManagerTest.testGenerateRecordsOnNewClassicGroup")
def test_new_group_is_written_before_anybody_is_in_it(harness: GroupHarness) -> None:
    harness.join()
    value = harness.log.last_value()
    assert (value.protocol_type, value.generation, value.protocol, value.leader) == ("", 0, None, None)
    assert list(value.members) == []
    assert value.current_state_timestamp == harness.clock.wall_ms()


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testGenerateRecordsOnNewClassicGroupFailureTransformsError",
)
def test_new_group_that_cannot_be_written_is_forgotten_and_its_members_told(harness: GroupHarness) -> None:
    harness.log.is_holding = True
    answer = harness.join()
    harness.log.settle(NotCoordinatorError.errno)
    assert answer.got.error_code == NotCoordinatorError.errno
    assert harness.registry.classic_group(GROUP) is None
    assert len(harness.timer) == 0


@pytest.mark.parametrize(
    ("session_ms", "code"), [(5_999, 26), (6_000, None), (1_800_000, None), (1_800_001, 26)]
)
def test_session_is_within_the_brokers_limits(
    harness: GroupHarness, session_ms: int, code: int | None
) -> None:
    result = harness.join(session_ms=session_ms).result
    assert (result and result.error_code) == code
    assert harness.registry.exists(GROUP) == (code is None)
    assert InvalidSessionTimeoutError.errno == 26


@pytest.mark.parametrize("error", [CoordinatorLoadInProgressError(), NotCoordinatorError()])
def test_group_that_is_not_coordinated_here_is_not_looked_at(harness: GroupHarness, error) -> None:
    harness.log.refusal = error
    assert harness.join().got.error_code == error.errno
    assert not harness.registry.exists(GROUP)


@pytest.mark.kafka("GroupMetadataManagerTest.testLeaveGroupInvalidGroup")
def test_group_without_a_name_has_no_members(harness: GroupHarness) -> None:
    assert harness.join(group_id="").got.error_code == InvalidGroupIdError.errno
    assert not harness.registry.exists("")


@pytest.mark.kafka("GroupMetadataManagerTest.testJoinGroupUnknownMemberNewGroup")
def test_member_id_of_a_group_that_does_not_exist_is_unknown(harness: GroupHarness) -> None:
    got = harness.join("unknown").got
    assert (got.error_code, got.member_id) == (UnknownMemberIdError.errno, "unknown")
    assert not harness.registry.exists(GROUP)


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testJoinGroupWithEmptyProtocolType",
    "GroupMetadataManagerTest.testJoinGroupWithEmptyGroupProtocol",
    "GroupMetadataManagerTest.testJoinGroupProtocolTypeIsNotProvidedWhenAnErrorOccurs",
)
@pytest.mark.parametrize(("kind", "protocols"), [("", RANGE), ("consumer", ())])
def test_member_says_its_type_and_a_protocol(harness: GroupHarness, kind: str, protocols) -> None:
    got = harness.join(protocol_type=kind, protocols=protocols).got
    assert (got.error_code, got.member_id) == (InconsistentGroupProtocolError.errno, "")
    assert (got.protocol_type, got.protocol_name) == (None, None)


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testClassicGroupJoinInconsistentProtocolType",
    "GroupMetadataManagerTest.testJoinGroupInconsistentGroupProtocol",
    "GroupMetadataManagerTest.testJoinGroupSecondJoinInconsistentProtocol",
)
def test_member_that_has_no_protocol_with_the_others_or_is_of_another_type_is_refused(
    harness: GroupHarness,
) -> None:
    (member,) = harness.stable()
    assert harness.join(protocols=STICKY).got.error_code == InconsistentGroupProtocolError.errno
    assert harness.join(protocol_type="connect").got.error_code == InconsistentGroupProtocolError.errno
    refused = harness.join(member, protocols=STICKY).got
    # A change of protocol would affect only this member. Kafka rejects it nevertheless.
    assert (refused.error_code, refused.member_id) == (InconsistentGroupProtocolError.errno, member)
    assert harness.state == "Stable"


def test_protocol_is_chosen_among_those_that_all_know(harness: GroupHarness) -> None:
    answers = [harness.join(protocols=BOTH), harness.join(protocols=RANGE)]
    harness.pass_ms(2 * DELAY_MS)
    assert [answer.got.protocol_name for answer in answers] == ["range", "range"]


# ---- The delay of a first rebalance ------------------------------------------------------------------------


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testResetRebalanceDelayWhenNewMemberJoinsGroupDuringInitialRebalance",
    "GroupMetadataManagerTest.testDelayRebalanceUptoRebalanceTimeout",
)
def test_first_rebalance_waits_anew_for_each_that_comes_and_no_longer_than_the_rebalance_timeout() -> None:
    harness = GroupHarness()
    first = harness.join(rebalance_ms=8_000)
    for _ in range(3):
        harness.pass_ms(DELAY_MS - 1_000)
        harness.join(rebalance_ms=8_000)
    # The delay is 3 s. Joins extend it by 3 s, and then by the 2 s left of the rebalance timeout of 8 s.
    harness.pass_ms(8_000 - 3 * (DELAY_MS - 1_000) - 1)
    assert first.result is None
    harness.pass_ms(1)
    assert first.got.generation_id == 1
    assert len(first.got.members) == 4


def test_first_rebalance_does_not_wait_longer_when_nobody_comes() -> None:
    harness = GroupHarness(group_initial_rebalance_delay_ms=0)
    answer = harness.join()
    harness.pass_ms(0)
    assert answer.got.generation_id == 1


def test_group_that_is_empty_again_waits_for_its_first_members_again(harness: GroupHarness) -> None:
    (member,) = harness.stable()
    harness.leave((member, None))
    assert harness.state == "Empty"
    answer = harness.join()
    harness.pass_ms(DELAY_MS - 1)
    assert answer.result is None
    harness.pass_ms(1)
    assert answer.got.generation_id == 3


# ---- Members that must know their ids (KIP-394) ------------------------------------------------------------


def test_dynamic_member_is_given_its_id_and_joins_with_it(harness: GroupHarness) -> None:
    first = harness.join(version=4).got
    assert (first.error_code, harness.state) == (MemberIdRequiredError.errno, "Empty")
    answer = harness.join(first.member_id, version=4)
    harness.pass_ms(DELAY_MS)
    assert (answer.got.error_code, answer.got.member_id) == (0, first.member_id)


@pytest.mark.kafka("GroupMetadataManagerTest.testStaticMemberJoinAsFirstMember")
def test_static_member_needs_no_second_request(harness: GroupHarness) -> None:
    answer = harness.join(instance_id="i", version=9)
    harness.pass_ms(DELAY_MS)
    assert answer.got.error_code == 0


@pytest.mark.kafka("GroupMetadataManagerTest.testHeartbeatExpirationShouldRemovePendingMember")
def test_id_that_nobody_comes_back_with_is_forgotten_after_a_session(harness: GroupHarness) -> None:
    member_id = harness.join(version=4).got.member_id
    harness.pass_ms(SESSION_MS - 1)
    assert harness.group.pending_joins == {member_id}
    harness.pass_ms(1)
    assert harness.group.pending_joins == set()
    assert harness.join(member_id, version=4).got.error_code == UnknownMemberIdError.errno


@pytest.mark.kafka("GroupMetadataManagerTest.testJoinGroupCompletionWhenPendingMemberJoins")
def test_rebalance_waits_for_an_id_that_was_given_until_it_comes(harness: GroupHarness) -> None:
    (member,) = harness.stable()
    pending = harness.join(version=4).got.member_id
    rejoining = harness.join(member)
    assert rejoining.result is None
    late = harness.join(pending, version=4)
    assert (rejoining.got.generation_id, late.got.generation_id) == (2, 2)


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testJoinGroupCompletionWhenPendingMemberTimesOut",
    "GroupMetadataManagerTest.testSecondMemberPartiallyJoinAndTimeout",
)
def test_rebalance_goes_on_when_the_id_that_was_given_is_forgotten(harness: GroupHarness) -> None:
    (member,) = harness.stable()
    harness.join(version=4)
    rejoining = harness.join(member)
    harness.pass_ms(SESSION_MS)
    assert rejoining.got.generation_id == 2
    assert [one.member_id for one in rejoining.got.members] == [member]


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testJoinGroupExistingPendingMemberWithGroupInstanceIdThrowsException",
)
def test_id_that_was_given_is_no_static_members(harness: GroupHarness) -> None:
    pending = harness.join(version=4).got.member_id
    refused = harness.join(pending, instance_id="i", version=5).got
    assert (refused.error_code, refused.member_id) == (UnknownMemberIdError.errno, pending)


# ---- Maximum group size ------------------------------------------------------------------------------------


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testJoinGroupShouldReceiveErrorIfGroupOverMaxSize",
    "GroupMetadataManagerTest.testDynamicMembersJoinGroupWithMaxSizeAndNotRequiredKnownMember",
    "GroupMetadataManagerTest.testStaticMembersJoinGroupWithMaxSize",
    "GroupMetadataManagerTest.testDynamicMembersCanRejoinGroupWithMaxSizeWhileRebalancing",
)
@pytest.mark.parametrize("version", [3, 4])
def test_one_more_than_group_max_size_is_refused(version: int) -> None:
    harness = GroupHarness(group_max_size=2)
    members = harness.stable(2)
    late = harness.join(version=version).got
    assert (late.error_code, late.member_id) == (GroupMaxSizeReachedError.errno, "")
    assert harness.state == "Stable"
    rejoined = [harness.join(one) for one in members]
    assert [one.got.error_code for one in rejoined] == [0, 0]


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testOnLoadedExceedGroupMaxSizeTriggersRebalance",
    "GroupMetadataManagerTest.testLastJoiningMembersAreKickedOutWhenRejoiningGroupWithMaxSize",
)
def test_last_to_rejoin_are_refused_when_they_have_become_too_many() -> None:
    harness = GroupHarness()
    members = harness.stable(3)
    after = harness.restarted(group_max_size=2)
    assert after.state == "PreparingRebalance"
    answers = [after.join(one) for one in members]
    assert answers[2].got.error_code == GroupMaxSizeReachedError.errno
    after.pass_ms(REBALANCE_MS)
    assert [answer.got.error_code for answer in answers[:2]] == [0, 0]
    assert len(after.group) == 2


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testDynamicMembersJoinGroupWithMaxSizeAndRequiredKnownMember",
)
def test_those_who_rejoin_first_are_let_in_while_a_rebalance_goes_on() -> None:
    harness = GroupHarness(group_max_size=2)
    answers = [harness.join(version=4) for _ in range(3)]
    ids = [answer.got.member_id for answer in answers]
    joined = [harness.join(one, version=4) for one in ids]
    assert joined[2].got.error_code == GroupMaxSizeReachedError.errno
    harness.pass_ms(2 * DELAY_MS)
    assert [one.got.error_code for one in joined[:2]] == [0, 0]


# ---- Members that join again -------------------------------------------------------------------------------


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testJoinGroupAsExistingLeaderTriggersRebalanceInStableState",
    "GroupMetadataManagerTest.testJoinGroupFromUnchangedLeaderShouldRebalance",
)
def test_leader_that_joins_a_stable_group_again_has_everybody_rejoin(harness: GroupHarness) -> None:
    leader, follower = harness.stable(2)
    again = harness.join(leader)
    assert (again.result, harness.state) == (None, "PreparingRebalance")
    other = harness.join(follower)
    assert (again.got.generation_id, other.got.generation_id) == (2, 2)


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testJoinGroupExistingMemberDoesNotTriggerRebalanceInStableState",
    "GroupMetadataManagerTest.testJoinGroupFromUnchangedFollowerDoesNotRebalance",
)
def test_follower_that_says_nothing_new_is_told_of_the_generation_that_goes_on(harness: GroupHarness) -> None:
    leader, follower = harness.stable(2)
    got = harness.join(follower).got
    assert (got.error_code, got.generation_id, got.leader, got.members) == (0, 1, leader, ())
    assert harness.state == "Stable"


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testJoinGroupAsExistingMemberWithUpdatedMetadataTriggersRebalanceInStableState",
)
def test_follower_that_subscribes_to_something_else_has_everybody_rejoin(harness: GroupHarness) -> None:
    _, follower = harness.stable(2)
    answer = harness.join(follower, protocols=(MemberProtocol("range", b"more"),))
    assert (answer.result, harness.state) == (None, "PreparingRebalance")


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testJoinGroupExistingMemberUpdatedMetadataTriggersRebalance",
)
def test_member_that_has_not_heard_its_answer_is_told_again(harness: GroupHarness) -> None:
    leader, follower = harness.joined(2)
    assert len(harness.join(leader).got.members) == 2
    assert harness.join(follower).got.members == ()
    assert harness.state == "CompletingRebalance"
    changed = harness.join(follower, protocols=(MemberProtocol("range", b"more"),))
    assert (changed.result, harness.state) == (None, "PreparingRebalance")


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testJoinGroupUnknownConsumerExistingGroup",
    "GroupMetadataManagerTest.testJoinGroupExistingMemberInEmptyState",
)
def test_member_that_joins_an_empty_group_by_an_old_id_begins_from_the_start(harness: GroupHarness) -> None:
    (member,) = harness.stable()
    harness.leave((member, None))
    assert harness.join(member).got.error_code == UnknownMemberIdError.errno


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testJoinGroupUnknownConsumerNewDeadGroup",
    "GroupMetadataManagerTest.testExistingMemberJoinDeadGroup",
    "GroupMetadataManagerTest.testStaticMemberRejoinWithLeaderIdAndUnexpectedDeadGroup",
)
def test_nobody_joins_a_dead_group(harness: GroupHarness) -> None:
    (member,) = harness.stable()
    harness.group.transition_to(GroupState.DEAD)
    for one in ("", member):
        got = harness.join(one).got
        assert (got.error_code, got.member_id) == (CoordinatorNotAvailableError.errno, one)


# ---- Members that leave or join late -----------------------------------------------------------------------


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testNewMemberJoinExpiration",
    "GroupMetadataManagerTest.testNewMemberTimeoutCompletion",
)
def test_new_member_that_is_answered_too_late_is_told_to_begin_anew(harness: GroupHarness) -> None:
    (member,) = harness.stable(rebalance_ms=2 * NEW_MEMBER_JOIN_TIMEOUT_MS)
    answer = harness.join()
    for _ in range(NEW_MEMBER_JOIN_TIMEOUT_MS // 5_000):
        assert answer.result is None
        harness.heartbeat(member, 1)
        harness.pass_ms(5_000)
    assert answer.got.error_code == UnknownMemberIdError.errno
    assert [one.member_id for one in harness.group] == [member]


@pytest.mark.kafka("GroupMetadataManagerTest.testCompleteJoinRemoveNotYetRejoinedDynamicMembers")
def test_member_that_does_not_rejoin_in_time_is_out_of_the_group(harness: GroupHarness) -> None:
    leader, follower = harness.stable(2)
    answer = harness.join(leader)
    for _ in range(REBALANCE_MS // 5_000):
        assert answer.result is None
        harness.heartbeat(follower, 1)
        harness.pass_ms(5_000)
    assert [one.member_id for one in answer.got.members] == [leader]
    assert harness.heartbeat(follower, 1) == UnknownMemberIdError.errno


@pytest.mark.kafka("GroupMetadataManagerTest.testRebalanceCompletesBeforeMemberJoins")
def test_leader_that_does_not_rejoin_is_followed_by_one_who_has(harness: GroupHarness) -> None:
    leader, follower = harness.stable(2)
    answer = harness.join(follower, protocols=(MemberProtocol("range", b"more"),))
    harness.pass_ms(SESSION_MS)
    assert (answer.got.leader, harness.group.leader_id) == (follower, follower)
    assert leader not in harness.group


@pytest.mark.kafka("GroupMetadataManagerTest.testGenerationIdIncrementsOnRebalance")
def test_generation_grows_by_one_each_time(harness: GroupHarness) -> None:
    (member,) = harness.stable()
    for generation_id in (2, 3, 4):
        assert harness.join(member).got.generation_id == generation_id
        harness.sync(member, generation_id, {member: b"x"})


def test_question_that_is_asked_again_on_another_connection_is_over(harness: GroupHarness) -> None:
    leader, follower = harness.stable(2)
    questions = [harness.join(leader), harness.join(leader)]
    assert questions[0].got.error_code == RebalanceInProgressError.errno
    harness.join(follower)
    assert questions[1].got.error_code == 0
    questions = [harness.sync(follower, 2), harness.sync(follower, 2)]
    assert questions[0].got.error_code == RebalanceInProgressError.errno
    harness.sync(leader, 2, {follower: b"x"})
    assert questions[1].got.assignment == b"x"
