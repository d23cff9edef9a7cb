"""Values of ``KafkaConsumer.metrics()`` on a model cluster and a virtual clock; names are kafka-python's."""

import math
from types import SimpleNamespace
from typing import ClassVar

import kafka.metrics
import pytest
from kafka.consumer.fetcher import FetchManagerMetrics
from kafka.coordinator.base import GroupCoordinatorMetrics
from kafka.coordinator.consumer import ConsumerCoordinatorMetrics
from kafka.net.metrics import KafkaConnectionMetrics, KafkaManagerMetrics
from model.consumer_cluster import read
from model.fetch_log import FetchLog, simple_batch

from kafkacore.consumer.group_metrics import CountedGroupMetrics, NoGroupMetrics
from kafkacore.errors import OffsetOutOfRangeError
from kafkacore.metrics import DictReporter, MetricConfig, Metrics
from kafkacore.structs import TopicPartition
from kafkacore.testing import VirtualClock

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b.c", 0)
FETCH = "consumer-fetch-manager-metrics"
GROUP = "consumer-coordinator-metrics"


def of_fetch(consumer, name, *of):
    return consumer.metrics()[".".join([FETCH, *of])][name]


@pytest.mark.kafka("FetcherTest.testFetcherMetricsTemplates")
def test_every_metric_of_kafka_python_is_there(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 1))}, "a")
    read(consumer)
    registry = kafka.metrics.Metrics()
    FetchManagerMetrics(registry, "consumer")
    heartbeat = SimpleNamespace(last_send=0)
    GroupCoordinatorMetrics(heartbeat, registry, "consumer")
    ConsumerCoordinatorMetrics(registry, "consumer", None)
    KafkaManagerMetrics(registry, "consumer", {})
    KafkaConnectionMetrics(registry, "consumer", 0)
    wanted = {(name.group, name.name) for name in registry.metrics if "node" not in name.group}
    ours = {(group, name) for group, names in consumer.metrics().items() for name in names}
    assert len(wanted) > 35
    assert wanted - ours == set()


@pytest.mark.kafka(
    "FetcherTest.testFetchResponseMetrics",
    "FetcherTest.testFetchResponseMetricsWithSkippedOffset",
)
def test_a_response_is_counted_once_all_of_it_is_taken(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 3)), B0: FetchLog(simple_batch(0, 4))}, "a", "b.c")
    read(consumer, max_records=3)
    assert of_fetch(consumer, "records-consumed-total") == 0
    read(consumer)
    assert of_fetch(consumer, "records-consumed-total") == 7
    assert of_fetch(consumer, "records-per-request-avg") == 7
    assert of_fetch(consumer, "records-consumed-total", "a") == 3
    assert of_fetch(consumer, "records-consumed-total", "b.c") == 4
    size = len(simple_batch(0, 3)) + len(simple_batch(0, 4))
    assert of_fetch(consumer, "fetch-size-max") == of_fetch(consumer, "bytes-consumed-total") == size
    assert of_fetch(consumer, "fetch-size-avg", "a") == len(simple_batch(0, 3))


@pytest.mark.kafka("FetcherTest.testFetchResponseMetrics")
def test_partitions_of_topics_that_take_turns_are_told_apart(make_consumer):
    logs = {tp: FetchLog(simple_batch(0, 2)) for tp in (A0, B0, A1)}
    consumer = make_consumer(logs)
    consumer.assign([A0, B0, A1])
    while sum(len(offsets) for offsets in read(consumer).values()):
        continue
    assert of_fetch(consumer, "records-consumed-total", "a") == 4
    assert of_fetch(consumer, "records-consumed-total", "b.c") == 2


@pytest.mark.kafka("FetcherTest.testFetchResponseMetricsWithOnePartitionAtTheWrongOffset")
def test_what_is_not_taken_is_not_counted(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 3)), A1: FetchLog(simple_batch(0, 3))}, "a")
    assert read(consumer, max_records=3) == {A0: [0, 1, 2]}
    consumer.seek(A1, 1)
    read(consumer)
    assert of_fetch(consumer, "records-consumed-total") == 3 + 2


@pytest.mark.kafka("FetcherTest.testFetchResponseMetricsWithOnePartitionError")
def test_a_response_is_counted_though_a_partition_of_it_is_an_error(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 3)), A1: FetchLog(simple_batch(0, 3))}, "a")
    consumer.model.errors["fetch", A1].append(OffsetOutOfRangeError.errno)
    assert read(consumer) == {A0: [0, 1, 2]}
    assert of_fetch(consumer, "fetch-size-max") == len(simple_batch(0, 3))
    assert of_fetch(consumer, "records-consumed-total") == 3


