"""KafkaConsumer on a model cluster: what a program sees."""

import gc
import os
import pickle
import threading
import warnings

import pyarrow as pa
import pytest
from model.consumer_cluster import ModelCluster, ModelMetadata, ModelNetwork
from model.fetch_log import COMMIT, FetchLog, marker, simple_batch, with_bad_crc

from kafkacore.consumer import kafka_consumer
from kafkacore.consumer.deserializers import RecordDeserializationError
from kafkacore.consumer.kafka_consumer import KafkaConsumer
from kafkacore.consumer.listener import ConsumerRebalanceListener
from kafkacore.errors import (
    CorruptRecordError,
    IllegalStateError,
    KafkaConfigurationError,
    KafkaTimeoutError,
    LogTruncationError,
    NoOffsetForPartitionError,
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
    WakeupError,
)
from kafkacore.protocol.generated.fetch import FetchRequest
from kafkacore.protocol.generated.list_offsets import ListOffsetsRequest
from kafkacore.structs import OffsetAndTimestamp, TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


@pytest.fixture
def make_consumer(clock, monkeypatch):
    """``make_consumer(logs, *topics, **configs)`` → a consumer; ``.model`` is its cluster."""
    made = []

    def make(logs, *topics, node_count=1, **configs):
        cluster = ModelCluster(clock, logs, node_count=node_count)
        metadata = ModelMetadata(cluster)
        network = ModelNetwork(cluster, metadata)
        monkeypatch.setattr(kafka_consumer, "_connectable", lambda config, clock: (network, metadata))
        consumer = KafkaConsumer(*topics, clock=clock, **{"auto_offset_reset": "earliest"} | configs)
        consumer.model, consumer.network, consumer.known = cluster, network, metadata
        made.append(consumer)
        return consumer

    yield make
    for consumer in made:
        consumer.close(timeout_ms=0)


def read(consumer, timeout_ms=1000, **limits):
    """Partition → offsets of one poll."""
    return {
        tp: [record.offset for record in records]
        for tp, records in consumer.poll(timeout_ms, **limits).items()
    }


def read_columns(consumer, timeout_ms=1000, **limits):
    found = consumer.poll_arrow(timeout_ms, columns=("offset",), **limits)
    return {tp: pa.record_batch(columns).column(0).to_pylist() for tp, columns in found.items()}


def test_nothing_is_connected_or_asked_before_it_is_needed(make_consumer):
    consumer = make_consumer({A0: FetchLog()}, "a")
    consumer.unsubscribe()
    consumer.assign([A0])
    consumer.seek(A0, 0)
    assert consumer.network.polls == []
    assert consumer.model.requests == []


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
    told = []

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked):
            told.append(("revoked", set(revoked)))

        def on_partitions_assigned(self, assigned):
            told.append(("assigned", set(assigned)))

    consumer = make_consumer({A0: FetchLog(), B0: FetchLog()})
    consumer.subscribe(["a"], listener=Listener())
    read(consumer, 10)
    consumer.subscribe(["b"], listener=Listener())
    read(consumer, 10)
    assert told == [("assigned", {A0}), ("revoked", {A0}), ("assigned", {B0})]


@pytest.mark.parametrize(
    "start",
    [
        lambda make: make({}, "a", group_id="g"),
        lambda make: make({}, group_id="g").subscribe(["a"]),
    ],
)
def test_group_membership_is_refused_with_a_sentence(make_consumer, start):
    with pytest.raises(KafkaConfigurationError, match="group_id=None"):
        start(make_consumer)


def test_poll_limits_records_and_carries_the_rest_over(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 5))}, "a", max_poll_records=2)
    assert [read(consumer) for _ in range(3)] == [{A0: [0, 1]}, {A0: [2, 3]}, {A0: [4]}]
    consumer.seek(A0, 0)
    assert read(consumer, max_records=4) == {A0: [0, 1, 2, 3]}


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


def test_broker_that_is_down_gives_empty_polls_and_named_time_outs(make_consumer, clock):
    consumer = make_consumer({A0: FetchLog()}, bootstrap_servers=["down:9092", "away:9093"])
    consumer.model.down = {0}
    consumer.assign([A0])
    started = clock.monotonic_ms()
    assert consumer.poll(500) == {}
    assert clock.monotonic_ms() - started == pytest.approx(500)
    for call in (
        lambda: consumer.position(A0, timeout_ms=500),
        lambda: consumer.beginning_offsets([A0], timeout_ms=500),
        lambda: consumer.end_offsets([A0]),
        lambda: consumer.offsets_for_times({A0: 0}, timeout_ms=500),
        lambda: consumer.topics(timeout_ms=500),
        lambda: consumer.partitions_for_topic("a", timeout_ms=500),
        lambda: consumer.bootstrap(timeout_ms=500),
    ):
        with pytest.raises(KafkaTimeoutError, match="bootstrap_servers=down:9092,away:9093"):
            call()


