"""KafkaConsumer's commit calls on a model cluster: when offsets are committed, and which."""

import kafka.structs
import pytest
from model.consumer_cluster import read
from model.fetch_log import FetchLog, simple_batch, with_bad_crc

from kafkacore.consumer.kafka_consumer import KafkaConsumer
from kafkacore.consumer.listener import ConsumerRebalanceListener
from kafkacore.errors import (
    CommitFailedError,
    CorruptRecordError,
    GroupAuthorizationFailedError,
    IllegalStateError,
    KafkaConfigurationError,
    KafkaTimeoutError,
    NoOffsetForPartitionError,
    RebalanceInProgressError,
    WakeupError,
)
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.heartbeat import HeartbeatRequest
from kafkacore.protocol.generated.join_group import JoinGroupRequest
from kafkacore.protocol.generated.leave_group import LeaveGroupRequest
from kafkacore.protocol.generated.list_offsets import ListOffsetsRequest
from kafkacore.protocol.generated.offset_commit import OffsetCommitRequest
from kafkacore.protocol.generated.offset_fetch import OffsetFetchRequest
from kafkacore.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
REBALANCE = 27


@pytest.fixture
def make(make_consumer):
    """Return a function ``make(*topics, **configs)`` that creates a consumer of group "g".

    By default a-0 has ten records and a-1 has five.
    """

    def make(*topics, logs=None, **configs):
        logs = logs or {A0: FetchLog(simple_batch(0, 10)), A1: FetchLog(simple_batch(0, 5))}
        return make_consumer(logs, *topics, **{"group_id": "g"} | configs)

    return make


def committed(consumer):
    """Return the offsets that the coordinator has stored."""
    return {tp: kept.offset for tp, kept in consumer.model.coordinator.offsets.committed.items()}


def keep(consumer, offsets):
    """Store committed offsets at the coordinator."""
    for tp, offset in offsets.items():
        consumer.model.coordinator.offsets.committed[tp] = OffsetAndMetadata(offset, "kept")


def commits(consumer):
    return consumer.model.requests_of(OffsetCommitRequest)


# ---- Committed offsets -----------------------------------------------------------------------------------
def test_commit_without_offsets_is_of_all_that_was_handed_out(make):
    consumer = make("a", enable_auto_commit=False)
    assert read(consumer, max_records=3) == {A0: [0, 1, 2]}
    consumer.commit()
    assert committed(consumer) == {A0: 3, A1: 0}
    consumer.seek(A0, 1)
    consumer.commit()
    assert committed(consumer) == {A0: 1, A1: 0}


def test_commit_in_a_loop_goes_up_to_the_record_that_the_loop_has(make):
    consumer = make("a", enable_auto_commit=False)
    seen = []
    for record in consumer:
        seen.append(record.offset)
        if len(seen) == 4:
            consumer.commit()
            assert committed(consumer) == {A0: 4, A1: 0}
        if len(seen) == 6:
            break
    consumer.commit_async()
    consumer.commit({})
    assert committed(consumer) == {A0: 6, A1: 0}
    assert next(consumer).offset == 6, "the loop continues after the commit"


@pytest.mark.kafka("ConsumerCoordinatorTest.testCommitOffsetMetadataAsync")
def test_given_offsets_are_committed_with_note_and_epoch_in_every_form_of_kafka_python(make):
    consumer = make("a", enable_auto_commit=False)
    consumer.poll(1000)
    consumer.commit({A0: OffsetAndMetadata(4, "note", 3), A1: kafka.structs.OffsetAndMetadata(2, None, -1)})
    consumer.commit({B0: (7, "of before 3.0")})
    kept = consumer.model.coordinator.offsets.committed
    assert kept == {A0: (4, "note", 3), A1: (2, "", -1), B0: (7, "of before 3.0", -1)}
    assert consumer.committed(A0) == 4
    assert consumer.committed(A0, metadata=True) == OffsetAndMetadata(4, "note", 3)
    assert consumer.committed([A0, B0]) == {A0: 4, B0: 7}
    assert consumer.committed({TopicPartition("a", 9)}, metadata=True) == {TopicPartition("a", 9): None}
    assert consumer.committed(TopicPartition("a", 9)) is None