def test_columns_are_counted_as_records_are(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 3), simple_batch(3, 3))}, "a")
    while not consumer.poll_arrow(1000):
        continue
    assert of_fetch(consumer, "records-consumed-total") == 6
    assert of_fetch(consumer, "records-lag-max") == 0


@pytest.mark.kafka("FetcherTest.testFetcherMetrics", "FetcherTest.testFetcherLeadMetric")
def test_lag_and_lead_are_the_distances_to_both_ends(make_consumer):
    log = FetchLog(simple_batch(0, 5), simple_batch(5, 5))
    log.start_offset = 2
    consumer = make_consumer({A0: log}, "a")
    read(consumer, max_records=4)
    assert of_fetch(consumer, "records-lag", "a", "0") == 4
    assert of_fetch(consumer, "records-lead", "a", "0") == 4
    read(consumer)
    assert of_fetch(consumer, "records-lag", "a", "0") == 0
    assert of_fetch(consumer, "records-lag-max", "a", "0") == of_fetch(consumer, "records-lag-max") == 4
    assert of_fetch(consumer, "records-lead-min") == 4
    assert of_fetch(consumer, "records-lag-avg", "a", "0") == 2


@pytest.mark.kafka("FetcherTest.testReadCommittedLagMetric")
def test_lag_ends_at_the_last_stable_offset_when_committed_records_are_read(make_consumer, monkeypatch):
    log = FetchLog(simple_batch(0, 3))
    consumer = make_consumer({A0: log}, "a", isolation_level="read_committed")
    answer = consumer.model._fetch_one

    def with_open_transaction(node_id, tp, asked):
        data = answer(node_id, tp, asked)
        data.high_watermark = 50
        return data

    monkeypatch.setattr(consumer.model, "_fetch_one", with_open_transaction)
    read(consumer)
    assert of_fetch(consumer, "records-lag", "a", "0") == 0


@pytest.mark.kafka("FetcherTest.testFetcherMetrics")
def test_figures_of_a_partition_go_with_it(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 3)), A1: FetchLog(simple_batch(0, 3))})
    consumer.assign([A0, A1])
    read(consumer)
    assert f"{FETCH}.a.1" in consumer.metrics()
    consumer.assign([A0])
    assert f"{FETCH}.a.0" in consumer.metrics()
    assert f"{FETCH}.a.1" not in consumer.metrics()
    consumer.assign([A0, A1])
    consumer.seek(A1, 2)
    read(consumer)
    assert of_fetch(consumer, "records-lead-avg", "a", "1") == 3


def test_preferred_replica_is_told(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 3))}, "a", node_count=2)
    read(consumer)
    assert of_fetch(consumer, "preferred-read-replica", "a", "0") == -1
    consumer.model.preferred[A0] = 1
    consumer.poll(600)
    consumer.poll(600)
    assert of_fetch(consumer, "preferred-read-replica", "a", "0") == 1


def test_polls_are_counted_and_how_long_they_last(make_consumer, clock):
    consumer = make_consumer({A0: FetchLog()})
    assert consumer.metrics()["consumer-metrics"]["last-poll-seconds-ago"] == -1
    consumer.assign([A0])
    consumer.poll(0)
    clock.advance(3000)
    consumer.poll(1000)
    clock.advance(5000)
    figures = consumer.metrics()["consumer-metrics"]
    assert figures["time-between-poll-max"] == pytest.approx(3000, abs=50)
    assert figures["last-poll-seconds-ago"] == pytest.approx(6.0, abs=0.05)
    assert figures["poll-idle-ratio-avg"] == pytest.approx((0 + 0.25) / 2, abs=0.02)


@pytest.mark.kafka("FetcherTest.testQuotaMetrics")
def test_latency_and_throttling_of_fetches_are_counted(make_consumer, monkeypatch):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 3))}, "a")
    answer = consumer.model._fetch

    def throttled(node_id, request, age_ms):
        response = answer(node_id, request, age_ms)
        if response is not None:
            response.throttle_time_ms = 250
        return response

    monkeypatch.setattr(consumer.model, "_fetch", throttled)
    read(consumer)
    assert of_fetch(consumer, "fetch-total") == 1
    assert of_fetch(consumer, "fetch-latency-avg") == of_fetch(consumer, "fetch-latency-max") == 1.0
    assert of_fetch(consumer, "fetch-throttle-time-max") == 250


