"""The AbstractCoordinator part of a membership: how it reacts to each response of the coordinator."""

import logging
import math

import pytest
from interleaving import at_each_step
from model.group_coordinator import COORDINATOR_ID

from kafkacore.consumer._request_future import RequestFuture
from kafkacore.consumer.group.classic import ClassicMembership
from kafkacore.consumer.group.generation import NO_GENERATION, Generation, MemberState
from kafkacore.consumer.timer import Timer
from kafkacore.errors import (
    FencedInstanceIdError,
    GroupAuthorizationFailedError,
    GroupMaxSizeReachedError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    InvalidGroupIdError,
    InvalidSessionTimeoutError,
    MalformedMessageError,
    UnknownError,
    UnknownMemberIdError,
    UnsupportedVersionError,
    WakeupError,
)
from kafkacore.protocol import request_class_of
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.heartbeat import HeartbeatRequest
from kafkacore.protocol.generated.join_group import JoinGroupRequest, JoinGroupResponse
from kafkacore.protocol.generated.leave_group import LeaveGroupRequest
from kafkacore.protocol.generated.sync_group import SyncGroupRequest
from kafkacore.structs import ConsumerGroupMetadata, TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
LOADING, NOT_AVAILABLE, NOT_COORDINATOR = 14, 15, 16
ILLEGAL_GENERATION, INCONSISTENT, INVALID_GROUP, UNKNOWN_MEMBER, SESSION_TIMEOUT = 22, 23, 24, 25, 26
REBALANCING, UNAUTHORIZED, MAX_SIZE, FENCED, UNKNOWN = 27, 30, 81, 82, -1


# ---- Joining the group -------------------------------------------------------------------------------------
@pytest.mark.kafka(
    "AbstractCoordinatorTest.testJoinGroupRequestWithMemberIdRequired",
    "ConsumerCoordinatorTest.testNormalJoinGroupLeader",
)
@pytest.mark.behaviour(
    "AbstractCoordinator",
    "after MEMBER_ID_REQUIRED the member joins with the id that it was given",
)
def test_a_lone_member_joins_with_the_id_that_it_is_given_and_leads_itself(make_member):
    member = make_member().subscribe("a")
    assert member.poll()
    first, second = member.sent(JoinGroupRequest)
    assert (first.member_id, second.member_id) == ("", "member-1")
    assert "member-1" in second.reason
    assert member.assigned == {A0, A1}
    assert member.listener.take() == [("assigned", {A0, A1})]
    assert member.membership.generation() == Generation(1, "member-1", "range")
    assert member.state is MemberState.STABLE


def test_the_coordinator_has_a_connection_of_its_own(make_member):
    member = make_member(node_count=3)
    member.group.node_id = 2
    member.join("a")
    assert member.membership.coordinator() == (COORDINATOR_ID - 2, "host2", 9092, None)
    asked = {node_id for node_id, request in member.cluster.requests if isinstance(request, JoinGroupRequest)}
    assert asked == {COORDINATOR_ID - 2}


@pytest.mark.kafka("ConsumerCoordinatorTest.testNormalJoinGroupFollower")
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "the leader assigns partitions, other members accept theirs; an assignment of unsubscribed topics "
    "makes a member rejoin",
)
def test_a_follower_sends_no_assignment_and_takes_what_it_is_given(make_member):
    member = make_member()
    member.group.follow(A1)
    member.join("a")
    assert member.assigned == {A1}
    (sync,) = member.sent(SyncGroupRequest)
    assert (sync.assignments, sync.member_id, sync.generation_id) == ([], "member-1", 1)
    assert (sync.protocol_type, sync.protocol_name) == ("consumer", "range")


