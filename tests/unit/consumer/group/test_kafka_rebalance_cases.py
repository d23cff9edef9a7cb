"""ConsumerCoordinatorTest cases about rebalances that no other test covers (see docs/PORTED_TESTS.md)."""

import threading

import pytest
from model.fetch_log import FetchLog
from model.group_coordinator import subscribed

from kafkacore.consumer.group.generation import MemberState
from kafkacore.consumer.timer import Timer
from kafkacore.coordinator.assignors import RebalanceProtocol
from kafkacore.coordinator.protocol import Assignment
from kafkacore.errors import GroupAuthorizationFailedError, IllegalStateError, TopicAuthorizationFailedError
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.heartbeat import HeartbeatRequest
from kafkacore.protocol.generated.join_group import JoinGroupRequest
from kafkacore.protocol.generated.sync_group import SyncGroupRequest
from kafkacore.structs import TopicPartition

A0, A1, A2 = (TopicPartition("a", each) for each in range(3))
B0, B1 = TopicPartition("b", 0), TopicPartition("b", 1)
NOT_AVAILABLE, NOT_COORDINATOR, ILLEGAL_GENERATION, UNKNOWN_MEMBER, UNAUTHORIZED = 15, 16, 22, 25, 30


def add_partition(member, partition):
    member.cluster.logs[partition] = FetchLog()
    member.cluster.leaders[partition] = 0
    refresh(member)


def refresh(member):
    """Request a metadata update and poll until it has arrived."""
    member.metadata.request_update()
    member.client.poll(Timer(member.clock, 100))


def joins(member):
    return len(member.sent(JoinGroupRequest))


# ---- The coordinator ---------------------------------------------------------------------------------------
@pytest.mark.kafka("ConsumerCoordinatorTest.testCoordinatorNotAvailableWithUserAssignedType")
def test_who_chose_its_partitions_does_not_look_for_a_coordinator_by_itself(make_member):
    member = make_member()
    member.subscriptions.assign_from_user([A0])
    member.poll(1000)
    assert member.sent(FindCoordinatorRequest) == []
    member.group.errors[FindCoordinatorRequest].append(NOT_AVAILABLE)
    member.membership.lookup_coordinator()
    member.client.poll(Timer(member.clock, 100))
    member.poll(1000)
    assert member.membership.coordinator() is None
    assert len(member.sent(FindCoordinatorRequest)) == 1


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testCoordinatorNotAvailable",
    "ConsumerCoordinatorTest.testNotCoordinator",
)
@pytest.mark.parametrize("code", [NOT_AVAILABLE, NOT_COORDINATOR])
def test_a_beat_that_reaches_no_coordinator_has_it_looked_for_and_the_generation_kept(make_member, code):
    member = make_member().join("a")
    member.group.errors[HeartbeatRequest].append(code)
    member.background(7000)
    assert len(member.sent(FindCoordinatorRequest)) == 2
    assert len(member.sent(HeartbeatRequest)) >= 2
    assert member.state is MemberState.STABLE
    assert joins(member) == 2


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testCoordinatorUnknownInUnsentCallbacksAfterCoordinatorDead",
)
def test_who_is_told_of_a_lost_request_finds_the_coordinator_given_up(make_member):
    member = make_member().join("a")
    found = []
    member.cluster.held.add(HeartbeatRequest)
    sent = member.client.send(member.membership.coordinator(), HeartbeatRequest(group_id="g"))
    sent.add_callbacks(found.append, lambda error: found.append(member.membership.coordinator()))
    member.client.poll_no_wakeup()
    member.membership.coordinator_failed("test")
    member.client.poll_no_wakeup()
    assert found == [None]


