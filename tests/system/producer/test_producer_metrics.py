"""``KafkaProducer.metrics()``: its values on a virtual clock and with our broker."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import kafka.metrics
import pytest
from eventually import BUDGET_MS, BUDGET_S
from kafka.net.metrics import KafkaConnectionMetrics, KafkaManagerMetrics
from kafka.producer.sender import SenderMetrics as KafkaPythonsSenderMetrics
from model.producer_harness import BUFFER_MEMORY
from model.producer_harness import SenderHarness as Harness

from kafkacore import KafkaProducer
from kafkacore.errors import KafkaTimeoutError
from kafkacore.metrics import DictReporter, MetricConfig, Metrics
from kafkacore.producer.sender_metrics import ProducerMetrics
from kafkacore.testing import EmbeddedBroker

NOT_ENOUGH_REPLICAS, FORBIDDEN, MESSAGE_TOO_LARGE = 19, 29, 10


class Counted(Harness):
    """A sender harness with a metrics registry."""

    def __init__(self, **changes: Any) -> None:
        super().__init__(**changes)
        self.registry = Metrics(MetricConfig(2, 30_000), clock=self.clock)
        of = ProducerMetrics(
            self.registry,
            self.clock,
            self.accumulator.pool,
            self.accumulator.incomplete,
            lambda now_ms: now_ms - 1000,
        )
        self.sender.metrics = self.sender.outcomes._metrics = of.batches

    def of_all(self, name: str) -> float:
        return self.registry.snapshot()["producer-metrics"][name]

    def of_topic(self, name: str) -> float:
        return self.registry.snapshot()["producer-topic-metrics.t"][name]


def test_records_are_counted_when_they_are_sent_acknowledged_retried_and_given_up() -> None:
    harness = Counted(retries=1)
    for _ in range(2):
        harness.send(b"v" * 100)
    harness.run()
    harness.client.respond(NOT_ENOUGH_REPLICAS)
    harness.run()
    harness.after(121)
    harness.client.respond()
    harness.run()
    harness.send(b"v" * 300)
    harness.run()
    harness.client.respond(FORBIDDEN)
    harness.run()
    sent = {
        name: harness.of_all(f"record-{name}-total") for name in ("send", "retry", "error", "acknowledged")
    }
    assert sent == {"send": 5, "retry": 2, "error": 1, "acknowledged": 2}
    assert harness.of_all("records-per-request-avg") == pytest.approx(5 / 3)
    assert [harness.of_topic(f"record-{name}-total") for name in ("send", "retry", "error")] == [5, 2, 1]


def test_sizes_are_those_of_batches_and_of_their_largest_records() -> None:
    harness = Counted()
    harness.send(b"v" * 10)
    harness.send(b"v" * 200)
    harness.run()
    (topic,) = harness.client.sent[0].request.topic_data
    size = len(topic.partition_data[0].records)
    assert harness.of_all("batch-size-avg") == harness.of_all("batch-size-max") == size
    assert harness.of_all("byte-total") == harness.of_topic("byte-total") == size
    assert 200 < harness.of_all("record-size-max") < 215
    assert harness.of_all("compression-rate-avg") == 1.0


def test_time_in_the_queue_is_from_the_first_record_to_the_request() -> None:
    harness = Counted(linger_ms=40.0)
    harness.send()
    harness.after(25)
    assert harness.of_all("record-queue-time-max") == float("-inf")
    harness.after(15)
    assert harness.of_all("record-queue-time-avg") == 40.0


def test_rates_are_over_the_sampled_windows() -> None:
    harness = Counted()
    for _ in range(30):
        harness.send()
    harness.run()
    # The rate always counts one full window: 30 records in 30 seconds.
    assert harness.of_all("record-send-rate") == pytest.approx(1.0, rel=0.01)
    assert harness.of_topic("record-send-rate") == harness.of_all("record-send-rate")
    harness.clock.advance(60_001)
    assert harness.of_all("record-send-rate") == 0.0


def test_memory_waits_and_batches_are_as_of_now() -> None:
    harness = Counted()
    harness.accumulator.pool.allocate(BUFFER_MEMORY - 1024, 0)
    harness.send()
    assert harness.of_all("buffer-available-bytes") < 1024
    assert harness.of_all("buffer-total-bytes") == BUFFER_MEMORY
    assert harness.of_all("batches-incomplete") == 1
    with pytest.raises(KafkaTimeoutError):
        harness.send(partition=1)
    harness.run()
    waited_ms = harness.accumulator.pool.waited_ms
    assert waited_ms > 0
    assert harness.of_all("bufferpool-wait-time-ns-total") == waited_ms * 1e6
    assert harness.of_all("bufferpool-wait-ratio") == pytest.approx(waited_ms / 30_000, rel=0.1)
    assert harness.of_all("metadata-age") == pytest.approx((harness.clock.monotonic_ms() - 1000) / 1000)


def test_batch_that_is_split_is_counted() -> None:
    harness = Counted()
    harness.send()
    harness.send()
    harness.run()
    harness.client.respond(MESSAGE_TOO_LARGE)
    harness.run()
    assert harness.of_all("batch-split-total") == 1


# ---- A whole producer ------------------------------------------------------------------------------------


@pytest.fixture
def producer(our_broker: EmbeddedBroker) -> Iterator[KafkaProducer]:
    with KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers, compression_type="lz4") as made:
        for _ in range(3):
            made.send("pm-topic", b"v" * 1000).get(BUDGET_S)
        yield made


def kafka_pythons_names(topic: str, node_id: int) -> set[tuple[str, str]]:
    """Return the group and name of every metric of kafka-python's producer."""
    registry = kafka.metrics.Metrics()
    KafkaPythonsSenderMetrics(registry, None, None).maybe_register_topic_metrics(topic)
    KafkaManagerMetrics(registry, "producer", {})
    KafkaConnectionMetrics(registry, "producer", node_id)
    return {(name.group, name.name) for name in registry.metrics}


