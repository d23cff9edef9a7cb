"""The membership of KIP-848: states, heartbeats, and how it reacts to each response of the coordinator."""

import math

import pytest
from interleaving import at_each_step
from model.group_coordinator import COORDINATOR_ID

from kafkacore.consumer._request_future import RequestFuture
from kafkacore.consumer.group.consumer_membership import ConsumerMembership
from kafkacore.consumer.group.consumer_state import ConsumerMemberState as State
from kafkacore.consumer.group.generation import NO_GENERATION, Generation
from kafkacore.consumer.timer import Timer
from kafkacore.errors import (
    CommitFailedError,
    FencedInstanceIdError,
    GroupAuthorizationFailedError,
    GroupMaxSizeReachedError,
    InvalidRequestError,
    StaleMemberEpochError,
    TopicAuthorizationFailedError,
    UnreleasedInstanceIdError,
    UnsupportedAssignorError,
    UnsupportedVersionError,
    WakeupError,
)
from kafkacore.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkacore.structs import MemberState, TopicPartition

A0, A1, A2, B0 = (
    TopicPartition("a", 0),
    TopicPartition("a", 1),
    TopicPartition("a", 2),
    TopicPartition("b", 0),
)
LOADING, NOT_AVAILABLE, NOT_COORDINATOR, UNKNOWN_MEMBER, GROUP_AUTH, TOPIC_AUTH = 14, 15, 16, 25, 30, 29
UNSUPPORTED_VERSION, INVALID_REQUEST, GROUP_NOT_FOUND, MAX_SIZE, FENCED_INSTANCE = 35, 42, 69, 81, 82
FENCED_EPOCH, UNRELEASED, ASSIGNOR = 110, 111, 112


class Commits:
    """Commits whose outcome the test decides."""

    def __init__(self):
        self.futures = []
        self.restarts = 0
        self.is_enabled = True

    def invoke_completed_callbacks(self):
        pass

    def maybe_auto_commit_async(self, now_ms):
        pass

    def auto_commit_now(self):
        if not self.is_enabled:
            return None
        self.futures.append(RequestFuture())
        return self.futures[-1]

    def time_to_next_auto_commit_ms(self, now_ms):
        return math.inf

    def restart_auto_commit_interval(self, now_ms):
        self.restarts += 1


@pytest.fixture
def make(make_member):
    """Return a function that creates a member of the new protocol; topic "a" has three partitions."""

    def make(**options):
        member = make_member({"a": 3, "b": 1}, group_protocol="consumer", **options)
        member.consumers = member.group.consumers
        return member

    return make


def settle(member, turns=6):
    """Poll several times without waiting."""
    for _ in range(turns):
        member.turn()


def beat(member):
    """Let the heartbeat interval pass, and handle the responses."""
    member.clock.advance(member.consumers.interval_ms)
    settle(member)


# ---- Joining --------------------------------------------------------------------------------------------
@pytest.mark.kafka(
    "ConsumerHeartbeatRequestManagerTest.testFirstHeartbeatIncludesRequiredInfoToJoinGroupAndGetAssignments"
)
def test_the_first_heartbeat_has_all_fields_and_joins(make):
    member = make(client_rack="r1", max_poll_interval_ms=60_000).join("a", "b")
    first, acknowledgement = member.consumers.news
    assert (first.group_id, first.member_epoch, first.rack_id) == ("g", 0, "r1")
    assert len(first.member_id) == 22
    assert (first.subscribed_topic_names, first.topic_partitions) == (["a", "b"], [])
    assert (first.rebalance_timeout_ms, first.server_assignor) == (60_000, None)
    assert (acknowledgement.member_id, acknowledgement.member_epoch) == (first.member_id, 1)
    assert (acknowledgement.subscribed_topic_names, acknowledgement.rebalance_timeout_ms) == (None, -1)
    assert member.consumers.owned == member.assigned == {A0, A1, A2, B0}
    assert member.state is State.STABLE


def test_heartbeats_go_to_the_connection_of_the_coordinator(make):
    member = make(node_count=3)
    member.group.node_id = 2
    member.join("a")
    asked = {
        node_id
        for node_id, request in member.cluster.requests
        if isinstance(request, ConsumerGroupHeartbeatRequest)
    }
    assert asked == {COORDINATOR_ID - 2}


def test_polls_without_time_join_step_by_step(make):
    member = make().subscribe("a")
    before_ms = member.clock.monotonic_ms()
    settle(member)
    assert member.clock.monotonic_ms() == before_ms
    assert member.listener.take() == [("assigned", {A0, A1, A2})]


def test_nothing_is_sent_before_a_poll_or_without_a_subscription(make):
    member = make()
    settle(member)
    member.subscribe("a")
    assert member.cluster.requests == []
    assert member.membership.background_turn(member.clock.monotonic_ms()) == math.inf


