"""KafkaConsumer's lifecycle: invalid settings, threads, forks, interrupts, a broker that is down, close."""

import gc
import os
import threading
import warnings

import pytest
from model.consumer_cluster import read
from model.fetch_log import FetchLog, simple_batch

from kafkacore.consumer.kafka_consumer import KafkaConsumer
from kafkacore.consumer.listener import ConsumerRebalanceListener
from kafkacore.errors import (
    IllegalStateError,
    KafkaConfigurationError,
    KafkaTimeoutError,
    WakeupError,
)
from kafkacore.structs import TopicPartition

A0 = TopicPartition("a", 0)


def test_nothing_is_connected_or_asked_before_it_is_needed(make_consumer):
    consumer = make_consumer({A0: FetchLog()}, "a")
    consumer.unsubscribe()
    consumer.assign([A0])
    consumer.seek(A0, 0)
    assert consumer.network.polls == []
    assert consumer.model.requests == []


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
        with pytest.raises(KafkaTimeoutError, match=r"bootstrap_servers=.?down:9092,away:9093"):
            call()


def test_wakeup_interrupts_poll_once(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 1))}, "a")
    consumer.wakeup()
    with pytest.raises(WakeupError):
        consumer.poll(1000)
    assert read(consumer) == {A0: [0]}


@pytest.mark.behaviour(
    "ConsumerNetworkClient", "a wakeup raises once, even if wakeups were disabled in between"
)
def test_storm_of_wakeups_is_one_interruption_and_loses_nothing(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 6))}, "a")
    assert len(consumer.poll(1000, max_records=2)[A0]) == 2
    for _ in range(1000):
        consumer.wakeup()
    with pytest.raises(WakeupError):
        consumer.poll(1000)
    assert [record.offset for record in consumer.poll(1000)[A0]] == [2, 3, 4, 5]
    assert consumer.poll(0) == {}


@pytest.mark.parametrize("days", [1, -1])
def test_jump_of_the_wall_clock_changes_nothing(make_consumer, clock, monkeypatch, days):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 2))}, "a")
    assert len(consumer.poll(1000, max_records=1)[A0]) == 1
    before_ms, wall_ms = clock.monotonic_ms(), clock.wall_ms
    monkeypatch.setattr(clock, "wall_ms", lambda: wall_ms() + days * 86_400_000)
    assert len(consumer.poll(1000)[A0]) == 1
    assert consumer.poll(700) == {}
    assert clock.monotonic_ms() - before_ms == pytest.approx(700, abs=50)
    consumer.model.logs[A0].append(simple_batch(2, 1))
    assert [record.offset for record in consumer.poll(1000)[A0]] == [2]


@pytest.mark.kafka(
    "KafkaConsumerTest.testInvalidGroupMetadata",
    "KafkaConsumerTest.testPreventMultiThread",
)
def test_second_thread_is_refused_while_one_is_inside(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 1))}, "a")
    caught = []

    def intrude():
        for call in (
            lambda: consumer.poll(0),
            lambda: consumer.seek(A0, 0),
            lambda: consumer.pause(A0),
            lambda: consumer.assign([]),
            lambda: consumer.end_offsets([A0]),
        ):
            with pytest.raises(IllegalStateError, match=r"wakeup\(\)") as raised:
                call()
            caught.append(raised.value)
        # The listener waits for this thread, so its call cannot end.
        with pytest.raises(IllegalStateError, match="has not ended within 0 ms") as raised:
            consumer.close(timeout_ms=0)
        caught.append(raised.value)
        consumer.wakeup()

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked):
            pass

        def on_partitions_assigned(self, assigned):
            consumer.pause(A0)  # The owner may call it.
            thread = threading.Thread(target=intrude)
            thread.start()
            thread.join()

    consumer.subscribe(["a"], listener=Listener())
    with pytest.raises(WakeupError):
        consumer.poll(1000)
    assert len(caught) == 6
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

    def interrupted(*arguments, **how):
        if next(times, False):
            raise KeyboardInterrupt
        return poll(*arguments, **how)

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
    assert not consumer.network.closed, "the sockets belong to the parent process"


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


@pytest.mark.kafka("KafkaConsumerTest.testCloseShouldBeIdempotent")
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
