"""The ConsumerCoordinator part of a membership: subscription, assignment and listener in a rebalance."""

import asyncio

import pytest
from model.fetch_log import FetchLog
from model.group_coordinator import subscribed

from kafkacore.consumer.group.generation import MemberState
from kafkacore.consumer.listener import AsyncConsumerRebalanceListener
from kafkacore.consumer.timer import Timer
from kafkacore.coordinator.assignors import RebalanceProtocol
from kafkacore.coordinator.protocol import Assignment
from kafkacore.errors import (
    IllegalStateError,
    InconsistentGroupProtocolError,
    KafkaConfigurationError,
    MalformedMessageError,
)
from kafkacore.protocol.generated.heartbeat import HeartbeatRequest
from kafkacore.protocol.generated.join_group import JoinGroupRequest
from kafkacore.protocol.generated.sync_group import SyncGroupRequest
from kafkacore.structs import ConsumerGroupMetadata, TopicPartition

A0, A1, A2 = (TopicPartition("a", each) for each in range(3))
B0 = TopicPartition("b", 0)
UNKNOWN_MEMBER = 25


def add_partition(member, partition):
    member.cluster.logs[partition] = FetchLog()
    member.cluster.leaders[partition] = 0
    member.metadata.request_update()


def rejoin(member):
    member.membership.request_rejoin("to see")
    assert member.poll()


# ---- Leader and follower -----------------------------------------------------------------------------------
@pytest.mark.kafka("ConsumerCoordinatorTest.testNormalJoinGroupLeader")
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "the leader assigns partitions, other members accept theirs; an assignment of unsubscribed topics "
    "makes a member rejoin",
)
def test_the_leader_assigns_for_all_members_by_what_they_subscribe_to(make_member):
    member = make_member({"a": 2, "b": 1})
    member.group.others = {"zoe": subscribed("a", "b")}
    member.join("a")
    handed_in = {each: set(made.partitions) for each, made in member.group.handed_in.items()}
    assert handed_in == {"member-1": {A0}, "zoe": {A1, B0}}
    assert member.assigned == {A0}


@pytest.mark.kafka(
    "SubscriptionStateTest.testGroupSubscribe",
    "ConsumerCoordinatorTest.testPatternJoinGroupLeader",
)
def test_the_leader_waits_for_metadata_of_topics_that_others_subscribe_to(make_member):
    member = make_member({"a": 2, "b": 1})
    member.group.others = {"zoe": subscribed("b")}
    member.subscribe("a")
    member.poll(0)
    member.turn(100)
    member.cluster.held_metadata = True
    assert not member.poll(1000)
    assert member.state is MemberState.COMPLETING_REBALANCE
    assert member.sent(SyncGroupRequest) == []
    member.cluster.held_metadata = False
    assert member.poll()
    assert set(member.group.handed_in["zoe"].partitions) == {B0}


def test_a_topic_that_does_not_exist_keeps_nobody_from_the_others(make_member):
    member = make_member()
    member.join("a", "nowhere")
    assert member.assigned == {A0, A1}


@pytest.mark.kafka("ConsumerCoordinatorTest.testSubscriptionRackId")
def test_members_tell_what_they_own_and_of_which_generation(make_member):
    member = make_member(client_rack="r1").join("a")
    subscription = member.group.subscription(member.sent(JoinGroupRequest)[-1])
    assert (list(subscription.topics), list(subscription.owned_partitions), subscription.generation_id) == (
        ["a"],
        [],
        -1,
    )
    assert subscription.rack_id == "r1"


def test_cooperative_members_keep_what_they_own_while_they_join(cooperative, assignor):
    cooperative.join("a")
    seen = []
    cooperative.group._join, join = (
        lambda *each: (seen.append(set(cooperative.assigned)), join(*each))[1],
        cooperative.group._join,
    )
    rejoin(cooperative)
    subscription = cooperative.group.subscription(cooperative.sent(JoinGroupRequest)[-1])
    assert set(subscription.owned_partitions) == {A0, A1, A2}
    assert (subscription.generation_id, subscription.user_data) == (1, b"about a")
    assert seen == [{A0, A1, A2}]
    assert cooperative.listener.take() == [("assigned", set())]


