"""A member that leaves, closes, and commits before partitions are revoked; and its metrics."""

import pytest

from kafkacore.consumer._request_future import RequestFuture
from kafkacore.consumer.group.membership import GroupCommits
from kafkacore.consumer.subscription_state import FetchPosition
from kafkacore.consumer.timer import Timer
from kafkacore.errors import RetriableCommitFailedError
from kafkacore.protocol.generated.heartbeat import HeartbeatRequest
from kafkacore.protocol.generated.join_group import JoinGroupRequest
from kafkacore.protocol.generated.leave_group import LeaveGroupRequest
from kafkacore.structs import TopicPartition

A0, A1, A2 = (TopicPartition("a", each) for each in range(3))
B0 = TopicPartition("b", 0)
UNKNOWN_MEMBER, LOADING = 25, 14


def is_leave(request):
    return isinstance(request, LeaveGroupRequest)


def rejoin(member):
    member.membership.request_rejoin("to see")
    assert member.poll()


# ---- Leaving and closing -----------------------------------------------------------------------------------
@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testUnsubscribeWithValidGeneration",
    "KafkaConsumerTest.testUnsubscribeShouldTriggerPartitionsRevokedWithValidGeneration",
)
def test_unsubscribing_gives_all_back_leaves_and_another_subscription_joins_again(make_member):
    member = make_member().join("a")
    member.membership.leave("the consumer unsubscribed from all topics")
    member.subscriptions.unsubscribe()
    member.membership.subscription_changed()
    assert member.listener.take() == [("revoked", {A0, A1})]
    assert len(member.sent(LeaveGroupRequest)) == 1
    member.turn(10)
    assert len(member.sent(JoinGroupRequest)) == 2
    member.subscribe("a")
    assert member.poll()
    assert member.assigned == {A0, A1}


@pytest.mark.kafka("ConsumerCoordinatorTest.testUnsubscribeWithValidGeneration")
def test_leaving_in_the_middle_of_a_rebalance_loses_what_is_still_held(cooperative):
    cooperative.join("a")
    cooperative.membership.request_rejoin("to see")
    cooperative.cluster.held.add(JoinGroupRequest)
    cooperative.turn(10)
    cooperative.turn(10)
    cooperative.membership.close(Timer(cooperative.clock, 1000))
    assert cooperative.listener.take() == [("lost", {A0, A1, A2})]
    # LeaveGroup does not use the coordinator's connection, where a JoinGroup waits for the other members.
    assert [node_id for node_id, request in cooperative.cluster.requests if is_leave(request)] == [0]


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testCloseNoResponseForLeaveGroup",
    "KafkaConsumerTest.testLeaveGroupTimeout",
)
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "close commits, then leaves; it is bounded if no coordinator answers; with a timeout of 0 it never waits",
)
@pytest.mark.parametrize("state", ["unknown", "unavailable", "silent"])
def test_close_is_bounded_whatever_the_coordinator_does(make_member, state):
    member = make_member()
    if state == "unknown":
        member.subscribe("a")
    else:
        member.join("a")
        if state == "silent":
            member.cluster.held.add(LeaveGroupRequest)
        else:
            member.cluster.down.add(member.group.connection_id)
    before_ms = member.clock.monotonic_ms()
    member.membership.close(Timer(member.clock, 1500))
    assert member.clock.monotonic_ms() - before_ms <= 1500
    assert member.assigned == set()


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testLeaveGroupOnClose",
    "ConsumerCoordinatorTest.testCloseNoWait",
)
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "close commits, then leaves; it is bounded if no coordinator answers; with a timeout of 0 it never waits",
)
def test_close_without_time_sends_and_does_not_wait(make_member):
    member = make_member().join("a")
    member.cluster.held.add(LeaveGroupRequest)
    before_ms = member.clock.monotonic_ms()
    member.membership.close(Timer(member.clock, 0))
    assert member.clock.monotonic_ms() == before_ms
    assert len(member.sent(LeaveGroupRequest)) == 1


@pytest.mark.kafka(
    "KafkaConsumerTest.testUnsubscribeShouldTriggerPartitionsRevokedWithValidGeneration",
    "KafkaConsumerTest.testRebalanceException",
)
def test_close_finishes_though_the_listener_fails(make_member):
    member = make_member().join("a")
    member.listener.raises["revoked"] = ValueError("mine")
    with pytest.raises(ValueError, match="mine"):
        member.membership.close(Timer(member.clock, 1000))
    assert len(member.sent(LeaveGroupRequest)) == 1
    assert member.assigned == set()


# ---- Commits before leaving --------------------------------------------------------------------------------
class Commits(GroupCommits):
    """Group commits that the test completes."""

    def __init__(self):
        self.asked = []
        self.future = RequestFuture()
        self.restarted = 0

    def invoke_completed_callbacks(self):
        self.asked.append("callbacks")

    def maybe_auto_commit_async(self, now_ms):
        self.asked.append("auto")

    def auto_commit_now(self):
        self.asked.append("now")
        return self.future

    def time_to_next_auto_commit_ms(self, now_ms):
        return 5000.0

    def restart_auto_commit_interval(self, now_ms):
        self.restarted += 1


@pytest.fixture
def commits():
    return Commits()


def positioned(member):
    """Give every assigned partition a fetch position."""
    for tp in member.assigned:
        member.subscriptions.seek(tp, FetchPosition(0))
    return member