@pytest.mark.kafka(
    "ConsumerMembershipManagerTest.testMemberJoiningCallsRebalanceListenerWhenReceivingEmptyAssignment"
)
def test_an_empty_assignment_is_delivered_and_acknowledged(make):
    member = make()
    member.consumers.target = set()
    member.join("a")
    assert member.state is State.STABLE
    assert [request.topic_partitions for request in member.consumers.news] == [[], []]


def test_the_server_assignor_is_named_when_joining(make):
    member = make(group_remote_assignor="range").join("a")
    assert [request.server_assignor for request in member.consumers.news] == ["range", None]


def test_a_pattern_is_matched_before_the_member_joins(make):
    member = make().join(pattern="[ab]")
    assert member.consumers.news[0].subscribed_topic_names == ["a", "b"]


def test_a_server_pattern_is_sent_with_no_names(make):
    member = make()
    member.subscriptions.subscribe(["a"])
    member.subscriptions.subscription = set()
    member.subscriptions.server_pattern = "a|b"
    member.consumers.target = {B0}
    member.membership.subscription_changed()
    assert member.poll()
    first, second = member.consumers.news
    assert (first.subscribed_topic_names, first.subscribed_topic_regex) == ([], "a|b")
    assert second.subscribed_topic_regex is None
    assert member.assigned == {B0}


# ---- Heartbeats -----------------------------------------------------------------------------------------
def test_a_settled_member_sends_plain_heartbeats_at_the_brokers_interval(make):
    member = make().join("a")
    count = len(member.consumers.beats)
    member.clock.advance(member.consumers.interval_ms - 1)
    settle(member)
    assert len(member.consumers.beats) == count
    member.clock.advance(1)
    settle(member)
    plain = member.consumers.beats[count:]
    assert [(each.member_epoch, each.instance_id, each.topic_partitions) for each in plain] == [
        (1, None, None)
    ]
    assert member.consumers.news[-1] is not plain[0]


def test_a_new_interval_takes_effect(make):
    member = make().join("a")
    member.consumers.interval_ms = 700
    member.clock.advance(5000)
    settle(member)
    count = len(member.consumers.beats)
    member.clock.advance(700)
    settle(member)
    assert len(member.consumers.beats) == count + 1


def test_the_heartbeat_thread_keeps_the_member_alive(make):
    member = make().join("a")
    count = len(member.consumers.beats)
    member.background(21_000)
    assert len(member.consumers.beats) == count + 4


def test_a_changed_subscription_is_sent_at_once_and_alone(make):
    member = make().join("a")
    member.subscribe("a", "b")
    settle(member)
    change, acknowledgement = member.consumers.news[2:]
    assert change.subscribed_topic_names == ["a", "b"]
    assert (change.topic_partitions, change.rebalance_timeout_ms) == (None, -1)
    assert member.consumers.owned == member.assigned == {A0, A1, A2, B0}
    assert acknowledgement.subscribed_topic_names is None
    assert member.listener.take() == [("assigned", {B0})]


def test_no_second_heartbeat_is_sent_while_one_is_in_flight(make):
    member = make().join("a")
    member.cluster.held.add(ConsumerGroupHeartbeatRequest)
    member.subscribe("a", "b")
    settle(member)
    count = len(member.consumers.beats)
    member.subscribe("b")
    settle(member)
    assert len(member.consumers.beats) == count
    member.cluster.held.clear()
    settle(member)
    assert member.consumers.topics == {"b"}
    assert member.assigned == {B0}


@pytest.mark.parametrize(("epoch", "partitions"), [(0, []), (-5, []), (1, [-1])])
def test_a_malformed_response_is_ignored_and_asked_for_again(make, epoch, partitions):
    member = make().subscribe("a")
    answer = member.group.consumers.answer

    def malformed(request, code):
        response = answer(request, code)
        response.member_epoch = epoch
        if partitions:
            response.assignment.topic_partitions[0].partitions = partitions
        return response

    member.group.consumers.answer = malformed
    settle(member)
    assert (member.state, member.assigned) == (State.JOINING, set())
    count = len(member.consumers.beats)
    member.group.consumers.answer = answer
    settle(member)
    assert len(member.consumers.beats) == count, "it did not back off"
    assert member.poll()
    assert member.assigned == {A0, A1, A2}


# ---- Reconciling ----------------------------------------------------------------------------------------
@pytest.mark.kafka("ConsumerMembershipManagerTest.testReconcileNewPartitionsAssignedAndRevoked")
def test_only_partitions_that_move_are_revoked_and_assigned(make):
    member = make()
    member.consumers.target = {A0, A1, A2}
    member.join("a", "b")
    member.consumers.assign(A0, B0)
    beat(member)
    assert member.listener.take() == [("revoked", {A1, A2}), ("assigned", {B0})]
    assert member.assigned == member.consumers.owned == {A0, B0}
    assert member.membership.generation().generation_id == 2


def test_state_of_partitions_that_stay_is_kept(make):
    member = make().join("a")
    member.subscriptions.pause(A0)
    kept = member.subscriptions.state(A0)
    member.consumers.assign(A0)
    beat(member)
    assert member.subscriptions.state(A0) is kept
    assert member.subscriptions.is_paused(A0)


