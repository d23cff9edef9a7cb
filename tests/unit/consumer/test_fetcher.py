"""Fetcher: at most one fetch in flight per node, and the records it returns."""

import pytest
from model.fetch_log import ABORT, FetchLog, batch, marker, simple_batch, with_bad_crc
from model.fetching import collect, fetch, fetch_requests

from kafkacore.consumer.completed_fetch import ReadOptions
from kafkacore.consumer.deserializers import RecordDeserializationError
from kafkacore.consumer.subscription_state import FetchPosition, OffsetResetStrategy
from kafkacore.consumer.timer import Timer
from kafkacore.errors import (
    CorruptRecordError,
    FencedLeaderEpochError,
    InvalidRequestError,
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
    UnknownLeaderEpochError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol.generated.fetch import FetchRequest
from kafkacore.structs import IsolationLevel, TopicPartition

A0, A1, A2 = (TopicPartition("a", number) for number in range(3))
EARLIEST, NONE = OffsetResetStrategy.EARLIEST, OffsetResetStrategy.NONE


@pytest.mark.kafka(
    "FetcherTest.testFetchNormal",
    "FetcherTest.testSubscriptionPositionUpdatedWithEpoch",
    "FetchCollectorTest.testFetchNormal",
)
@pytest.mark.behaviour(
    "Fetcher",
    "a position moves past the last record, also over compacted records and empty batches",
)
def test_position_moves_behind_the_last_record(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 3, leader_epoch=2))})
    assert fetch(parts) == 1
    assert collect(parts) == {A0: [0, 1, 2]}
    assert parts.subscriptions.position(A0) == FetchPosition(3, 2)


@pytest.mark.kafka("FetcherTest.testUpdatePositionOnEmptyBatch")
@pytest.mark.behaviour(
    "Fetcher",
    "a position moves past the last record, also over compacted records and empty batches",
)
def test_position_moves_past_a_batch_without_records(make_fetcher):
    parts = make_fetcher({A0: FetchLog(batch([], base_offset=0, last_offset=4))})
    fetch(parts)
    assert parts.fetcher.collect_records(10).moved == {A0: 5}
    assert parts.subscriptions.position(A0).offset == 5


@pytest.mark.kafka(
    "FetcherTest.testFetchMaxPollRecords",
    "FetcherTest.testFetchMaxPollRecordsUnaligned",
)
@pytest.mark.behaviour(
    "Fetcher",
    "records beyond `max_poll_records` are kept for the next poll, across partitions",
)
def test_limit_carries_the_rest_over_across_partitions(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 3)), A1: FetchLog(simple_batch(0, 3))})
    fetch(parts)
    assert collect(parts, 2) == {A0: [0, 1]}
    assert collect(parts, 2) == {A0: [2], A1: [0]}
    assert collect(parts, 5) == {A1: [1, 2]}
    assert [parts.subscriptions.position(tp).offset for tp in (A0, A1)] == [3, 3]


@pytest.mark.kafka("FetcherTest.testParseInvalidRecordBatch")
@pytest.mark.behaviour(
    "Fetcher",
    "earlier records come first; then every poll raises the corrupt batch with its offset until a seek",
)
def test_corrupt_batch_raises_every_time_until_a_seek(make_fetcher):
    log = FetchLog(simple_batch(0, 2), with_bad_crc(simple_batch(2, 2)), simple_batch(4, 2))
    parts = make_fetcher({A0: log})
    fetch(parts)
    assert collect(parts) == {A0: [0, 1]}
    for _ in range(2):
        with pytest.raises(CorruptRecordError) as raised:
            collect(parts)
        assert (raised.value.topic_partition, raised.value.offset) == (A0, 2)
        assert parts.subscriptions.position(A0).offset == 2
    parts.subscriptions.seek(A0, FetchPosition(4))
    assert collect(parts) == {}
    fetch(parts)
    assert collect(parts) == {A0: [4, 5]}