@pytest.mark.kafka(
    "FetcherTest.testInflightFetchOnPendingPartitions",
    "FetcherTest.testFetchingPendingPartitions",
    "OffsetFetcherTest.testFetchingPendingPartitionsBeforeAndAfterSubscriptionReset",
    "SubscriptionStateTest.testMarkingPartitionPending",
    "ConsumerCoordinatorTest.testJoinPrepareAndCommitCompleted",
)
def test_what_was_consumed_is_committed_before_it_is_revoked_and_nothing_handed_out_meanwhile(
    make_member, commits
):
    member = positioned(make_member(commits=commits).join("a"))
    assert member.subscriptions.fetchable_partitions() == [A0, A1]
    member.membership.request_rejoin("to see")
    assert not member.poll(1000)
    assert commits.asked.count("now") == 1
    assert member.subscriptions.fetchable_partitions() == []
    assert member.assigned == {A0, A1}
    assert not member.membership.is_rebalancing()
    assert len(member.sent(JoinGroupRequest)) == 2
    assert member.listener.take() == []
    commits.future.complete(None)
    assert member.poll()
    assert commits.asked.count("now") == 1
    assert member.listener.take() == [("revoked", {A0, A1}), ("assigned", {A0, A1})]
    assert len(positioned(member).subscriptions.fetchable_partitions()) == 2


@pytest.mark.kafka("KafkaConsumerTest.testReturnRecordsDuringRebalance")
def test_cooperative_hands_out_what_it_keeps_while_it_commits(cooperative, commits):
    cooperative.membership.commits = commits
    positioned(cooperative.join("a", "b"))
    cooperative.subscribe("a")
    assert not cooperative.poll(100)
    assert set(cooperative.subscriptions.fetchable_partitions()) == {A0, A1, A2}
    commits.future.complete(None)
    assert cooperative.poll()
    assert cooperative.listener.take() == [("revoked", {B0}), ("assigned", set())]


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testOnJoinPrepareWithOffsetCommitShouldKeepJoinAfterNonRetryableException",
    "ConsumerCoordinatorTest.testOnJoinPrepareWithOffsetCommitShouldKeepJoinAfterRebalanceTimeout",
)
def test_a_commit_that_fails_or_never_ends_does_not_stop_the_rebalance(make_member, commits):
    member = make_member(commits=commits, max_poll_interval_ms=20_000).join("a")
    member.membership.request_rejoin("to see")
    assert not member.poll(19_000)
    assert member.poll(5000)
    commits.future = RequestFuture.failure(ValueError("refused"))
    member.membership.request_rejoin("to see")
    assert member.poll()


@pytest.mark.kafka("ConsumerCoordinatorTest.testOnJoinPrepareWithOffsetCommitShouldSuccessAfterRetry")
def test_a_commit_that_may_go_better_is_tried_again_before_anything_is_given_up(make_member, commits):
    member = make_member(commits=commits).join("a")
    answers = [RequestFuture.failure(RetriableCommitFailedError("moved")) for _ in range(3)]
    answers.append(RequestFuture.success(None))
    commits.auto_commit_now = lambda: answers.pop(0)
    member.membership.request_rejoin("to see")
    before_ms = member.clock.monotonic_ms()
    assert member.poll(250) is False
    assert member.assigned == {A0, A1}
    assert member.poll()
    assert answers == []
    assert member.clock.monotonic_ms() - before_ms >= 300
    assert member.listener.take() == [("revoked", {A0, A1}), ("assigned", {A0, A1})]


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testOnJoinPrepareWithOffsetCommitShouldKeepJoinAfterRebalanceTimeout",
)
def test_a_commit_that_keeps_failing_is_given_up_at_its_time(make_member, commits, caplog):
    member = make_member(commits=commits, max_poll_interval_ms=2000).join("a")
    commits.future = RequestFuture.failure(RetriableCommitFailedError("moved"))
    member.membership.request_rejoin("to see")
    assert member.poll(5000)
    assert "commit before the rebalance failed: moved" in caplog.text


@pytest.mark.kafka("ConsumerCoordinatorTest.testAutoCommitDynamicAssignmentRebalance")
def test_a_member_without_generation_has_nothing_to_commit(make_member, commits):
    member = make_member(commits=commits).join("a")
    member.group.errors[HeartbeatRequest].append(UNKNOWN_MEMBER)
    member.background(4000)
    assert member.poll()
    assert "now" not in commits.asked


def test_commits_are_looked_after_by_every_poll_also_without_a_subscription(make_member, commits):
    member = make_member(commits=commits)
    member.subscriptions.assign_from_user([A0])
    assert member.poll(0)
    assert commits.asked == ["callbacks", "auto"]
    assert member.membership.time_to_next_poll_ms(member.clock.monotonic_ms()) == 5000
    assert member.sent(JoinGroupRequest) == []


def test_auto_commit_begins_anew_with_every_assignment(make_member, commits):
    member = make_member(commits=commits).join("a")
    assert commits.restarted == 1
    commits.future.complete(None)
    rejoin(member)
    assert commits.restarted == 2


# ---- Metrics -----------------------------------------------------------------------------------------------
@pytest.mark.kafka("AbstractCoordinatorTest.testMetrics")
def test_rebalances_are_counted_with_their_callbacks_and_failures(make_member):
    member = make_member().join("a")
    member.listener.meanwhile = lambda what: member.clock.advance(50)
    member.group.errors[JoinGroupRequest].append(LOADING)
    rejoin(member)
    member.background(3500)
    counted = member.registry.snapshot()["consumer-coordinator-metrics"]
    assert counted["rebalance-total"] == 2
    assert counted["failed-rebalance-total"] == 2
    assert counted["join-total"] == counted["sync-total"] == 2
    assert counted["heartbeat-total"] == 1
    assert counted["partition-revoked-latency-max"] == 50
    assert counted["assigned-partitions"] == 2
