"""KafkaConsumer on a model cluster: assignments, positions, and the results of `poll`."""

import pickle

import pytest
from model.consumer_cluster import read
from model.fetch_log import FetchLog, simple_batch, with_bad_crc

from kafkacore.consumer.deserializers import RecordDeserializationError
from kafkacore.consumer.listener import ConsumerRebalanceListener
from kafkacore.errors import (
    CorruptRecordError,
    IllegalStateError,
    LogTruncationError,
    NoOffsetForPartitionError,
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
)
from kafkacore.protocol.generated.fetch import FetchRequest
from kafkacore.protocol.generated.list_offsets import ListOffsetsRequest
from kafkacore.protocol.generated.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kafkacore.structs import OffsetAndMetadata, OffsetAndTimestamp, TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_subscribed_topics_are_read_from_all_their_partitions(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 2)), A1: FetchLog(simple_batch(0, 1))}, "a")
    found = read(consumer)
    assert found == {A0: [0, 1], A1: [0]}
    assert consumer.assignment() == {A0, A1}
    assert consumer.subscription() == {"a"}


def test_added_partitions_of_a_subscribed_topic_are_followed(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 2))}, "a")
    assert read(consumer) == {A0: [0, 1]}
    consumer.model.logs[A1] = FetchLog(simple_batch(0, 1))
    consumer.model.leaders[A1] = 0
    consumer.known.request_update()
    assert read(consumer) == {A1: [0]}
    assert consumer.position(A0) == 2


def test_pattern_follows_matching_topics_and_leaves_internal_ones(make_consumer):
    internal = TopicPartition("__a", 0)
    consumer = make_consumer({A0: FetchLog(), B0: FetchLog(), internal: FetchLog()})
    consumer.subscribe(pattern=".*a")
    read(consumer, 10)
    assert consumer.assignment() == {A0}
    consumer.subscribe(pattern="^b")
    read(consumer, 10)
    assert consumer.assignment() == {B0}


def test_listener_is_told_of_what_comes_and_goes(make_consumer):
    calls = []

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked):
            calls.append(("revoked", set(revoked)))

        def on_partitions_assigned(self, assigned):
            calls.append(("assigned", set(assigned)))

    consumer = make_consumer({A0: FetchLog(), B0: FetchLog()})
    consumer.subscribe(["a"], listener=Listener())
    read(consumer, 10)
    consumer.subscribe(["b"], listener=Listener())
    read(consumer, 10)
    assert calls == [("assigned", {A0}), ("revoked", {A0}), ("assigned", {B0})]


@pytest.mark.behaviour(
    "Fetcher",
    "records beyond `max_poll_records` are kept for the next poll, across partitions",
)
def test_poll_limits_records_and_carries_the_rest_over(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 5))}, "a", max_poll_records=2)
    assert [read(consumer) for _ in range(3)] == [{A0: [0, 1]}, {A0: [2, 3]}, {A0: [4]}]
    consumer.seek(A0, 0)
    assert read(consumer, max_records=4) == {A0: [0, 1, 2, 3]}


@pytest.mark.behaviour(
    "Fetcher",
    "each node has one fetch in flight; the next one is sent before the last buffered records are returned",
)
def test_next_fetch_is_sent_before_records_are_handed_out(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 5))}, "a")
    read(consumer)
    fetches = consumer.model.requests_of(FetchRequest)
    assert len(fetches) == 2
    assert fetches[1].topics[0].partitions[0].fetch_offset == 5


def test_poll_without_news_returns_empty_at_its_time(make_consumer, clock):
    consumer = make_consumer({A0: FetchLog()}, "a")
    started = clock.monotonic_ms()
    assert consumer.poll(700) == {}
    assert clock.monotonic_ms() - started == pytest.approx(700)


def test_poll_without_assignment_returns_empty_at_its_time(make_consumer, clock):
    started = clock.monotonic_ms()
    assert make_consumer({}).poll(300) == {}
    assert clock.monotonic_ms() - started == pytest.approx(300)