@pytest.mark.kafka("FetcherTest.testFetchedRecordsRaisesOnSerializationErrors")
@pytest.mark.behaviour(
    "Fetcher",
    "a record that fails to deserialize stays before the position; a seek skips it",
)
def test_deserialization_error_does_not_move_the_position_and_a_later_seek_works(make_fetcher):
    def deserialize(topic, headers, data):
        if data == b"v1":
            raise ValueError(data)
        return data

    parts = make_fetcher({A0: FetchLog(simple_batch(0, 3))}, read=ReadOptions(value_deserializer=deserialize))
    fetch(parts)
    assert collect(parts) == {A0: [0]}
    for _ in range(2):
        with pytest.raises(RecordDeserializationError):
            collect(parts)
        assert parts.subscriptions.position(A0).offset == 1
    parts.subscriptions.seek(A0, FetchPosition(2))
    collect(parts)
    fetch(parts)
    assert collect(parts) == {A0: [2]}


@pytest.mark.kafka("FetcherTest.testFetchedRecordsAfterSeek")
@pytest.mark.behaviour(
    "Fetcher",
    "a response is dropped if the position has changed, or the partition is paused, revoked or reset",
)
def test_answer_for_an_old_position_is_dropped(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 5))})
    fetch(parts)
    parts.subscriptions.seek(A0, FetchPosition(3))
    assert collect(parts) == {}
    fetch(parts)
    assert collect(parts) == {A0: [3, 4]}


@pytest.mark.kafka(
    "FetcherTest.testClearBufferedDataForTopicPartitions",
    "FetcherTest.testFetchAfterPartitionWithFetchedRecordsIsUnassigned",
    "FetchCollectorTest.testCollectFetchInitializationWithUpdateHighWatermarkOnNotAssignedPartition",
    "FetchCollectorTest.testCollectFetchInitializationWithUpdateLogStartOffsetOnNotAssignedPartition",
    "FetchCollectorTest.testCollectFetchInitializationWithUpdateLastStableOffsetOnNotAssignedPartition",
    "SubscriptionStateTest.testTryUpdatingHighWatermark",
    "SubscriptionStateTest.testTryUpdatingLogStartOffset",
    "SubscriptionStateTest.testTryUpdatingLastStableOffset",
)
@pytest.mark.behaviour(
    "Fetcher",
    "a response is dropped if the position has changed, or the partition is paused, revoked or reset",
)
def test_answer_for_a_revoked_partition_is_dropped(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 5)), A1: FetchLog(simple_batch(0, 1))})
    fetch(parts)
    parts.subscriptions.assign_from_user([A1])
    assert collect(parts) == {A1: [0]}


@pytest.mark.kafka("FetchCollectorTest.testNoResultsIfInitializing")
@pytest.mark.behaviour(
    "Fetcher",
    "a response is dropped if the position has changed, or the partition is paused, revoked or reset",
)
def test_answer_for_a_partition_under_reset_is_dropped(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 5))})
    fetch(parts)
    parts.subscriptions.request_offset_reset(A0)
    assert collect(parts) == {}
    assert len(list(parts.fetcher._buffer)) == 0


@pytest.mark.kafka(
    "FetcherTest.testInFlightFetchOnPausedPartition",
    "FetcherTest.testFetchOnCompletedFetchesForPausedAndResumedPartitions",
    "FetchCollectorTest.testFetchingPausedPartitionsYieldsNoRecords",
)
@pytest.mark.behaviour(
    "Fetcher",
    "a response is dropped if the position has changed, or the partition is paused, revoked or reset",
)
def test_answer_for_a_paused_partition_waits_until_it_is_resumed(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 2)), A1: FetchLog(simple_batch(0, 2))})
    fetch(parts)
    parts.subscriptions.pause(A0)
    assert collect(parts) == {A1: [0, 1]}
    assert not parts.fetcher.has_available_fetches()
    parts.subscriptions.resume(A0)
    assert parts.fetcher.has_available_fetches()
    assert collect(parts) == {A0: [0, 1]}
    assert len(fetch_requests(parts)) == 1


@pytest.mark.kafka(
    "FetcherTest.testFetchOnPausedPartition",
    "OffsetFetcherTest.testUpdateFetchPositionOfPausedPartitionsWithAValidPosition",
)
def test_paused_partition_is_not_fetched(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 2))})
    parts.subscriptions.pause(A0)
    assert fetch(parts) == 0


@pytest.mark.kafka("FetcherTest.testStaleOutOfRangeError")
@pytest.mark.behaviour(
    "Fetcher",
    "an out-of-range error is ignored if stale; otherwise the position is reset, or the error is raised",
)
def test_stale_out_of_range_after_a_seek_is_ignored(make_fetcher):
    log = FetchLog(simple_batch(0, 5))
    parts = make_fetcher({A0: log}, reset=NONE)
    parts.subscriptions.seek(A0, FetchPosition(99))
    fetch(parts)
    parts.subscriptions.seek(A0, FetchPosition(2))
    assert collect(parts) == {}
    fetch(parts)
    assert collect(parts) == {A0: [2, 3, 4]}