@pytest.mark.kafka("ConsumerMembershipManagerTest.testReconcileNewPartitionsAssignedWhenOtherPartitionsOwned")
def test_assigned_is_called_even_if_only_partitions_were_revoked(make):
    member = make().join("a")
    member.consumers.assign(A0)
    beat(member)
    assert member.listener.take() == [("revoked", {A1, A2}), ("assigned", set())]


def test_the_acknowledgement_is_sent_only_after_the_callbacks(make):
    member = make()
    member.consumers.target = {A0, A1, A2}
    member.join("a", "b")
    seen = []
    member.listener.meanwhile = lambda what: seen.append((what, len(member.consumers.news)))
    member.consumers.assign(B0)
    beat(member)
    assert seen == [("revoked", 2), ("assigned", 2)]
    assert len(member.consumers.news) == 3


@pytest.mark.kafka(
    "ConsumerMembershipManagerTest.testDelayedReconciliationResultAppliedWhenTargetChangedWithMetadataUpdate"
)
def test_a_newer_assignment_waits_for_the_running_reconciliation(make):
    commits = Commits()
    commits.is_enabled = False
    member = make(commits=commits)
    member.consumers.target = {A0, A1, A2}
    member.join("a", "b")
    commits.is_enabled = True
    member.consumers.assign(A0)
    beat(member)
    assert member.state is State.RECONCILING
    member.consumers.assign(A0, A1, B0)
    beat(member)
    assert member.listener.take() == []
    commits.futures[0].complete(None)
    settle(member)
    assert member.listener.take() == [("revoked", {A1, A2}), ("assigned", set())]
    commits.futures[1].complete(None)
    settle(member)
    assert member.listener.take() == [("assigned", {A1, B0})]
    assert member.consumers.owned == {A0, A1, B0}
    assert member.state is State.STABLE


def test_an_assignment_during_the_callback_is_reconciled_next(make):
    member = make().join("a")
    member.consumers.assign(A0)

    def meanwhile(what):
        if what == "revoked":
            member.consumers.assign(A0, A1)
            member.background(member.consumers.interval_ms + 100)

    member.listener.meanwhile = meanwhile
    beat(member)
    settle(member)
    assert member.listener.take() == [
        ("revoked", {A1, A2}), ("assigned", set()), ("assigned", {A1})
    ]  # fmt: skip
    assert member.consumers.owned == member.assigned == {A0, A1}


def test_the_same_assignment_again_changes_nothing(make):
    member = make().join("a")
    member.consumers.assign(A0, A1, A2)
    beat(member)
    assert member.listener.take() == []
    assert (member.state, member.membership.generation().generation_id) == (State.STABLE, 2)


def test_an_assignment_that_returns_to_the_current_one_needs_no_callback(make):
    commits = Commits()
    commits.is_enabled = False
    member = make(commits=commits).join("a")
    member.cluster.held_metadata = True
    member.cluster.logs[TopicPartition("new", 0)] = member.cluster.logs[A0]
    member.consumers.assign(A0, A1, A2, TopicPartition("new", 0))
    beat(member)
    assert member.state is State.RECONCILING
    member.consumers.assign(A0, A1, A2)
    beat(member)
    assert (member.state, member.listener.take()) == (State.STABLE, [])


@pytest.mark.kafka(
    "ConsumerMembershipManagerTest.testReconciliationSkippedWhenSameAssignmentReceived",
    "ConsumerMembershipManagerTest.testMetadataUpdatesReconcilesUnresolvedAssignments",
)
def test_topics_without_a_name_wait_for_metadata(make):
    member = make().join(pattern=".*")
    member.cluster.held_metadata = True
    new = TopicPartition("new", 0)
    member.cluster.logs[new] = member.cluster.logs[A0]
    member.consumers.assign(A0, B0, new)
    beat(member)
    assert member.assigned == {A0, B0}
    assert member.consumers.owned == {A0, B0}
    assert member.state is State.RECONCILING
    news = len(member.consumers.news)
    settle(member)
    assert len(member.consumers.news) == news, "it acknowledges again and again"
    member.cluster.held_metadata = False
    settle(member)
    assert member.assigned == member.consumers.owned == {A0, B0, new}
    assert member.listener.take()[-1] == ("assigned", {new})


def test_an_unresolved_topic_asks_for_metadata_once_per_version(make):
    member = make().join("a")
    member.cluster.held_metadata = True
    member.cluster.logs[TopicPartition("new", 0)] = member.cluster.logs[A0]
    member.consumers.assign(A0, TopicPartition("new", 0))
    asked = member.metadata.update_requests
    beat(member)
    assert member.metadata.update_requests == asked + 1


def test_a_dropped_topic_is_revoked_by_its_known_name(make):
    member = make().join("a", "b")
    member.metadata._known = {tp: True for tp in member.metadata._known if tp.topic != "b"}
    member.consumers.assign(A0, B0)
    beat(member)
    assert member.assigned == {A0, B0}