def test_poll_keeps_the_position_if_asked_to(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 2))}, "a")
    assert read(consumer, update_offsets=False) == {A0: [0, 1]}
    assert consumer.position(A0) == 0
    assert read(consumer) == {A0: [0, 1]}
    assert consumer.position(A0) == 2


@pytest.mark.kafka("CompletedFetchTest.testNegativeFetchCount")
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"timeout_ms": -1}, ValueError),
        ({"max_records": 0}, ValueError),
        ({"max_records": 1.5}, TypeError),
        ({"max_records": True}, TypeError),
    ],
)
def test_poll_checks_its_arguments(make_consumer, arguments, error):
    with pytest.raises(error):
        make_consumer({}).poll(**arguments)


def test_latest_starts_behind_the_last_record(make_consumer):
    log = FetchLog(simple_batch(0, 2))
    consumer = make_consumer({A0: log}, "a", auto_offset_reset="latest")
    assert consumer.poll(300) == {}
    log.append(simple_batch(2, 1))
    assert read(consumer) == {A0: [2]}


def test_missing_position_without_reset_policy_raises(make_consumer):
    consumer = make_consumer({A0: FetchLog()}, auto_offset_reset="none")
    consumer.assign([A0])
    with pytest.raises(NoOffsetForPartitionError):
        consumer.poll(100)
    consumer.seek(A0, 0)
    assert consumer.poll(100) == {}


def test_seeking_by_name_is_looked_up_when_it_is_needed(make_consumer):
    log = FetchLog(simple_batch(0, 5))
    log.start_offset = 2
    consumer = make_consumer({A0: log})
    consumer.assign([A0])
    consumer.seek_to_end()
    assert consumer.position(A0) == 5
    consumer.seek_to_beginning(A0)
    assert consumer.position(A0) == 2
    assert len(consumer.model.requests_of(ListOffsetsRequest)) == 2


def test_seek_checks_its_arguments(make_consumer):
    consumer = make_consumer({A0: FetchLog()})
    for bad in (-1, 1.5, None):
        with pytest.raises(ValueError, match="offset"):
            consumer.seek(A0, bad)
    with pytest.raises(ValueError, match="not assigned"):
        consumer.seek(A0, 1)
    with pytest.raises(ValueError, match="not assigned"):
        consumer.seek_to_end(A0)
    with pytest.raises(ValueError, match="assigned"):
        consumer.seek_to_beginning()
    for call in (
        consumer.seek_to_end,
        consumer.pause,
        consumer.resume,
        consumer.position,
        consumer.highwater,
    ):
        with pytest.raises(TypeError, match="TopicPartition"):
            call(("a", 0))
    with pytest.raises(IllegalStateError):
        consumer.position(A0)


def test_seek_with_an_epoch_asks_the_leader_first(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 6, leader_epoch=3))})
    consumer.model.leader_epochs[A0] = 3
    consumer.assign([A0])
    consumer.seek(A0, OffsetAndMetadata(2, "", 1))
    assert read(consumer) == {A0: [2, 3, 4, 5]}
    (request,) = consumer.model.requests_of(OffsetForLeaderEpochRequest)
    assert request.topics[0].partitions[0].leader_epoch == 1
    consumer.seek(A0, OffsetAndMetadata(4))
    assert read(consumer) == {A0: [4, 5]}
    assert len(consumer.model.requests_of(OffsetForLeaderEpochRequest)) == 1
    for wrong in (OffsetAndMetadata(-1), OffsetAndMetadata("2"), 2.0, "2", None):
        with pytest.raises(ValueError, match="offset"):
            consumer.seek(A0, wrong)


def test_out_of_range_resets_or_raises(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 2))}, "a")
    consumer.poll(0)
    read(consumer)
    consumer.seek(A0, 77)
    assert read(consumer) == {A0: [0, 1]}
    strict = make_consumer({A0: FetchLog(simple_batch(0, 2))}, auto_offset_reset="none")
    strict.assign([A0])
    strict.seek(A0, 77)
    with pytest.raises(OffsetOutOfRangeError):
        strict.poll(1000)