@pytest.mark.kafka(
    "FetcherTest.testFetchOffsetOutOfRange",
    "FetchCollectorTest.testFetchWithOffsetOutOfRange",
)
@pytest.mark.behaviour(
    "Fetcher",
    "an out-of-range error is ignored if stale; otherwise the position is reset, or the error is raised",
)
def test_out_of_range_resets_by_policy(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 5))}, reset=EARLIEST)
    parts.subscriptions.seek(A0, FetchPosition(99))
    fetch(parts)
    assert collect(parts) == {}
    assert parts.subscriptions.partitions_needing_reset(parts.clock.monotonic_ms()) == {A0: EARLIEST}


@pytest.mark.kafka("FetcherTest.testFetchOffsetOutOfRangeException")
@pytest.mark.behaviour(
    "Fetcher",
    "an out-of-range error is ignored if stale; otherwise the position is reset, or the error is raised",
)
def test_out_of_range_without_policy_raises_with_the_offset(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 5))}, reset=NONE)
    parts.subscriptions.seek(A0, FetchPosition(99))
    fetch(parts)
    with pytest.raises(OffsetOutOfRangeError, match=r"position 99 of a-0"):
        collect(parts)
    assert parts.subscriptions.position(A0).offset == 99


@pytest.mark.kafka("FetcherTest.testFetchPositionAfterException")
@pytest.mark.behaviour("Fetcher", "an error in one partition loses no records of others")
def test_error_in_one_partition_loses_no_records_of_others(make_fetcher):
    logs = {tp: FetchLog(simple_batch(0, 2)) for tp in (A0, A1, A2)}
    parts = make_fetcher(logs)
    parts.cluster.errors["fetch", A1].append(TopicAuthorizationFailedError.errno)
    fetch(parts)
    assert collect(parts) == {A0: [0, 1]}
    with pytest.raises(TopicAuthorizationFailedError):
        collect(parts)
    assert collect(parts) == {A2: [0, 1]}
    fetch(parts)
    assert collect(parts) == {A1: [0, 1]}


@pytest.mark.behaviour(
    "Fetcher",
    "each node has one fetch in flight; the next one is sent before the last buffered records are returned",
)
def test_only_one_fetch_is_in_flight_per_node(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 1)), A1: FetchLog(simple_batch(0, 1))}, node_count=2)
    parts.cluster.held = {FetchRequest}
    assert parts.fetcher.send_fetches() == 2
    parts.client.poll_no_wakeup()
    assert parts.fetcher.send_fetches() == 0
    parts.cluster.held = set()
    parts.client.poll_no_wakeup()
    assert collect(parts) == {A0: [0], A1: [0]}
    assert parts.fetcher.send_fetches() == 2


@pytest.mark.behaviour(
    "Fetcher",
    "each node has one fetch in flight; the next one is sent before the last buffered records are returned",
)
def test_node_with_buffered_data_is_skipped(make_fetcher):
    logs = {A0: FetchLog(simple_batch(0, 4)), A1: FetchLog(), A2: FetchLog(simple_batch(0, 1))}
    parts = make_fetcher(logs, node_count=1)
    fetch(parts)
    assert collect(parts, 2) == {A0: [0, 1]}
    assert parts.fetcher.send_fetches() == 0
    collect(parts)
    assert parts.fetcher.send_fetches() == 1


def asked_offsets(parts):
    """Return the fetch offset of each partition in the last fetch request."""
    return {
        asked.partition: asked.fetch_offset
        for topic in fetch_requests(parts)[-1].topics
        for asked in topic.partitions
    }


def send_ahead(parts, max_records=None, end_offsets=None):
    sent = parts.fetcher.send_ahead(max_records, end_offsets)
    parts.client.transmit_sends()
    return sent