@pytest.mark.parametrize(
    ("offsets", "error"),
    [
        ([A0], TypeError),
        ({"a": OffsetAndMetadata(1)}, TypeError),
        ({A0: 1}, TypeError),
        ({A0: OffsetAndMetadata("1")}, TypeError),
        ({A0: OffsetAndMetadata(True)}, TypeError),
        ({A0: OffsetAndMetadata(1, b"note")}, TypeError),
        ({A0: OffsetAndMetadata(1, "", "0")}, TypeError),
        ({A0: OffsetAndMetadata(-1)}, ValueError),
        ({A0: OffsetAndMetadata(2**63)}, ValueError),
        ({A0: OffsetAndMetadata(1, "", -2)}, ValueError),
    ],
)
def test_what_is_no_offset_is_refused_before_anything_is_asked(make, offsets, error):
    consumer = make("a")
    for call in (consumer.commit, consumer.commit_async):
        with pytest.raises(error):
            call(offsets)
    assert consumer.model.requests == []


def test_what_is_no_partition_or_callback_is_refused(make):
    consumer = make("a")
    for call in (
        lambda: consumer.committed("a"),
        lambda: consumer.committed(["a"]),
        lambda: consumer.commit_async(callback="call me"),
        lambda: consumer.current_lag("a"),
    ):
        with pytest.raises(TypeError):
            call()


@pytest.mark.kafka(
    "KafkaConsumerTest.testOperationsBySubscribingConsumerWithDefaultGroupId",
    "KafkaConsumerTest.testOperationsByAssigningConsumerWithDefaultGroupId",
    "KafkaConsumerTest.testEnforceRebalanceWithManualAssignment",
)
def test_without_a_group_calls_about_it_say_what_to_do(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 1))}, "a")
    assert consumer.config["enable_auto_commit"] is False, "a consumer without a group cannot commit"
    for call in (
        consumer.commit,
        consumer.commit_async,
        lambda: consumer.committed(A0),
        consumer.enforce_rebalance,
    ):
        with pytest.raises(IllegalStateError, match=r"group_id='\.\.\.'"):
            call()
    assert consumer.group_metadata() == ConsumerGroupMetadata()
    assert read(consumer) == {A0: [0]}


@pytest.mark.kafka("KafkaConsumerTest.testInvalidGroupMetadata")
def test_closed_consumer_refuses_calls_about_its_group(make):
    consumer = make("a")
    consumer.close()
    for call in (
        consumer.commit,
        consumer.commit_async,
        lambda: consumer.committed(A0),
        consumer.enforce_rebalance,
        consumer.group_metadata,
        lambda: consumer.current_lag(A0),
    ):
        with pytest.raises(IllegalStateError, match="closed"):
            call()


# ---- Start positions -------------------------------------------------------------------------------------
@pytest.mark.kafka("KafkaConsumerTest.testResetUsingAutoResetPolicy")
@pytest.mark.parametrize("assigned", [True, False])
def test_reading_begins_where_the_group_has_come_to_and_else_by_auto_offset_reset(make, assigned):
    consumer = make(*([] if assigned else ["a"]))
    if assigned:
        consumer.assign([A0, A1])
    keep(consumer, {A0: 7})
    assert read(consumer) | read(consumer) == {A0: [7, 8, 9], A1: [0, 1, 2, 3, 4]}
    assert len(consumer.model.requests_of(OffsetFetchRequest)) == 1


@pytest.mark.kafka("KafkaConsumerTest.testMissingOffsetNoResetPolicy")
def test_without_offset_and_reset_the_poll_says_so(make):
    consumer = make("a", auto_offset_reset="none")
    keep(consumer, {A0: 7})
    with pytest.raises(NoOffsetForPartitionError):
        read(consumer)
    consumer.seek(A1, 4)
    assert read(consumer) == {A0: [7, 8, 9], A1: [4]}


