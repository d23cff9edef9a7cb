"""KafkaConsumer as a member of a group on a model cluster: the effect of rebalances on the application."""

import pytest
from model.consumer_cluster import read
from model.fetch_log import FetchLog, simple_batch
from model.group_coordinator import RecordingListener

from kafkacore.coordinator.protocol import Assignment
from kafkacore.errors import IllegalStateError, WakeupError
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.heartbeat import HeartbeatRequest
from kafkacore.protocol.generated.join_group import JoinGroupRequest
from kafkacore.protocol.generated.leave_group import LeaveGroupRequest
from kafkacore.protocol.generated.offset_fetch import OffsetFetchRequest
from kafkacore.structs import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
UNKNOWN_MEMBER = 25


@pytest.fixture
def make(make_consumer):
    """Return a function ``make(**configs)`` that creates a consumer of group "g" with a listener.

    The partitions a-0, a-1 and b-0 have ten records each.
    """

    def make(*topics, **configs):
        logs = {tp: FetchLog(simple_batch(0, 10)) for tp in (A0, A1, B0)}
        consumer = make_consumer(logs, **{"group_id": "g", "max_poll_records": 4} | configs)
        consumer.listener = RecordingListener()
        consumer.subscribe(topics or ["a"], listener=consumer.listener)
        return consumer

    return make


def background(consumer, duration_ms):
    """Run the heartbeat thread's turns while the application is busy."""
    clock, membership = consumer._engine.clock, consumer._engine.membership
    end_ms = clock.monotonic_ms() + duration_ms
    while clock.monotonic_ms() < end_ms:
        wait_ms = membership.background_turn(clock.monotonic_ms())
        clock.advance(max(min(wait_ms, end_ms - clock.monotonic_ms()), 1.0))


def rebalance(consumer):
    """Start a rebalance and wait until the member has learned of it from a heartbeat."""
    consumer.model.coordinator.rebalance()
    background(consumer, 3500)


def read_on(consumer, polls=20, timeout_ms=0):
    """Return the offsets that several polls return, by partition."""
    found = {}
    for _ in range(polls):
        for tp, offsets in read(consumer, timeout_ms).items():
            found.setdefault(tp, []).extend(offsets)
    return found


def test_polls_without_time_join_and_read_everything(make, clock):
    consumer = make()
    before_ms = clock.monotonic_ms()
    assert read_on(consumer, 40) == {A0: list(range(10)), A1: list(range(10))}
    assert clock.monotonic_ms() == before_ms
    assert consumer.listener.take() == [("assigned", {A0, A1})]


def test_nothing_is_connected_before_the_first_poll(make):
    consumer = make()
    assert consumer.model.requests == []
    assert consumer.assignment() == set()


def test_records_of_partitions_that_went_are_not_handed_out(make):
    consumer = make()
    assert read(consumer) == {A0: [0, 1, 2, 3]}
    consumer.model.coordinator.follow(A1)
    rebalance(consumer)
    rest = read_on(consumer)
    assert A0 not in rest
    assert rest == {A1: list(range(10))}


def test_reading_goes_on_where_it_was_after_a_rebalance_that_changed_nothing(make):
    consumer = make()
    first = read(consumer)
    rebalance(consumer)
    rest = read_on(consumer)
    assert sorted(first[A0] + rest[A0]) == list(range(10))
    assert [what for what, _ in consumer.listener.take()] == ["assigned", "revoked", "assigned"]


def test_a_cooperative_member_reads_on_while_it_joins_and_does_not_ask_where_it_was(make, assignor):
    consumer = make(partition_assignment_strategy=[assignor])
    assert read(consumer) == {A0: [0, 1, 2, 3]}
    asked = len(consumer.model.requests_of(OffsetFetchRequest))
    consumer.model.held.add(JoinGroupRequest)
    rebalance(consumer)
    rest = read_on(consumer)
    assert len(consumer.model.requests_of(JoinGroupRequest)) == 3
    assert rest == {A0: list(range(4, 10)), A1: list(range(10))}
    consumer.model.held.clear()
    assert read_on(consumer) == {}
    assert consumer.listener.take() == [("assigned", {A0, A1}), ("assigned", set())]
    assert len(consumer.model.requests_of(OffsetFetchRequest)) == asked


def test_a_listener_may_seek_pause_and_look_around(make):
    consumer = make()

    def look(what):
        if what == "assigned":
            consumer.seek(A0, 7)
            consumer.pause(A1)
            assert consumer.assignment() == {A0, A1}
            assert consumer.position(A0) == 7

    consumer.listener.meanwhile = look
    assert read_on(consumer) == {A0: [7, 8, 9]}