@pytest.mark.behaviour(
    "Fetcher",
    "each node has one fetch in flight; the next one is sent before the last buffered records are returned",
)
def test_next_fetch_leaves_before_the_last_records_are_collected(make_fetcher):
    logs = {A0: FetchLog(simple_batch(0, 3), batch([(3, None, b"v")], last_offset=6)), A1: FetchLog()}
    parts = make_fetcher(logs)
    fetch(parts)
    assert send_ahead(parts) == 1
    assert asked_offsets(parts) == {0: 7}
    assert parts.subscriptions.position(A0).offset == 0
    logs[A0].append(simple_batch(7, 2))
    assert collect(parts) == {A0: [0, 1, 2, 3]}
    assert fetch(parts) == 0
    assert collect(parts) == {A0: [7, 8]}


def test_nothing_is_sent_ahead_while_a_collect_may_leave_records(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 3), simple_batch(3, 3))})
    fetch(parts)
    assert send_ahead(parts, 5) == 0
    assert collect(parts, 5) == {A0: [0, 1, 2, 3, 4]}
    assert send_ahead(parts, 5) == 1
    assert asked_offsets(parts) == {0: 6}
    assert send_ahead(parts, 5) == 0


def test_seek_after_a_fetch_was_sent_ahead_drops_its_answer(make_fetcher):
    parts = make_fetcher(
        {A0: FetchLog(*(simple_batch(at, 3) for at in (0, 3, 6)))}, max_partition_fetch_bytes=1
    )
    fetch(parts)
    assert send_ahead(parts) == 1
    assert collect(parts) == {A0: [0, 1, 2]}
    parts.subscriptions.seek(A0, FetchPosition(7))
    fetch(parts)
    assert collect(parts) == {}
    fetch(parts)
    assert collect(parts) == {A0: [7, 8]}


def test_interrupted_collect_reads_again_what_it_was_sent_ahead_of(make_fetcher):
    parts = make_fetcher({A0: FetchLog(*(simple_batch(at, 3) for at in (0, 3)))}, max_partition_fetch_bytes=1)
    fetch(parts)
    assert send_ahead(parts) == 1
    collect(parts)
    parts.fetcher.rewind()
    fetch(parts)
    assert collect(parts) == {}
    fetch(parts)
    assert collect(parts) == {A0: [0, 1, 2]}
    fetch(parts)
    assert collect(parts) == {A0: [3, 4, 5]}


def test_partition_that_will_stand_at_its_end_is_not_fetched_ahead(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 3)), A1: FetchLog(simple_batch(0, 2))})
    fetch(parts)
    assert send_ahead(parts, None, {A0: 3, A1: 9}) == 1
    assert asked_offsets(parts) == {1: 2}
    assert send_ahead(parts, None, {A0: 3, A1: 2}) == 0


def test_corrupt_batch_and_refused_record_let_no_answers_pile_up(make_fetcher):
    def refuse(topic, headers, data):
        raise KeyError(data)

    for log, read in (
        (FetchLog(with_bad_crc(simple_batch(0, 2)), simple_batch(2, 2)), None),
        (FetchLog(simple_batch(0, 2), simple_batch(2, 2)), ReadOptions(value_deserializer=refuse)),
    ):
        parts = make_fetcher({A0: log}, read=read, max_partition_fetch_bytes=1)
        fetch(parts)
        for _ in range(5):
            send_ahead(parts)
            with pytest.raises((CorruptRecordError, RecordDeserializationError)):
                collect(parts)
            parts.client.poll_no_wakeup()
        assert len(fetch_requests(parts)) == 2
        assert len(parts.fetcher._buffer) == 2


def test_nothing_is_sent_ahead_of_an_error_or_another_replica(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 2)), A1: FetchLog(simple_batch(0, 2))})
    parts.cluster.errors["fetch", A1].append(UnknownLeaderEpochError.errno)
    fetch(parts)
    assert send_ahead(parts) == 0
    assert collect(parts) == {A0: [0, 1]}
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 2))}, node_count=2)
    parts.cluster.preferred[A0] = 1
    fetch(parts)
    assert send_ahead(parts) == 0


@pytest.mark.kafka("FetcherTest.testFetchSkipsBlackedOutNodes")
def test_fetch_of_a_node_that_is_down_is_not_tried_again_at_once(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 1))})
    parts.cluster.down = {0}
    assert fetch(parts) == 1
    assert fetch(parts) == 0
    parts.cluster.down = set()
    assert fetch(parts) == 1
    assert collect(parts) == {A0: [0]}