@pytest.mark.kafka(
    "AbstractCoordinatorTest.testJoinGroupRequestTimeout",
    "AbstractCoordinatorTest.testJoinGroupRequestTimeoutLowerBoundedByDefaultRequestTimeout",
    "AbstractCoordinatorTest.testJoinGroupRequestMaxTimeout",
)
@pytest.mark.behaviour(
    "AbstractCoordinator",
    "the timeout of a JoinGroup request is the request timeout, or the rebalance timeout plus 5 s",
)
@pytest.mark.parametrize(
    ("request_timeout_ms", "max_poll_interval_ms", "wanted_ms"),
    [(30_000, 300_000, 305_000), (600_000, 300_000, 600_000), (30_000, 2**31 - 1, 2**31 - 1 + 5000)],
)
def test_joining_may_take_the_rebalance_timeout_and_five_seconds_or_the_request_timeout(
    make_member, request_timeout_ms, max_poll_interval_ms, wanted_ms
):
    member = make_member(request_timeout_ms=request_timeout_ms, max_poll_interval_ms=max_poll_interval_ms)
    seen = []
    new_request = member.network.new_client_request

    def noting(node_id, request, now_ms, **options):
        if isinstance(request, JoinGroupRequest):
            seen.append(options["request_timeout_ms"])
        return new_request(node_id, request, now_ms, **options)

    member.network.new_client_request = noting
    member.join("a")
    assert seen == [wanted_ms, wanted_ms]
    assert member.sent(JoinGroupRequest)[0].rebalance_timeout_ms == max_poll_interval_ms


@pytest.mark.kafka("AbstractCoordinatorTest.testTimeoutAndRetryJoinGroupIfNeeded")
def test_a_poll_without_time_never_waits_and_joins_step_by_step(make_member):
    member = make_member().subscribe("a")
    before_ms = member.clock.monotonic_ms()
    turns = 0
    while not member.turn():
        turns += 1
        assert turns < 20
    assert member.clock.monotonic_ms() == before_ms
    assert member.assigned == {A0, A1}


# ---- Refused joins and syncs -------------------------------------------------------------------------------
@pytest.mark.kafka(
    "AbstractCoordinatorTest.testGroupMaxSizeExceptionIsFatal",
    "AbstractCoordinatorTest.testJoinGroupRequestWithFencedInstanceIdException",
    "ConsumerCoordinatorTest.testGroupReadUnauthorized",
    "ConsumerCoordinatorTest.testJoinGroupInvalidGroupId",
    "ConsumerCoordinatorTest.testInvalidSessionTimeout",
)
@pytest.mark.behaviour(
    "AbstractCoordinator",
    "fatal errors are raised; others are retried after a back-off until the timeout",
)
@pytest.mark.parametrize(
    ("code", "error"),
    [
        (INCONSISTENT, InconsistentGroupProtocolError),
        (SESSION_TIMEOUT, InvalidSessionTimeoutError),
        (INVALID_GROUP, InvalidGroupIdError),
        (UNAUTHORIZED, GroupAuthorizationFailedError),
        (MAX_SIZE, GroupMaxSizeReachedError),
        (FENCED, FencedInstanceIdError),
        (UNKNOWN, UnknownError),
    ],
)
def test_a_fatal_answer_to_join_is_raised_and_the_next_poll_tries_anew(make_member, code, error):
    member = make_member(group_instance_id="i").subscribe("a")
    member.group.errors[JoinGroupRequest].append(code)
    with pytest.raises(error):
        member.poll()
    assert member.poll()
    assert member.assigned == {A0, A1}


@pytest.mark.kafka(
    "AbstractCoordinatorTest.testSyncGroupRequestWithFencedInstanceIdException",
    "ConsumerCoordinatorTest.testUnexpectedErrorOnSyncGroup",
)
@pytest.mark.behaviour(
    "AbstractCoordinator",
    "an instance id that another member has taken over is a fatal error",
)
@pytest.mark.parametrize(
    ("code", "error"),
    [
        (UNAUTHORIZED, GroupAuthorizationFailedError),
        (FENCED, FencedInstanceIdError),
        (UNKNOWN, UnknownError),
    ],
)
def test_a_fatal_answer_to_sync_is_raised(make_member, code, error):
    member = make_member(group_instance_id="i").subscribe("a")
    member.group.errors[SyncGroupRequest].append(code)
    with pytest.raises(error):
        member.poll()
    assert member.poll()


