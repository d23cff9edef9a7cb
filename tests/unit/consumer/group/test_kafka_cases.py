"""Cases of Kafka's coordinator tests that no other test covers (see docs/PORTED_TESTS.md)."""

import logging

import pytest

from kafkacore.consumer.group.generation import NO_GENERATION, Generation, MemberState
from kafkacore.consumer.timer import Timer
from kafkacore.errors import GroupMaxSizeReachedError, SaslAuthenticationFailedError, WakeupError
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.heartbeat import HeartbeatRequest
from kafkacore.protocol.generated.join_group import JoinGroupRequest
from kafkacore.protocol.generated.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kafkacore.protocol.generated.sync_group import SyncGroupRequest
from kafkacore.structs import TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
ILLEGAL_GENERATION, UNKNOWN_MEMBER, MAX_SIZE = 22, 25, 81


# ---- The coordinator ---------------------------------------------------------------------------------------
@pytest.mark.kafka("AbstractCoordinatorTest.testCoordinatorDiscoveryExponentialBackoff")
def test_a_coordinator_that_is_named_but_cannot_be_had_is_asked_for_with_growing_pauses(make_member):
    member = make_member().subscribe("a")
    with member.group.lost():
        assert not member.poll(3000)
    assert 4 <= len(member.sent(FindCoordinatorRequest)) <= 8
    assert member.poll()


@pytest.mark.kafka("AbstractCoordinatorTest.testWakeupFromEnsureCoordinatorReady")
def test_a_wakeup_ends_the_wait_for_the_coordinator_and_no_look_that_waits_for_nothing(make_member):
    member = make_member()
    member.poll(0)
    member.client.wakeup()
    member.membership.lookup_coordinator()
    with pytest.raises(WakeupError):
        member.membership.ensure_coordinator(Timer(member.clock, 0))
    assert member.membership.ensure_coordinator(Timer(member.clock, 1000))


@pytest.mark.kafka("AbstractCoordinatorTest.testLookupCoordinator")
def test_a_look_for_the_coordinator_that_no_broker_can_be_asked_for_fails_at_once(make_member):
    member = make_member()
    member.cluster.down.add(0)
    assert member.membership.lookup_coordinator().failed()
    member.cluster.down.clear()
    second = member.membership.lookup_coordinator()
    assert not second.is_done()
    assert member.membership.ensure_coordinator(Timer(member.clock, 1000))
    assert second.succeeded()


@pytest.mark.kafka(
    "AbstractCoordinatorTest.testAuthenticationErrorInEnsureCoordinatorReady",
    "ConsumerCoordinatorTest.testAuthenticationFailureInEnsureActiveGroup",
)
def test_an_authentication_that_failed_is_raised_by_who_looks_for_the_coordinator(make_member, monkeypatch):
    member = make_member().subscribe("a")
    error = SaslAuthenticationFailedError("wrong password")
    with monkeypatch.context() as patched:
        patched.setattr(member.network, "authentication_error", lambda node: error)
        patched.setattr(member.network, "least_loaded_node", lambda now_ms: member.cluster.nodes[0])
        member.cluster.down.add(0)
        with pytest.raises(SaslAuthenticationFailedError, match="wrong password"):
            member.poll()
    member.cluster.down.clear()
    assert member.poll()


# ---- Joining -----------------------------------------------------------------------------------------------
@pytest.mark.kafka("AbstractCoordinatorTest.testRejoinReason")
def test_the_coordinator_is_told_why_the_group_is_joined_again(make_member):
    member = make_member().join("a")
    assert member.sent(JoinGroupRequest)[0].reason == ""
    member.membership.request_rejoin("to see")
    assert member.poll()
    assert member.sent(JoinGroupRequest)[-1].reason == "to see"
    member.group.errors[JoinGroupRequest].append(MAX_SIZE)
    member.membership.request_rejoin("to see more")
    with pytest.raises(GroupMaxSizeReachedError):
        member.poll()
    assert member.poll()
    reasons = [each.reason for each in member.sent(JoinGroupRequest)][-2:]
    assert reasons == ["to see more", "rebalance failed due to GroupMaxSizeReachedError"]
    assert {each.member_id for each in member.sent(JoinGroupRequest)[1:]} == {"member-1"}


@pytest.mark.kafka(
    "AbstractCoordinatorTest.testNoGenerationWillNotTriggerProtocolNameCheck",
    "ConsumerCoordinatorTest.testPrepareJoinAndRejoinAfterFailedRebalance",
)
def test_an_answer_to_who_has_left_meanwhile_is_not_held_against_it(make_member):
    member = make_member().subscribe("a")
    member.cluster.held.add(SyncGroupRequest)
    assert not member.poll(100)
    member.membership.leave("changed my mind")
    member.group.sync_protocol_name = "theirs"
    member.cluster.held.clear()
    member.client.poll(Timer(member.clock, 10))
    member.group.sync_protocol_name = None
    assert member.poll()
    assert member.assigned == {A0, A1}


