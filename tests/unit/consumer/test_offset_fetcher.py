"""OffsetFetcher: first and last offsets, and offsets by time, with the cases of Kafka's OffsetFetcherTest."""

from collections import deque

import pytest
from model.fetch_log import FetchLog, simple_batch

from kafkacore.consumer.offset_fetcher import OffsetFetcher
from kafkacore.consumer.offset_reset import OffsetResetStrategy
from kafkacore.consumer.subscription_state import FetchPosition, SubscriptionState
from kafkacore.consumer.timer import Timer
from kafkacore.errors import (
    FencedLeaderEpochError,
    KafkaStorageError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    NotLeaderForPartitionError,
    OffsetNotAvailableError,
    ReplicaNotAvailableError,
    SaslAuthenticationFailedError,
    TopicAuthorizationFailedError,
    UnknownError,
    UnknownLeaderEpochError,
    UnknownTopicOrPartitionError,
    UnsupportedForMessageFormatError,
)
from kafkacore.protocol.generated.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kafkacore.structs import IsolationLevel, OffsetSpec, TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
EARLIEST, LATEST = OffsetResetStrategy.EARLIEST, OffsetResetStrategy.LATEST
LATEST_OFFSET = int(OffsetSpec.LATEST)
RETRIED = [
    NotLeaderForPartitionError,
    ReplicaNotAvailableError,
    KafkaStorageError,
    OffsetNotAvailableError,
    LeaderNotAvailableError,
    FencedLeaderEpochError,
    UnknownLeaderEpochError,
    UnknownTopicOrPartitionError,
    UnknownError,
]


@pytest.fixture
def make_offsets(make_network_client):
    """Return a function ``make_offsets(logs)`` that creates the parts, including an OffsetFetcher.

    The partitions of ``logs`` are assigned but have no position.
    """

    def make(logs=None, node_count=1, isolation_level=IsolationLevel.READ_UNCOMMITTED, reset=LATEST):
        logs = {A0: FetchLog(simple_batch(0, 5))} if logs is None else logs
        parts = make_network_client(logs, node_count=node_count)
        parts.subscriptions = SubscriptionState(reset)
        parts.offsets = OffsetFetcher(
            parts.client, parts.metadata, parts.subscriptions, parts.clock, isolation_level, "kafka:9092"
        )
        parts.subscriptions.assign_from_user(logs)
        parts.metadata.set_topics({tp.topic for tp in logs})
        parts.client.poll_no_wakeup()
        return parts

    return make


def reset(parts, strategy=None, tp=A0):
    """Request an offset reset, and wait for the response."""
    parts.subscriptions.request_offset_reset(tp, strategy)
    turn(parts)


def turn(parts):
    parts.offsets.reset_positions_if_needed()
    parts.client.poll_no_wakeup()
    parts.client.poll_no_wakeup()


def asked(parts):
    """Return node, partition and timestamp of each ListOffsets request."""
    return [
        (node_id, TopicPartition(topic.name, partition.partition_index), partition.timestamp)
        for node_id, request in parts.cluster.requests
        if isinstance(request, ListOffsetsRequest)
        for topic in request.topics
        for partition in topic.partitions
    ]


def position(parts, tp=A0):
    return parts.subscriptions.position(tp)


# ---- Positions ---------------------------------------------------------------------------------------------
@pytest.mark.kafka("OffsetFetcherTest.testUpdateFetchPositionNoOpWithPositionSet")
def test_partition_with_a_position_is_not_asked_about(make_offsets):
    parts = make_offsets()
    parts.subscriptions.seek(A0, FetchPosition(3))
    turn(parts)
    assert asked(parts) == []
    assert position(parts) == FetchPosition(3)


@pytest.mark.kafka(
    "OffsetFetcherTest.testUpdateFetchPositionResetToDefaultOffset",
    "OffsetFetcherTest.testUpdateFetchPositionResetToLatestOffset",
    "OffsetFetcherTest.testUpdateFetchPositionResetToEarliestOffset",
    "SubscriptionStateTest.resetOffsetNoValidation",
)
@pytest.mark.parametrize(
    ("strategy", "offset", "timestamp"), [(None, 5, -1), (LATEST, 5, -1), (EARLIEST, 2, -2)]
)
def test_position_is_reset_by_the_strategy(make_offsets, strategy, offset, timestamp):
    parts = make_offsets()
    parts.cluster.logs[A0].start_offset = 2
    reset(parts, strategy)
    assert asked(parts) == [(0, A0, timestamp)]
    # No epoch: an offset that the leader has just returned needs no validation.
    assert position(parts) == FetchPosition(offset, -1)
    assert parts.subscriptions.is_fetchable(A0)