@pytest.mark.behaviour(
    "AbstractCoordinator",
    "fatal errors are raised; others are retried after a back-off until the timeout",
)
@pytest.mark.parametrize("request_class", [JoinGroupRequest, SyncGroupRequest])
@pytest.mark.parametrize("code", [NOT_COORDINATOR, NOT_AVAILABLE])
def test_another_coordinator_is_looked_for_and_the_join_begins_anew(make_member, request_class, code):
    member = make_member().subscribe("a")
    member.group.errors[request_class].append(code)
    assert member.poll()
    assert len(member.sent(FindCoordinatorRequest)) == 2
    assert member.assigned == {A0, A1}


@pytest.mark.kafka("AbstractCoordinatorTest.testBackoffAndRetryUponRetriableError")
@pytest.mark.behaviour(
    "AbstractCoordinator",
    "fatal errors are raised; others are retried after a back-off until the timeout",
)
def test_a_coordinator_that_loads_is_asked_again_after_a_while(make_member):
    member = make_member().subscribe("a")
    member.group.errors[JoinGroupRequest].extend([0, LOADING, LOADING, LOADING])
    before_ms = member.clock.monotonic_ms()
    assert member.poll()
    assert member.clock.monotonic_ms() - before_ms >= 0.8 * (100 + 200 + 400)
    assert len(member.sent(FindCoordinatorRequest)) == 1


@pytest.mark.kafka("AbstractCoordinatorTest.testReturnUponRetriableErrorAndExpiredTimer")
@pytest.mark.behaviour(
    "AbstractCoordinator",
    "fatal errors are raised; others are retried after a back-off until the timeout",
)
def test_a_retriable_refusal_ends_with_the_time_and_goes_on_later(make_member):
    member = make_member().subscribe("a")
    member.group.errors[JoinGroupRequest].extend([0] + [LOADING] * 8)
    assert not member.poll(500)
    assert member.poll(60_000)


@pytest.mark.kafka("AbstractCoordinatorTest.testJoinGroupRequestWithGroupInstanceIdNotFound")
def test_an_unknown_member_joins_again_without_its_id(make_member):
    member = make_member().join("a")
    member.group.errors[JoinGroupRequest].append(UNKNOWN_MEMBER)
    member.membership.request_rejoin("to see")
    assert member.poll()
    *_, refused, fresh, given = member.sent(JoinGroupRequest)
    assert [each.member_id for each in (refused, fresh, given)] == ["member-1", "", "member-2"]


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testUnknownMemberIdOnSyncGroup",
    "ConsumerCoordinatorTest.testIllegalGenerationOnSyncGroup",
)
@pytest.mark.parametrize(
    ("code", "member_ids"), [(ILLEGAL_GENERATION, ["member-1"]), (UNKNOWN_MEMBER, ["", "member-2"])]
)
def test_a_sync_of_a_past_generation_joins_again_at_once(make_member, code, member_ids):
    member = make_member().subscribe("a")
    member.group.errors[SyncGroupRequest].append(code)
    assert member.poll()
    assert [each.member_id for each in member.sent(JoinGroupRequest)[2:]] == member_ids


@pytest.mark.kafka(
    "AbstractCoordinatorTest.testJoinGroupRequestWithRebalanceInProgress",
    "ConsumerCoordinatorTest.testRebalanceInProgressOnSyncGroup",
)
@pytest.mark.parametrize("request_class", [JoinGroupRequest, SyncGroupRequest])
def test_a_rebalance_that_begins_meanwhile_is_joined_at_once(make_member, request_class):
    member = make_member().subscribe("a")
    member.group.errors[request_class].extend([0] * (request_class is JoinGroupRequest) + [REBALANCING])
    assert member.poll()
    assert len(member.sent(JoinGroupRequest)) == 3