# ---- The group leader --------------------------------------------------------------------------------------
@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testPerformAssignmentShouldUpdateGroupSubscriptionAfterAssignmentIfNeeded",
)
def test_topics_that_the_assignor_gives_unasked_are_followed_and_cause_no_rebalance(cooperative, assignor):
    cooperative.group.others = {"zoe": subscribed("a")}
    assignor.gives = {"member-1": Assignment((A0,)), "zoe": Assignment((A1, B0))}
    cooperative.join("a")
    assert cooperative.metadata.wanted_topics == {"a", "b"}
    refresh(cooperative)
    assert cooperative.poll()
    assert joins(cooperative) == 2
    add_partition(cooperative, B1)
    assert cooperative.poll()
    assert joins(cooperative) == 3


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testPerformAssignmentShouldValidateCooperativeAssignment",
    "ConsumerCoordinatorTest.testPerformAssignmentShouldSkipValidateCooperativeAssignmentForBuiltInCooperativeStickyAssignor",
)
@pytest.mark.parametrize(
    ("name", "protocols", "is_refused"),
    [
        ("mine", [RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE], True),
        ("mine", [RebalanceProtocol.EAGER], False),
        ("cooperative-sticky", [RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE], False),
    ],
)
def test_only_cooperative_assignors_of_users_are_watched(make_member, assignor, name, protocols, is_refused):
    assignor.name, assignor.supported_protocols = name, lambda: protocols
    member = make_member(partition_assignment_strategy=[assignor])
    member.group.others = {"zoe": subscribed("a", owned_partitions=[A1], generation_id=1)}
    assignor.gives = {"member-1": Assignment((A1,)), "zoe": Assignment((A0,))}
    member.subscribe("a")
    if is_refused:
        with pytest.raises(IllegalStateError, match="'mine'"):
            member.poll()
    else:
        assert member.poll()
        assert member.assigned == {A1}


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testStaticLeaderRejoinsGroupAndCanDetectMetadataChangesForOtherMembers",
)
def test_a_leader_that_comes_back_watches_topics_of_others_too(make_member):
    member = make_member({"a": 1, "b": 1}, group_instance_id="i")
    member.group.skip_assignment = True
    member.group.assignment = Assignment((A0,))
    member.group.others = {"zoe": subscribed("b")}
    member.join("a")
    assert member.metadata.wanted_topics == {"a", "b"}
    add_partition(member, B1)
    assert member.poll()
    assert joins(member) == 2


RACKS = ["r0", "r1", "r2", "r0", "r1", "r2"]


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testRackAwareConsumerRebalanceWithDifferentRacks",
    "ConsumerCoordinatorTest.testRackAwareConsumerRebalanceWithAdditionalRacks",
    "ConsumerCoordinatorTest.testRackAwareConsumerRebalanceWithLessRacks",
    "ConsumerCoordinatorTest.testRackAwareConsumerRebalanceWithNewPartitions",
    "ConsumerCoordinatorTest.testRackAwareConsumerRebalanceWithNoMetadataChange",
    "ConsumerCoordinatorTest.testRackAwareConsumerRebalanceWithNoRackChange",
    "ConsumerCoordinatorTest.testRackAwareConsumerRebalanceWithNewReplicasOnSameRacks",
)
@pytest.mark.parametrize(
    ("after", "is_change"),
    [
        ([[0, 2], [1, 2], [2, 0]], True),
        ([[0, 1, 2], [1, 2], [2, 0]], True),
        ([[0, 1], [1, 2], [2]], True),
        ([[0, 1], [1, 2], [2, 0], [0, 1]], True),
        ([[0, 1], [1, 2], [2, 0]], False),
        ([[3, 4], [4, 5], [5, 3]], False),
        ([[0, 1, 3], [1, 2, 5], [2, 0, 3]], False),
    ],
)
def test_replicas_are_a_change_if_they_are_in_other_racks(make_member, after, is_change):
    member = make_member({"a": 3}, node_count=6, client_rack="r0")
    member.cluster.nodes = [node._replace(rack=RACKS[node.node_id]) for node in member.cluster.nodes]
    for number, replicas in enumerate([[0, 1], [1, 2], [2, 0]]):
        member.cluster.replicas[TopicPartition("a", number)] = replicas
    member.join("a")
    for number, replicas in enumerate(after):
        partition = TopicPartition("a", number)
        member.cluster.replicas[partition] = replicas
        if partition not in member.cluster.logs:
            add_partition(member, partition)
    refresh(member)
    assert member.poll()
    assert joins(member) == 2 + is_change


# ---- Changes during a rebalance ----------------------------------------------------------------------------
@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testRebalanceWithMetadataChange",
    "ConsumerCoordinatorTest.testRackAwareConsumerRebalanceWithDifferentRacks",
)
def test_metadata_that_change_back_leave_a_join_that_failed_to_be_made_again(make_member):
    member = make_member().join("a")
    member.cluster.held.add(JoinGroupRequest)
    add_partition(member, A2)
    assert not member.poll(100)
    del member.cluster.logs[A2]
    refresh(member)
    member.group.errors[JoinGroupRequest].append(NOT_COORDINATOR)
    member.cluster.held.clear()
    assert member.poll()
    assert joins(member) == 4
    assert member.assigned == {A0, A1}
    assert [what for what, _ in member.listener.take()] == ["revoked", "assigned"]