@pytest.mark.kafka(
    "OffsetFetcherTest.testListOffsetSendsReadUncommitted",
    "OffsetFetcherTest.testListOffsetSendsReadCommitted",
)
@pytest.mark.parametrize("level", IsolationLevel)
def test_isolation_level_is_told(make_offsets, level):
    parts = make_offsets(isolation_level=level)
    reset(parts)
    assert [each.isolation_level for each in parts.cluster.requests_of(ListOffsetsRequest)] == [int(level)]


@pytest.mark.kafka(
    "OffsetFetcherTest.testFetchOffsetErrors",
    "OffsetFetcherTest.testresetPositionsMetadataRefresh",
)
@pytest.mark.parametrize("error", RETRIED)
def test_passing_and_unforeseen_errors_are_tried_again_with_new_metadata(make_offsets, clock, error):
    parts = make_offsets()
    parts.cluster.errors["list", A0].append(error.errno)
    before = parts.metadata.update_version
    reset(parts)
    assert parts.subscriptions.is_offset_reset_needed(A0)
    turn(parts)
    assert len(asked(parts)) == 1
    assert parts.metadata.update_version > before
    clock.advance(100)
    turn(parts)
    assert position(parts).offset == 5


@pytest.mark.kafka("OffsetFetcherTest.testresetPositionsSkipsBlackedOutConnections")
def test_leader_that_backs_off_is_not_asked_before_its_time(make_offsets, clock):
    parts = make_offsets()
    parts.cluster.down.add(0)
    parts.network.failed.add(0)
    reset(parts)
    assert asked(parts) == []
    parts.cluster.down.clear()
    turn(parts)
    assert asked(parts) == []
    clock.advance(100)
    turn(parts)
    assert position(parts).offset == 5


@pytest.mark.behaviour("ConsumerNetworkClient", "a node whose authentication failed is not retried at once")
def test_leader_that_refuses_us_is_told_at_once(make_offsets, monkeypatch):
    parts = make_offsets()
    parts.cluster.down.add(0)
    parts.network.failed.add(0)
    error = SaslAuthenticationFailedError("no")
    monkeypatch.setattr(parts.network, "authentication_error", lambda node: error)
    with pytest.raises(SaslAuthenticationFailedError):
        reset(parts)
    with pytest.raises(SaslAuthenticationFailedError):
        parts.offsets.fetch_offsets({A0: -1}, Timer(parts.clock, 1000))


@pytest.mark.kafka("OffsetFetcherTest.testUpdateFetchPositionDisconnect")
def test_lost_connection_is_tried_again_after_the_back_off(make_offsets, clock):
    parts = make_offsets()
    parts.cluster.held.add(ListOffsetsRequest)
    reset(parts)
    parts.client.disconnect_async(parts.cluster.nodes[0])
    parts.client.poll_no_wakeup()
    parts.client.poll_no_wakeup()
    parts.cluster.held.clear()
    turn(parts)
    assert len(asked(parts)) == 1
    clock.advance(100)
    turn(parts)
    assert position(parts).offset == 5


def test_answer_that_never_comes_is_asked_for_again_after_the_request_timeout(make_offsets, clock):
    parts = make_offsets()
    parts.cluster.held.add(ListOffsetsRequest)
    reset(parts)
    clock.advance(29_000)
    turn(parts)
    assert len(asked(parts)) == 1
    clock.advance(1_100)
    turn(parts)
    assert len(asked(parts)) == 2