@pytest.mark.kafka(
    "AbstractCoordinatorTest.testRetainMemberIdAfterJoinGroupDisconnect",
    "AbstractCoordinatorTest.testRetainMemberIdAfterSyncGroupDisconnect",
    "ConsumerCoordinatorTest.testDisconnectInJoin",
    "KafkaConsumerTest.testShouldAttemptToRejoinGroupAfterSyncGroupFailed",
)
@pytest.mark.behaviour(
    "AbstractCoordinator",
    "the member id is kept when the connection is lost in a join or sync",
)
@pytest.mark.parametrize("request_class", [JoinGroupRequest, SyncGroupRequest])
def test_the_member_id_is_kept_when_the_connection_is_lost_in_join_or_sync(make_member, request_class):
    member = make_member().join("a")
    member.membership.request_rejoin("to see")
    member.cluster.held.add(request_class)
    before = len(member.sent(request_class))
    while len(member.sent(request_class)) == before:
        member.turn(10)
    with member.group.lost():
        member.turn(10)
    member.cluster.held.clear()
    assert member.poll()
    assert {each.member_id for each in member.sent(JoinGroupRequest)[1:]} == {"member-1"}
    assert member.assigned == {A0, A1}


@pytest.mark.kafka("AbstractCoordinatorTest.testJoinGroupProtocolTypeAndName")
@pytest.mark.parametrize("field", ["protocol_type", "sync_protocol_type", "sync_protocol_name"])
def test_an_answer_of_another_kind_of_group_is_refused(make_member, field):
    member = make_member().subscribe("a")
    setattr(member.group, field, "connect")
    with pytest.raises(InconsistentGroupProtocolError, match="connect"):
        member.poll()


@pytest.mark.kafka("AbstractCoordinatorTest.testJoinGroupProtocolTypeAndName")
def test_an_answer_without_a_protocol_type_is_as_good(make_member):
    member = make_member()
    member.group.protocol_type = member.group.sync_protocol_type = None
    assert member.join("a").assigned == {A0, A1}


def test_who_is_refused_again_and_again_pauses_longer_and_longer(make_member):
    member = make_member().subscribe("a")
    member.group.errors[SyncGroupRequest].extend([REBALANCING] * 12)
    before_ms = member.clock.monotonic_ms()
    assert member.poll(60_000)
    assert member.clock.monotonic_ms() - before_ms > 4000
    assert len(member.sent(SyncGroupRequest)) == 13


@pytest.mark.parametrize(("generation_id", "member_id"), [(-1, "m"), (1, "")])
def test_a_join_without_generation_or_member_is_an_error_of_its_kind(make_member, generation_id, member_id):
    member = make_member().subscribe("a")
    member.group._join = lambda request, code: JoinGroupResponse(
        generation_id=generation_id, member_id=member_id, leader="other"
    )
    with pytest.raises(MalformedMessageError, match="JoinGroup"):
        member.poll()


def test_brokers_without_groups_or_too_old_are_named_in_a_sentence(make_member):
    for settings, refused, said in [
        ({}, FindCoordinatorRequest, "does not support consumer groups"),
        ({}, JoinGroupRequest, r"supports no version of the group requests.*assign\(\)"),
        ({"group_instance_id": "i"}, JoinGroupRequest, "supports no version of the group requests"),
    ]:
        member = make_member(**settings).subscribe("a")
        send = member.client.send

        def refusing(node, request, refused=refused, send=send, **options):
            if request_class_of(request) is refused:
                return RequestFuture.failure(UnsupportedVersionError(f"does not know {refused.NAME}"))
            return send(node, request, **options)

        member.client.send = refusing
        with pytest.raises(UnsupportedVersionError, match=said):
            member.poll()


# ---- Heartbeats --------------------------------------------------------------------------------------------
@pytest.mark.kafka("ConsumerCoordinatorTest.testNormalHeartbeat")
def test_heartbeats_go_out_at_their_interval_while_the_application_is_away(make_member):
    member = make_member(heartbeat_interval_ms=3000).join("a")
    member.background(30_500)
    beats = member.sent(HeartbeatRequest)
    assert len(beats) == 10
    assert {(each.group_id, each.generation_id, each.member_id) for each in beats} == {("g", 1, "member-1")}


