"""Calls that a rebalance listener makes to its own consumer during a rebalance."""

import pytest
from eventually import BUDGET_S
from model.blocking_clock import BlockingClock
from model.consumer_cluster import read
from model.fetch_log import FetchLog, simple_batch

from kafkacore.consumer.group.generation import MemberState
from kafkacore.consumer.group.heartbeat_thread import HeartbeatThread
from kafkacore.consumer.listener import ConsumerRebalanceListener
from kafkacore.errors import IllegalStateError
from kafkacore.protocol.generated.heartbeat import HeartbeatRequest
from kafkacore.protocol.generated.join_group import JoinGroupRequest
from kafkacore.protocol.generated.leave_group import LeaveGroupRequest
from kafkacore.protocol.generated.offset_commit import OffsetCommitRequest
from kafkacore.structs import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
REBALANCE, UNKNOWN_MEMBER, ILLEGAL_GENERATION = 27, 25, 22
COOPERATIVE = {"partition_assignment_strategy": ["cooperative-sticky"]}


class Acting(ConsumerRebalanceListener):
    """A listener that runs the test's action in each callback."""

    def __init__(self):
        self.calls = []
        self.acts = {}

    def on_partitions_revoked(self, revoked):
        self._call("revoked", revoked)

    def on_partitions_assigned(self, assigned):
        self._call("assigned", assigned)

    def on_partitions_lost(self, lost):
        self._call("lost", lost)

    def _call(self, what, partitions):
        self.calls.append((what, set(partitions)))
        assert len(self.calls) < 20, "the listener is called in an endless loop"
        act = self.acts.get(what)
        if act is not None:
            act()


@pytest.fixture
def make(make_consumer):
    """Return a function ``make(**configs)`` that creates a member of group "g" and its listener.

    The member subscribes to topic "a" by default.
    """

    def make(*topics, **configs):
        logs = {tp: FetchLog(simple_batch(0, 5)) for tp in (A0, A1, B0)}
        consumer = make_consumer(logs, **{"group_id": "g", "enable_auto_commit": False} | configs)
        listener = Acting()
        consumer.subscribe(topics or ["a"], listener=listener)
        return consumer, listener

    return make


def state(consumer):
    return consumer._engine.membership.state


def answer_heartbeat(consumer, code):
    """Answer the next heartbeat with ``code``, and poll until the member has handled it."""
    consumer.model.coordinator.errors[HeartbeatRequest].append(code)
    for _ in range(40):
        consumer.poll(200)


def joins(consumer):
    return len(consumer.model.requests_of(JoinGroupRequest))


@pytest.mark.parametrize("configs", [{}, COOPERATIVE], ids=["eager", "cooperative"])
@pytest.mark.parametrize(
    ("what", "code"),
    [("revoked", REBALANCE), ("assigned", REBALANCE), ("lost", UNKNOWN_MEMBER), ("lost", ILLEGAL_GENERATION)],
)
def test_a_listener_may_unsubscribe_and_is_told_once_of_each_partition(make, configs, what, code):
    consumer, listener = make(**configs)
    read(consumer)
    listener.calls.clear()
    listener.acts[what] = consumer.unsubscribe
    if what == "revoked" and configs:
        # A cooperative member revokes only unsubscribed partitions before it joins.
        consumer.subscribe(["b"], listener=listener)
    before = joins(consumer)
    answer_heartbeat(consumer, code)
    gone = [tp for each, partitions in listener.calls if each in ("revoked", "lost") for tp in partitions]
    assert len(gone) == len(set(gone)) or what == "assigned"
    assert state(consumer) is MemberState.UNJOINED
    assert consumer.assignment() == set()
    assert consumer.subscription() is None
    assert joins(consumer) == before + (1 if what == "assigned" else 0)
    assert len(consumer.model.requests_of(LeaveGroupRequest)) == (0 if what == "lost" else 1)


@pytest.mark.parametrize("configs", [{}, COOPERATIVE], ids=["eager", "cooperative"])
@pytest.mark.parametrize(
    ("what", "code"),
    [("revoked", REBALANCE), ("assigned", REBALANCE), ("lost", UNKNOWN_MEMBER)],
)
def test_a_listener_may_close_its_consumer_and_the_poll_says_so(make, configs, what, code):
    consumer, listener = make(**configs)
    read(consumer)
    listener.calls.clear()
    listener.acts[what] = consumer.close
    if configs and what != "lost":
        consumer.subscribe(["a", "b"] if what == "assigned" else ["b"], listener=listener)
    with pytest.raises(IllegalStateError, match="closed"):
        answer_heartbeat(consumer, code)
    assert consumer.network.closed
    gone = [tp for each, partitions in listener.calls if each in ("revoked", "lost") for tp in partitions]
    assert len(gone) == len(set(gone)) or what == "assigned"
    assert len(consumer.model.requests_of(LeaveGroupRequest)) == (0 if what == "lost" else 1)
    sent = len(consumer.model.requests)
    consumer.close()
    assert len(consumer.model.requests) == sent


def test_what_is_subscribed_again_before_it_was_revoked_is_read_on(make):
    consumer, listener = make("a", "b", enable_auto_commit=True, **COOPERATIVE)
    assert read(consumer, 500)
    read(consumer, 500)
    consumer.model.held.add(OffsetCommitRequest)
    consumer.subscribe(["a"], listener=listener)
    consumer.poll(0)
    assert not consumer._engine.subscriptions.is_fetchable(B0), "the commit of its offset is pending"
    consumer.subscribe(["a", "b"], listener=listener)
    consumer.model.held.clear()
    consumer.model.logs[B0].append(simple_batch(5, 3))
    assert read(consumer, 2000) == {B0: [5, 6, 7]}


def test_columns_up_to_ends_wait_for_the_assignment(make):
    consumer, _ = make()
    assert consumer.poll_arrow(3000, end_offsets={A0: 5, A1: 5})


def test_another_subscription_out_of_a_revocation_takes_over_nothing_of_the_old_one(make):
    consumer, listener = make(**COOPERATIVE)
    read(consumer)

    def resubscribe():
        listener.acts.clear()
        consumer.unsubscribe()
        consumer.subscribe(["b"], listener=listener)

    listener.acts["revoked"] = resubscribe
    group = consumer.model.coordinator
    group.follow(A0)
    listener.calls.clear()
    group.errors[HeartbeatRequest].append(REBALANCE)
    while listener.acts:
        consumer.poll(200)
    assert consumer.assignment() == set()
    group.leads = True
    for _ in range(10):
        consumer.poll(200)
    assert consumer.assignment() == {B0}
    assert [("assigned", {B0})] == [each for each in listener.calls if each[0] == "assigned"]


def test_a_listener_that_is_told_while_records_are_held_may_close_the_consumer(make):
    consumer, listener = make()
    read(consumer)
    engine = consumer._engine
    thread = HeartbeatThread(consumer._guard, engine.membership, engine.heartbeats, BlockingClock(), "g")
    consumer._heartbeat_thread = thread
    listener.acts["revoked"] = consumer.close
    with consumer.hold():
        consumer.enforce_rebalance()
        thread.wake()
        # The heartbeat thread itself calls close(), so it exits without being joined by close().
        thread._thread.join(BUDGET_S)
    assert not thread.is_alive
    assert consumer.network.closed
    assert listener.calls[-1][0] == "revoked"
