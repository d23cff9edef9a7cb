"""The Prometheus endpoint, scraped over HTTP."""

from __future__ import annotations

import gc
import threading
import urllib.request
from typing import Any

import pytest
from eventually import BUDGET_S
from prometheus_client.parser import text_string_to_metric_families

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.admin import KafkaAdminClient
from kafkacore.metrics import MetricConfig, Metrics
from kafkacore.metrics.prometheus import KafkaMetricsCollector, start_exporter
from kafkacore.testing import EmbeddedBroker

Labels = frozenset[tuple[str, str]]


class Client:
    """A client that has metrics, like a producer."""

    def __init__(self, client_id: str, of: Metrics | None = None) -> None:
        self.of = of or Metrics(MetricConfig(tags={"client-id": client_id}))

    def metrics(self, raw: bool = False) -> Any:
        assert raw
        return self.of.metrics


class WithoutMetrics:
    def metrics(self, raw: bool = False) -> None:
        return None


def scrape(port: int) -> dict[tuple[str, Labels], float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=BUDGET_S) as answer:
        text = answer.read().decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def labels(**of: str) -> Labels:
    return frozenset(of.items())


def test_figures_of_a_producer_are_scraped(our_broker: EmbeddedBroker) -> None:
    with (
        KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers, client_id="prom") as producer,
        start_exporter(producer, 0) as exporter,
    ):
        for _ in range(5):
            producer.send("prom.topic-1", b"v").get(BUDGET_S)
        seen = scrape(exporter.port)
        of_client = labels(client_id="prom")
        assert seen["kafkacore_producer_record_send_total", of_client] == 5
        assert seen["kafkacore_producer_record_send_rate", of_client] > 0
        assert seen["kafkacore_producer_buffer_available_bytes", of_client] > 0
        of_topic = labels(client_id="prom", topic="prom.topic-1")
        assert seen["kafkacore_producer_topic_record_send_total", of_topic] == 5
        node_id = producer._metadata.fetch().nodes[0].node_id
        of_node = labels(client_id="prom", node=str(node_id))
        assert seen["kafkacore_producer_node_request_total", of_node] >= 5
        assert seen["kafkacore_metrics_count", of_client] == len(producer.metrics(raw=True))


def test_what_a_consumer_counts_by_topic_and_partition_has_names_of_its_own() -> None:
    client, group = Client("c"), "consumer-fetch-manager-metrics"
    for value, tags in ((7.0, {}), (3.0, {"topic": "t.1"}), (2.0, {"topic": "t.1", "partition": "0"})):
        client.of.add("records-lag-max", group, "", lambda now_ms, value=value: value, tags)
    with start_exporter(client, 0) as exporter:
        seen = scrape(exporter.port)
    name = "kafkacore_consumer_fetch_manager"
    assert seen[f"{name}_records_lag_max", labels(client_id="c")] == 7.0
    assert seen[f"{name}_topic_records_lag_max", labels(client_id="c", topic="t.1")] == 3.0
    of_partition = labels(client_id="c", topic="t.1", partition="0")
    assert seen[f"{name}_partition_records_lag_max", of_partition] == 2.0


def test_totals_are_counters_and_the_rest_gauges() -> None:
    client = Client("c")
    client.of.add("record-send-total", "producer-metrics", "Records.", lambda now_ms: 3.0)
    client.of.add("record-send-rate", "producer-metrics", "", lambda now_ms: 0.5)
    kinds = {family.name: family.type for family in KafkaMetricsCollector(client).collect()}
    assert kinds["kafkacore_producer_record_send"] == "counter"
    assert kinds["kafkacore_producer_record_send_rate"] == "gauge"


def test_several_clients_stand_side_by_side_and_one_without_metrics_is_passed_over() -> None:
    clients = [Client("a"), Client("b"), WithoutMetrics()]
    for client, value in zip(clients[:2], (1.0, 2.0), strict=True):
        assert isinstance(client, Client)
        client.of.add("x", "producer-topic-metrics.t-metrics.node-1", "", lambda now_ms, value=value: value)
    with start_exporter(clients, 0) as exporter:
        seen = scrape(exporter.port)
    topic = "t-metrics.node-1"
    assert seen["kafkacore_producer_topic_x", labels(client_id="a", topic=topic)] == 1.0
    assert seen["kafkacore_producer_topic_x", labels(client_id="b", topic=topic)] == 2.0


def test_consumer_is_one_client_and_loses_no_record(our_broker: EmbeddedBroker) -> None:
    servers = our_broker.bootstrap_servers
    with (
        KafkaProducer(bootstrap_servers=servers, client_id="prom-p") as producer,
        KafkaConsumer(
            bootstrap_servers=servers, client_id="prom-c", auto_offset_reset="earliest"
        ) as consumer,
    ):
        producer.send("prom-consumer", b"v").get(BUDGET_S)
        consumer.assign([TopicPartition("prom-consumer", 0)])
        with start_exporter(consumer, 0) as exporter:
            assert ("kafkacore_metrics_count", labels(client_id="prom-c")) in scrape(exporter.port)
        with start_exporter((each for each in (producer, consumer)), 0) as exporter:
            seen = {dict(of)["client_id"] for _, of in scrape(exporter.port)}
        assert seen == {"prom-p", "prom-c"}
        assert next(iter(consumer)).value == b"v"


@pytest.mark.parametrize("clients", [None, 5, "producer", [object()], [None], KafkaProducer, {"a": 1}])
def test_what_is_no_client_is_refused(clients: Any) -> None:
    with pytest.raises(TypeError, match="clients must be producers and consumers, not"):
        KafkaMetricsCollector(clients)


def test_admin_client_is_exported(our_broker: EmbeddedBroker) -> None:
    with (
        KafkaAdminClient(bootstrap_servers=our_broker.bootstrap_servers, client_id="prom-a") as admin,
        start_exporter(admin, 0) as exporter,
    ):
        assert scrape(exporter.port)["kafkacore_admin_request_total", labels(client_id="prom-a")] >= 1.0


def test_client_that_is_closed_or_gone_is_not_shown() -> None:
    closed, gone = Client("closed"), Client("gone")
    with start_exporter([closed, gone], 0) as exporter:
        assert len(scrape(exporter.port)) == 2
        closed.of.close()
        del gone
        gc.collect()
        assert scrape(exporter.port) == {}


def test_closed_exporter_leaves_no_thread_and_no_port() -> None:
    before = threading.active_count()
    exporter = start_exporter(Client("c"), 0)
    exporter.close()
    assert threading.active_count() <= before
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"http://127.0.0.1:{exporter.port}/metrics", timeout=BUDGET_S)
