"""``consumer.hold()`` on a model cluster: which partitions stay assigned while the application is busy."""

import random

import pytest
from model.consumer_cluster import read
from model.fetch_log import FetchLog, simple_batch

from kafkacore.consumer.listener import ConsumerRebalanceListener
from kafkacore.coordinator.protocol import Assignment
from kafkacore.errors import FencedInstanceIdError, IllegalStateError, WakeupError
from kafkacore.protocol.generated.heartbeat import HeartbeatRequest
from kafkacore.protocol.generated.join_group import JoinGroupRequest
from kafkacore.protocol.generated.leave_group import LeaveGroupRequest
from kafkacore.protocol.generated.offset_commit import OffsetCommitRequest
from kafkacore.structs import OffsetAndMetadata, TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
REBALANCE, UNKNOWN_MEMBER, FENCED = 27, 25, 82
POLL_INTERVAL_MS = 10_000


class RecordingListener(ConsumerRebalanceListener):
    """A listener that records its calls; the next one raises ``error``."""

    def __init__(self):
        self.calls = []
        self.error = None

    def on_partitions_revoked(self, revoked):
        self._call("revoked", revoked)

    def on_partitions_assigned(self, assigned):
        self._call("assigned", assigned)

    def on_partitions_lost(self, lost):
        self._call("lost", lost)

    def _call(self, what, partitions):
        self.calls.append((what, set(partitions)))
        if self.error is not None:
            error, self.error = self.error, None
            raise error


@pytest.fixture
def make(make_consumer):
    """Return a function ``make(**configs)`` that creates a member of group "g" subscribed to topic "a".

    The partition a-0 has ten records, a-1 five.
    """

    def make(*topics, **configs):
        logs = {A0: FetchLog(simple_batch(0, 10)), A1: FetchLog(simple_batch(0, 5))}
        defaults = {"group_id": "g", "max_poll_interval_ms": POLL_INTERVAL_MS, "enable_auto_commit": False}
        return make_consumer(logs, *(topics or ["a"]), **defaults | configs)

    return make


def pass_time(consumer, duration_ms):
    """Run the heartbeat thread's turns while the application is busy."""
    clock, membership = consumer._engine.clock, consumer._engine.membership
    end_ms = clock.monotonic_ms() + duration_ms
    while (now_ms := clock.monotonic_ms()) < end_ms:
        turn = membership.held_turn if membership.is_held else membership.background_turn
        with consumer._guard.deputy() as entered:
            assert entered
            wait_ms = turn(now_ms)
        clock.advance(max(min(wait_ms, 100.0, end_ms - now_ms), 1.0))


def sent(consumer, kind):
    return consumer.model.requests_of(kind)


def rebalance(consumer, *partitions, times=1):
    """Let another member lead the group, and rebalance it ``times`` times in a row."""
    group = consumer.model.coordinator
    group.follow(*partitions)
    group.errors[HeartbeatRequest].extend([REBALANCE])
    group.generation_id += times - 1


# ---- Keeping the membership --------------------------------------------------------------------------------
def test_a_handler_longer_than_the_poll_interval_costs_no_membership(make):
    consumer = make()
    read(consumer, max_records=3)
    with consumer.hold() as held:
        pass_time(consumer, 4 * POLL_INTERVAL_MS)
        assert held.check(A0)
    assert sent(consumer, LeaveGroupRequest) == []
    assert len(sent(consumer, JoinGroupRequest)) == 2
    assert len(sent(consumer, HeartbeatRequest)) >= 4 * POLL_INTERVAL_MS / 3000 - 1
    assert read(consumer, max_records=2) == {A0: [3, 4]}


def test_the_same_handler_without_a_hold_is_out_of_the_group(make):
    consumer = make()
    read(consumer, max_records=3)
    pass_time(consumer, 4 * POLL_INTERVAL_MS)
    assert len(sent(consumer, LeaveGroupRequest)) == 1


def test_the_poll_interval_begins_anew_when_the_block_ends(make):
    consumer = make()
    read(consumer)
    with consumer.hold():
        pass_time(consumer, POLL_INTERVAL_MS)
    pass_time(consumer, POLL_INTERVAL_MS - 100)
    assert sent(consumer, LeaveGroupRequest) == []
    pass_time(consumer, 200)
    assert len(sent(consumer, LeaveGroupRequest)) == 1


def test_what_was_assigned_is_paused_and_resumed_but_for_what_the_program_had_paused(make):
    consumer = make()
    read(consumer)
    consumer.pause(A1)
    with consumer.hold():
        assert consumer.paused() == {A0, A1}
    assert consumer.paused() == {A1}