def test_a_poll_inside_a_listener_does_not_rebalance_again(make):
    consumer = make()
    consumer.listener.meanwhile = lambda what: consumer.poll(0)
    read_on(consumer)
    rebalance(consumer)
    read_on(consumer)
    assert [what for what, _ in consumer.listener.take()] == ["assigned", "revoked", "assigned"]
    assert consumer._engine.membership.generation().generation_id == 2


def test_a_listener_that_unsubscribes_leaves_the_group(make):
    consumer = make()

    def leave(what):
        consumer.listener.meanwhile = None
        if what == "assigned":
            consumer.unsubscribe()

    consumer.listener.meanwhile = leave
    read_on(consumer)
    assert consumer.assignment() == set()
    assert len(consumer.model.requests_of(LeaveGroupRequest)) == 1
    assert consumer.subscription() is None


def test_an_error_of_a_listener_comes_out_of_poll_once_and_loses_nothing(make):
    consumer = make()
    consumer.listener.raises["assigned"] = ValueError("mine")
    with pytest.raises(ValueError, match="mine"):
        read_on(consumer)
    assert read_on(consumer) == {A0: list(range(10)), A1: list(range(10))}


def test_another_subscription_in_the_same_group_is_joined_with(make):
    consumer = make("a")
    read_on(consumer)
    consumer.subscribe(["b"], listener=consumer.listener)
    # The pending long-poll fetch of the previous topic must complete first.
    assert read_on(consumer, timeout_ms=100) == {B0: list(range(10))}
    consumer.unsubscribe()
    assert consumer.poll(0) == {}
    consumer.subscribe(["a", "b"], listener=consumer.listener)
    read_on(consumer)
    assert consumer.assignment() == {A0, A1, B0}
    assert len(consumer.model.requests_of(LeaveGroupRequest)) == 1


def test_a_pattern_is_followed(make):
    consumer = make("a")
    consumer.unsubscribe()
    consumer.subscribe(pattern="[ab]")
    read_on(consumer)
    assert consumer.assignment() == {A0, A1, B0}
    assert consumer.subscription() == {"a", "b"}


def test_partitions_of_a_member_thrown_out_are_lost_and_read_again_from_the_commit(make):
    consumer = make(enable_auto_commit=False)
    assert read(consumer) == {A0: [0, 1, 2, 3]}
    consumer.commit()
    consumer.poll(0)
    consumer.model.coordinator.errors[HeartbeatRequest].append(UNKNOWN_MEMBER)
    background(consumer, 3500)
    assert read_on(consumer)[A0] == list(range(4, 10))
    assert consumer.listener.take()[1] == ("lost", {A0, A1})


def test_a_member_that_stays_away_too_long_is_out_and_comes_back(make):
    consumer = make(max_poll_interval_ms=10_000)
    read(consumer)
    background(consumer, 12_000)
    assert len(consumer.model.requests_of(LeaveGroupRequest)) == 1
    read_on(consumer)
    assert [what for what, _ in consumer.listener.take()] == ["assigned", "lost", "assigned"]


def test_a_wakeup_while_joining_is_raised_and_the_join_goes_on(make):
    consumer = make()
    consumer.model.held.add(JoinGroupRequest)
    consumer.poll(100)
    consumer.wakeup()
    with pytest.raises(WakeupError):
        consumer.poll(100)
    consumer.model.held.clear()
    assert read_on(consumer) == {A0: list(range(10)), A1: list(range(10))}
    assert consumer._engine.membership.generation().generation_id == 1


def test_iteration_and_columns_join_too(make):
    consumer = make(consumer_timeout_ms=100)
    assert len(list(consumer)) == 20
    other = make()
    rows = {}
    for _ in range(20):
        for tp, columns in other.poll_arrow(0).items():
            rows[tp] = rows.get(tp, 0) + len(columns)
    assert rows == {A0: 10, A1: 10}


def test_a_long_poll_ends_with_its_time_though_the_group_never_forms(make, clock):
    consumer = make()
    consumer.model.held.add(FindCoordinatorRequest)
    before_ms = clock.monotonic_ms()
    assert consumer.poll(3000) == {}
    assert 3000 <= clock.monotonic_ms() - before_ms < 3200


def test_assigning_by_hand_needs_the_subscription_given_up(make):
    consumer = make()
    read(consumer)
    with pytest.raises(IllegalStateError):
        consumer.assign([A0])
    consumer.unsubscribe()
    consumer.assign([A0])
    assert consumer.assignment() == {A0}
    joins = len(consumer.model.requests_of(JoinGroupRequest))
    read_on(consumer)
    assert len(consumer.model.requests_of(JoinGroupRequest)) == joins


def test_a_follower_reads_only_what_it_is_given(make):
    consumer = make()
    consumer.model.coordinator.leads = False
    consumer.model.coordinator.assignment = Assignment((A1,))
    assert read_on(consumer) == {A1: list(range(10))}