@pytest.mark.kafka("KafkaConsumerTest.testResetToCommittedOffset")
def test_position_that_is_not_known_yet_is_the_groups(make):
    consumer = make()
    consumer.assign([A0])
    keep(consumer, {A0: 7})
    assert consumer.position(A0) == 7


def test_question_for_offsets_outlives_many_short_polls(make):
    consumer = make()
    consumer.assign([A0])
    keep(consumer, {A0: 7})
    consumer.model.held = {OffsetFetchRequest}
    for _ in range(20):
        assert consumer.poll(0) == {}
    assert len(consumer.model.requests_of(OffsetFetchRequest)) == 1
    consumer.model.held = set()
    assert read(consumer) == {A0: [7, 8, 9]}


def test_assigned_consumer_of_a_group_asks_for_its_coordinator_once_and_never_joins(make):
    consumer = make()
    consumer.assign([A0])
    read(consumer)
    consumer.commit()
    assert len(consumer.model.requests_of(FindCoordinatorRequest)) == 1
    assert consumer.model.requests_of(JoinGroupRequest) == []
    assert (commits(consumer)[0].generation_id_or_member_epoch, commits(consumer)[0].member_id) == (-1, "")


@pytest.mark.kafka("ConsumerCoordinatorTest.testRefreshOffsetsGroupNotAuthorized")
def test_group_without_permission_is_refused_by_the_poll(make):
    consumer = make()
    consumer.assign([A0])
    consumer.model.coordinator.errors[FindCoordinatorRequest].append(30)
    with pytest.raises(GroupAuthorizationFailedError):
        consumer.poll(1000)


# ---- Auto-commit -----------------------------------------------------------------------------------------
@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testAutoCommitDynamicAssignment",
    "ConsumerCoordinatorTest.testAutoCommitManualAssignment",
    "KafkaConsumerTest.testAutoCommitSentBeforePositionUpdate",
)
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "auto-commit runs at its interval, before a revocation and in close, and covers only returned records",
)
@pytest.mark.parametrize("subscribed", [True, False])
def test_auto_commit_is_of_what_polls_before_have_given(make, clock, subscribed):
    consumer = make(*(["a"] if subscribed else []))
    if not subscribed:
        consumer.assign([A0, A1])
    assert read(consumer, max_records=3) == {A0: [0, 1, 2]}
    clock.advance(5000)
    assert committed(consumer) == {}
    assert read(consumer, max_records=3) == {A0: [3, 4, 5]}
    consumer.poll(0, max_records=1)
    assert committed(consumer) == {A0: 3, A1: 0}, "records of the last poll are still being processed"


@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "auto-commit runs at its interval, before a revocation and in close, and covers only returned records",
)
def test_auto_commit_of_a_loop_is_of_the_records_that_it_has_taken(make, clock):
    consumer = make("a", max_poll_records=4)
    for record in consumer:
        clock.advance(2000)
        if record.offset == 9:
            break
    # The loop got two records from the third poll. The eight records of the first two polls were processed.
    assert committed(consumer)[A0] == 8


def test_auto_commit_of_columns(make, clock):
    consumer = make("a")
    assert consumer.poll_arrow(1000, max_records=3).keys() == {A0}
    clock.advance(5000)
    consumer.poll_arrow(0)
    consumer.poll_arrow(0)
    assert committed(consumer) == {A0: 3, A1: 0}


@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "auto-commit runs at its interval, before a revocation and in close, and covers only returned records",
)
def test_records_of_a_poll_that_broke_off_are_not_committed(make, clock):
    good, bad = simple_batch(0, 2), with_bad_crc(simple_batch(2, 2))
    consumer = make("a", logs={A0: FetchLog(good, bad)})
    assert read(consumer) == {A0: [0, 1]}
    with pytest.raises(CorruptRecordError):
        consumer.poll(1000)
    clock.advance(5000)
    with pytest.raises(CorruptRecordError):
        consumer.poll(1000)
    consumer.close()
    assert committed(consumer) == {A0: 2}