@pytest.mark.kafka("ConsumerCoordinatorTest.testMetadataTopicsDuringSubscriptionChange")
def test_topics_of_before_and_after_are_followed_until_the_group_has_joined_anew(make_member):
    member = make_member({"a": 1, "b": 1}).join("a")
    assert member.metadata.wanted_topics == {"a"}
    member.subscribe("b")
    assert member.metadata.wanted_topics == {"a", "b"}
    assert member.poll()
    assert member.assigned == {B0}
    assert member.metadata.wanted_topics == {"b"}


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testMetadataRefreshDuringRebalance",
    "ConsumerCoordinatorTest.testUpdateMetadataDuringRebalance",
)
@pytest.mark.parametrize(("topics", "pattern", "new"), [(["a"], "[ab]", B0), (["a", "b"], None, B1)])
def test_what_comes_while_the_leader_syncs_is_joined_for_at_once(make_member, topics, pattern, new):
    member = make_member(dict.fromkeys(topics, 1))
    member.subscribe(*([] if pattern else topics), pattern=pattern)
    member.cluster.held.add(SyncGroupRequest)
    assert not member.poll(100)
    before = set(member.cluster.logs)
    add_partition(member, new)
    member.cluster.held.clear()
    assert member.poll()
    assert member.poll()
    assert member.assigned == before | {new}
    assert joins(member) == 3
    del member.cluster.logs[new]
    refresh(member)
    assert member.poll()
    assert member.assigned == before


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testForceMetadataRefreshForPatternSubscriptionDuringRebalance",
    "ConsumerCoordinatorTest.testForceMetadataDeleteForPatternSubscriptionDuringRebalance",
)
@pytest.mark.parametrize("comes", [True, False])
def test_a_pattern_is_matched_anew_whenever_the_group_is_joined(make_member, comes):
    member = make_member({"a": 1, "b": 1})
    member.group.follow(A0)
    member.join(pattern="[a-c]")
    # Complete the metadata update that is still pending.
    refresh(member)
    assert not member.metadata.update_requested
    if comes:
        member.cluster.logs[TopicPartition("c", 0)] = FetchLog()
        member.cluster.leaders[TopicPartition("c", 0)] = 0
    else:
        del member.cluster.logs[B0]
    member.group.rebalance()
    member.background(4000)
    assert member.poll()
    topics = {"a", "b", "c"} if comes else {"a"}
    assert set(member.group.subscription(member.sent(JoinGroupRequest)[-1]).topics) == topics
    refresh(member)
    assert member.poll()
    assert joins(member) == 3


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testRebalanceAfterTopicUnavailableWithSubscribe",
    "ConsumerCoordinatorTest.testRebalanceAfterTopicUnavailableWithPatternSubscribe",
    "ConsumerCoordinatorTest.testRebalanceAfterNotMatchingTopicUnavailableWithPatternSubscribe",
)
@pytest.mark.parametrize("pattern", [None, "a|test.*"])
def test_a_topic_that_is_not_there_yet_is_assigned_once_it_is(make_member, pattern):
    member = make_member({"other": 1})
    member.subscribe(*([] if pattern else ["a"]), pattern=pattern)
    assert member.poll()
    assert member.assigned == set()
    add_partition(member, A0)
    assert member.poll()
    assert member.assigned == {A0}
    assert member.listener.take() == [("assigned", set()), ("revoked", set()), ("assigned", {A0})]


@pytest.mark.kafka("ConsumerCoordinatorTest.testSubscriptionChangeWithAuthorizationFailure")
def test_what_is_forbidden_is_raised_until_another_subscription_does_without_it(make_member):
    member = make_member({"a": 1, "b": 1}).subscribe("a", "b")
    member.metadata.error = TopicAuthorizationFailedError("b")
    with pytest.raises(TopicAuthorizationFailedError):
        member.poll()
    member.group.errors[JoinGroupRequest].append(UNAUTHORIZED)
    with pytest.raises(GroupAuthorizationFailedError):
        member.poll()
    member.subscribe("a")
    assert member.metadata.wanted_topics == {"a"}
    assert member.poll()
    assert member.assigned == {A0}
    assert member.subscriptions.metadata_topics() == {"a"}