def test_all_configured_assignors_are_offered_best_first(make_member, assignor):
    member = make_member(partition_assignment_strategy=[assignor, "range"]).join("a")
    assert [each.name for each in member.sent(JoinGroupRequest)[0].protocols] == ["scripted", "range"]
    assert assignor.subscriptions.keys() == {"member-1"}


def test_an_assignor_that_we_did_not_offer_is_refused(make_member):
    member = make_member().subscribe("a")
    join = member.group._join

    def other_name(request, code):
        answer = join(request, code)
        answer.protocol_name = "theirs"
        return answer

    member.group._join = other_name
    with pytest.raises(InconsistentGroupProtocolError, match="theirs"):
        member.poll()


def test_assignors_without_a_common_protocol_are_refused(make_member, assignor):
    class OnlyCooperative(type(assignor)):
        def supported_protocols(self):
            return [RebalanceProtocol.COOPERATIVE]

    with pytest.raises(KafkaConfigurationError, match="share no"):
        make_member(partition_assignment_strategy=[OnlyCooperative, "range"])


def test_what_an_assignor_of_the_user_raises_is_raised_by_poll(cooperative, assignor):
    cooperative.subscribe("a")
    assignor.assign = None
    with pytest.raises(TypeError):
        cooperative.poll()


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testOnLeaderElectedShouldSkipAssignment",
    "ConsumerCoordinatorTest.testStaticLeaderRejoinsGroupAndCanTriggersRebalance",
)
def test_a_leader_that_comes_back_does_not_assign_when_told_so_but_watches_the_topics(make_member):
    member = make_member(group_instance_id="i")
    member.group.skip_assignment = True
    member.group.assignment = Assignment((A1,))
    member.join("a")
    assert member.sent(SyncGroupRequest)[0].assignments == []
    assert member.assigned == {A1}
    add_partition(member, A2)
    member.client.poll(Timer(member.clock, 100))
    assert member.poll()
    assert len(member.sent(JoinGroupRequest)) == 2


UNREADABLE = [b"", b"\x00", b"\x00\x01\xff\xff\xff\xff", b"\xff\xff\x00\x00", b"\x00\x00\x7f\xff\xff\xff"]


@pytest.mark.parametrize("blob", UNREADABLE)
def test_member_with_an_unreadable_subscription_gets_nothing(make_member, caplog, blob):
    member = make_member()
    member.group.others = {"zoe": blob}
    member.join("a")
    assert member.assigned == {A0, A1}
    assert set(member.group.handed_in["zoe"].partitions) == set()
    (said,) = [each.getMessage() for each in caplog.records if "cannot be read" in each.getMessage()]
    assert "'zoe' gets no partitions" in said


# ---- Assignments that do not match the subscription --------------------------------------------------------
@pytest.mark.kafka(
    "SubscriptionStateTest.cantAssignPartitionForUnsubscribedTopics",
    "SubscriptionStateTest.cantAssignPartitionForUnmatchedPattern",
    "ConsumerCoordinatorTest.testOutdatedCoordinatorAssignment",
)
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "the leader assigns partitions, other members accept theirs; an assignment of unsubscribed topics "
    "makes a member rejoin",
)
def test_an_assignment_of_unsubscribed_topics_forces_a_rejoin(make_member):
    member = make_member({"a": 2, "b": 1}).subscribe("a")
    member.group.follow(A0, B0)
    member.group.errors[SyncGroupRequest].append(0)
    sync = member.group._sync

    def better_next_time(request, code):
        answer = sync(request, code)
        member.group.follow(A0)
        return answer

    member.group._sync = better_next_time
    assert member.poll()
    assert member.assigned == {A0}
    assert "does not match" in member.sent(JoinGroupRequest)[-1].reason
    assert member.listener.take()[-1] == ("assigned", {A0})


def test_a_leader_that_never_learns_is_not_asked_without_a_pause(make_member):
    member = make_member({"a": 2, "b": 1}).subscribe("a")
    member.group.follow(B0)
    assert not member.poll(10_000)
    assert 8 <= len(member.sent(SyncGroupRequest)) <= 20


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testPatternJoinGroupLeader",
    "ConsumerCoordinatorTest.testPatternJoinGroupFollower",
)
def test_with_a_pattern_an_assignment_of_a_topic_that_we_do_not_know_yet_is_taken(make_member):
    member = make_member({"a": 1, "other": 1})
    member.group.follow(A0, TopicPartition("abc", 0))
    member.join(pattern="a.*")
    assert member.assigned == {A0, TopicPartition("abc", 0)}
    assert member.subscriptions.subscription == {"a", "abc"}
    assert member.poll()
    assert len(member.sent(JoinGroupRequest)) == 2