@pytest.mark.kafka(
    "FetcherTest.testSkippingAbortedTransactions",
    "FetcherTest.testConsumerPositionUpdatedWhenSkippingAbortedTransactions",
)
@pytest.mark.behaviour("Fetcher", "read_committed drops aborted and control records and moves past them")
def test_read_committed_drops_aborted_and_control_records_and_moves_past_them(make_fetcher):
    log = FetchLog(
        simple_batch(0, 2, producer_id=7, transactional=True), marker(2, 7, ABORT), simple_batch(3, 1)
    )
    log.aborted = [(7, 0)]
    parts = make_fetcher({A0: log}, read=ReadOptions(isolation_level=IsolationLevel.READ_COMMITTED))
    fetch(parts)
    assert fetch_requests(parts)[0].isolation_level == 1
    assert collect(parts) == {A0: [3]}
    assert parts.subscriptions.position(A0).offset == 4


@pytest.mark.kafka(
    "FetcherTest.testEpochSetInFetchRequest",
    "FetcherTest.testWhenFetchResponseReturnsALeaderShipChangeErrorButNoNewLeaderInformation",
)
@pytest.mark.behaviour(
    "Fetcher",
    "an error for a stale leader refreshes the metadata, and the new leader in the response is used",
)
@pytest.mark.parametrize(
    "error", [NotLeaderForPartitionError, FencedLeaderEpochError, UnknownTopicOrPartitionError]
)
def test_stale_leader_refreshes_metadata_and_backs_off(make_fetcher, error):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 1))})
    parts.cluster.errors["fetch", A0].append(error.errno)
    fetch(parts)
    before = parts.metadata.update_version
    assert collect(parts) == {}
    assert parts.metadata.is_update_due()
    assert fetch(parts) == 0, "the retry must wait for the back-off"
    assert parts.metadata.update_version == before + 1
    parts.clock.advance(100)
    assert fetch(parts) == 1
    assert collect(parts) == {A0: [0]}


@pytest.mark.kafka(
    "FetcherTest.testWhenFetchResponseReturnsALeaderShipChangeErrorAndNewLeaderInformation",
)
@pytest.mark.behaviour(
    "Fetcher",
    "an error for a stale leader refreshes the metadata, and the new leader in the response is used",
)
def test_leader_that_the_broker_hints_at_is_asked_at_once(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 1))}, node_count=2)
    parts.cluster.errors["fetch", A0].append(NotLeaderForPartitionError.errno)
    parts.cluster.hints[A0] = (1, 5)
    parts.metadata.cluster.held_metadata = True
    fetch(parts)
    assert collect(parts) == {}
    assert fetch(parts) == 1
    node, request = parts.cluster.requests[-1]
    assert (node, request.topics[0].partitions[0].current_leader_epoch) == (1, 5)
    assert collect(parts) == {A0: [0]}


def test_unknown_leader_epoch_is_retried(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 1))})
    parts.cluster.errors["fetch", A0].append(UnknownLeaderEpochError.errno)
    fetch(parts)
    assert collect(parts) == {}
    parts.clock.advance(100)
    fetch(parts)
    assert collect(parts) == {A0: [0]}


@pytest.mark.kafka("FetchCollectorTest.testFetchWithOtherErrors")
def test_unforeseen_error_is_raised_with_its_place(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 1))})
    parts.cluster.errors["fetch", A0].append(InvalidRequestError.errno)
    fetch(parts)
    with pytest.raises(InvalidRequestError, match=r"a-0 failed at offset 0"):
        collect(parts)


def test_unknown_leader_asks_for_metadata_instead_of_fetching(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 1))})
    parts.metadata._leaders[A0] = None
    assert parts.fetcher.send_fetches() == 0
    assert parts.metadata.is_update_due()


@pytest.mark.kafka(
    "FetcherTest.testPreferredReadReplica",
    "FetcherTest.testPreferredReadReplicaOffsetError",
    "FetchCollectorTest.testFetchWithReadReplica",
    "FetchCollectorTest.testFetchWithOffsetOutOfRangeWithPreferredReadReplica",
)
@pytest.mark.behaviour(
    "Fetcher",
    "the preferred replica is used until an error, a disconnect, its expiry or a new leader",
)
def test_preferred_replica_is_used_and_dropped_on_an_error(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 2))}, node_count=2)
    parts.cluster.preferred = {A0: 1}
    fetch(parts)
    assert collect(parts) == {}
    fetch(parts)
    assert collect(parts) == {A0: [0, 1]}
    assert [node for node, request in parts.cluster.requests if isinstance(request, FetchRequest)] == [0, 1]
    parts.cluster.errors["fetch", A0].append(OffsetOutOfRangeError.errno)
    fetch(parts)
    assert collect(parts) == {}
    assert parts.subscriptions.preferred_read_replica(A0, 0.0) is None
    assert parts.subscriptions.position(A0).offset == 2, "a lagging follower must not cause an offset reset"