# ---- Lost, revoked, assigned -------------------------------------------------------------------------------
@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testUnsubscribeWithInvalidGeneration",
    "KafkaConsumerTest.testUnsubscribeShouldTriggerPartitionsLostWithNoGeneration",
)
def test_who_was_thrown_out_before_it_leaves_has_lost_its_partitions(make_member):
    member = make_member().join("a")
    member.group.errors[HeartbeatRequest].append(UNKNOWN_MEMBER)
    member.background(4000)
    member.membership.leave("the consumer unsubscribed from all topics")
    assert member.listener.take() == [("lost", {A0, A1})]
    assert member.assigned == set()


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.shouldLoseAllOwnedPartitionsBeforeRejoiningAfterDroppingOutOfTheGroup",
    "ConsumerCoordinatorTest.shouldLoseAllOwnedPartitionsBeforeRejoiningAfterResettingGenerationId",
)
@pytest.mark.parametrize("code", [ILLEGAL_GENERATION, UNKNOWN_MEMBER])
def test_what_was_kept_while_joining_is_lost_if_the_sync_is_refused(cooperative, code):
    cooperative.join("a")
    cooperative.membership.request_rejoin("to see")
    cooperative.group.errors[SyncGroupRequest].append(code)
    assert cooperative.poll()
    assert cooperative.listener.take() == [("lost", {A0, A1, A2}), ("assigned", {A0, A1, A2})]


@pytest.mark.kafka("ConsumerCoordinatorTest.shouldUpdateConsumerGroupMetadataBeforeCallbacks")
def test_a_listener_finds_the_generation_that_it_is_told_of(cooperative, assignor):
    cooperative.join("a")
    assignor.gives = {"member-1": Assignment((A0,))}
    found = []
    cooperative.listener.meanwhile = lambda what: found.append(
        (what, cooperative.membership.group_metadata().generation_id)
    )
    cooperative.membership.request_rejoin("to see")
    assert cooperative.poll()
    assert found[:2] == [("revoked", 2), ("assigned", 2)]


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testOnAssignmentExceptionThrownFirstNonBlockingSubCallbacks",
    "ConsumerCoordinatorTest.testOnPartitionsAssignExceptionThrownWhenNoPreviousThrownCallbacks",
    "ConsumerCoordinatorTest.testOnAssignmentExceptionShouldBeRenderedIfNotKafkaException",
    "ConsumerCoordinatorTest.testOnPartitionsAssignExceptionShouldBeRenderedIfNotKafkaException",
    "KafkaConsumerTest.testRebalanceException",
)
@pytest.mark.parametrize("error_type", [IllegalStateError, ValueError])
@pytest.mark.parametrize("of_assignor", [True, False])
def test_errors_of_assignor_and_listener_are_raised_as_they_are(
    cooperative, assignor, of_assignor, error_type
):
    if of_assignor:
        assignor.error = error_type("first")
    cooperative.listener.raises["assigned"] = error_type("second" if of_assignor else "first")
    cooperative.subscribe("a")
    with pytest.raises(error_type, match="first"):
        cooperative.poll()
    assert cooperative.listener.take() == [("assigned", {A0, A1, A2})]
    assert len(assignor.assignments) == 1
    assert cooperative.assigned == {A0, A1, A2}


# ---- Other cases -------------------------------------------------------------------------------------------
@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testCloseCoordinatorNotKnownNoCommits",
    "ConsumerCoordinatorTest.testCloseCoordinatorUnavailableNoCommits",
)
def test_who_has_nothing_to_commit_and_no_coordinator_closes_at_once(make_member):
    member = make_member().join("a")
    member.cluster.held.add(FindCoordinatorRequest)
    member.membership.coordinator_failed("test")
    before_ms = member.clock.monotonic_ms()
    member.membership.close(Timer(member.clock, 1000))
    assert member.clock.monotonic_ms() == before_ms
    assert member.assigned == set()


@pytest.mark.kafka("ConsumerCoordinatorTest.testThreadSafeAssignedPartitionsMetric")
def test_assigned_partitions_are_counted_while_they_change(make_member):
    member = make_member()
    counts, ended = [], threading.Event()

    def look():
        while not ended.is_set():
            figures = member.registry.snapshot()["consumer-coordinator-metrics"]
            counts.append(figures["assigned-partitions"])

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for count in range(1, 301):
            member.subscriptions.assign_from_user([TopicPartition("a", each) for each in range(count)])
    finally:
        ended.set()
        looking.join()
    assert counts == sorted(counts)
    assert member.registry.snapshot()["consumer-coordinator-metrics"]["assigned-partitions"] == 300