def test_every_metric_of_kafka_python_is_there(producer: KafkaProducer) -> None:
    node_id = producer._metadata.fetch().nodes[0].node_id
    ours = {(group, name) for group, names in producer.metrics().items() for name in names}
    wanted = kafka_pythons_names("pm-topic", node_id)
    assert len(wanted) > 40
    assert wanted - ours == set()


def test_figures_of_the_network_are_plausible(producer: KafkaProducer) -> None:
    figures = producer.metrics()["producer-metrics"]
    node_id = producer._metadata.fetch().nodes[0].node_id
    of_node = producer.metrics()[f"producer-node-metrics.node-{node_id}"]
    assert figures["connection-count"] == 1
    assert figures["connection-creation-total"] == 1
    assert figures["request-total"] >= of_node["request-total"] >= 3
    assert figures["response-total"] == figures["request-total"]
    assert figures["outgoing-byte-total"] > figures["byte-total"] > 0
    assert 0 < figures["request-latency-avg"] <= figures["request-latency-max"] < BUDGET_MS
    assert 0 < figures["compression-rate-avg"] < 0.5
    assert 0 <= figures["io-wait-ratio"] <= 1
    assert figures["throttle-time-max"] == 0.0
    assert figures["requests-in-flight"] == 0
    assert 0 <= figures["metadata-age"] < BUDGET_S


def test_raw_metrics_have_names_with_tags(producer: KafkaProducer) -> None:
    raw = producer.metrics(raw=True)
    assert {name.tags["client-id"] for name in raw} == {producer.config["client_id"]}
    (total,) = (
        metric
        for name, metric in raw.items()
        if (name.group, name.name) == ("producer-topic-metrics.pm-topic", "record-send-total")
    )
    assert total.value() == 3


def test_closed_producer_has_no_metrics_any_more(our_broker: EmbeddedBroker) -> None:
    with KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers) as producer:
        assert producer.metrics()
    assert producer.metrics() == {}


def test_metrics_can_be_turned_off(our_broker: EmbeddedBroker) -> None:
    with KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers, metrics_enabled=False) as producer:
        producer.send("pm-off", b"v").get(BUDGET_S)
        assert producer.metrics() is None
        assert producer.metrics(raw=True) is None


class Broken(DictReporter):
    made: list[Broken]

    def __init__(self) -> None:
        super().__init__("mine")
        Broken.made.append(self)

    def metric_change(self, metric: Any) -> None:
        super().metric_change(metric)
        raise RuntimeError("full")


def test_reporters_hear_of_the_metrics_and_break_nothing(
    our_broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    Broken.made = []
    config = {
        "metric_reporters": [Broken],
        "client_id": "pm",
        "metrics_num_samples": 3,
        "metric_group_prefix": "my",
    }
    with (
        caplog.at_level(logging.ERROR),
        KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers, **config) as producer,
    ):
        producer.send("pm-reporters", b"v").get(BUDGET_S)
        (reporter,) = Broken.made
        of_topic = reporter.snapshot()["mine.my-topic-metrics.pm-reporters.client-id=pm"]
        assert of_topic["record-send-total"] == 1
        assert producer.metrics()["my-metrics"]["request-total"] > 0
    assert "full" in caplog.text