def test_a_block_that_raises_resumes_too(make):
    consumer = make()
    read(consumer)
    with pytest.raises(ZeroDivisionError), consumer.hold():
        raise ZeroDivisionError
    assert consumer.paused() == set()
    assert not consumer._engine.membership.is_held


def test_only_the_outermost_block_resumes(make):
    consumer = make()
    read(consumer)
    with consumer.hold() as outer:
        with consumer.hold() as inner:
            pass_time(consumer, POLL_INTERVAL_MS)
            rebalance(consumer, A0)
            pass_time(consumer, POLL_INTERVAL_MS)
        assert inner.revoked == outer.revoked == {A1}
        assert consumer.paused() == {A0}
        pass_time(consumer, 2 * POLL_INTERVAL_MS)
    assert consumer.paused() == set()
    assert sent(consumer, LeaveGroupRequest) == []


def test_poll_in_a_block_gives_nothing_and_follows_the_group(make):
    consumer = make()
    read(consumer, max_records=2)
    with consumer.hold() as held:
        assert consumer.poll(1000) == {}
        rebalance(consumer, A1)
        for _ in range(8):
            assert consumer.poll(1000) == {}
        assert consumer.assignment() == {A1}
        assert held.revoked == {A0}
        pass_time(consumer, 2 * POLL_INTERVAL_MS)
    assert read(consumer) == {A1: [0, 1, 2, 3, 4]}


def test_a_hold_in_a_loop_takes_no_record_away_and_gives_none_twice(make):
    consumer = make(consumer_timeout_ms=1000)
    seen = []
    for record in consumer:
        with consumer.hold():
            pass_time(consumer, 1000)
        seen.append((record.partition, record.offset))
    assert sorted(seen) == [(0, each) for each in range(10)] + [(1, each) for each in range(5)]


def test_a_member_without_a_group_is_paused_and_resumed(make):
    consumer = make(group_id=None)
    assert read(consumer, max_records=3) == {A0: [0, 1, 2]}
    with consumer.hold() as held:
        assert consumer.poll(100) == {}
        assert held.check(A0)
        assert not held.check(TopicPartition("a", 7))
    assert read(consumer, max_records=2) == {A0: [3, 4]}


def test_chosen_partitions_are_held_too_and_their_offsets_can_be_committed(make_consumer):
    logs = {A0: FetchLog(simple_batch(0, 10))}
    consumer = make_consumer(logs, group_id="g", enable_auto_commit=False)
    consumer.assign([A0])
    read(consumer, max_records=3)
    with consumer.hold():
        assert consumer.poll(100) == {}
        consumer.commit()
    assert consumer.model.coordinator.offsets.committed[A0].offset == 3
    assert read(consumer, max_records=1) == {A0: [3]}


def test_a_closed_consumer_is_not_held_and_one_that_is_closed_meanwhile_ends_in_peace(make):
    consumer = make()
    read(consumer)
    with consumer.hold():
        consumer.close()
    with pytest.raises(IllegalStateError, match="closed"):
        consumer.hold()


# ---- Rebalances during a hold ------------------------------------------------------------------------------
def test_a_rebalance_in_the_middle_is_joined_and_what_stays_goes_on_where_it_was(make):
    consumer = make()
    assert read(consumer, max_records=3) == {A0: [0, 1, 2]}
    with consumer.hold() as held:
        rebalance(consumer, A0)
        pass_time(consumer, 2 * POLL_INTERVAL_MS)
        assert consumer.assignment() == {A0}
        assert (held.revoked, held.lost) == ({A1}, frozenset())
        assert (held.check(A0), held.check(A1)) == (True, False)
        consumer.commit()
        assert consumer.model.coordinator.offsets.committed[A0].offset == 3
    # The hold committed only up to offset 3, and reading resumes there without duplicates.
    assert read(consumer) == {A0: [3, 4, 5, 6, 7, 8, 9]}


def test_what_the_loop_had_not_come_to_goes_on_too(make):
    consumer = make(consumer_timeout_ms=1000)
    seen = []
    for record in consumer:
        seen.append(record.offset)
        if len(seen) == 3:
            with consumer.hold() as held:
                rebalance(consumer, A0)
                pass_time(consumer, POLL_INTERVAL_MS)
                assert held.revoked == {A1}
                consumer.commit()
                assert consumer.model.coordinator.offsets.committed[A0].offset == 3
    assert seen == list(range(10))


