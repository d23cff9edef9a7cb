"""KafkaConsumer in a group of KIP-848 on a model cluster: what the application sees."""

import pytest
from model.consumer_cluster import read
from model.fetch_log import FetchLog, simple_batch
from model.group_coordinator import RecordingListener

from kafkacore.consumer import SubscriptionPattern
from kafkacore.errors import (
    CommitFailedError,
    GroupAuthorizationFailedError,
    IllegalStateError,
    KafkaConfigurationError,
    KafkaTimeoutError,
    WakeupError,
)
from kafkacore.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkacore.protocol.generated.offset_commit import OffsetCommitRequest
from kafkacore.protocol.generated.offset_fetch import OffsetFetchRequest
from kafkacore.structs import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
UNKNOWN_MEMBER, FENCED_EPOCH, STALE_EPOCH, GROUP_AUTHORIZATION_FAILED = 25, 110, 113, 30
INTERVAL_MS = 5000


@pytest.fixture
def make(make_consumer):
    """Return a function ``make(**configs)`` that creates a consumer of group "g" with a listener.

    The partitions a-0, a-1 and b-0 have ten records each.
    """

    def make(*topics, **configs):
        logs = {tp: FetchLog(simple_batch(0, 10)) for tp in (A0, A1, B0)}
        settings = {"group_id": "g", "group_protocol": "consumer", "max_poll_records": 4}
        consumer = make_consumer(logs, **settings | configs)
        consumer.listener = RecordingListener()
        consumer.subscribe(topics or ["a"], listener=consumer.listener)
        consumer.group = consumer.model.coordinator.consumers
        return consumer

    return make


def background(consumer, duration_ms):
    """Run the heartbeat thread's turns while the application is busy."""
    clock, membership = consumer._engine.clock, consumer._engine.membership
    end_ms = clock.monotonic_ms() + duration_ms
    while clock.monotonic_ms() < end_ms:
        wait_ms = membership.background_turn(clock.monotonic_ms())
        clock.advance(max(min(wait_ms, end_ms - clock.monotonic_ms()), 1.0))


def read_on(consumer, polls=20, timeout_ms=0):
    """Return the offsets that several polls return, by partition."""
    found = {}
    for _ in range(polls):
        for tp, offsets in read(consumer, timeout_ms).items():
            found.setdefault(tp, []).extend(offsets)
    return found


def assign(consumer, *partitions):
    """Assign partitions by a heartbeat that is answered while the application is busy."""
    consumer.group.assign(*partitions)
    background(consumer, INTERVAL_MS + 100)


def test_polls_without_time_join_and_read_everything(make, clock):
    consumer = make()
    before_ms = clock.monotonic_ms()
    assert read_on(consumer, 40) == {A0: list(range(10)), A1: list(range(10))}
    assert clock.monotonic_ms() == before_ms
    assert consumer.listener.take() == [("assigned", {A0, A1})]


def test_partitions_that_stay_are_read_on_and_others_no_more(make):
    consumer = make()
    first = read(consumer)
    assert first == {A0: [0, 1, 2, 3]}
    fetched = len(consumer.model.requests_of(OffsetFetchRequest))
    assign(consumer, A0)
    assert read_on(consumer) == {A0: list(range(4, 10))}
    assert consumer.listener.take()[1:] == [("revoked", {A1}), ("assigned", set())]
    assert len(consumer.model.requests_of(OffsetFetchRequest)) == fetched


def test_records_buffered_for_a_revoked_partition_are_dropped(make):
    consumer = make()
    assert read(consumer) == {A0: [0, 1, 2, 3]}
    assign(consumer, A1)
    assert read_on(consumer) == {A1: list(range(10))}


def test_a_returned_partition_starts_at_its_committed_offset(make):
    consumer = make()
    assert read(consumer) == {A0: [0, 1, 2, 3]}
    assign(consumer, A1)
    read_on(consumer)
    assign(consumer, A0, A1)
    # The pending long-poll fetch must complete first.
    assert read_on(consumer, timeout_ms=100) == {A0: list(range(4, 10))}


def test_offsets_are_committed_with_the_member_epoch_before_revocation(make):
    consumer = make()
    read(consumer)
    seen = []
    consumer.listener.meanwhile = lambda what: seen.append(
        (
            what,
            [each.generation_id_or_member_epoch for each in consumer.model.requests_of(OffsetCommitRequest)],
        )
    )
    assign(consumer, A1)
    read_on(consumer)
    assert ("revoked", [2]) in seen
    commit = consumer.model.requests_of(OffsetCommitRequest)[0]
    assert commit.member_id == consumer.group.member_id
    assert consumer.committed(A0) == 4


def test_paused_partitions_that_stay_remain_paused(make):
    consumer = make()
    read_on(consumer, 3)
    consumer.pause(A0)
    assign(consumer, A0)
    read_on(consumer)
    assert consumer.paused() == {A0}