def test_corrupt_batch_raises_until_a_seek_past_it(make_consumer):
    log = FetchLog(simple_batch(0, 2), with_bad_crc(simple_batch(2, 1)), simple_batch(3, 1))
    consumer = make_consumer({A0: log}, "a")
    assert read(consumer) == {A0: [0, 1]}
    for _ in range(2):
        with pytest.raises(CorruptRecordError) as raised:
            consumer.poll(1000)
        assert (raised.value.topic_partition, raised.value.offset) == (A0, 2)
    consumer.seek(A0, raised.value.offset + 1)
    assert read(consumer) == {A0: [3]}


def test_deserializers_make_keys_and_values(make_consumer):
    class Upper:
        closed = False

        def deserialize(self, topic, headers, data):
            return (topic, data.decode().upper())

        def close(self):
            self.closed = True

    upper = Upper()
    consumer = make_consumer(
        {A0: FetchLog(simple_batch(0, 1))}, "a", key_deserializer=upper, value_deserializer=bytes.decode
    )
    (record,) = consumer.poll(1000)[A0]
    assert (record.key, record.value) == (("a", "K0"), "v0")
    assert (record.serialized_key_size, record.serialized_value_size) == (2, 2)
    consumer.close()
    assert upper.closed


def test_deserialization_error_leaves_the_position_before_the_record(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 2))}, "a", value_deserializer=int)
    with pytest.raises(RecordDeserializationError) as raised:
        consumer.poll(1000)
    assert consumer.position(A0) == 0
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (copy.topic_partition, copy.offset, str(copy)) == (A0, 0, str(raised.value))


def test_paused_partition_gives_nothing_until_resumed(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 1)), A1: FetchLog(simple_batch(0, 1))})
    consumer.assign([A0, A1])
    consumer.pause(A0)
    assert consumer.paused() == {A0}
    assert read(consumer) == {A1: [0]}
    consumer.resume(A0)
    assert read(consumer) == {A0: [0]}


def test_reassignment_keeps_positions_and_drops_what_was_fetched(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 4)), B0: FetchLog(simple_batch(0, 2))})
    consumer.assign([A0, B0])
    assert read(consumer, max_records=2) == {A0: [0, 1]}
    consumer.assign([A0])
    assert read(consumer) == {A0: [2, 3]}
    consumer.assign([])
    assert consumer.assignment() == set()
    with pytest.raises(TypeError):
        consumer.assign([("a", 0)])


def test_highwater_is_known_after_a_fetch(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 4))})
    consumer.assign([A0])
    assert consumer.highwater(A0) is None
    read(consumer, max_records=1)
    assert consumer.highwater(A0) == 4


def test_offsets_are_looked_up_for_partitions_not_assigned(make_consumer):
    log = FetchLog(simple_batch(0, 5))
    log.start_offset = 1
    consumer = make_consumer({A0: log, B0: FetchLog()}, node_count=2)
    assert consumer.beginning_offsets([A0, B0]) == {A0: 1, B0: 0}
    assert consumer.end_offsets([A0, B0]) == {A0: 5, B0: 0}
    assert consumer.offsets_for_times({A0: 500, B0: 500}) == {A0: OffsetAndTimestamp(1, 1000, 0), B0: None}
    assert consumer.offsets_for_times({A0: 5000}) == {A0: None}
    with pytest.raises(ValueError, match="negative"):
        consumer.offsets_for_times({A0: -1})
    assert consumer.assignment() == set()


def test_look_up_is_retried_with_new_metadata_and_fails_for_good_errors(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 5))})
    consumer.model.errors["list", A0].append(NotLeaderForPartitionError.errno)
    assert consumer.end_offsets([A0]) == {A0: 5}
    assert len(consumer.model.requests_of(ListOffsetsRequest)) == 2
    consumer.model.errors["list", A0].append(TopicAuthorizationFailedError.errno)
    with pytest.raises(TopicAuthorizationFailedError):
        consumer.end_offsets([A0])


def test_first_position_is_looked_up_as_soon_as_the_leader_is_known(make_consumer, clock):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 2))})
    consumer.assign([A0])
    started_ms = clock.monotonic_ms()
    assert consumer.poll(1000)
    assert clock.monotonic_ms() - started_ms < consumer.config["retry_backoff_ms"]