def test_a_topic_that_was_added_while_joining_may_be_assigned_at_once_and_is_joined_with(make_member):
    member = make_member({"a": 1, "b": 1})
    member.group.follow(A0, B0)
    member.subscribe("a")
    member.cluster.held.add(SyncGroupRequest)
    assert not member.poll(100)
    member.subscribe("a", "b")
    member.cluster.held.clear()
    assert member.poll()
    assert member.assigned == {A0, B0}
    assert member.subscriptions.subscription == {"a", "b"}
    assert set(member.group.subscription(member.sent(JoinGroupRequest)[-1]).topics) == {"a", "b"}


@pytest.mark.kafka("ConsumerCoordinatorTest.testPerformAssignmentShouldValidateCooperativeAssignment")
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "eager revokes all partitions, cooperative only the difference; an unsafe assignment is rejected",
)
def test_an_unsafe_cooperative_assignment_is_refused(cooperative, assignor):
    cooperative.group.others = {"zoe": subscribed("a", owned_partitions=[A2], generation_id=1)}
    assignor.gives = {"member-1": Assignment((A0, A2)), "zoe": Assignment((A1,))}
    cooperative.subscribe("a")
    with pytest.raises(IllegalStateError, match="a-2"):
        cooperative.poll()
    assignor.gives = {"member-1": Assignment((A0,)), "zoe": Assignment((A1, A2))}
    assert cooperative.poll()


# ---- Eager and cooperative ---------------------------------------------------------------------------------
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "eager revokes all partitions, cooperative only the difference; an unsafe assignment is rejected",
)
def test_eager_revokes_all_before_it_joins(make_member):
    member = make_member().join("a")
    calls_at_join = []
    member.group._join, join = (
        lambda *each: (calls_at_join.append(member.listener.calls[:]), join(*each))[1],
        member.group._join,
    )
    rejoin(member)
    assert calls_at_join == [[("revoked", {A0, A1})]]
    assert member.listener.take() == [("revoked", {A0, A1}), ("assigned", {A0, A1})]


@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "eager revokes all partitions, cooperative only the difference; an unsafe assignment is rejected",
)
def test_cooperative_revokes_only_the_difference_after_syncing_and_joins_again(cooperative, assignor):
    cooperative.join("a")
    assignor.gives = {"member-1": Assignment((A0, A1))}
    rejoin(cooperative)
    assert cooperative.listener.take() == [
        ("revoked", {A2}), ("assigned", set()), ("assigned", set()),
    ]  # fmt: skip
    assert cooperative.assigned == {A0, A1}
    joins = cooperative.sent(JoinGroupRequest)
    assert len(joins) == 4
    assert "revoke" in joins[-1].reason
    assert set(cooperative.group.subscription(joins[-1]).owned_partitions) == {A0, A1}


@pytest.mark.kafka("ConsumerCoordinatorTest.testRejoinGroup")
def test_cooperative_is_told_only_of_what_is_new(cooperative, assignor):
    assignor.gives = {"member-1": Assignment((A0,))}
    cooperative.join("a")
    assignor.gives = {"member-1": Assignment((A0, A1))}
    rejoin(cooperative)
    assert cooperative.listener.take() == [("assigned", {A1})]


def test_cooperative_revokes_what_is_not_subscribed_any_more_before_joining(cooperative):
    cooperative.join("a", "b")
    cooperative.subscribe("a")
    assert cooperative.poll()
    assert cooperative.listener.take() == [("revoked", {B0}), ("assigned", set())]


def test_partitions_that_stay_keep_their_positions(cooperative, assignor):
    cooperative.join("a")
    cooperative.subscriptions.pause(A0)
    assignor.gives = {"member-1": Assignment((A0, A1))}
    rejoin(cooperative)
    assert cooperative.subscriptions.paused_partitions() == {A0}


# ---- Subscription and metadata changes ---------------------------------------------------------------------
@pytest.mark.kafka("ConsumerCoordinatorTest.testMetadataChangeTriggersRebalance")
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "new partitions and topics make a member rejoin; a pattern follows topics that are created and deleted",
)
def test_the_leader_joins_again_when_a_topic_gets_partitions(make_member):
    member = make_member().join("a")
    add_partition(member, A2)
    member.client.poll(Timer(member.clock, 100))
    assert member.poll()
    assert member.assigned == {A0, A1, A2}
    assert "a" in member.sent(JoinGroupRequest)[-1].reason