@pytest.mark.kafka("ConsumerCoordinatorTest.testJoinPrepareAndCommitCompleted")
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "auto-commit runs at its interval, before a revocation and in close, and covers only returned records",
)
def test_auto_commit_comes_before_partitions_change_hands(make, clock):
    consumer = make("a", auto_commit_interval_ms=60_000)
    assert read(consumer) == {A0: list(range(10)), A1: list(range(5))}
    before = len(consumer.model.requests)
    consumer.model.coordinator.rebalance()
    assert read(consumer, 5000) == {}
    kinds = [type(request) for _, request in consumer.model.requests[before:]]
    assert kinds.index(HeartbeatRequest) < kinds.index(OffsetCommitRequest) < kinds.index(JoinGroupRequest)
    assert committed(consumer) == {A0: 10, A1: 5}


@pytest.mark.kafka("KafkaConsumerTest.testManualAssignmentChangeWithAutoCommitEnabled")
def test_auto_commit_comes_before_another_assignment_and_before_unsubscribing(make):
    consumer = make()
    consumer.assign([A0])
    read(consumer, max_records=3)
    consumer.commit({})
    consumer.assign([A1])
    consumer.poll(0)
    assert committed(consumer) == {A0: 3}
    read(consumer, max_records=2)
    consumer.unsubscribe()
    consumer.close()
    assert committed(consumer) == {A0: 3, A1: 2}


# ---- Rebalances ------------------------------------------------------------------------------------------
class Committing(ConsumerRebalanceListener):
    """A listener that commits an offset for each partition that is revoked or assigned."""

    def __init__(self, offset):
        self.offset, self.consumer, self.error = offset, None, None

    def on_partitions_revoked(self, revoked):
        self.consumer.commit({tp: OffsetAndMetadata(self.offset) for tp in revoked})

    def on_partitions_assigned(self, assigned):
        try:
            self.consumer.commit({tp: OffsetAndMetadata(1) for tp in assigned})
        except (CommitFailedError, RebalanceInProgressError) as error:
            self.error = error


@pytest.mark.parametrize("autocommit", [True, False])
def test_listener_may_commit_what_is_taken_away_also_by_close(make, autocommit):
    consumer = make(enable_auto_commit=False)
    listener = Committing(5)
    listener.consumer = consumer
    consumer.subscribe(["a"], listener=listener)
    read(consumer)
    consumer.model.coordinator.rebalance()
    read(consumer, 7000)
    assert committed(consumer) in ({A0: 5, A1: 5}, {A0: 1, A1: 1})
    listener.offset = 6
    consumer.close(autocommit=autocommit)
    assert committed(consumer) == {A0: 6, A1: 6}


def test_commit_before_the_first_poll_says_that_poll_joins(make):
    consumer = make("a")
    with pytest.raises(CommitFailedError, match=r"poll\(\) joins"):
        consumer.commit({A0: OffsetAndMetadata(1)})


@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "a commit during a rebalance or of an old generation fails; a late failure leaves the new one intact",
)
def test_member_thrown_out_hears_of_it_by_its_commit_and_joins_again_with_the_next_poll(make):
    consumer = make("a", enable_auto_commit=False)
    read(consumer)
    consumer.model.coordinator.errors[OffsetCommitRequest].append(25)
    with pytest.raises(CommitFailedError, match="max_poll_records"):
        consumer.commit()
    before = len(consumer.model.requests_of(JoinGroupRequest))
    assert read(consumer, 5000) == {A0: list(range(10)), A1: list(range(5))}
    assert len(consumer.model.requests_of(JoinGroupRequest)) > before
    consumer.commit()
    assert committed(consumer) == {A0: 10, A1: 5}