def test_iteration_gives_every_record_and_ends_at_its_time(make_consumer):
    logs = {A0: FetchLog(simple_batch(0, 3)), A1: FetchLog(simple_batch(0, 2))}
    consumer = make_consumer(logs, "a", consumer_timeout_ms=300, max_poll_records=2)
    found = [(record.partition, record.offset) for record in consumer]
    assert sorted(found) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    logs[A0].append(simple_batch(3, 1))
    assert [record.offset for record in consumer] == [3]


def test_position_follows_an_iteration_record_by_record(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 3), marker(3, 1, COMMIT))}, "a")
    positions = []
    for record in consumer:
        positions.append(consumer.position(A0))
        if record.offset == 2:
            break
    assert positions == [1, 2, 4], "behind the last record and the marker that follows it"


def test_broken_off_iteration_is_continued_by_poll_without_loss(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 3)), A1: FetchLog(simple_batch(0, 3))}, "a")
    first = next(consumer)
    assert first.offset == 0
    rest = read(consumer)
    for tp, offsets in read(consumer).items():
        rest.setdefault(tp, []).extend(offsets)
    seen = {tp: ([0] if tp.partition == first.partition else []) + rest[tp] for tp in (A0, A1)}
    assert seen == {A0: [0, 1, 2], A1: [0, 1, 2]}


def test_seek_within_an_iteration_takes_effect_at_once(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 5))}, "a", consumer_timeout_ms=1000)
    found = []
    for record in consumer:
        found.append(record.offset)
        if found == [0, 1]:
            consumer.seek(A0, 4)
    assert found == [0, 1, 4]


def test_wakeup_interrupts_poll_once(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 1))}, "a")
    consumer.wakeup()
    with pytest.raises(WakeupError):
        consumer.poll(1000)
    assert read(consumer) == {A0: [0]}


def test_second_thread_is_refused_while_one_is_inside(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 1))}, "a")
    caught = []

    def intrude():
        for call in (lambda: consumer.poll(0), lambda: consumer.seek(A0, 0), consumer.close, consumer.paused):
            with pytest.raises(IllegalStateError, match=r"wakeup\(\)") as raised:
                call()
            caught.append(raised.value)
        consumer.wakeup()

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked):
            pass

        def on_partitions_assigned(self, assigned):
            consumer.pause(A0)  # The owner may.
            thread = threading.Thread(target=intrude)
            thread.start()
            thread.join()

    consumer.subscribe(["a"], listener=Listener())
    with pytest.raises(WakeupError):
        consumer.poll(1000)
    assert len(caught) == 4
    consumer.resume(A0)
    assert read(consumer) == {A0: [0]}


def test_other_thread_may_use_it_afterwards(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 1))}, "a")
    consumer.poll(0)
    found = []
    thread = threading.Thread(target=lambda: found.append(read(consumer)))
    thread.start()
    thread.join()
    assert found == [{A0: [0]}]


def test_interrupted_poll_leaves_it_usable_and_loses_nothing(make_consumer, monkeypatch):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 3))}, "a")
    poll = consumer.network.poll
    times = iter([False, False, True])

    def interrupted(timeout_ms, now_ms):
        if next(times, False):
            raise KeyboardInterrupt
        return poll(timeout_ms, now_ms)

    monkeypatch.setattr(consumer.network, "poll", interrupted)
    assert consumer.poll(0) == {}
    assert consumer.poll(0) == {}
    with pytest.raises(KeyboardInterrupt):
        consumer.poll(100)
    assert read(consumer) == {A0: [0, 1, 2]}
    consumer.close()


def test_forked_child_is_refused_with_a_sentence(make_consumer, monkeypatch):
    consumer = make_consumer({A0: FetchLog()}, "a")
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    with pytest.raises(IllegalStateError, match="after the fork"):
        consumer.poll(0)
    consumer.close()
    assert not consumer.network.closed, "the sockets are the parent's"


def test_unclosed_consumer_warns_once_and_closes_its_sockets(make_consumer):
    consumer = make_consumer({A0: FetchLog()}, "a")
    network = consumer.network
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        KafkaConsumer.__del__(consumer)
        KafkaConsumer.__del__(consumer)
        gc.collect()
    assert [warning.category for warning in caught if "KafkaConsumer" in str(warning.message)] == [
        ResourceWarning
    ]
    assert network.closed