@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "new partitions and topics make a member rejoin; a pattern follows topics that are created and deleted",
)
def test_the_leader_joins_again_when_a_topic_of_another_member_changes(make_member):
    member = make_member({"a": 1, "b": 1})
    member.group.others = {"zoe": subscribed("b")}
    member.join("a")
    add_partition(member, TopicPartition("b", 1))
    member.client.poll(Timer(member.clock, 100))
    assert member.poll()
    assert len(member.group.handed_in["zoe"].partitions) == 2


def test_a_follower_leaves_partition_changes_to_the_leader(make_member):
    member = make_member()
    member.group.follow(A0)
    member.join("a")
    add_partition(member, A2)
    member.client.poll(Timer(member.clock, 100))
    assert member.poll()
    assert len(member.sent(JoinGroupRequest)) == 2


@pytest.mark.kafka("ConsumerCoordinatorTest.testNonRackAwareConsumerRebalanceWithDifferentRacks")
def test_racks_of_replicas_count_only_for_who_has_a_rack(make_member):
    for rack, joins in [(None, 2), ("r1", 3)]:
        member = make_member({"a": 1}, node_count=2, client_rack=rack)
        nodes = member.cluster.nodes
        member.cluster.nodes = [node._replace(rack=f"r{node.node_id}") for node in nodes]
        member.cluster.replicas[A0] = [0]
        member.join("a")
        member.cluster.replicas[A0] = [1]
        member.metadata.request_update()
        member.client.poll(Timer(member.clock, 100))
        assert member.poll()
        assert len(member.sent(JoinGroupRequest)) == joins


@pytest.mark.kafka("KafkaConsumerTest.testRegexSubscription")
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "new partitions and topics make a member rejoin; a pattern follows topics that are created and deleted",
)
def test_a_pattern_follows_new_and_deleted_topics(make_member):
    member = make_member({"a": 1, "other": 1}).join(pattern="a.*")
    assert member.assigned == {A0}
    member.group.leads = True
    new = TopicPartition("ab", 0)
    add_partition(member, new)
    member.client.poll(Timer(member.clock, 100))
    assert member.poll()
    assert member.assigned == {A0, new}
    del member.cluster.logs[A0]
    member.metadata.request_update()
    member.client.poll(Timer(member.clock, 100))
    assert member.poll()
    assert member.assigned == {new}


@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "new partitions and topics make a member rejoin; a pattern follows topics that are created and deleted",
)
def test_a_follower_with_a_pattern_joins_again_for_a_new_topic(make_member):
    member = make_member({"a": 1})
    member.group.follow(A0)
    member.join(pattern="a.*")
    add_partition(member, TopicPartition("ab", 0))
    member.client.poll(Timer(member.clock, 100))
    assert member.poll()
    assert "subscription" in member.sent(JoinGroupRequest)[-1].reason


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testExcludeInternalTopicsConfigOption",
    "ConsumerCoordinatorTest.testIncludeInternalTopicsConfigOption",
)
@pytest.mark.parametrize(("excluded", "topics"), [(True, {"_a"}), (False, {"_a", "__internal"})])
def test_a_pattern_matches_internal_topics_only_if_asked(make_member, excluded, topics):
    member = make_member({"_a": 1, "__internal": 1}, exclude_internal_topics=excluded)
    member.join(pattern="_.*")
    assert {tp.topic for tp in member.assigned} == topics


def test_a_pattern_is_matched_before_the_first_join(make_member):
    member = make_member({"a": 1})
    member.cluster.held_metadata = True
    member.subscribe(pattern="a")
    assert not member.poll(2000)
    assert member.sent(JoinGroupRequest) == []
    member.cluster.held_metadata = False
    assert member.poll()
    for each in member.sent(JoinGroupRequest):
        assert list(member.group.subscription(each).topics) == ["a"]


def test_a_pattern_joins_though_there_is_always_a_reason_to_ask_for_metadata(make_member):
    member = make_member({"a": 1})
    member.metadata.is_update_due = lambda: True
    assert member.join(pattern="a").assigned == {A0}