@pytest.mark.kafka(
    "AbstractCoordinatorTest.testPollHeartbeatAwakesHeartbeatThread",
    "KafkaConsumerTest.verifyHeartbeatSent",
)
def test_heartbeats_go_out_while_the_application_waits_in_poll(make_member):
    member = make_member(heartbeat_interval_ms=3000).join("a")
    end_ms = member.clock.monotonic_ms() + 10_000
    while member.clock.monotonic_ms() < end_ms:
        member.turn(end_ms - member.clock.monotonic_ms())
    assert len(member.sent(HeartbeatRequest)) == 3


@pytest.mark.kafka(
    "AbstractCoordinatorTest.testHeartbeatSentWhenCompletingRebalance",
    "AbstractCoordinatorTest.testHeartbeatRebalanceInProgressResponseDuringRebalancing",
)
@pytest.mark.behaviour(
    "AbstractCoordinator",
    "heartbeats continue while a rebalance completes, and ignore REBALANCE_IN_PROGRESS",
)
def test_a_heartbeat_is_sent_while_completing_a_rebalance_and_its_rebalance_in_progress_ignored(make_member):
    member = make_member(heartbeat_interval_ms=3000).subscribe("a")
    member.cluster.held.add(SyncGroupRequest)
    assert not member.poll(1000)
    assert member.state is MemberState.COMPLETING_REBALANCE
    member.group.rebalance()
    member.background(4000)
    assert len(member.sent(HeartbeatRequest)) == 1
    member.cluster.held.clear()
    assert member.poll()
    assert len(member.sent(JoinGroupRequest)) == 2


@pytest.mark.behaviour(
    "AbstractCoordinator",
    "heartbeats continue while a rebalance completes, and ignore REBALANCE_IN_PROGRESS",
)
def test_no_heartbeat_is_sent_while_joining(make_member):
    member = make_member(heartbeat_interval_ms=3000).join("a")
    member.membership.request_rejoin("to see")
    member.cluster.held.add(JoinGroupRequest)
    assert not member.poll(1000)
    assert member.state is MemberState.PREPARING_REBALANCE
    member.background(10_000)
    assert member.sent(HeartbeatRequest) == []


@pytest.mark.kafka("AbstractCoordinatorTest.testTimeoutAndRetryJoinGroupIfNeeded")
def test_a_join_that_is_answered_while_the_application_is_away_goes_on(make_member):
    member = make_member().subscribe("a")
    member.cluster.held.add(JoinGroupRequest)
    assert not member.poll(100)
    member.cluster.held.clear()
    member.turn()
    member.background(2000)
    assert member.state in (MemberState.STABLE, MemberState.PREPARING_REBALANCE)
    assert member.assigned == set()
    assert member.poll(0) or member.poll()
    assert member.listener.take() == [("assigned", {A0, A1})]


def test_a_group_that_rebalances_is_joined_by_the_next_poll(make_member):
    member = make_member().join("a")
    member.group.rebalance()
    member.background(4000)
    assert len(member.sent(JoinGroupRequest)) == 2
    assert member.state is MemberState.STABLE
    assert member.assigned == {A0, A1}
    assert member.poll()
    assert "rebalancing" in member.sent(JoinGroupRequest)[2].reason
    assert member.membership.generation().generation_id == 2


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testIllegalGeneration",
    "ConsumerCoordinatorTest.testUnknownMemberId",
)
@pytest.mark.parametrize(("code", "kept"), [(ILLEGAL_GENERATION, "member-1"), (UNKNOWN_MEMBER, "")])
def test_a_heartbeat_of_no_member_resets_the_generation(make_member, code, kept):
    member = make_member().join("a")
    member.group.errors[HeartbeatRequest].append(code)
    member.background(4000)
    assert member.membership.generation() == Generation(member_id=kept)
    assert member.state is MemberState.UNJOINED
    assert member.poll()
    assert member.listener.take() == [("lost", {A0, A1}), ("assigned", {A0, A1})]


def test_a_heartbeat_that_may_go_better_next_time_changes_nothing(make_member):
    member = make_member().join("a")
    member.group.errors[HeartbeatRequest].append(LOADING)
    member.background(7000)
    assert member.poll()
    assert len(member.sent(HeartbeatRequest)) == 2
    assert len(member.sent(JoinGroupRequest)) == 2