@pytest.mark.kafka(
    "AbstractCoordinatorTest.testJoinGroupUnknownMemberResponseWithOldGeneration",
    "AbstractCoordinatorTest.testSyncGroupUnknownMemberResponseWithOldGeneration",
    "AbstractCoordinatorTest.testSyncGroupIllegalGenerationResponseWithOldGeneration",
)
@pytest.mark.parametrize(
    ("request_class", "code"),
    [
        (JoinGroupRequest, UNKNOWN_MEMBER),
        (SyncGroupRequest, UNKNOWN_MEMBER),
        (SyncGroupRequest, ILLEGAL_GENERATION),
    ],
)
def test_a_late_refusal_of_join_or_sync_resets_no_other_generation(make_member, caplog, request_class, code):
    member = make_member().join("a")
    member.cluster.held.update([HeartbeatRequest, request_class])
    if request_class is JoinGroupRequest:
        member.background(3500)
    member.membership.request_rejoin("to see")
    assert not member.poll(100)
    if request_class is SyncGroupRequest:
        member.background(3500)
    assert len(member.sent(HeartbeatRequest)) == 1
    member.group.errors[HeartbeatRequest].append(ILLEGAL_GENERATION)
    member.cluster.held.discard(HeartbeatRequest)
    member.client.poll(Timer(member.clock, 10))
    assert member.membership.generation() == Generation(member_id="member-1")
    member.group.errors[request_class].append(code)
    member.cluster.held.clear()
    with caplog.at_level(logging.INFO):
        member.client.poll(Timer(member.clock, 10))
    assert "ignoring" in caplog.text
    assert member.membership.generation() == Generation(member_id="member-1")
    assert member.poll()


@pytest.mark.kafka(
    "AbstractCoordinatorTest.testHeartbeatRebalanceInProgressResponseDuringRebalancing",
)
def test_a_beat_that_was_on_its_way_when_joining_began_does_not_have_it_begin_again(make_member):
    member = make_member().join("a")
    member.cluster.held.update([HeartbeatRequest, JoinGroupRequest])
    member.background(3500)
    member.membership.request_rejoin("to see")
    assert not member.poll(100)
    member.group.rebalance()
    member.cluster.held.discard(HeartbeatRequest)
    member.turn()
    assert member.membership.generation().generation_id == 1
    member.cluster.held.clear()
    assert member.poll()
    assert [each.reason for each in member.sent(JoinGroupRequest)[2:]] == ["to see"]


# ---- Leaving -----------------------------------------------------------------------------------------------
def leaving_answered(member, answer):
    """Have the coordinator answer LeaveGroup with this error code."""
    usual = member.group.answer
    member.group.answer = lambda node_id, request: (
        answer if isinstance(request, LeaveGroupRequest) else usual(node_id, request)
    )


@pytest.mark.kafka(
    "AbstractCoordinatorTest.testHandleNormalLeaveGroupResponse",
    "AbstractCoordinatorTest.testHandleMultipleMembersLeaveGroupResponse",
    "AbstractCoordinatorTest.testHandleLeaveGroupResponseWithEmptyMemberResponse",
)
@pytest.mark.parametrize("codes", [[], [0], [0, 0]])
def test_who_may_go_goes_whatever_else_the_answer_names(make_member, caplog, codes):
    member = make_member().join("a")
    members = [LeaveGroupResponse.MemberResponse(member_id="member-1", error_code=code) for code in codes]
    leaving_answered(member, LeaveGroupResponse(members=members))
    with caplog.at_level(logging.INFO):
        member.membership.close(Timer(member.clock, 1000))
    assert "did not let" not in caplog.text
    assert member.membership.generation() == NO_GENERATION


@pytest.mark.kafka("AbstractCoordinatorTest.testHandleLeaveGroupResponseWithException")
@pytest.mark.parametrize(
    "answer",
    [
        LeaveGroupResponse(error_code=UNKNOWN_MEMBER),
        LeaveGroupResponse(
            members=[LeaveGroupResponse.MemberResponse(member_id="member-1", error_code=UNKNOWN_MEMBER)]
        ),
    ],
)
def test_who_is_not_let_go_goes_and_says_so(make_member, caplog, answer):
    member = make_member().join("a")
    leaving_answered(member, answer)
    before_ms = member.clock.monotonic_ms()
    with caplog.at_level(logging.INFO):
        member.membership.close(Timer(member.clock, 1000))
    assert "LeaveGroup failed" in caplog.text
    assert member.clock.monotonic_ms() - before_ms < 100
    assert member.assigned == set()


@pytest.mark.kafka("ConsumerCoordinatorTest.testPendingMemberShouldLeaveGroup")
def test_who_has_an_id_but_no_generation_yet_leaves_too(make_member):
    member = make_member().subscribe("a")
    join = member.group._join

    def hold_the_next(request, code):
        member.cluster.held.add(JoinGroupRequest)
        return join(request, code)

    member.group._join = hold_the_next
    assert not member.poll(100)
    assert member.membership.generation() == Generation(member_id="member-1")
    assert member.state is MemberState.PREPARING_REBALANCE
    member.membership.leave("pending member leaves")
    (leave,) = member.sent(LeaveGroupRequest)
    assert leave.members[0].member_id == "member-1"


# ---- Background turns --------------------------------------------------------------------------------------
@pytest.mark.kafka("AbstractCoordinatorTest.testUncaughtExceptionInHeartbeatThread")
def test_whatever_goes_wrong_in_the_background_is_raised_by_the_next_poll(make_member):
    member = make_member().join("a")
    send = member.client.send

    def failing(node, request, **options):
        if isinstance(request, HeartbeatRequest):
            member.client.send = send
            raise ValueError("mine")
        return send(node, request, **options)

    member.client.send = failing
    member.background(4000)
    with pytest.raises(ValueError, match="mine"):
        member.poll()
    assert member.poll()