@pytest.mark.kafka(
    "KafkaConsumerTest.testEnforceRebalanceTriggersRebalanceOnNextPoll",
    "KafkaConsumerTest.testEnforceRebalanceReason",
)
@pytest.mark.parametrize(
    ("reason", "sent"),
    [
        ("the weights have changed", "the weights have changed"),
        ("", "enforce_rebalance()"),
        (None, "enforce_rebalance()"),
    ],
)
def test_rebalance_can_be_asked_for_with_a_reason(make, reason, sent):
    consumer = make("a")
    read(consumer)
    before = len(consumer.model.requests_of(JoinGroupRequest))
    consumer.enforce_rebalance(reason)
    read(consumer, 500)
    joins = consumer.model.requests_of(JoinGroupRequest)[before:]
    assert joins
    assert sent in joins[0].reason


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testGetGroupMetadata",
    "KafkaConsumerTest.testGetGroupMetadata",
)
def test_group_metadata_are_who_the_consumer_is(make):
    consumer = make("a", group_instance_id="instance")
    assert consumer.group_metadata()[:4] == ("g", -1, "", "instance")
    read(consumer)
    group_id, generation, member, instance, state = consumer.group_metadata()
    assert (group_id, generation, instance, state) == ("g", 1, "instance", "<stable>")
    assert member


# ---- Close -----------------------------------------------------------------------------------------------
@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testCloseDynamicAssignment",
    "KafkaConsumerTest.testGracefulClose",
)
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "close commits, then leaves; it is bounded if no coordinator answers; with a timeout of 0 it never waits",
)
def test_close_commits_then_leaves(make):
    consumer = make("a")
    read(consumer, max_records=3)
    consumer.close()
    assert committed(consumer) == {A0: 3, A1: 0}
    commit, leave = commits(consumer)[0], consumer.model.requests_of(LeaveGroupRequest)[0]
    sent = [request for _, request in consumer.model.requests]
    assert sent.index(commit) < sent.index(leave)


@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "auto-commit runs at its interval, before a revocation and in close, and covers only returned records",
)
def test_close_in_a_loop_commits_up_to_the_record_that_the_loop_has(make):
    consumer = make("a")
    for number, _ in enumerate(consumer):
        if number == 3:
            break
    consumer.close()
    assert committed(consumer) == {A0: 4, A1: 0}


@pytest.mark.parametrize(
    "close",
    [
        lambda consumer: consumer.close(autocommit=False),
        lambda consumer: consumer.__exit__(ValueError, ValueError(), None),
    ],
)
def test_close_commits_nothing_if_told_so_or_if_the_block_failed(make, close):
    consumer = make("a")
    read(consumer)
    close(consumer)
    assert committed(consumer) == {}
    assert len(consumer.model.requests_of(LeaveGroupRequest)) == 1


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testCloseNoResponseForCommit",
    "ConsumerCoordinatorTest.testCloseNoWait",
    "KafkaConsumerTest.testCloseTimeout",
    "KafkaConsumerTest.testCloseNoWait",
)
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "close commits, then leaves; it is bounded if no coordinator answers; with a timeout of 0 it never waits",
)
@pytest.mark.parametrize("timeout_ms", [0, 2000])
def test_close_is_bounded_while_the_coordinator_is_silent(make, clock, timeout_ms):
    consumer = make("a")
    read(consumer)
    consumer.model.held = {OffsetCommitRequest, LeaveGroupRequest, HeartbeatRequest}
    started_ms = clock.monotonic_ms()
    consumer.close(timeout_ms=timeout_ms)
    assert clock.monotonic_ms() - started_ms == pytest.approx(timeout_ms, abs=50)
    assert len(commits(consumer)) == 1, "the commit is sent even without time to wait for its response"
    assert consumer.network.closed


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testCloseCoordinatorNotKnownManualAssignment",
    "ConsumerCoordinatorTest.testCloseCoordinatorNotKnownWithCommits",
    "ConsumerCoordinatorTest.testCloseTimeoutCoordinatorUnavailableForCommit",
    "ConsumerCoordinatorTest.testCloseMaxWaitCoordinatorUnavailableForCommit",
)
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "close commits, then leaves; it is bounded if no coordinator answers; with a timeout of 0 it never waits",
)
@pytest.mark.parametrize("timeout_ms", [0, 2000])
def test_close_is_bounded_while_no_coordinator_is_known(make, clock, timeout_ms):
    consumer = make("a")
    consumer.model.held = {FindCoordinatorRequest}
    consumer.poll(100)
    started_ms = clock.monotonic_ms()
    consumer.close(timeout_ms=timeout_ms)
    assert clock.monotonic_ms() - started_ms <= timeout_ms + 50
    assert consumer.network.closed