@pytest.mark.kafka("OffsetFetcherTest.testListOffsetUpdateEpoch")
def test_newer_leader_epoch_in_an_answer_asks_for_metadata(make_offsets):
    parts = make_offsets()
    parts.cluster.leader_epochs[A0] = 2
    version = parts.metadata.update_version
    reset(parts)
    assert parts.metadata.update_requests or parts.metadata.update_version > version
    assert parts.metadata.leader_epoch(A0) == 2
    version = parts.metadata.update_version
    parts.metadata.update_requests = 0
    reset(parts)
    assert (parts.metadata.update_requests, parts.metadata.update_version) == (0, version)


# ---- Changes while a request is in flight -----------------------------------------------------------------
@pytest.fixture
def in_flight(make_offsets):
    """Return the parts with a latest-offset request in flight, which :func:`arrive` completes."""
    parts = make_offsets()
    parts.cluster.held.add(ListOffsetsRequest)
    reset(parts, LATEST)
    return parts


def arrive(parts):
    parts.cluster.held.clear()
    parts.client.poll_no_wakeup()
    parts.client.poll_no_wakeup()


@pytest.mark.kafka("OffsetFetcherTest.testAssignmentChangeWithInFlightReset")
def test_answer_for_a_partition_given_up_meanwhile_is_dropped(in_flight):
    in_flight.subscriptions.assign_from_user([A1])
    arrive(in_flight)
    assert not in_flight.subscriptions.is_assigned(A0)
    assert position(in_flight, A1) is None


def test_answer_after_a_seek_is_dropped(in_flight):
    in_flight.subscriptions.seek(A0, FetchPosition(3))
    arrive(in_flight)
    assert position(in_flight).offset == 3


@pytest.mark.kafka("OffsetFetcherTest.testChangeResetWithInFlightReset")
def test_answer_for_another_strategy_is_dropped_and_the_other_asked_for(in_flight):
    in_flight.subscriptions.request_offset_reset(A0, EARLIEST)
    arrive(in_flight)
    assert in_flight.subscriptions.is_offset_reset_needed(A0)
    turn(in_flight)
    assert position(in_flight).offset == 0


@pytest.mark.kafka("OffsetFetcherTest.testEarlierOffsetResetArrivesLate")
def test_late_answer_for_an_earlier_strategy_does_not_undo_the_later_one(in_flight):
    in_flight.subscriptions.request_offset_reset(A0, EARLIEST)
    in_flight.offsets.reset_positions_if_needed()
    in_flight.client.poll_no_wakeup()
    assert [timestamp for _, _, timestamp in asked(in_flight)] == [-1, -2]
    arrive(in_flight)
    assert position(in_flight).offset == 0


@pytest.mark.kafka("OffsetFetcherTest.testIdempotentResetWithInFlightReset")
def test_asking_for_the_same_again_takes_the_answer_on_its_way(in_flight):
    in_flight.subscriptions.request_offset_reset(A0, LATEST)
    arrive(in_flight)
    assert position(in_flight).offset == 5


@pytest.mark.kafka(
    "OffsetFetcherTest.testUpdateFetchPositionOfPausedPartitionsRequiringOffsetReset",
    "OffsetFetcherTest.testUpdateFetchPositionOfPausedPartitionsWithoutAValidPosition",
)
@pytest.mark.parametrize("paused_first", [True, False])
def test_paused_partition_gets_its_position_and_stays_paused(make_offsets, paused_first):
    parts = make_offsets()
    if paused_first:
        parts.subscriptions.pause(A0)
    parts.subscriptions.request_offset_reset(A0, EARLIEST)
    parts.subscriptions.pause(A0)
    turn(parts)
    assert position(parts).offset == 0
    assert not parts.subscriptions.is_fetchable(A0)
    parts.subscriptions.resume(A0)
    assert parts.subscriptions.is_fetchable(A0)


@pytest.mark.kafka("OffsetFetcherTest.testResetOffsetsAuthorizationFailure")
def test_forbidden_topics_are_named_once_and_asked_about_again_later(make_offsets, clock):
    parts = make_offsets({tp: FetchLog(simple_batch(0, 5)) for tp in (A0, B0)})
    for tp in (A0, B0):
        parts.cluster.errors["list", tp].append(TopicAuthorizationFailedError.errno)
        parts.subscriptions.request_offset_reset(tp)
    turn(parts)
    with pytest.raises(TopicAuthorizationFailedError, match="'a', 'b'"):
        turn(parts)
    clock.advance(100)
    turn(parts)
    assert [position(parts, tp).offset for tp in (A0, B0)] == [5, 5]