def test_a_leader_that_follows_now_does_not_ask_for_the_others_topics_any_more(make_member):
    member = make_member({"a": 1, "b": 1})
    member.group.others = {"zoe": subscribed("b")}
    member.join("a")
    assert member.metadata.wanted_topics == {"a", "b"}
    member.group.follow(A0)
    rejoin(member)
    assert member.metadata.wanted_topics == {"a"}


@pytest.mark.kafka("ConsumerCoordinatorTest.testRejoinGroup")
def test_another_subscription_joins_again(make_member):
    member = make_member({"a": 1, "b": 1}).join("a")
    member.subscribe("b")
    assert member.poll()
    assert member.assigned == {B0}
    assert member.listener.take() == [("revoked", {A0}), ("assigned", {B0})]


@pytest.mark.kafka("ConsumerCoordinatorTest.testOutdatedCoordinatorAssignment")
def test_a_subscription_that_changes_while_joining_is_joined_with(make_member):
    member = make_member({"a": 1, "b": 1}).subscribe("a")
    member.cluster.held.add(SyncGroupRequest)
    assert not member.poll(100)
    member.subscribe("b")
    member.cluster.held.clear()
    assert member.poll()
    assert member.assigned == {B0}


# ---- Lost partitions ---------------------------------------------------------------------------------------
@pytest.mark.behaviour(
    "ConsumerCoordinator", "the partitions of a lost generation are reported as lost, not as revoked"
)
def test_partitions_of_a_lost_generation_are_lost_not_revoked(cooperative):
    cooperative.join("a")
    cooperative.group.errors[HeartbeatRequest].append(UNKNOWN_MEMBER)
    cooperative.background(4000)
    assert cooperative.assigned == {A0, A1, A2}
    assert cooperative.poll()
    assert cooperative.listener.take() == [("lost", {A0, A1, A2}), ("assigned", {A0, A1, A2})]


@pytest.mark.behaviour(
    "ConsumerCoordinator", "the partitions of a lost generation are reported as lost, not as revoked"
)
def test_a_generation_that_goes_in_the_middle_of_the_callback_is_seen_by_the_next_poll(make_member):
    member = make_member().subscribe("a")

    def thrown_out(what):
        if what == "assigned":
            member.group.errors[HeartbeatRequest].append(UNKNOWN_MEMBER)
            member.listener.meanwhile = None
            member.background(4000)

    member.listener.meanwhile = thrown_out
    member.poll(100)
    assert member.poll()
    assert [what for what, _ in member.listener.take()] == ["assigned", "lost", "assigned"]


@pytest.mark.behaviour(
    "ConsumerCoordinator", "the partitions of a lost generation are reported as lost, not as revoked"
)
def test_a_generation_that_goes_in_the_middle_of_a_revocation_loses_what_was_kept(cooperative):
    cooperative.join("a", "b")

    def thrown_out(what):
        cooperative.listener.meanwhile = None
        cooperative.group.errors[HeartbeatRequest].append(UNKNOWN_MEMBER)
        cooperative.background(4000)

    cooperative.listener.meanwhile = thrown_out
    cooperative.subscribe("a")
    assert cooperative.poll()
    assert cooperative.listener.take() == [
        ("revoked", {B0}), ("lost", {A0, A1, A2}), ("assigned", {A0, A1, A2}),
    ]  # fmt: skip


@pytest.mark.behaviour("AbstractCoordinator", "a wakeup at any stage, even in callbacks, loses no response")
@pytest.mark.parametrize("what", ["revoked", "assigned"])
def test_an_interrupted_callback_is_called_again(make_member, what):
    member = make_member().join("a")
    member.membership.request_rejoin("to see")
    member.listener.raises[what] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        member.poll()
    assert member.poll()
    names = [name for name, _ in member.listener.take()]
    assert sorted(names) == sorted(["revoked", "assigned", what])
    assert member.assigned == {A0, A1}


@pytest.mark.parametrize("blob", [b"\x00", b"\x00\x01\x00\x00\x00\x01", b"\xff\xff\x00\x00"])
def test_an_assignment_that_cannot_be_read_is_raised_once_and_joined_anew(make_member, blob):
    member = make_member().subscribe("a")
    sync = member.group._sync

    def broken_once(request, code):
        answer = sync(request, code)
        answer.assignment = memoryview(blob)
        member.group._sync = sync
        return answer

    member.group._sync = broken_once
    with pytest.raises(MalformedMessageError):
        member.poll()
    assert member.poll()
    assert member.assigned == {A0, A1}