# ---- The commit before partitions are revoked -----------------------------------------------------------
@pytest.mark.kafka(
    "ConsumerMembershipManagerTest.testReconcilePartitionsRevokedWithSuccessfulAutoCommitNoCallbacks"
)
def test_offsets_are_committed_before_the_callbacks(make):
    commits = Commits()
    member = make(commits=commits).subscribe("a")
    commits.is_enabled = False
    assert member.poll()
    commits.is_enabled = True
    member.listener.take()
    member.consumers.assign(A0)
    beat(member)
    assert (len(commits.futures), member.listener.take()) == (1, [])
    assert {tp for tp, state in member.subscriptions.states.items() if state.pending_revocation} == {A1, A2}
    commits.futures[0].complete(None)
    settle(member)
    assert member.listener.take() == [("revoked", {A1, A2}), ("assigned", set())]
    assert commits.restarts == 2


@pytest.mark.kafka(
    "CommitRequestManagerTest.testAutoCommitSyncBeforeRevocationRetriesOnRetriableAndStaleEpoch"
)
def test_a_commit_with_a_stale_epoch_is_sent_again(make):
    commits = Commits()
    commits.is_enabled = False
    member = make(commits=commits).join("a")
    commits.is_enabled = True
    member.consumers.assign(A0)
    beat(member)
    stale = CommitFailedError("stale")
    stale.__cause__ = StaleMemberEpochError("stale")
    commits.futures[0].fail(stale)
    settle(member)
    member.clock.advance(100)
    settle(member)
    assert (len(commits.futures), member.listener.take()) == (2, [])
    commits.futures[1].complete(None)
    settle(member)
    assert member.listener.take() == [("revoked", {A1, A2}), ("assigned", set())]


@pytest.mark.kafka(
    "ConsumerMembershipManagerTest.testReconcilePartitionsRevokedWithFailedAutoCommitCompletesRevocationAnyway"
)
def test_a_failed_commit_does_not_stop_the_reconciliation(make):
    commits = Commits()
    commits.is_enabled = False
    member = make(commits=commits).join("a")
    commits.is_enabled = True
    member.consumers.assign(A0)
    beat(member)
    commits.futures[0].fail(CommitFailedError("no"))
    settle(member)
    assert member.assigned == {A0}


def test_a_commit_without_a_response_ends_with_the_rebalance_timeout(make):
    commits = Commits()
    commits.is_enabled = False
    member = make(commits=commits, max_poll_interval_ms=20_000).join("a")
    commits.is_enabled = True
    member.consumers.assign(A0)
    beat(member)
    member.clock.advance(19_000)
    settle(member)
    assert member.listener.take() == []
    member.clock.advance(1000)
    settle(member)
    assert member.assigned == {A0}


# ---- Exceptions of the listener -------------------------------------------------------------------------
@pytest.mark.kafka("ConsumerMembershipManagerTest.testListenerCallbacksThrowsErrorOnPartitionsRevoked")
def test_an_exception_in_revoked_is_raised_and_the_call_repeated(make):
    member = make().join("a")
    member.consumers.assign(A0)
    member.listener.raises["revoked"] = ValueError("mine")
    with pytest.raises(ValueError, match="mine"):
        beat(member)
    assert (member.state, member.consumers.owned) == (State.RECONCILING, {A0, A1, A2})
    settle(member)
    assert member.listener.take() == [("revoked", {A1, A2})] * 2 + [("assigned", set())]
    assert (member.state, member.consumers.owned) == (State.STABLE, {A0})


@pytest.mark.kafka("ConsumerMembershipManagerTest.testListenerCallbacksThrowsErrorOnPartitionsAssigned")
def test_an_exception_in_assigned_is_raised_and_the_call_repeated(make):
    member = make().subscribe("a")
    member.listener.raises["assigned"] = ValueError("mine")
    with pytest.raises(ValueError, match="mine"):
        settle(member)
    assert (member.state, member.consumers.owned) == (State.RECONCILING, set())
    settle(member)
    assert member.listener.take() == [("assigned", {A0, A1, A2})] * 2
    assert (member.state, member.consumers.owned) == (State.STABLE, {A0, A1, A2})


@pytest.mark.parametrize("what", ["revoked", "assigned"])
def test_a_wakeup_in_the_listener_is_raised_and_the_call_repeated(make, what):
    member = make().join("a")
    member.consumers.assign(A0)
    member.listener.raises[what] = WakeupError("woken")
    with pytest.raises(WakeupError):
        beat(member)
    settle(member)
    calls = [call for call, _ in member.listener.take()]
    assert calls.count(what) == 2
    assert member.assigned == member.consumers.owned == {A0}