# ---- By duration (KIP-1106) -------------------------------------------------------------------------------
@pytest.mark.behaviour(
    "Fetcher",
    "an out-of-range error is ignored if stale; otherwise the position is reset, or the error is raised",
)
def test_duration_starts_at_the_first_record_that_is_young_enough(make_offsets, clock):
    parts = make_offsets(reset=OffsetResetStrategy.parse(f"by_duration:PT{clock.wall_ms() // 1000}S"))
    parts.cluster.logs[A0].start_offset = 2
    reset(parts)
    ((_, _, timestamp),) = asked(parts)
    assert 0 <= timestamp <= 1000
    assert position(parts).offset == 2


@pytest.mark.behaviour(
    "Fetcher",
    "an out-of-range error is ignored if stale; otherwise the position is reset, or the error is raised",
)
def test_duration_without_a_record_that_is_young_enough_starts_at_the_end(make_offsets, clock):
    parts = make_offsets(reset=OffsetResetStrategy.parse("by_duration:PT1M"))
    reset(parts)
    turn(parts)
    turn(parts)
    minute_ago = clock.wall_ms() - 60_000
    assert [timestamp for _, _, timestamp in asked(parts)] == [minute_ago, -1, minute_ago]
    assert position(parts).offset == 5


def test_duration_passes_over_no_record_that_comes_while_the_end_is_asked_for(make_offsets, monkeypatch):
    parts = make_offsets(reset=OffsetResetStrategy.parse("by_duration:PT1M"))
    answer, answers = parts.cluster._list_one, deque([None, 7, 6])

    def list_one(tp, timestamp):
        found = answer(tp, timestamp)
        found.offset = -1 if (offset := answers.popleft()) is None else offset
        return found

    monkeypatch.setattr(parts.cluster, "_list_one", list_one)
    reset(parts)
    turn(parts)
    turn(parts)
    assert position(parts).offset == 6


# ---- Offsets for the application --------------------------------------------------------------------------
def fetch(parts, timestamps, timeout_ms=1000):
    found = parts.offsets.fetch_offsets(timestamps, Timer(parts.clock, timeout_ms))
    return {tp: tuple(each) for tp, each in found.items()}


@pytest.mark.kafka(
    "OffsetFetcherTest.testBeginningOffsetsMultipleTopicPartitions",
    "OffsetFetcherTest.testEndOffsetsMultipleTopicPartitions",
)
def test_offsets_of_many_partitions_are_asked_of_each_leader_at_once(make_offsets):
    logs = {A0: FetchLog(simple_batch(0, 5)), A1: FetchLog(simple_batch(0, 7)), B0: FetchLog()}
    parts = make_offsets(logs, node_count=2)
    found = fetch(parts, dict.fromkeys(logs, int(OffsetSpec.LATEST)))
    assert {tp: offset for tp, (offset, _, _) in found.items()} == {A0: 5, A1: 7, B0: 0}
    assert [node for node, request in parts.cluster.requests if isinstance(request, ListOffsetsRequest)] == [
        0,
        1,
    ]


def test_nothing_is_asked_for_nothing(make_offsets):
    parts = make_offsets()
    assert fetch(parts, {}) == {}
    assert asked(parts) == []


@pytest.mark.kafka(
    "OffsetFetcherTest.testGetOffsetsForTimes",
    "OffsetFetcherTest.testGetOffsetsIncludesLeaderEpoch",
)
def test_time_leads_to_offset_timestamp_and_leader_epoch(make_offsets):
    parts = make_offsets()
    parts.cluster.leader_epochs[A0] = 3
    assert fetch(parts, {A0: 500}) == {A0: (0, 1000, 3)}
    assert fetch(parts, {A0: 5000}) == {A0: (-1, -1, 3)}


def test_old_messages_without_timestamps_have_no_offset_by_time(make_offsets):
    parts = make_offsets()
    parts.cluster.errors["list", A0].append(UnsupportedForMessageFormatError.errno)
    assert fetch(parts, {A0: 500}) == {A0: (-1, -1, -1)}