@pytest.mark.kafka(
    "FetcherTest.testFetchDisconnected",
    "FetcherTest.testFetchDisconnectedShouldClearPreferredReadReplica",
)
@pytest.mark.behaviour(
    "Fetcher",
    "the preferred replica is used until an error, a disconnect, its expiry or a new leader",
)
def test_preferred_replica_is_dropped_on_a_disconnect(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 2))}, node_count=2)
    parts.subscriptions.update_preferred_read_replica(A0, 1, expires_ms=parts.clock.monotonic_ms() + 1000)
    parts.cluster.held = {FetchRequest}
    fetch(parts)
    parts.cluster.down = {1}
    parts.client.poll_no_wakeup()
    assert parts.subscriptions.preferred_read_replica(A0, 0.0) is None


@pytest.mark.kafka("FetcherTest.testFetchWithNoTopicId", "FetcherTest.testFetchWithTopicId")
@pytest.mark.parametrize(("version", "by_id"), [(12, False), (13, True)])
def test_topics_go_by_name_or_by_id(make_fetcher, version, by_id):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 1))})
    parts.cluster.fetch_version = version
    fetch(parts)
    (topic,) = fetch_requests(parts)[0].topics
    assert topic.topic == "a"
    assert (topic.topic_id.int != 0) == by_id
    assert collect(parts) == {A0: [0]}


@pytest.mark.kafka("FetcherTest.testConsumingViaIncrementalFetchRequests")
def test_session_sends_only_what_moved(make_fetcher):
    logs = {TopicPartition("a", number): FetchLog() for number in range(50)}
    logs[A0] = FetchLog(simple_batch(0, 1))
    parts = make_fetcher(logs)
    fetch(parts)
    collect(parts)
    fetch(parts, 600)
    first, second = fetch_requests(parts)
    assert sum(len(topic.partitions) for topic in first.topics) == 50
    assert [(topic.topic, len(topic.partitions)) for topic in second.topics] == [("a", 1)]
    assert second.session_epoch == 1


@pytest.mark.kafka(
    "SubscriptionStateTest.testTryUpdatingHighWatermark",
    "SubscriptionStateTest.testTryUpdatingLogStartOffset",
    "SubscriptionStateTest.testTryUpdatingLastStableOffset",
)
def test_metadata_of_the_answer_is_kept(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 3))})
    fetch(parts)
    collect(parts, 1)
    state = parts.subscriptions.state(A0)
    assert (state.high_watermark, state.last_stable_offset, state.log_start_offset) == (3, 3, 0)


@pytest.mark.kafka(
    "FetcherTest.testCloseShouldBeIdempotent",
    "FetcherTest.testFetcherCloseClosesFetchSessionsInBroker",
)
@pytest.mark.behaviour("Fetcher", "closing the fetcher closes each fetch session once")
def test_close_ends_sessions_once(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 1))})
    fetch(parts)
    parts.fetcher.close(Timer(parts.clock, 1000))
    parts.fetcher.close(Timer(parts.clock, 1000))
    closing = [request for request in fetch_requests(parts) if request.session_epoch == -1]
    assert [request.session_id for request in closing] == [100]
    assert not parts.client.has_pending_requests()


@pytest.mark.behaviour("Fetcher", "closing the fetcher closes each fetch session once")
def test_close_does_not_wait_for_a_fetch_that_waits_at_the_broker(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 1))})
    fetch(parts)
    collect(parts)
    parts.fetcher.send_fetches()
    assert parts.client.has_pending_requests()
    started = parts.clock.monotonic_ms()
    parts.fetcher.close(Timer(parts.clock, 30_000))
    assert parts.clock.monotonic_ms() == started
    assert [request for request in fetch_requests(parts) if request.session_epoch == -1] == []


def test_close_does_not_wait_for_a_broker_that_is_gone(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 1))})
    fetch(parts)
    parts.cluster.down = {0}
    started = parts.clock.monotonic_ms()
    parts.fetcher.close(Timer(parts.clock, 30_000))
    assert parts.clock.monotonic_ms() - started < 1000