def test_a_partition_that_another_may_have_had_begins_at_what_is_committed(make):
    consumer = make()
    read(consumer, max_records=3)
    consumer.commit({A0: OffsetAndMetadata(1)})
    with consumer.hold() as held:
        rebalance(consumer, A0, times=2)
        pass_time(consumer, 2 * POLL_INTERVAL_MS)
        assert consumer.assignment() == {A0}
        assert held.revoked == {A0, A1}
    assert read(consumer, max_records=2) == {A0: [1, 2]}


def test_a_listener_that_was_told_has_its_partitions_begin_at_what_is_committed(make):
    consumer = make()
    listener = RecordingListener()
    consumer.subscribe(["a"], listener=listener)
    read(consumer, max_records=3)
    listener.calls.clear()
    with consumer.hold() as held:
        rebalance(consumer, A0)
        pass_time(consumer, POLL_INTERVAL_MS)
        assert listener.calls == [("revoked", {A0, A1}), ("assigned", {A0})]
        assert held.revoked == {A0, A1}
    assert read(consumer, max_records=2) == {A0: [0, 1]}


def test_a_member_that_was_thrown_out_has_lost_all_and_joins_again(make):
    consumer = make()
    listener = RecordingListener()
    consumer.subscribe(["a"], listener=listener)
    read(consumer, max_records=3)
    listener.calls.clear()
    with consumer.hold() as held:
        consumer.model.coordinator.errors[HeartbeatRequest].append(UNKNOWN_MEMBER)
        pass_time(consumer, POLL_INTERVAL_MS)
        assert (held.revoked, held.lost) == (frozenset(), {A0, A1})
        assert listener.calls == [("lost", {A0, A1}), ("assigned", {A0, A1})]
        assert not held.check(A0)
    assert read(consumer, max_records=2) == {A0: [0, 1]}


def test_partitions_that_come_are_not_read_before_the_end(make):
    consumer = make()
    consumer.model.coordinator.follow(A0)
    read(consumer, max_records=3)
    with consumer.hold() as held:
        rebalance(consumer, A0, A1)
        pass_time(consumer, POLL_INTERVAL_MS)
        assert consumer.paused() == {A0, A1}
        assert not held.check(A1)
        assert consumer.poll(1000) == {}
    assert sorted(read(consumer)) == [A0, A1]


def test_what_the_program_had_paused_stays_so_through_a_rebalance(make):
    consumer = make()
    read(consumer)
    consumer.pause(A0)
    with consumer.hold():
        rebalance(consumer, A0, A1)
        pass_time(consumer, POLL_INTERVAL_MS)
    assert consumer.paused() == {A0}


def test_a_cooperative_member_keeps_what_is_not_taken(make):
    consumer = make(partition_assignment_strategy=["cooperative-sticky"])
    read(consumer, max_records=3)
    with consumer.hold() as held:
        rebalance(consumer, A0)
        pass_time(consumer, POLL_INTERVAL_MS)
        assert held.revoked == {A1}
    assert read(consumer, max_records=2) == {A0: [3, 4]}


def test_giving_the_subscription_up_in_a_block_is_no_trouble(make):
    consumer = make()
    read(consumer)
    with consumer.hold() as held:
        consumer.unsubscribe()
        assert held.revoked == {A0, A1}
        pass_time(consumer, POLL_INTERVAL_MS)
    assert consumer.paused() == set()


# ---- Commits -----------------------------------------------------------------------------------------------
def test_nothing_is_committed_by_itself_not_even_for_a_rebalance(make):
    consumer = make(enable_auto_commit=True, auto_commit_interval_ms=1000)
    read(consumer, max_records=3)
    before = len(sent(consumer, OffsetCommitRequest))
    with consumer.hold():
        pass_time(consumer, 5000)
        assert consumer.poll(1000) == {}
        rebalance(consumer, A0)
        pass_time(consumer, POLL_INTERVAL_MS)
        assert consumer.assignment() == {A0}
        assert len(sent(consumer, OffsetCommitRequest)) == before
    consumer._engine.clock.advance(1000)
    consumer.poll(1000)
    assert len(sent(consumer, OffsetCommitRequest)) > before


def test_a_commit_in_a_block_is_of_the_generation_that_there_is(make):
    consumer = make()
    read(consumer, max_records=3)
    with consumer.hold():
        rebalance(consumer, A0)
        pass_time(consumer, POLL_INTERVAL_MS)
        consumer.commit({A0: OffsetAndMetadata(2)})
    (commit,) = sent(consumer, OffsetCommitRequest)
    assert commit.generation_id_or_member_epoch == 2
    assert consumer.model.coordinator.offsets.committed[A0].offset == 2