def test_raw_metrics_have_names_with_tags_and_can_be_asked_again(make_consumer):
    consumer = make_consumer({B0: FetchLog(simple_batch(0, 3))}, "b.c", client_id="me")
    read(consumer)
    raw = consumer.metrics(raw=True)
    (lag,) = (
        metric for name, metric in raw.items() if name.name == "records-lag" and "partition" in name.tags
    )
    assert lag.metric_name.tags == {"client-id": "me", "topic": "b.c", "partition": "0"}
    assert lag.metric_name.group == FETCH
    assert lag.value() == 0


def test_metrics_can_be_turned_off_and_named_otherwise(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 3))}, "a", metrics_enabled=False)
    assert read(consumer) == {A0: [0, 1, 2]}
    assert consumer.metrics() is None
    assert consumer.metrics(raw=True) is None
    named = make_consumer({A0: FetchLog(simple_batch(0, 3))}, "a", metric_group_prefix="mine")
    assert {group.split("-")[0] for group in named.metrics()} == {"mine", "kafka"}


class Reporter(DictReporter):
    made: ClassVar = []

    def __init__(self):
        super().__init__()
        self.made.append(self)


def test_reporters_hear_of_metrics_that_come_and_go(make_consumer):
    consumer = make_consumer({A0: FetchLog(simple_batch(0, 3))}, metric_reporters=[Reporter], client_id="me")
    consumer.assign([A0])
    read(consumer)
    reporter = Reporter.made.pop()
    category = f"{FETCH}.client-id=me,partition=0,topic=a"
    assert reporter.snapshot()[category]["records-lag"] == 0
    consumer.unsubscribe()
    assert category not in reporter.snapshot()


def test_closed_consumer_has_no_metrics_any_more(make_consumer):
    consumer = make_consumer({A0: FetchLog()}, "a")
    consumer.close(timeout_ms=0)
    assert consumer.metrics() == {}


@pytest.mark.kafka("AbstractCoordinatorTest.testMetrics", "ConsumerCoordinatorTest.testMetrics")
def test_group_metrics_tell_of_heartbeats_rebalances_and_commits():
    clock = VirtualClock()
    registry = Metrics(MetricConfig(2, 30_000), clock=clock)
    group = CountedGroupMetrics(registry, lambda: {A0, A1})
    before = registry.snapshot()[GROUP]
    assert before["last-heartbeat-seconds-ago"] == before["last-rebalance-seconds-ago"] == -1
    assert before["heartbeat-response-time-max"] == -math.inf
    now_ms = clock.monotonic_ms()
    group.heartbeat_sent(now_ms)
    group.heartbeat_answered(7.0, now_ms)
    group.joined(20.0, now_ms)
    group.synced(10.0, now_ms)
    group.rebalance_failed(now_ms)
    group.rebalanced(200.0, now_ms)
    group.rebalanced(100.0, now_ms)
    group.assigned(1.0, now_ms)
    group.revoked(2.0, now_ms)
    group.lost(3.0, now_ms)
    group.committed(5.0, now_ms)
    group.waited_for_commit(6.0)
    group.waited_for_committed(4.0)
    clock.advance(30_000)
    figures = registry.snapshot()[GROUP]
    assert figures["assigned-partitions"] == 2
    assert figures["last-heartbeat-seconds-ago"] == figures["last-rebalance-seconds-ago"] == 30
    assert figures["heartbeat-response-time-max"] == 7
    assert (figures["join-time-max"], figures["sync-time-avg"]) == (20, 10)
    assert (figures["rebalance-latency-avg"], figures["rebalance-latency-total"]) == (150, 300)
    assert figures["rebalance-total"] == 2
    assert figures["rebalance-rate-per-hour"] == pytest.approx(240)
    assert figures["failed-rebalance-total"] == 1
    assert [figures[f"partition-{each}-latency-max"] for each in ("assigned", "revoked", "lost")] == [1, 2, 3]
    assert (figures["commit-latency-avg"], figures["commit-total"]) == (5, 1)
    assert registry.snapshot()["consumer-metrics"]["commit-sync-time-ns-total"] == 6e6
    assert registry.snapshot()["consumer-metrics"]["committed-time-ns-total"] == 4e6


def test_group_metrics_that_are_turned_off_take_the_same_calls():
    calls = {name for name in vars(NoGroupMetrics) if not name.startswith("_")}
    assert calls == {name for name in vars(CountedGroupMetrics) if not name.startswith("_")}