def test_failed_reset_is_tried_again_or_raised(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 1))}, "a")
    consumer.model.errors["list", A0].append(NotLeaderForPartitionError.errno)
    assert read(consumer) == {A0: [0]}
    consumer.seek_to_beginning(A0)
    consumer.model.errors["list", A0].append(TopicAuthorizationFailedError.errno)
    with pytest.raises(TopicAuthorizationFailedError):
        consumer.poll(1000)


def test_topics_and_their_partitions_are_told(make_consumer):
    consumer = make_consumer({A0: FetchLog(), A1: FetchLog(), B0: FetchLog()})
    assert consumer.topics() == {"a", "b"}
    assert consumer.partitions_for_topic("a") == {0, 1}
    assert consumer.partitions_for_topic("c") == set()


@pytest.mark.behaviour(
    "FetchSessionHandler",
    "the first request of a session is full, later ones contain the changes",
)
def test_later_requests_of_a_thousand_partitions_name_only_the_one_that_changed(make_consumer):
    partitions = [TopicPartition("a", number) for number in range(1000)]
    consumer = make_consumer({tp: FetchLog() for tp in partitions}, fetch_max_wait_ms=10)
    consumer.assign(partitions)
    consumer.poll(50)
    first, *later = consumer.model.requests_of(FetchRequest)
    assert sum(len(topic.partitions) for topic in first.topics) == 1000
    assert len(later) >= 2
    assert not any(request.topics or request.forgotten_topics_data for request in later)
    consumer.model.requests.clear()
    consumer.model.logs[partitions[617]].append(simple_batch(0, 1))
    assert read(consumer) == {partitions[617]: [0]}
    consumer.poll(30)
    named = [
        (each.partition, each.fetch_offset)
        for request in consumer.model.requests_of(FetchRequest)
        for topic in request.topics
        for each in topic.partitions
    ]
    assert named == [(617, 1)]


def test_metrics_count_what_was_read(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 3))}, "a")
    read(consumer)
    counted = consumer.metrics()["consumer-fetch-manager-metrics"]
    assert counted["records-consumed-total"] == 3
    assert counted["bytes-consumed-total"] == len(simple_batch(0, 3))


@pytest.mark.kafka("FetcherTest.testTruncationDetected")
@pytest.mark.behaviour(
    "Fetcher",
    "a truncated log is detected by its leader epoch before the first fetch from the new leader",
)
def test_truncated_log_is_noticed_through_the_leader_epoch(make_consumer):
    log = FetchLog(simple_batch(0, 6, leader_epoch=1))
    consumer = make_consumer({A0: log}, "a")
    consumer.model.leader_epochs[A0] = 1
    assert read(consumer) == {A0: [0, 1, 2, 3, 4, 5]}
    # The new leader had only the first four records. It then appended others with epoch 2.
    log.batches = [simple_batch(0, 4, leader_epoch=1), simple_batch(4, 4, leader_epoch=2)]
    consumer.model.epoch_ends[A0] = 4
    consumer.model.leader_epochs[A0] = 2
    consumer.known.request_update()
    assert read(consumer) == {A0: [4, 5, 6, 7]}


@pytest.mark.behaviour(
    "Fetcher",
    "a truncated log is detected by its leader epoch before the first fetch from the new leader",
)
def test_truncated_log_without_reset_policy_raises_until_a_seek(make_consumer):
    log = FetchLog(simple_batch(0, 6, leader_epoch=1))
    consumer = make_consumer({A0: log}, auto_offset_reset="none")
    consumer.assign([A0])
    consumer.seek(A0, 0)
    read(consumer)
    log.batches = [simple_batch(0, 4, leader_epoch=1)]
    consumer.model.leader_epochs[A0] = 2
    consumer.known.request_update()
    for _ in range(2):
        with pytest.raises(LogTruncationError):
            consumer.poll(5000)
    consumer.seek(A0, 3)
    assert read(consumer) == {A0: [3]}