@pytest.mark.kafka("AbstractCoordinatorTest.testHeartbeatRequestWithFencedInstanceIdException")
@pytest.mark.behaviour(
    "AbstractCoordinator",
    "an instance id that another member has taken over is a fatal error",
)
def test_a_fenced_instance_is_told_so_by_the_next_poll(make_member):
    member = make_member(group_instance_id="i").join("a")
    member.group.errors[HeartbeatRequest].append(FENCED)
    member.background(4000)
    with pytest.raises(FencedInstanceIdError, match="'i'"):
        member.poll()


@pytest.mark.behaviour("AbstractCoordinator", "late errors of an old generation do not reset the current one")
@pytest.mark.parametrize("error", [UnknownMemberIdError(), IllegalGenerationError(), FencedInstanceIdError()])
def test_a_late_error_of_an_old_generation_resets_nothing(make_member, error):
    member = make_member().join("a")
    old = member.membership.generation()
    member.membership.request_rejoin("to see")
    assert member.poll()
    current = member.membership.generation()
    member.membership.reset_generation(error, old, "a late commit")
    assert member.membership.generation() == current
    assert member.state is MemberState.STABLE
    member.membership.reset_generation(error, current, "a commit")
    assert member.membership.generation().was_reset()


@pytest.mark.kafka(
    "AbstractCoordinatorTest.testHeartbeatIllegalGenerationResponseWithOldGeneration",
    "AbstractCoordinatorTest.testHeartbeatUnknownMemberResponseWithOldGeneration",
    "AbstractCoordinatorTest.testHeartbeatInstanceFencedResponseWithOldGeneration",
)
@pytest.mark.behaviour("AbstractCoordinator", "late errors of an old generation do not reset the current one")
@pytest.mark.parametrize("code", [UNKNOWN_MEMBER, ILLEGAL_GENERATION, FENCED])
def test_a_late_heartbeat_answer_of_an_old_generation_resets_nothing(make_member, code):
    member = make_member().join("a")
    member.cluster.held.add(HeartbeatRequest)
    member.background(3500)
    member.membership.request_rejoin("to see")
    assert member.poll()
    member.group.errors[HeartbeatRequest].append(code)
    member.cluster.held.clear()
    member.turn()
    assert member.state is MemberState.STABLE
    assert member.membership.generation().generation_id == 2


def test_a_silent_coordinator_is_given_up_after_the_session_timeout(make_member):
    member = make_member(session_timeout_ms=9000, request_timeout_ms=60_000).join("a")
    member.cluster.held.add(HeartbeatRequest)
    member.background(8500)
    assert len(member.sent(FindCoordinatorRequest)) == 1
    member.background(1500)
    assert len(member.sent(FindCoordinatorRequest)) == 2
    member.cluster.held.clear()
    member.background(3500)
    assert member.state is MemberState.STABLE
    assert len(member.sent(HeartbeatRequest)) >= 2


@pytest.mark.kafka("AbstractCoordinatorTest.testUncaughtExceptionInHeartbeatThread")
@pytest.mark.behaviour("AbstractCoordinator", "an error in the background is raised by the next poll")
def test_an_error_in_the_background_surfaces_in_the_next_poll(make_member):
    member = make_member().join("a")
    member.group.errors[HeartbeatRequest].append(UNAUTHORIZED)
    member.background(4000)
    assert member.membership.background_turn(member.clock.monotonic_ms()) == math.inf
    with pytest.raises(GroupAuthorizationFailedError):
        member.poll()
    assert member.poll()


# ---- The poll interval -------------------------------------------------------------------------------------
@pytest.mark.kafka("HeartbeatTest.testResetSession", "HeartbeatTest.testPollTimeout")
def test_who_stays_away_too_long_leaves_and_is_told_what_to_do(make_member, caplog):
    member = make_member(max_poll_interval_ms=10_000).join("a")
    with caplog.at_level(logging.WARNING):
        member.background(11_000)
    assert "max_poll_interval_ms" in caplog.text
    assert "max_poll_records" in caplog.text
    (leave,) = member.sent(LeaveGroupRequest)
    assert leave.members[0].member_id == "member-1"
    assert member.membership.generation() == NO_GENERATION
    assert member.assigned == {A0, A1}
    assert member.poll()
    assert member.listener.take() == [("lost", {A0, A1}), ("assigned", {A0, A1})]