@pytest.mark.kafka("ConsumerCoordinatorTest.testPrepareJoinAndRejoinAfterFailedRebalance")
def test_a_generation_that_goes_before_its_assignment_is_taken_over_is_joined_anew(make_member):
    member = make_member().subscribe("a")
    while member.state is not MemberState.STABLE:
        member.turn(10)
        if member.state is MemberState.COMPLETING_REBALANCE:
            member.client.poll(Timer(member.clock, 10))
    member.group.errors[HeartbeatRequest].append(UNKNOWN_MEMBER)
    member.background(4000)
    assert member.poll()
    assert member.listener.take() == [("assigned", {A0, A1})]
    assert member.membership.generation().member_id == "member-2"


# ---- Callbacks ---------------------------------------------------------------------------------------------
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "if callbacks raise, all are still called, the first error is raised, and the consumer stays usable",
)
def test_a_listener_that_fails_has_its_error_raised_and_the_group_is_joined_nevertheless(make_member):
    member = make_member().join("a")
    member.listener.raises["revoked"] = ValueError("first")
    member.membership.request_rejoin("to see")
    with pytest.raises(ValueError, match="first"):
        member.poll()
    assert member.assigned == set()
    assert member.poll()
    assert member.listener.take() == [("revoked", {A0, A1}), ("assigned", {A0, A1})]


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testRevokeExceptionThrownFirstNonBlockingSubCallbacks",
    "ConsumerCoordinatorTest.testOnRevokeExceptionShouldBeRenderedIfNotKafkaException",
)
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "if callbacks raise, all are still called, the first error is raised, and the consumer stays usable",
)
def test_the_first_error_is_raised_all_callbacks_run_and_the_assignment_is_taken(cooperative, assignor):
    cooperative.join("a")
    assignor.gives = {"member-1": Assignment((A0, B0))}
    cooperative.subscribe("a", "b")
    assignor.error = ValueError("second")
    cooperative.listener.raises.update(revoked=ValueError("first"), assigned=ValueError("third"))
    with pytest.raises(ValueError, match="first"):
        cooperative.poll()
    assert cooperative.listener.take() == [("revoked", {A1, A2}), ("assigned", {B0})]
    assert cooperative.assigned == {A0, B0}
    assert assignor.assignments[-1][0] == {A0, B0}


@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "if callbacks raise, all are still called, the first error is raised, and the consumer stays usable",
)
def test_after_a_revocation_that_failed_the_group_is_still_joined_again(cooperative, assignor):
    cooperative.join("a")
    assignor.gives = {"member-1": Assignment((A0,))}
    cooperative.listener.raises["revoked"] = ValueError("mine")
    cooperative.membership.request_rejoin("to see")
    with pytest.raises(ValueError, match="mine"):
        cooperative.poll()
    assert cooperative.poll()
    assert len(cooperative.sent(JoinGroupRequest)) == 4


def test_assignors_are_told_what_they_gave_and_in_which_generation(cooperative, assignor):
    cooperative.join("a")
    ((partitions, metadata),) = assignor.assignments
    assert partitions == {A0, A1, A2}
    assert metadata[:4] == ConsumerGroupMetadata("g", 1, "member-1")[:4]


def test_the_fetcher_hears_of_every_change_of_the_assignment(make_member):
    member = make_member().join("a")
    assert member.assignment_changes == 1
    rejoin(member)
    assert member.assignment_changes == 3


def test_an_asynchronous_listener_is_awaited(make_member):
    calls = []

    class Listener(AsyncConsumerRebalanceListener):
        async def on_partitions_revoked(self, revoked):
            await asyncio.sleep(0)
            calls.append(("revoked", set(revoked)))

        async def on_partitions_assigned(self, assigned):
            await asyncio.sleep(0)
            calls.append(("assigned", set(assigned)))

    member = make_member()
    member.listener = Listener()
    member.subscribe("a")
    assert member.poll()
    member.group.errors[HeartbeatRequest].append(UNKNOWN_MEMBER)
    member.background(4000)
    assert member.poll()
    assert calls == [("assigned", {A0, A1}), ("revoked", {A0, A1}), ("assigned", {A0, A1})]