def test_close_calls_back_what_was_on_its_way(make):
    consumer, errors = make("a", enable_auto_commit=False), []
    read(consumer)
    consumer.commit_async(callback=lambda offsets, error: errors.append(error))
    consumer.close()
    assert errors == [None]


# ---- Errors ----------------------------------------------------------------------------------------------
def test_callback_that_raises_comes_out_of_the_poll_and_loses_no_records(make):
    consumer = make("a", enable_auto_commit=False)
    read(consumer, max_records=2)

    def breaks(offsets, error):
        raise RuntimeError("broken callback")

    consumer.model.held = {OffsetCommitRequest}
    consumer.commit_async(callback=breaks)
    consumer.model.held = set()
    consumer.pause(A0, A1)
    with pytest.raises(RuntimeError, match="broken callback"):
        consumer.poll(1000)
    consumer.resume(A0, A1)
    assert read(consumer)[A0] == list(range(2, 10))


def test_wakeup_ends_a_commit(make):
    consumer = make("a", enable_auto_commit=False)
    read(consumer)
    consumer.model.held = {OffsetCommitRequest}
    consumer.wakeup()
    with pytest.raises(WakeupError):
        consumer.commit()
    consumer.model.held = set()
    consumer.commit()
    assert committed(consumer) == {A0: 10, A1: 5}


@pytest.mark.kafka("KafkaConsumerTest.testCommittedThrowsTimeoutExceptionForNoResponse")
def test_commit_and_committed_end_with_their_time(make, clock):
    consumer = make("a", enable_auto_commit=False)
    read(consumer)
    consumer.model.held = {OffsetCommitRequest, OffsetFetchRequest}
    for call in (lambda: consumer.commit(timeout_ms=300), lambda: consumer.committed(A0, timeout_ms=300)):
        started_ms = clock.monotonic_ms()
        with pytest.raises(KafkaTimeoutError, match="group 'g' within 300 ms"):
            call()
        assert clock.monotonic_ms() - started_ms == pytest.approx(300, abs=50)


# ---- Lag -------------------------------------------------------------------------------------------------
def test_lag_is_what_is_left_of_the_last_fetch_up_to_the_record_that_a_loop_has(make):
    consumer = make("a")
    with pytest.raises(IllegalStateError, match="not assigned"):
        consumer.current_lag(A0)
    consumer.poll(1000, max_records=3)
    assert consumer.current_lag(A0) == 7
    consumer.seek(A0, 12)
    assert consumer.current_lag(A0) == 0
    consumer.seek_to_beginning(A0)
    assert consumer.current_lag(A0) is None
    consumer.pause(A1)
    assert next(consumer).offset == 0
    assert consumer.current_lag(A0) == 9


@pytest.mark.kafka("SubscriptionStateTest.nullPositionLagOnNoPosition")
def test_lag_of_what_is_not_fetched_is_asked_for_once_and_known_after_a_poll(make):
    consumer = make()
    consumer.assign([A0])
    consumer.pause(A0)
    consumer.seek(A0, 4)
    consumer.poll(0)
    consumer.model.held = {ListOffsetsRequest}
    assert consumer.current_lag(A0) is None
    assert consumer.current_lag(A0) is None
    assert len(consumer.model.requests_of(ListOffsetsRequest)) == 1
    consumer.model.held = set()
    consumer.poll(0)
    assert consumer.current_lag(A0) == 6