@pytest.mark.kafka("ConsumerCoordinatorTest.testUpdateLastHeartbeatPollWhenCoordinatorUnknown")
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "polls while the coordinator is unknown also reset the poll interval",
)
def test_an_unknown_coordinator_does_not_let_the_poll_interval_expire(make_member):
    member = make_member(max_poll_interval_ms=10_000).join("a")
    with member.group.lost():
        member.cluster.held.add(FindCoordinatorRequest)
        for _ in range(5):
            member.turn(100)
            member.clock.advance(5000)
        member.turn(100)
    member.cluster.held.clear()
    member.background(2000)
    assert member.sent(LeaveGroupRequest) == []
    assert member.poll()
    assert member.state is MemberState.STABLE


# ---- Wakeups -----------------------------------------------------------------------------------------------
@pytest.mark.kafka(
    "AbstractCoordinatorTest.testWakeupAfterJoinGroupSent",
    "AbstractCoordinatorTest.testWakeupAfterJoinGroupSentExternalCompletion",
    "AbstractCoordinatorTest.testWakeupAfterJoinGroupReceived",
    "AbstractCoordinatorTest.testWakeupAfterJoinGroupReceivedExternalCompletion",
    "AbstractCoordinatorTest.testWakeupAfterSyncGroupSentExternalCompletion",
    "AbstractCoordinatorTest.testWakeupAfterSyncGroupReceived",
    "AbstractCoordinatorTest.testWakeupAfterSyncGroupReceivedExternalCompletion",
    "ConsumerCoordinatorTest.testWakeupDuringJoin",
)
@pytest.mark.behaviour("AbstractCoordinator", "a wakeup at any stage, even in callbacks, loses no response")
@pytest.mark.parametrize("request_class", [FindCoordinatorRequest, JoinGroupRequest, SyncGroupRequest])
@pytest.mark.parametrize("answered", [False, True])
def test_a_wakeup_at_any_stage_loses_nothing(make_member, request_class, answered):
    member = make_member().subscribe("a")
    member.cluster.held.add(request_class)
    assert not member.poll(100)
    member.client.wakeup()
    if answered:
        member.cluster.held.clear()
    with pytest.raises(WakeupError):
        member.poll()
    member.cluster.held.clear()
    assert member.poll()
    assert member.listener.take() == [("assigned", {A0, A1})]
    assert len(member.sent(SyncGroupRequest)) == 1
    assert len(member.sent(JoinGroupRequest)) == 2
    assert member.membership.generation().generation_id == 1


@pytest.mark.kafka(
    "AbstractCoordinatorTest.testWakeupInOnJoinComplete",
    "ConsumerCoordinatorTest.testWakeupFromAssignmentCallback",
)
@pytest.mark.behaviour("AbstractCoordinator", "a wakeup at any stage, even in callbacks, loses no response")
def test_a_wakeup_in_the_callback_of_an_assignment_has_it_called_again(make_member):
    member = make_member().subscribe("a")
    member.listener.raises["assigned"] = WakeupError("in the listener")
    with pytest.raises(WakeupError):
        member.poll()
    assert member.poll()
    assert member.listener.take() == [("assigned", {A0, A1})] * 2
    assert len(member.sent(JoinGroupRequest)) == 2
    assert member.poll()
    assert member.listener.take() == []


@pytest.mark.behaviour("AbstractCoordinator", "a wakeup at any stage, even in callbacks, loses no response")
def test_a_wakeup_in_the_callback_of_a_revocation_has_it_called_again(make_member):
    member = make_member().join("a")
    member.membership.request_rejoin("to see")
    member.listener.raises["revoked"] = WakeupError("in the listener")
    with pytest.raises(WakeupError):
        member.poll()
    assert member.poll()
    assert member.listener.take() == [("revoked", {A0, A1})] * 2 + [("assigned", {A0, A1})]