def test_a_listener_may_commit_seek_pause_and_look_around(make):
    consumer = make(enable_auto_commit=False)
    read_on(consumer, 1, 1000)

    def look(what):
        if what == "revoked":
            consumer.commit()
        if what == "assigned":
            consumer.seek(A0, 7)
            consumer.pause(A0)
            assert consumer.position(A0) == 7

    consumer.listener.meanwhile = look
    assign(consumer, A0)
    read_on(consumer)
    assert consumer.paused() == {A0}
    assert consumer.committed(A0) == 4


def test_a_poll_inside_a_listener_does_not_rebalance_again(make):
    consumer = make()
    consumer.listener.meanwhile = lambda what: consumer.poll(0)
    read_on(consumer)
    assign(consumer, A0)
    read_on(consumer)
    assert [what for what, _ in consumer.listener.take()] == ["assigned", "revoked", "assigned"]


def test_a_listener_that_unsubscribes_leaves_the_group(make):
    consumer = make()

    def leave(what):
        consumer.listener.meanwhile = None
        consumer.unsubscribe()

    consumer.listener.meanwhile = leave
    read_on(consumer)
    assert consumer.assignment() == set()
    assert consumer.group.member_id is None
    assert consumer.subscription() is None


def test_a_listener_that_closes_ends_the_poll(make):
    consumer = make()
    consumer.listener.meanwhile = lambda what: consumer.close()
    with pytest.raises(IllegalStateError, match="closed"):
        read_on(consumer)
    assert consumer.group.member_id is None


def test_a_lost_listener_that_unsubscribes_is_called_once(make):
    consumer = make()
    read_on(consumer)
    consumer.listener.take()
    consumer.model.coordinator.errors[ConsumerGroupHeartbeatRequest].append(FENCED_EPOCH)
    background(consumer, INTERVAL_MS + 100)
    consumer.listener.meanwhile = lambda what: consumer.unsubscribe()
    count = len(consumer.group.beats)
    read_on(consumer)
    assert consumer.listener.take() == [("lost", {A0, A1})]
    assert len(consumer.group.beats) == count


def test_a_fenced_member_reads_again_from_the_commit(make):
    consumer = make(enable_auto_commit=False)
    assert read(consumer) == {A0: [0, 1, 2, 3]}
    consumer.commit()
    consumer.poll(0)
    consumer.model.coordinator.errors[ConsumerGroupHeartbeatRequest].append(UNKNOWN_MEMBER)
    background(consumer, INTERVAL_MS + 100)
    with pytest.raises(CommitFailedError):
        consumer.commit()
    assert read_on(consumer)[A0] == list(range(4, 10))
    assert consumer.listener.take()[1] == ("lost", {A0, A1})


@pytest.mark.kafka("CommitRequestManagerTest.testCommitSyncFailsWithCommitFailedExceptionOnStaleMemberEpoch")
def test_a_commit_with_a_stale_epoch_fails_and_keeps_the_membership(make):
    consumer = make(enable_auto_commit=False)
    read(consumer)
    consumer.model.coordinator.errors[OffsetCommitRequest].append(STALE_EPOCH)
    with pytest.raises(CommitFailedError, match="epoch"):
        consumer.commit()
    consumer.commit()
    assert consumer.committed(A0) == 4
    assert [what for what, _ in consumer.listener.take()] == ["assigned"]


@pytest.mark.kafka("CommitRequestManagerTest.testSyncOffsetFetchFailsWithStaleEpochAndRetriesWithNewEpoch")
@pytest.mark.parametrize("code", [STALE_EPOCH, UNKNOWN_MEMBER])
def test_committed_offsets_are_fetched_again_after_a_stale_epoch(make, code, monkeypatch):
    consumer = make()
    offsets = consumer.model.coordinator.offsets
    fetch, codes = offsets.fetch, [code]
    monkeypatch.setattr(
        offsets, "fetch", lambda request, error: fetch(request, 0, codes.pop() if codes else 0)
    )
    assert read_on(consumer, 10, 200) == {A0: list(range(10)), A1: list(range(10))}
    request = consumer.model.requests_of(OffsetFetchRequest)[-1]
    group = request.groups[0]
    assert (group.member_id, group.member_epoch) == (consumer.group.member_id, 1)


def test_committed_times_out_while_the_epoch_is_stale(make, monkeypatch):
    consumer = make()
    read(consumer)
    offsets = consumer.model.coordinator.offsets
    fetch = offsets.fetch
    monkeypatch.setattr(offsets, "fetch", lambda request, error: fetch(request, 0, STALE_EPOCH))
    with pytest.raises(KafkaTimeoutError, match="committed offsets"):
        consumer.committed(A0, timeout_ms=500)


def test_a_consumer_that_assigns_by_hand_names_no_member(make):
    consumer = make(enable_auto_commit=False)
    consumer.unsubscribe()
    consumer.assign([A0])
    read(consumer)
    consumer.commit()
    (commit,) = consumer.model.requests_of(OffsetCommitRequest)
    (fetch,) = consumer.model.requests_of(OffsetFetchRequest)
    assert (commit.member_id, commit.generation_id_or_member_epoch) == ("", -1)
    assert (fetch.groups[0].member_id, fetch.groups[0].member_epoch) == (None, -1)
    assert consumer.group.beats == []


