"""OffsetValidator: detection of a truncated log before a position (KIP-320)."""

import pytest
from model.fetch_log import FetchLog, simple_batch

from kafkacore.consumer.fetcher import FetchConfig, Fetcher
from kafkacore.consumer.offset_reset import OffsetResetStrategy
from kafkacore.consumer.offset_validator import OffsetValidator
from kafkacore.consumer.subscription_state import FetchPosition, SubscriptionState
from kafkacore.errors import (
    FencedLeaderEpochError,
    LogTruncationError,
    NotLeaderForPartitionError,
    TopicAuthorizationFailedError,
    UnknownError,
    UnknownLeaderEpochError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from kafkacore.protocol.generated.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafkacore.structs import OffsetAndMetadata, TopicPartition

A0, A1, A2, B0 = (TopicPartition(*each) for each in [("a", 0), ("a", 1), ("a", 2), ("b", 0)])
EARLIEST, NONE = OffsetResetStrategy.EARLIEST, OffsetResetStrategy.NONE
WRITTEN_IN, LED_IN = 1, 4


@pytest.fixture
def make_validator(make_network_client):
    """Return a function ``make_validator()`` that creates the parts, including an OffsetValidator.

    Positions are at offset 3 with epoch 1, and the current leader epoch is 4.
    """

    def make(logs=None, node_count=1, reset=EARLIEST):
        logs = {A0: FetchLog(simple_batch(0, 5))} if logs is None else logs
        parts = make_network_client(logs, node_count=node_count)
        parts.cluster.leader_epochs.update(dict.fromkeys(logs, LED_IN))
        parts.subscriptions = SubscriptionState(reset)
        parts.validator = OffsetValidator(parts.client, parts.metadata, parts.subscriptions, parts.clock)
        parts.subscriptions.assign_from_user(logs)
        parts.metadata.set_topics({tp.topic for tp in logs})
        parts.client.poll_no_wakeup()
        parts.metadata.update()
        for tp in logs:
            parts.subscriptions.seek_unvalidated(tp, FetchPosition(3, WRITTEN_IN))
        return parts

    return make


def turn(parts):
    parts.validator.validate_if_needed()
    parts.client.poll_no_wakeup()
    parts.client.poll_no_wakeup()


def questions(parts):
    """Return node, partition, current leader epoch and record epoch of each OffsetForLeaderEpoch request."""
    return [
        (node_id, TopicPartition(topic.topic, each.partition), each.current_leader_epoch, each.leader_epoch)
        for node_id, request in parts.cluster.requests
        if isinstance(request, OffsetForLeaderEpochRequest)
        for topic in request.topics
        for each in topic.partitions
    ]


def position(parts, tp=A0):
    return parts.subscriptions.position(tp)


@pytest.mark.kafka(
    "OffsetFetcherTest.testOffsetValidationAwaitsNodeApiVersion",
    "SubscriptionStateTest.testSeekUnvalidatedWithOffsetEpoch",
    "SubscriptionStateTest.testMaybeCompleteValidation",
)
def test_position_of_an_older_epoch_is_confirmed_before_it_is_fetched_from(make_validator):
    parts = make_validator()
    parts.validator.notice_new_leaders()
    assert not parts.subscriptions.is_fetchable(A0)
    turn(parts)
    assert questions(parts) == [(0, A0, LED_IN, WRITTEN_IN)]
    assert parts.subscriptions.is_fetchable(A0)
    assert position(parts) == FetchPosition(3, WRITTEN_IN)
    turn(parts)
    assert len(questions(parts)) == 1


@pytest.mark.parametrize("position_before", [FetchPosition(3), FetchPosition(3, LED_IN)])
def test_position_without_epoch_or_of_the_leaders_own_needs_no_confirmation(make_validator, position_before):
    parts = make_validator()
    parts.subscriptions.seek_unvalidated(A0, position_before)
    turn(parts)
    assert questions(parts) == []
    assert parts.subscriptions.is_fetchable(A0)


@pytest.mark.kafka("OffsetFetcherTest.testOffsetValidationRequestGrouping")
def test_each_leader_is_asked_once_for_all_its_partitions(make_validator):
    logs = {tp: FetchLog(simple_batch(0, 5)) for tp in (A0, A1, A2, B0)}
    parts = make_validator(logs, node_count=2)
    turn(parts)
    assert sorted((node, tp) for node, tp, _, _ in questions(parts)) == [(0, A0), (0, A2), (0, B0), (1, A1)]
    assert len(parts.cluster.requests_of(OffsetForLeaderEpochRequest)) == 2
    assert all(parts.subscriptions.is_fetchable(tp) for tp in logs)


@pytest.mark.kafka(
    "OffsetFetcherTest.testOffsetValidationSkippedForOldBroker",
    "OffsetFetcherTest.testOffsetValidationSkippedForOldResponse",
    "SubscriptionStateTest.testMaybeValidatePositionForCurrentLeader",
)
@pytest.mark.parametrize("old", ["request", "answer"])
def test_broker_that_cannot_tell_is_read_on_from(make_validator, old, monkeypatch):
    parts = make_validator()
    if old == "answer":
        parts.cluster.fetch_version = 2
    else:
        deliver = parts.network._deliver

        def refuse(request, message, disconnected):
            if isinstance(request.request, OffsetForLeaderEpochRequest):
                request.callback, callback = None, request.callback
                response = deliver(request, message, disconnected)
                response.version_mismatch = UnsupportedVersionError("too old")
                callback(response)
                return response
            return deliver(request, message, disconnected)

        monkeypatch.setattr(parts.network, "_deliver", refuse)
    turn(parts)
    assert parts.subscriptions.is_fetchable(A0)
    assert position(parts) == FetchPosition(3, WRITTEN_IN)


def answer(parts, epoch, end_offset, monkeypatch):
    monkeypatch.setattr(
        parts.cluster,
        "_epoch_one",
        lambda tp, asked: OffsetForLeaderEpochResponse.EpochEndOffset(
            partition=tp.partition, leader_epoch=epoch, end_offset=end_offset
        ),
    )


@pytest.mark.kafka(
    "OffsetFetcherTest.testOffsetValidationresetPositionForUndefinedEpochWithDefinedResetPolicy",
    "OffsetFetcherTest.testOffsetValidationresetPositionForUndefinedOffsetWithDefinedResetPolicy",
    "OffsetFetcherTest.testOffsetValidationresetPositionForUndefinedEpochWithUndefinedResetPolicy",
    "OffsetFetcherTest.testOffsetValidationresetPositionForUndefinedOffsetWithUndefinedResetPolicy",
    "SubscriptionStateTest.testTruncationDetectionUnknownDivergentOffsetWithResetPolicy",
    "SubscriptionStateTest.testTruncationDetectionUnknownDivergentOffsetWithoutResetPolicy",
)
@pytest.mark.parametrize(("epoch", "end_offset"), [(-1, 2), (0, -1), (-1, -1)])
def test_log_that_does_not_know_the_epoch_is_begun_anew_or_raised(
    make_validator, epoch, end_offset, monkeypatch
):
    parts = make_validator()
    answer(parts, epoch, end_offset, monkeypatch)
    turn(parts)
    assert parts.subscriptions.is_offset_reset_needed(A0)
    parts = make_validator(reset=NONE)
    answer(parts, epoch, end_offset, monkeypatch)
    turn(parts)
    with pytest.raises(LogTruncationError) as caught:
        turn(parts)
    assert caught.value.divergent_offsets == {A0: None}


@pytest.mark.kafka(
    "OffsetFetcherTest.testOffsetValidationTriggerLogTruncationForBadOffsetWithUndefinedResetPolicy",
    "SubscriptionStateTest.testTruncationDetectionWithResetPolicy",
    "SubscriptionStateTest.testTruncationDetectionWithoutResetPolicy",
)
def test_cut_log_is_read_from_where_it_was_cut_or_raised_until_a_seek(make_validator, monkeypatch):
    parts = make_validator()
    answer(parts, WRITTEN_IN, 2, monkeypatch)
    turn(parts)
    assert position(parts) == FetchPosition(2, WRITTEN_IN)
    assert parts.subscriptions.is_fetchable(A0)
    parts = make_validator(reset=NONE)
    answer(parts, WRITTEN_IN, 2, monkeypatch)
    turn(parts)
    for _ in range(2):
        with pytest.raises(LogTruncationError, match=r"a-0 \(position 3 with.* epoch 1.*offset 2") as caught:
            turn(parts)
        assert caught.value.divergent_offsets == {A0: OffsetAndMetadata(2, "", WRITTEN_IN)}
        turn(parts)
    parts.subscriptions.seek(A0, FetchPosition(2))
    with pytest.raises(LogTruncationError):
        turn(parts)
    turn(parts)
    assert parts.subscriptions.is_fetchable(A0)


def test_all_logs_that_were_cut_are_in_one_error(make_validator, monkeypatch):
    parts = make_validator({tp: FetchLog(simple_batch(0, 5)) for tp in (A0, B0)}, reset=NONE)
    answer(parts, WRITTEN_IN, 1, monkeypatch)
    turn(parts)
    with pytest.raises(LogTruncationError) as caught:
        turn(parts)
    assert set(caught.value.divergent_offsets) == {A0, B0}


@pytest.mark.kafka(
    "OffsetFetcherTest.testSeekWithInFlightReset",
    "OffsetFetcherTest.testOffsetValidationHandlesSeekWithInflightOffsetForLeaderRequest",
)
def test_answer_after_a_seek_is_dropped(make_validator, monkeypatch):
    parts = make_validator()
    answer(parts, WRITTEN_IN, 0, monkeypatch)
    parts.cluster.held.add(OffsetForLeaderEpochRequest)
    turn(parts)
    parts.subscriptions.seek(A0, FetchPosition(4))
    parts.cluster.held.clear()
    turn(parts)
    assert position(parts) == FetchPosition(4)


@pytest.mark.kafka("OffsetFetcherTest.testOffsetValidationFencing")
@pytest.mark.behaviour(
    "Fetcher",
    "a truncated log is detected by its leader epoch before the first fetch from the new leader",
)
def test_answer_of_the_leader_before_confirms_nothing(make_validator, monkeypatch):
    parts = make_validator()
    parts.cluster.held.add(OffsetForLeaderEpochRequest)
    turn(parts)
    parts.cluster.leader_epochs[A0] = LED_IN + 1
    parts.metadata.update()
    parts.validator.notice_new_leaders()
    parts.cluster.held.clear()
    parts.client.poll_no_wakeup()
    parts.client.poll_no_wakeup()
    assert not parts.subscriptions.is_fetchable(A0)
    turn(parts)
    assert [each[2] for each in questions(parts)] == [LED_IN, LED_IN + 1]
    assert parts.subscriptions.is_fetchable(A0)


@pytest.mark.kafka("OffsetFetcherTest.testOffsetValidationFencing")
@pytest.mark.parametrize(
    "kind",
    [
        FencedLeaderEpochError,
        UnknownLeaderEpochError,
        NotLeaderForPartitionError,
        UnknownTopicOrPartitionError,
        UnknownError,
    ],
)
def test_errors_are_tried_again_after_the_back_off(make_validator, clock, monkeypatch, kind):
    parts = make_validator()
    monkeypatch.setattr(
        parts.cluster,
        "_epoch_one",
        lambda tp, asked: OffsetForLeaderEpochResponse.EpochEndOffset(partition=0, error_code=kind.errno),
    )
    version = parts.metadata.update_version
    turn(parts)
    turn(parts)
    assert not parts.subscriptions.is_fetchable(A0)
    assert len(questions(parts)) == 1
    assert parts.metadata.update_version > version
    monkeypatch.undo()
    clock.advance(100)
    turn(parts)
    assert parts.subscriptions.is_fetchable(A0)


def test_forbidden_topic_is_raised(make_validator, monkeypatch):
    parts = make_validator()
    monkeypatch.setattr(
        parts.cluster,
        "_epoch_one",
        lambda tp, asked: OffsetForLeaderEpochResponse.EpochEndOffset(
            partition=0, error_code=TopicAuthorizationFailedError.errno
        ),
    )
    turn(parts)
    with pytest.raises(TopicAuthorizationFailedError, match="'a'"):
        turn(parts)


def test_partition_that_an_answer_leaves_out_is_asked_about_again(make_validator, clock, monkeypatch):
    parts = make_validator()
    monkeypatch.setattr(parts.cluster, "_epochs", lambda *request: OffsetForLeaderEpochResponse(topics=[]))
    turn(parts)
    monkeypatch.undo()
    clock.advance(100)
    turn(parts)
    assert parts.subscriptions.is_fetchable(A0)


@pytest.mark.kafka("FetcherTest.testEpochSetInFetchRequest")
@pytest.mark.behaviour(
    "Fetcher",
    "a truncated log is detected by its leader epoch before the first fetch from the new leader",
)
def test_new_leader_confirms_the_position_before_anything_is_fetched_from_it(make_validator):
    parts = make_validator()
    turn(parts)
    fetcher = Fetcher(
        parts.client,
        parts.metadata,
        parts.subscriptions,
        FetchConfig(),
        parts.clock,
        notice_new_leaders=parts.validator.notice_new_leaders,
    )
    # A fetch response reports a new leader before the next turn validates positions.
    parts.metadata.update_partition_leadership({A0: (0, LED_IN + 1)}, [])
    parts.metadata.update_version += 1
    assert fetcher.send_fetches() == 0
    turn(parts)
    assert questions(parts)[-1] == (0, A0, LED_IN + 1, WRITTEN_IN)
    assert fetcher.send_fetches() == 1


def test_facade_looks_for_new_leaders_before_each_fetch(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 5, leader_epoch=1))}, "a")
    assert len(consumer.poll(1000)[A0]) == 5
    consumer.known.update_partition_leadership({A0: (0, 9)}, [])
    consumer.known.update_version += 1
    consumer._engine.fetcher.send_fetches()
    assert not consumer._engine.subscriptions.is_fetchable(A0)