# ---- Leaving -----------------------------------------------------------------------------------------------
@pytest.mark.kafka(
    "AbstractCoordinatorTest.testLeaveGroupSentWithGroupInstanceIdUnSet",
    "AbstractCoordinatorTest.testHandleNormalLeaveGroupResponseAndTruncatedLeaveReason",
    "ConsumerCoordinatorTest.testMaybeLeaveGroup",
)
@pytest.mark.behaviour(
    "AbstractCoordinator",
    "only dynamic members send LeaveGroup; reasons are truncated to 255 characters",
)
def test_a_member_leaves_and_its_reason_is_cut_to_255(make_member):
    member = make_member().join("a")
    member.membership.leave("because " * 100)
    (leave,) = member.sent(LeaveGroupRequest)
    assert leave.group_id == "g"
    assert (leave.members[0].member_id, len(leave.members[0].reason)) == ("member-1", 255)
    assert member.listener.take() == [("revoked", {A0, A1})]
    assert member.assigned == set()
    assert member.membership.generation() == NO_GENERATION


@pytest.mark.kafka("AbstractCoordinatorTest.testRejoinReason")
@pytest.mark.behaviour(
    "AbstractCoordinator",
    "only dynamic members send LeaveGroup; reasons are truncated to 255 characters",
)
def test_a_reason_to_join_is_cut_to_255(make_member):
    member = make_member().join("a")
    member.membership.request_rejoin("because " * 100)
    member.poll()
    assert len(member.sent(JoinGroupRequest)[-1].reason) == 255


@pytest.mark.kafka("AbstractCoordinatorTest.testLeaveGroupSentWithGroupInstanceIdUnSet")
@pytest.mark.behaviour(
    "AbstractCoordinator",
    "only dynamic members send LeaveGroup; reasons are truncated to 255 characters",
)
@pytest.mark.behaviour("ConsumerCoordinator", "a static member that closes stays in its group")
def test_a_static_member_gives_its_partitions_back_but_does_not_leave(make_member):
    member = make_member(group_instance_id="i").join("a")
    member.membership.close(Timer(member.clock, 1000))
    assert member.sent(LeaveGroupRequest) == []
    assert member.listener.take() == [("revoked", {A0, A1})]


def test_who_never_joined_does_not_leave(make_member):
    member = make_member().subscribe("a")
    member.membership.leave("why not")
    assert member.sent(LeaveGroupRequest) == []
    assert member.poll()


def test_who_left_in_the_middle_of_joining_does_not_go_on_with_it(make_member):
    member = make_member().subscribe("a")
    member.cluster.held.add(JoinGroupRequest)
    member.group.errors[JoinGroupRequest].append(0)
    assert not member.poll(100)
    member.membership.leave("changed my mind")
    member.subscriptions.unsubscribe()
    member.membership.subscription_changed()
    member.cluster.held.clear()
    for _ in range(5):
        member.turn(10)
    assert member.sent(SyncGroupRequest) == []
    assert member.state is MemberState.UNJOINED


@pytest.mark.kafka("ConsumerCoordinatorTest.testGetGroupMetadata")
def test_group_metadata_say_who_the_member_is(make_member):
    member = make_member(group_instance_id="i")
    assert member.membership.group_metadata() == ConsumerGroupMetadata("g", -1, "", "i", "<unjoined>")
    member.join("a")
    assert member.membership.group_metadata() == ConsumerGroupMetadata("g", 1, "i-1", "i", "<stable>")
    member.membership.request_rejoin("to see")
    member.cluster.held.add(SyncGroupRequest)
    member.poll(100)
    assert member.membership.group_metadata().state == "<rebalancing>"


def test_group_metadata_belong_to_one_generation(make_member):
    membership = make_member().join("a").membership
    joined = membership.generation()

    def prepare():
        membership.joined(joined)
        return membership.group_metadata, lambda: membership.reset_generation(
            UnknownMemberIdError(), joined, "heartbeat"
        )

    found = {metadata[1:3] for metadata in at_each_step(ClassicMembership.group_metadata, prepare)}
    assert found == {(1, "member-1"), (-1, "")}