def test_another_subscription_is_sent_and_left(make):
    consumer = make("a")
    read_on(consumer)
    consumer.subscribe(["b"], listener=consumer.listener)
    assert read_on(consumer, timeout_ms=100) == {B0: list(range(10))}
    consumer.unsubscribe()
    assert consumer.poll(0) == {}
    consumer.subscribe(["a", "b"], listener=consumer.listener)
    read_on(consumer)
    assert consumer.assignment() == {A0, A1, B0}
    assert [each.member_epoch for each in consumer.group.beats if each.member_epoch < 1] == [0, -1, 0]


def test_a_wakeup_while_joining_is_raised_and_the_join_goes_on(make):
    consumer = make()
    consumer.model.held.add(ConsumerGroupHeartbeatRequest)
    consumer.poll(100)
    consumer.wakeup()
    with pytest.raises(WakeupError):
        consumer.poll(100)
    consumer.model.held.clear()
    assert read_on(consumer) == {A0: list(range(10)), A1: list(range(10))}


def test_a_long_poll_ends_with_its_time_though_the_member_never_joins(make, clock):
    consumer = make()
    consumer.model.held.add(ConsumerGroupHeartbeatRequest)
    before_ms = clock.monotonic_ms()
    assert consumer.poll(3000) == {}
    assert 3000 <= clock.monotonic_ms() - before_ms < 3200


def test_iteration_and_columns_join_too(make):
    consumer = make(consumer_timeout_ms=100)
    assert len(list(consumer)) == 20
    other = make()
    rows = {}
    for _ in range(20):
        for tp, columns in other.poll_arrow(0).items():
            rows[tp] = rows.get(tp, 0) + len(columns)
    assert rows == {A0: 10, A1: 10}


def test_closing_commits_before_it_leaves(make):
    consumer = make()
    read(consumer)
    consumer.close()
    kinds = [
        type(request)
        for _, request in consumer.model.requests
        if isinstance(request, OffsetCommitRequest | ConsumerGroupHeartbeatRequest)
    ]
    assert kinds[-2:] == [OffsetCommitRequest, ConsumerGroupHeartbeatRequest]
    assert consumer.model.coordinator.offsets.committed[A0].offset == 4
    assert consumer.listener.take()[-1] == ("revoked", {A0, A1})


def test_a_hold_reports_what_moved_and_keeps_the_rest(make, clock):
    consumer = make()
    assert read(consumer) == {A0: [0, 1, 2, 3]}
    membership = consumer._engine.membership
    with consumer.hold() as hold:
        consumer.group.assign(A0)
        for _ in range(30):
            clock.advance(membership.held_turn(clock.monotonic_ms()))
        assert (hold.revoked, hold.lost) == ({A1}, set())
        assert hold.check(A0)
        consumer.commit()
    assert read_on(consumer) == {A0: list(range(4, 10))}


# ---- Patterns of the broker ------------------------------------------------------------------------------
def test_consumer_reads_the_topics_that_match_for_the_broker(make):
    consumer = make("a")
    consumer.unsubscribe()
    consumer.group.target = {A0, B0}
    consumer.subscribe(pattern=SubscriptionPattern("a|b"), listener=consumer.listener)
    assert consumer.subscription() == set()
    assert set(read_on(consumer)) == {A0, B0}
    assert consumer.subscription() == set()
    assert "a|b" in [each.subscribed_topic_regex for each in consumer.group.news]


def test_broker_pattern_needs_the_new_protocol_and_a_group(make_consumer):
    logs = {A0: FetchLog(simple_batch(0, 1))}
    for settings in ({"group_id": "g"}, {"group_id": None, "group_protocol": "consumer"}):
        consumer = make_consumer(logs, **settings)
        with pytest.raises(KafkaConfigurationError, match="needs a group_id and group_protocol='consumer'"):
            consumer.subscribe(pattern=SubscriptionPattern("a"))
        assert consumer.subscription() is None
        consumer.subscribe(pattern="a")


def test_listener_may_unsubscribe_when_the_membership_has_ended(make):
    consumer = make()
    read_on(consumer, 3)
    consumer.listener.meanwhile = lambda what: consumer.unsubscribe() if what == "lost" else None
    consumer.model.coordinator.errors[ConsumerGroupHeartbeatRequest].append(GROUP_AUTHORIZATION_FAILED)
    with pytest.raises(GroupAuthorizationFailedError):
        read_on(consumer, timeout_ms=3000)
    assert consumer.subscription() is None
    consumer.subscribe(["a"], listener=consumer.listener)
    read_on(consumer)
    assert consumer.assignment() == {A0, A1}


def test_heartbeats_of_a_short_interval_do_not_stall_polls(make, clock):
    consumer = make()
    consumer.group.interval_ms = 1
    read_on(consumer, 10)
    before = len(consumer.group.beats)
    consumer.poll(100)
    assert len(consumer.group.beats) - before >= 90