def test_closed_consumer_refuses_use_and_closes_once(make_consumer):
    with make_consumer({A0: FetchLog()}, "a") as consumer:
        consumer.poll(0)
    consumer.close()
    assert consumer.network.closed
    for call in (
        lambda: consumer.poll(0),
        lambda: consumer.subscribe(["b"]),
        lambda: consumer.end_offsets([A0]),
        consumer.topics,
    ):
        with pytest.raises(IllegalStateError, match="closed"):
            call()
    assert list(consumer) == []


def test_unknown_argument_is_refused_with_the_nearest_name(make_consumer):
    with pytest.raises(KafkaConfigurationError, match="max_poll_records"):
        make_consumer({}, max_pol_records=3)


@pytest.mark.parametrize(
    "configs",
    [
        {"auto_offset_reset": "newest"},
        {"isolation_level": "dirty"},
        {"max_poll_records": 0},
        {"fetch_max_wait_ms": 40_000},
        {"request_timeout_ms": 600_000},
        {"group_instance_id": "x"},
    ],
)
def test_impossible_values_are_refused_by_name(make_consumer, configs):
    with pytest.raises(KafkaConfigurationError, match=next(iter(configs))):
        make_consumer({}, **configs)


def test_metrics_count_what_was_read(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 3))}, "a")
    read(consumer)
    counted = consumer.metrics()["consumer-fetch-manager-metrics"]
    assert counted["records-consumed-total"] == 3
    assert counted["bytes-consumed-total"] == len(simple_batch(0, 3))


def test_columns_of_all_partitions_come_at_once(make_consumer):
    consumer = make_consumer(
        {A0: FetchLog(simple_batch(0, 2), simple_batch(2, 2)), A1: FetchLog(simple_batch(0, 1))}, "a"
    )
    found = read_columns(consumer)
    assert found == {A0: [0, 1, 2, 3], A1: [0]}
    assert [consumer.position(tp) for tp in (A0, A1)] == [4, 1]


def test_columns_come_in_the_order_asked_for(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(5, 1))}, "a")
    consumer.model.logs[A0].start_offset = 5
    (columns,) = consumer.poll_arrow(
        1000, columns=("value", "offset", "timestamp"), timestamp_unit="us"
    ).values()
    batch = pa.record_batch(columns)
    assert batch.schema.names == ["value", "offset", "timestamp"]
    assert batch.column(0).to_pylist() == [b"v5"]
    assert batch.schema.field("timestamp").type == pa.timestamp("us")


def test_columns_stop_at_end_offsets_and_the_call_returns_there(make_consumer, clock):
    log = FetchLog(simple_batch(0, 4), marker(4, 1, COMMIT), simple_batch(5, 3))
    consumer = make_consumer({A0: log, A1: FetchLog(simple_batch(0, 9))})
    consumer.assign([A0, A1])
    ends = {A0: 5, A1: 3}
    assert read_columns(consumer, end_offsets=ends) == {A0: [0, 1, 2, 3], A1: [0, 1, 2]}
    assert [consumer.position(tp) for tp in (A0, A1)] == [5, 3]
    started = clock.monotonic_ms()
    assert read_columns(consumer, 5000, end_offsets=ends) == {}
    assert clock.monotonic_ms() == started, "nothing is left to wait for"
    assert read_columns(consumer, end_offsets={A0: 7, A1: 4}) == {A0: [5, 6], A1: [3]}


def test_columns_up_to_an_end_behind_control_records_return_without_rows(make_consumer, clock):
    consumer = make_consumer({A0: FetchLog(marker(0, 1, COMMIT), simple_batch(1, 1))})
    consumer.assign([A0])
    started = clock.monotonic_ms()
    assert read_columns(consumer, 5000, end_offsets={A0: 1}) == {}
    assert consumer.position(A0) == 1
    assert clock.monotonic_ms() - started < 1000


def test_columns_limit_is_carried_over(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 5))}, "a")
    assert [read_columns(consumer, max_records=2) for _ in range(3)] == [
        {A0: [0, 1]},
        {A0: [2, 3]},
        {A0: [4]},
    ]


def test_truncated_log_is_noticed_through_the_leader_epoch(make_consumer):
    log = FetchLog(simple_batch(0, 6, leader_epoch=1))
    consumer = make_consumer({A0: log}, "a")
    consumer.model.leader_epochs[A0] = 1
    assert read(consumer) == {A0: [0, 1, 2, 3, 4, 5]}
    # A new leader had only four of them, and took two others.
    log.batches = [simple_batch(0, 4, leader_epoch=1), simple_batch(4, 4, leader_epoch=2)]
    consumer.model.epoch_ends[A0] = 4
    consumer.model.leader_epochs[A0] = 2
    consumer.known.request_update()
    assert read(consumer) == {A0: [4, 5, 6, 7]}


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