# ---- Errors during a hold ----------------------------------------------------------------------------------
def test_what_a_listener_raises_comes_out_of_the_next_poll_and_the_member_is_in_the_group(make):
    consumer = make()
    listener = RecordingListener()
    consumer.subscribe(["a"], listener=listener)
    read(consumer)
    with consumer.hold():
        listener.error = ZeroDivisionError("of the listener's")
        rebalance(consumer, A0)
        pass_time(consumer, POLL_INTERVAL_MS)
        assert consumer.assignment() == {A0}
    with pytest.raises(ZeroDivisionError):
        consumer.poll(1000)
    assert read(consumer) == {A0: list(range(10))}


def test_a_fenced_member_hears_of_it_from_the_next_poll(make):
    consumer = make(group_instance_id="one")
    read(consumer)
    with consumer.hold():
        consumer.model.coordinator.errors[HeartbeatRequest].append(FENCED)
        pass_time(consumer, POLL_INTERVAL_MS)
        # The fenced member does not rejoin either.
        assert len(sent(consumer, JoinGroupRequest)) == 1
        with pytest.raises(FencedInstanceIdError):
            consumer.poll(1000)


def test_a_wakeup_waits_for_the_programs_next_call_though_a_listener_uses_the_consumer(make):
    consumer = make()
    listener = RecordingListener()
    listener.on_partitions_revoked = lambda revoked: consumer.commit({A0: OffsetAndMetadata(1)})
    consumer.subscribe(["a"], listener=listener)
    read(consumer)
    with consumer.hold():
        consumer.wakeup()
        rebalance(consumer, A0)
        pass_time(consumer, POLL_INTERVAL_MS)
        assert consumer.assignment() == {A0}
        assert consumer.model.coordinator.offsets.committed[A0].offset == 1
        with pytest.raises(WakeupError):
            consumer.poll(1000)


def test_a_lost_coordinator_is_looked_for_and_the_place_kept(make):
    consumer = make()
    read(consumer)
    group = consumer.model.coordinator
    with consumer.hold() as held:
        with group.lost():
            pass_time(consumer, 3000)
        pass_time(consumer, 3000)
        beats = len(sent(consumer, HeartbeatRequest))
        pass_time(consumer, POLL_INTERVAL_MS)
        assert len(sent(consumer, HeartbeatRequest)) > beats
        assert held.check(A0)
    assert len(sent(consumer, JoinGroupRequest)) == 2


def test_assignment_of_an_empty_group_member_is_nothing_lost(make):
    consumer = make()
    consumer.model.coordinator.leads = False
    consumer.model.coordinator.assignment = Assignment(())
    consumer.poll(1000)
    with consumer.hold() as held:
        pass_time(consumer, POLL_INTERVAL_MS)
        assert (held.revoked, held.lost) == (frozenset(), frozenset())


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
@pytest.mark.parametrize("seed", range(5))
def test_whatever_the_group_does_each_record_is_handled_once_by_who_asks_check(make_consumer, seed, strategy):
    chance = random.Random(f"{seed} {strategy}")
    partitions = [TopicPartition("a", each) for each in range(3)]
    consumer = make_consumer(
        {each: FetchLog(simple_batch(0, 30)) for each in partitions},
        "a",
        group_id="g",
        max_poll_interval_ms=POLL_INTERVAL_MS,
        enable_auto_commit=False,
        partition_assignment_strategy=[strategy],
    )
    handled = {each: [] for each in partitions}
    while not all(len(each) == 30 for each in handled.values()):
        in_hand = consumer.poll(1000, max_records=chance.randrange(1, 8))
        with consumer.hold() as held:
            match chance.randrange(6):
                case 0 | 1:
                    given = chance.sample(partitions, chance.randrange(1, 4))
                    rebalance(consumer, *given, times=chance.choice([1, 1, 2]))
                case 2:
                    consumer.model.coordinator.errors[HeartbeatRequest].append(UNKNOWN_MEMBER)
                case 3:
                    rebalance(consumer, *partitions)
            pass_time(consumer, 3 * POLL_INTERVAL_MS)
            for partition, records in in_hand.items():
                if held.check(partition):
                    handled[partition] += [record.offset for record in records]
                    consumer.commit({partition: OffsetAndMetadata(records[-1].offset + 1)})
    assert handled == {each: list(range(30)) for each in partitions}