@pytest.mark.kafka(
    "OffsetFetcherTest.testGetOffsetsForTimes",
    "OffsetFetcherTest.testGetOffsetsFencedLeaderEpoch",
    "OffsetFetcherTest.testGetOffsetByTimeWithPartitionsRetryCouldTriggerMetadataUpdate",
    "OffsetFetcherTest.testGetOffsetsUnknownLeaderEpoch",
    "OffsetFetcherTest.testBatchedListOffsetsMetadataErrors",
)
@pytest.mark.parametrize("error", RETRIED)
def test_look_up_is_tried_again_until_it_is_answered(make_offsets, error):
    parts = make_offsets({A0: FetchLog(simple_batch(0, 5)), B0: FetchLog(simple_batch(0, 2))})
    parts.cluster.errors["list", A0].extend([error.errno, error.errno])
    assert {tp: found[0] for tp, found in fetch(parts, {A0: -1, B0: -1}).items()} == {A0: 5, B0: 2}
    assert [tp for _, tp, _ in asked(parts)] == [A0, B0, A0, A0]


@pytest.mark.kafka("OffsetFetcherTest.testGetOffsetsForTimesTimeout")
def test_look_up_in_vain_ends_in_time_and_says_why(make_offsets, clock, monkeypatch):
    parts = make_offsets()
    parts.cluster.errors["list", A0].extend([UnknownError.errno] * 20)
    answer = parts.cluster._list_offsets

    def after_a_while(*request):
        clock.advance(100)
        return answer(*request)

    monkeypatch.setattr(parts.cluster, "_list_offsets", after_a_while)
    with pytest.raises(
        KafkaTimeoutError, match=r"a-0 within 1000 ms \(bootstrap_servers=kafka:9092\)"
    ) as caught:
        fetch(parts, {A0: -1})
    assert isinstance(caught.value.__cause__, UnknownError)


def test_no_time_is_too_little(make_offsets):
    parts = make_offsets()
    parts.cluster.held.add(ListOffsetsRequest)
    with pytest.raises(KafkaTimeoutError):
        fetch(parts, {A0: -1}, timeout_ms=0)


@pytest.mark.kafka(
    "OffsetFetcherTest.testGetOffsetsForTimesWhenSomeTopicPartitionLeadersNotKnownInitially",
)
def test_leader_that_is_not_known_at_first_is_found_out(make_offsets):
    parts = make_offsets({A0: FetchLog(simple_batch(0, 5)), B0: FetchLog(simple_batch(0, 2))})
    parts.metadata._leaders[B0] = None
    assert {tp: found[0] for tp, found in fetch(parts, {A0: -1, B0: -1}).items()} == {A0: 5, B0: 2}


@pytest.mark.kafka(
    "OffsetFetcherTest.testGetOffsetsForTimesWhenSomeTopicPartitionLeadersDisconnectException",
)
def test_leader_that_hangs_up_is_asked_again_and_others_are_not(make_offsets, monkeypatch):
    parts = make_offsets({A0: FetchLog(simple_batch(0, 5)), A1: FetchLog(simple_batch(0, 7))}, node_count=2)
    answer, lost = parts.cluster.answer, deque([True])

    def answer_or_hang_up(node_id, request, age_ms):
        if node_id == 1 and isinstance(request, ListOffsetsRequest) and lost:
            lost.popleft()
            parts.client.disconnect_async(parts.cluster.nodes[1])
            return None
        return answer(node_id, request, age_ms)

    monkeypatch.setattr(parts.cluster, "answer", answer_or_hang_up)
    assert {tp: found[0] for tp, found in fetch(parts, {A0: -1, A1: -1}).items()} == {A0: 5, A1: 7}
    assert [node_id for node_id, _, _ in asked(parts)] == [0, 1, 1]


@pytest.mark.parametrize(
    ("level", "field"),
    [
        (IsolationLevel.READ_UNCOMMITTED, "high_watermark"),
        (IsolationLevel.READ_COMMITTED, "last_stable_offset"),
    ],
)
def test_end_that_was_looked_up_is_news_for_an_assigned_partition(make_offsets, level, field):
    parts = make_offsets(isolation_level=level)
    fetch(parts, {A0: int(OffsetSpec.EARLIEST)})
    assert getattr(parts.subscriptions.state(A0), field) is None
    fetch(parts, {A0: int(OffsetSpec.LATEST)})
    state = parts.subscriptions.state(A0)
    others = {"high_watermark", "last_stable_offset"} - {field}
    assert getattr(state, field) == 5
    assert all(getattr(state, each) is None for each in others)