# ---- Settings --------------------------------------------------------------------------------------------
@pytest.mark.kafka(
    "KafkaConsumerTest.testSubscriptionWithEmptyPartitionAssignment",
    "KafkaConsumerTest.testEmptyGroupId",
    "KafkaConsumerTest.testGroupIdWithWhitespace",
)
@pytest.mark.parametrize(
    "configs",
    [
        {"group_id": ""},
        {"group_id": " "},
        {"group_instance_id": "with space"},
        {"group_instance_id": ".."},
        {"group_instance_id": ""},
        {"enable_auto_commit": "yes"},
        {"auto_commit_interval_ms": -1},
        {"default_offset_commit_callback": "call me"},
        {"partition_assignment_strategy": ["fair"]},
        {"partition_assignment_strategy": []},
        {"max_poll_interval_ms": 0},
        {"session_timeout_ms": 2**31},
        {"session_timeout_ms": 3000},
        {"heartbeat_interval_ms": 0},
        {"group_protocol": "streams"},
        {"group_protocol": "none"},
        {"interceptors": ["none"]},
    ],
)
def test_impossible_settings_of_a_group_are_refused_by_name(make, configs):
    with pytest.raises(KafkaConfigurationError, match=next(iter(configs))):
        make(**configs)


@pytest.mark.parametrize(
    ("protocol", "name", "value"),
    [
        ("consumer", "session_timeout_ms", 45_000),
        ("consumer", "heartbeat_interval_ms", 3000),
        ("consumer", "partition_assignment_strategy", "range"),
        ("CONSUMER", "session_timeout_ms", 45_000),
        ("classic", "group_remote_assignor", "uniform"),
    ],
)
def test_settings_without_meaning_in_the_protocol_are_refused(make, protocol, name, value):
    sentence = f"^{name} cannot be set with group_protocol='{protocol.lower()}': "
    with pytest.raises(KafkaConfigurationError, match=sentence):
        make(group_protocol=protocol, **{name: value})


def test_remote_assignor_is_refused_with_the_default_protocol(make):
    with pytest.raises(KafkaConfigurationError, match=r"^group_remote_assignor cannot be set"):
        make(group_remote_assignor="uniform")
    make(group_remote_assignor=None)


def test_settings_of_one_protocol_do_not_disturb_the_other(make):
    make(group_protocol="consumer", group_remote_assignor="range", max_poll_interval_ms=1000)
    make(group_protocol="classic", session_timeout_ms=10_000, heartbeat_interval_ms=1000)


def test_assignors_go_by_class_object_or_any_name(make):
    java = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    for strategy in (KafkaConsumer.DEFAULT_CONFIG["partition_assignment_strategy"], "range", [java]):
        make(partition_assignment_strategy=strategy)


# ---- Metrics ---------------------------------------------------------------------------------------------
@pytest.mark.kafka(
    "KafkaConsumerTest.testMeasureCommitSyncDurationOnFailure",
    "KafkaConsumerTest.testMeasureCommitSyncDuration",
    "KafkaConsumerTest.testMeasureCommittedDurationOnFailure",
    "KafkaConsumerTest.testMeasureCommittedDuration",
)
def test_commits_are_counted_and_waits_for_them_too(make, clock):
    consumer = make("a", enable_auto_commit=False)
    read(consumer)
    consumer.model.held = {OffsetCommitRequest, OffsetFetchRequest}
    for call in (lambda: consumer.commit(timeout_ms=300), lambda: consumer.committed(A0, timeout_ms=200)):
        with pytest.raises(KafkaTimeoutError):
            call()
    consumer.model.held = set()
    consumer.commit()
    figures = consumer.metrics()
    assert figures["consumer-coordinator-metrics"]["commit-total"] == 2, (
        "the commit that timed out is counted too"
    )
    assert 300e6 <= figures["consumer-metrics"]["commit-sync-time-ns-total"] < 400e6
    assert 200e6 <= figures["consumer-metrics"]["committed-time-ns-total"] < 300e6