def test_a_ctrl_c_in_the_listener_loses_no_step(make):
    member = make().join("a")
    member.consumers.assign(A0)
    member.listener.raises["revoked"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        beat(member)
    settle(member)
    assert member.assigned == member.consumers.owned == {A0}
    assert not member.membership.calls.is_running


@pytest.mark.parametrize("is_queued", [False, True])
def test_a_ctrl_c_while_a_heartbeat_is_sent_loses_nothing(make, is_queued, monkeypatch):
    member = make().subscribe("a")
    send = member.client.send

    def interrupted(node, request, **options):
        if not isinstance(request, ConsumerGroupHeartbeatRequest):
            return send(node, request, **options)
        monkeypatch.undo()
        if is_queued:
            send(node, request, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(member.client, "send", interrupted)
    with pytest.raises(KeyboardInterrupt):
        settle(member)
    assert member.poll()
    assert member.assigned == member.consumers.owned == {A0, A1, A2}


def test_a_ctrl_c_in_a_poll_makes_the_member_report_everything_again(make, monkeypatch):
    member = make().join("a")
    news = len(member.consumers.news)

    def interrupted(*arguments, **how):
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(member.network, "poll", interrupted)
    with pytest.raises(KeyboardInterrupt):
        member.turn()
    member.clock.advance(100)
    settle(member)
    (report,) = member.consumers.news[news:]
    assert (report.member_epoch, report.subscribed_topic_names) == (1, ["a"])
    assert len(report.topic_partitions) == 1


def test_a_ctrl_c_while_leaving_allows_another_subscription(make, monkeypatch):
    member = make().join("a")
    send = member.client.send

    def interrupted(node, request, **options):
        monkeypatch.undo()
        send(node, request, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(member.client, "send", interrupted)
    with pytest.raises(KeyboardInterrupt):
        member.membership.leave("unsubscribed")
    assert member.state is State.UNSUBSCRIBED
    member.subscriptions.unsubscribe()
    assert member.join("b").assigned == {B0}


# ---- Fencing --------------------------------------------------------------------------------------------
@pytest.mark.kafka(
    "ConsumerMembershipManagerTest.testFencingWhenStateIsStable",
    "ConsumerHeartbeatRequestManagerTest.testHeartbeatResponseOnErrorHandling",
)
@pytest.mark.parametrize("code", [FENCED_EPOCH, UNKNOWN_MEMBER, GROUP_NOT_FOUND])
def test_a_fenced_member_loses_its_partitions_and_joins_again(make, code):
    member = make().join("a")
    member.group.errors[ConsumerGroupHeartbeatRequest].append(code)
    beat(member)
    assert member.listener.take() == [("lost", {A0, A1, A2}), ("assigned", {A0, A1, A2})]
    again = member.consumers.news[2]
    assert (again.member_epoch, again.topic_partitions, again.subscribed_topic_names) == (0, [], ["a"])
    assert again.member_id == member.consumers.news[0].member_id
    assert member.state is State.STABLE


@pytest.mark.kafka(
    "ConsumerHeartbeatRequestManagerTest.testFencedMemberStopHeartbeatUntilItReleasesAssignmentToRejoin"
)
def test_a_member_fenced_in_the_background_releases_in_the_next_poll(make):
    member = make().join("a")
    member.group.errors[ConsumerGroupHeartbeatRequest].append(FENCED_EPOCH)
    member.background(5500)
    assert (member.state, member.listener.take()) == (State.FENCED, [])
    assert member.membership.generation() == NO_GENERATION
    assert member.membership.time_to_next_poll_ms(member.clock.monotonic_ms()) == 0
    settle(member)
    assert [call for call, _ in member.listener.take()] == ["lost", "assigned"]


@pytest.mark.kafka(
    "ConsumerMembershipManagerTest.testDelayedReconciliationResultDiscardedAfterCommitIfMemberRejoins"
)
def test_a_member_fenced_while_it_reconciles_drops_the_reconciliation(make):
    commits = Commits()
    commits.is_enabled = False
    member = make(commits=commits).join("a")
    commits.is_enabled = True
    member.consumers.assign(A0)
    beat(member)
    member.consumers.remove()
    member.consumers.target = {A0}
    commits.is_enabled = False
    beat(member)
    assert member.listener.take() == [("lost", {A0, A1, A2}), ("assigned", {A0})]
    commits.futures[0].complete(None)
    settle(member)
    assert member.listener.take() == []


@pytest.mark.kafka(
    "ConsumerMembershipManagerTest.testDelayedReconciliationResultDiscardedAfterPartitionsRevokedCallbackIfMemberRejoins"
)
def test_a_member_fenced_during_the_callback_does_not_acknowledge(make):
    member = make().join("a")
    member.consumers.assign(A0)

    def meanwhile(what):
        if what == "revoked":
            member.consumers.remove()
            member.background(member.consumers.interval_ms + 100)

    member.listener.meanwhile = meanwhile
    beat(member)
    assert [call for call, _ in member.listener.take()] == ["revoked", "lost", "assigned"]
    assert member.consumers.news[2].member_epoch == 0
    assert member.consumers.owned == member.assigned == {A0}


def test_an_exception_in_lost_is_raised_and_the_member_joins_again(make):
    member = make().join("a")
    member.group.errors[ConsumerGroupHeartbeatRequest].append(FENCED_EPOCH)
    member.listener.raises["lost"] = ValueError("mine")
    with pytest.raises(ValueError, match="mine"):
        beat(member)
    assert member.assigned == set()
    settle(member)
    assert member.listener.take() == [("lost", {A0, A1, A2}), ("assigned", {A0, A1, A2})]


# ---- Fatal errors ---------------------------------------------------------------------------------------
@pytest.mark.kafka("ConsumerHeartbeatRequestManagerTest.testHeartbeatResponseOnErrorHandling")
@pytest.mark.parametrize(
    ("code", "error"),
    [
        (UNRELEASED, UnreleasedInstanceIdError),
        (FENCED_INSTANCE, FencedInstanceIdError),
        (MAX_SIZE, GroupMaxSizeReachedError),
        (ASSIGNOR, UnsupportedAssignorError),
        (INVALID_REQUEST, InvalidRequestError),
        (GROUP_AUTH, GroupAuthorizationFailedError),
        (UNSUPPORTED_VERSION, UnsupportedVersionError),
    ],
)
def test_a_fatal_error_is_raised_by_every_poll(make, code, error):
    member = make(group_instance_id="i1").subscribe("a")
    member.consumers.error_message = "because I say so"
    member.group.errors[ConsumerGroupHeartbeatRequest].append(code)
    with pytest.raises(error) as raised:
        settle(member)
    assert "'g'" in str(raised.value)
    count = len(member.consumers.beats)
    with pytest.raises(error):
        settle(member)
    assert len(member.consumers.beats) == count
    assert member.state is State.FATAL


def test_a_group_version_that_is_missing_is_named(make):
    member = make().subscribe("a")
    member.group.errors[ConsumerGroupHeartbeatRequest].append(UNSUPPORTED_VERSION)
    with pytest.raises(UnsupportedVersionError, match=r"group\.version=1.*group_protocol='classic'"):
        settle(member)


def test_a_fatal_error_loses_the_partitions_first(make):
    member = make().join("a")
    member.group.errors[ConsumerGroupHeartbeatRequest].append(FENCED_INSTANCE)
    with pytest.raises(FencedInstanceIdError):
        beat(member)
    assert member.listener.take() == [("lost", {A0, A1, A2})]
    assert member.assigned == set()


def test_unsubscribing_after_a_fatal_error_allows_another_try(make):
    member = make().subscribe("a")
    member.group.errors[ConsumerGroupHeartbeatRequest].append(MAX_SIZE)
    with pytest.raises(GroupMaxSizeReachedError):
        settle(member)
    member.membership.leave("unsubscribed")
    member.subscriptions.unsubscribe()
    assert member.join("a").assigned == {A0, A1, A2}


def test_an_unauthorized_topic_is_raised_once_and_retried(make):
    member = make().subscribe("a")
    member.group.errors[ConsumerGroupHeartbeatRequest].append(TOPIC_AUTH)
    with pytest.raises(TopicAuthorizationFailedError):
        settle(member)
    assert member.poll()
    assert member.assigned == {A0, A1, A2}


# ---- The coordinator ------------------------------------------------------------------------------------
@pytest.mark.parametrize("code", [NOT_AVAILABLE, NOT_COORDINATOR])
def test_a_moved_coordinator_is_found_and_told_everything(make, code):
    member = make(node_count=2).join("a")
    member.group.errors[ConsumerGroupHeartbeatRequest].append(code)
    member.clock.advance(member.consumers.interval_ms)
    while member.membership.coordinator() is not None:
        member.turn()
    member.group.node_id = 1
    assert member.poll()
    told = member.consumers.news[-1]
    assert (told.member_epoch, told.subscribed_topic_names) == (1, ["a"])
    assert len(told.topic_partitions[0].partitions) == 3
    assert member.listener.take() == []
    assert member.membership.coordinator().node_id == COORDINATOR_ID - 1


def test_a_lost_connection_keeps_the_partitions(make):
    member = make().join("a")
    with member.group.lost():
        beat(member)
        member.clock.advance(1000)
        settle(member)
    assert member.assigned == {A0, A1, A2}
    assert member.poll()
    assert member.listener.take() == []
    assert member.consumers.news[-1].member_epoch == 1


@pytest.mark.kafka("ConsumerHeartbeatRequestManagerTest.testConsumerAcksReconciledAssignmentAfterAckLost")
def test_a_lost_acknowledgement_is_sent_again(make):
    member = make().join("a")
    member.consumers.assign(A0)
    member.clock.advance(member.consumers.interval_ms)
    while member.state is not State.RECONCILING:
        member.turn()
    member.cluster.held.add(ConsumerGroupHeartbeatRequest)
    settle(member)
    assert (member.assigned, member.consumers.owned) == ({A0}, {A0, A1, A2})
    with member.group.lost():
        settle(member)
    member.cluster.held.clear()
    assert member.poll()
    assert (member.consumers.owned, member.state) == ({A0}, State.STABLE)


def test_a_loading_coordinator_is_asked_again_after_a_pause(make):
    member = make().subscribe("a")
    member.group.errors[ConsumerGroupHeartbeatRequest] += [LOADING, LOADING]
    settle(member)
    assert len(member.consumers.beats) == 1
    assert member.poll()
    assert [each.member_epoch for each in member.consumers.news[:3]] == [0, 0, 0]


def test_a_broker_that_does_not_answer_is_given_up_after_the_request_timeout(make):
    member = make(request_timeout_ms=10_000).join("a")
    member.cluster.held.add(ConsumerGroupHeartbeatRequest)
    member.clock.advance(5000)
    settle(member)
    member.clock.advance(10_000)
    member.turn()
    assert member.membership.coordinator() is None
    member.cluster.held.clear()
    assert member.poll()
    assert member.assigned == {A0, A1, A2}


# ---- Leaving --------------------------------------------------------------------------------------------
@pytest.mark.kafka("ConsumerMembershipManagerTest.testLeaveGroupWhenMemberOwnsAssignment")
@pytest.mark.parametrize(("instance", "epoch"), [(None, -1), ("i1", -2)])
def test_closing_revokes_and_leaves(make, instance, epoch):
    member = make(group_instance_id=instance).join("a")
    member.membership.close(Timer(member.clock, 1000))
    assert member.listener.take() == [("revoked", {A0, A1, A2})]
    leave = member.consumers.beats[-1]
    assert (leave.member_epoch, leave.instance_id) == (epoch, instance)
    assert member.consumers.member_id is None
    assert member.state is State.UNSUBSCRIBED


def test_closing_without_time_sends_the_leave_anyway(make):
    member = make().join("a")
    member.membership.close(Timer(member.clock, 0))
    assert member.consumers.beats[-1].member_epoch == -1


def test_closing_does_not_wait_beyond_its_time(make):
    member = make().join("a")
    member.cluster.held.add(ConsumerGroupHeartbeatRequest)
    before_ms = member.clock.monotonic_ms()
    member.membership.close(Timer(member.clock, 300))
    assert member.clock.monotonic_ms() - before_ms == 300


def test_closing_without_a_coordinator_sends_nothing(make):
    member = make().join("a")
    with member.group.lost():
        beat(member)
        count = len(member.consumers.beats)
        member.membership.close(Timer(member.clock, 1000))
    assert member.listener.take() == [("revoked", {A0, A1, A2})]
    assert len(member.consumers.beats) == count


def test_leaving_while_joining_leaves_too(make):
    member = make().subscribe("a")
    member.cluster.held.add(ConsumerGroupHeartbeatRequest)
    settle(member)
    member.membership.leave("unsubscribed")
    member.subscriptions.unsubscribe()
    member.cluster.held.clear()
    settle(member)
    assert [each.member_epoch for each in member.consumers.beats] == [0, -1]
    assert member.listener.take() == []


@pytest.mark.kafka("ConsumerMembershipManagerTest.testLeaveGroupWhenMemberFenced")
def test_a_fenced_member_that_leaves_loses_its_partitions(make):
    member = make().join("a")
    member.group.errors[ConsumerGroupHeartbeatRequest].append(FENCED_EPOCH)
    member.background(5500)
    count = len(member.consumers.beats)
    member.membership.leave("unsubscribed")
    assert member.listener.take() == [("lost", {A0, A1, A2})]
    assert (len(member.consumers.beats), member.state) == (count, State.UNSUBSCRIBED)


@pytest.mark.kafka("ConsumerMembershipManagerTest.testFencingWhenStateIsPrepareLeaving")
def test_a_member_fenced_while_it_leaves_sends_no_leave(make):
    member = make().join("a")

    def meanwhile(what):
        member.consumers.remove()
        member.background(member.consumers.interval_ms + 100)

    member.listener.meanwhile = meanwhile
    member.membership.leave("unsubscribed")
    assert member.consumers.beats[-1].member_epoch == 1
    assert member.state is State.UNSUBSCRIBED


def test_a_subscription_after_leaving_joins_again(make):
    member = make().join("a")
    member.membership.leave("unsubscribed")
    member.subscriptions.unsubscribe()
    member.membership.subscription_changed()
    member.listener.take()
    member.join("b")
    assert member.assigned == {B0}
    assert [each.member_epoch for each in member.consumers.news][2:4] == [-1, 0]


def test_a_late_response_to_the_join_before_leaving_is_ignored(make):
    member = make().subscribe("a")
    member.cluster.held.add(ConsumerGroupHeartbeatRequest)
    settle(member)
    member.membership.leave("unsubscribed")
    member.subscriptions.unsubscribe()
    member.subscribe("b")
    settle(member)
    member.cluster.held.clear()
    assert member.poll()
    assert member.listener.take() == [("assigned", {B0})]


def test_an_exception_in_revoked_does_not_stop_the_leave(make):
    member = make().join("a")
    member.listener.raises["revoked"] = ValueError("mine")
    with pytest.raises(ValueError, match="mine"):
        member.membership.close(Timer(member.clock, 1000))
    assert member.consumers.member_id is None
    assert member.assigned == set()


def test_a_listener_that_leaves_in_revoked_is_called_once(make):
    member = make().join("a")
    member.consumers.assign(A0)
    member.listener.meanwhile = lambda what: what == "revoked" and member.membership.leave("unsubscribed")
    beat(member)
    calls = member.listener.take()
    assert calls[:2] == [("revoked", {A1, A2}), ("revoked", {A0})]
    assert -1 in [each.member_epoch for each in member.consumers.beats]


# ---- The poll interval ----------------------------------------------------------------------------------
@pytest.mark.kafka(
    "ConsumerHeartbeatRequestManagerTest.testPollTimerExpiration",
    "ConsumerMembershipManagerTest.testStaleMemberDoesNotSendHeartbeatAndAllowsTransitionToJoiningToRecover",
    "ConsumerMembershipManagerTest.testTransitionToLeavingWhileStableDueToStaleMember",
)
@pytest.mark.parametrize(("instance", "epoch"), [(None, -1), ("i1", -2)])
def test_a_member_that_does_not_poll_leaves_and_joins_again(make, instance, epoch):
    member = make(max_poll_interval_ms=20_000, group_instance_id=instance).join("a")
    member.background(25_000)
    assert (member.state, member.consumers.beats[-1].member_epoch) == (State.STALE, epoch)
    assert member.listener.take() == []
    count = len(member.consumers.beats)
    member.background(20_000)
    assert len(member.consumers.beats) == count
    assert member.poll()
    settle(member)
    assert member.listener.take() == [("lost", {A0, A1, A2}), ("assigned", {A0, A1, A2})]
    assert member.consumers.beats[count].member_epoch == 0


def test_a_hold_suspends_the_poll_interval(make):
    member = make(max_poll_interval_ms=20_000).join("a")
    member.membership.hold(True, member.clock.monotonic_ms())
    for _ in range(100):
        member.clock.advance(member.membership.held_turn(member.clock.monotonic_ms()))
    assert member.state is State.STABLE
    member.consumers.assign(A0)
    member.clock.advance(5000)
    for _ in range(10):
        member.clock.advance(member.membership.held_turn(member.clock.monotonic_ms()))
    assert member.assigned == member.consumers.owned == {A0}
    assert member.listener.take() == [("revoked", {A1, A2}), ("assigned", set())]


def test_an_exception_in_a_hold_is_raised_by_the_next_poll(make):
    member = make().join("a")
    member.membership.hold(True, member.clock.monotonic_ms())
    member.consumers.assign(A0)
    member.listener.raises["revoked"] = ValueError("mine")
    for _ in range(20):
        member.clock.advance(member.membership.held_turn(member.clock.monotonic_ms()))
    assert member.assigned == {A0}
    member.membership.hold(False, member.clock.monotonic_ms())
    with pytest.raises(ValueError, match="mine"):
        member.turn()


# ---- Identity -------------------------------------------------------------------------------------------
def test_the_member_epoch_is_the_generation(make):
    member = make(group_instance_id="i1")
    assert member.membership.generation() == NO_GENERATION
    assert member.membership.group_metadata()[:4] == ("g", -1, "", "i1")
    member.join("a")
    member_id = member.consumers.member_id
    assert member.membership.generation() == Generation(1, member_id)
    assert member.membership.generation_for_fetch() == Generation(1, member_id)
    assert member.membership.group_metadata() == ("g", 1, member_id, "i1", MemberState.STABLE)


@pytest.mark.parametrize("read", [ConsumerMembership.group_metadata, ConsumerMembership.generation])
def test_group_metadata_belong_to_one_epoch(make, read):
    membership = make().join("a").membership
    member_id = membership.generation().member_id

    def prepare():
        membership._epoch, membership.state = 1, State.STABLE
        return membership.group_metadata, lambda: membership._fenced("in a test")

    found = {metadata[1:3] for metadata in at_each_step(read, prepare)}
    assert found == {(1, member_id), (-1, "")}


def test_member_that_reconciles_never_counts_as_unjoined(make):
    membership = make().join("a").membership

    def prepare():
        membership.state = State.STABLE
        return membership.group_metadata, lambda: membership._become(State.RECONCILING)

    found = {metadata.state for metadata in at_each_step(ConsumerMembership.group_metadata, prepare)}
    assert found == {MemberState.STABLE, MemberState.REBALANCING}


def test_enforcing_a_rebalance_only_warns(make, caplog):
    member = make().join("a")
    member.membership.request_rejoin("I want to")
    count = len(member.consumers.news)
    settle(member)
    assert len(member.consumers.news) == count
    assert "the broker decides" in caplog.text