@pytest.mark.kafka(
    "OffsetFetcherTest.testBeginningOffsets",
    "OffsetFetcherTest.testBeginningOffsetsDuplicateTopicPartition",
    "OffsetFetcherTest.testBeginningOffsetsEmpty",
    "OffsetFetcherTest.testEndOffsets",
    "OffsetFetcherTest.testEndOffsetsDuplicateTopicPartition",
    "OffsetFetcherTest.testEndOffsetsEmpty",
)
def test_facade_answers_for_duplicates_and_for_nothing(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 5)), B0: FetchLog()})
    assert consumer.beginning_offsets([]) == consumer.end_offsets([]) == consumer.offsets_for_times({}) == {}
    assert consumer.end_offsets([A0, A0, B0]) == {A0: 5, B0: 0}
    assert consumer.beginning_offsets(iter([A0, A0])) == {A0: 0}


def test_facade_leaves_out_what_a_broker_of_old_messages_cannot_tell(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 5))})
    consumer.model.errors["list", A0].extend([UnsupportedForMessageFormatError.errno] * 2)
    assert consumer.end_offsets([A0]) == {}
    assert consumer.offsets_for_times({A0: 5}) == {A0: None}


def test_every_offset_of_a_name_can_be_asked_for(make_offsets):
    parts = make_offsets()
    for spec in OffsetSpec:
        fetch(parts, {A0: int(spec)})
    assert [timestamp for _, _, timestamp in asked(parts)] == [-1, -2, -3, -4, -5]


# ---- Responses that do not match the request ---------------------------------------------------------------
def answered_by(parts, change):
    """Have ``change`` alter each ListOffsets response."""
    answer = parts.cluster._list_offsets

    def changed(node_id, request, age_ms):
        response = answer(node_id, request, age_ms)
        change(response.topics)
        return response

    parts.cluster._list_offsets = changed


def with_strangers(topics):
    of_topic = ListOffsetsResponse.ListOffsetsTopicResponse
    of_partition = ListOffsetsResponse.ListOffsetsPartitionResponse
    numbers = (-1, 1, 2**31 - 1)
    topics[0].partitions += [of_partition(partition_index=number, offset=7) for number in numbers]
    topics[0].partitions.append(of_partition(partition_index=3, error_code=29))
    topics.append(of_topic(name="stranger", partitions=[of_partition(partition_index=0, error_code=29)]))


def test_partitions_that_were_not_asked_for_are_ignored(make_offsets):
    parts = make_offsets({A0: FetchLog(simple_batch(0, 5)), A1: FetchLog()})
    answered_by(parts, with_strangers)
    reset(parts)
    assert position(parts) == FetchPosition(5)
    found = parts.offsets.fetch_offsets({A0: LATEST_OFFSET}, Timer(parts.clock, 1000))
    assert {tp: each.offset for tp, each in found.items()} == {A0: 5}


def test_partition_left_out_of_the_response_is_asked_again(make_offsets, clock):
    parts = make_offsets()
    answered_by(parts, lambda topics: topics.clear())
    reset(parts)
    assert parts.subscriptions.is_offset_reset_needed(A0)
    turn(parts)
    assert len(asked(parts)) == 1
    clock.advance(100)
    turn(parts)
    assert len(asked(parts)) == 2
    answered_by(parts, lambda topics: clock.advance(100))
    with pytest.raises(KafkaTimeoutError, match="could not look up the offsets of a-0"):
        parts.offsets.fetch_offsets({A0: LATEST_OFFSET}, Timer(parts.clock, 1000))


def test_negative_offset_is_an_unknown_one(make_offsets):
    parts = make_offsets()
    answered_by(parts, lambda topics: setattr(topics[0].partitions[0], "offset", -7))
    reset(parts)
    assert parts.subscriptions.is_offset_reset_needed(A0)
