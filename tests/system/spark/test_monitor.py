"""Logs and metrics of streaming queries, from simulated Spark events and from a running query."""

import gc
import json
import logging
import urllib.request
import uuid

import pytest
from eventually import BUDGET_S, eventually
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
)

from kafkacore.metrics.prometheus import start_exporter
from kafkacore.spark import QueryMonitor
from kafkacore.spark.monitor import GROUP, MAX_QUERIES

ID = str(uuid.UUID(int=1))
WHEN = "2026-01-01T00:00:00.000Z"


def started(query_id=ID, name="orders"):
    ids = {"id": query_id, "runId": str(uuid.uuid4())}
    return QueryStartedEvent.fromJson({**ids, "name": name, "timestamp": WHEN})


def ended(query_id=ID, exception=None):
    ids = {"id": query_id, "runId": str(uuid.uuid4())}
    return QueryTerminatedEvent.fromJson({**ids, "exception": exception, "errorClassOnException": None})


def progressed(batch=0, **more):
    source = {
        "description": "PythonMicroBatchStream", "numInputRows": 10, "inputRowsPerSecond": 5.0,
        "processedRowsPerSecond": 20.0, "startOffset": {"t": {"0": 0, "1": 0}},
        "endOffset": {"t": {"0": 10, "1": 0}}, "latestOffset": {"t": {"0": 14, "1": 0}},
    }  # fmt: skip
    progress = {
        "id": ID, "runId": str(uuid.UUID(int=2)), "name": "orders", "timestamp": WHEN, "batchId": batch,
        "batchDuration": 500, "numInputRows": 10, "inputRowsPerSecond": 5.0, "processedRowsPerSecond": 20.0,
        "durationMs": {"addBatch": 300, "walCommit": 40, "latestOffset": 0, "triggerExecution": 500},
        "stateOperators": [], "sources": [source], "sink": {"description": "noop", "numOutputRows": 10},
        **more,
    }  # fmt: skip
    return QueryProgressEvent.fromJson({"progress": progress})


def of(monitor, name, category=f"{GROUP}.query=orders"):
    return monitor.metrics()[category][name]


def scrape(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=BUDGET_S) as answer:
        return answer.read().decode()


def test_each_batch_is_a_line(caplog):
    monitor = QueryMonitor()
    with caplog.at_level(logging.INFO, "kafkacore.spark.monitor"):
        monitor.onQueryStarted(started())
        monitor.onQueryProgress(progressed(7))
        monitor.onQueryTerminated(ended())
    assert [line.partition(" (run")[0] for line in caplog.messages] == [
        "query orders started",
        "orders: batch 7, 10 rows, 20 rows/s, 500 ms (addBatch 300, walCommit 40), 4 behind (at most 4)",
        "query orders ended",
    ]


def test_failure_is_an_error_in_one_line_and_counted(caplog):
    monitor = QueryMonitor(level=logging.DEBUG)
    monitor.onQueryStarted(started())
    story = "StreamingQueryException: it broke\n  at X\nkafkacore.errors.KafkaTimeoutError: no broker\nat Y"
    monitor.onQueryTerminated(ended(exception=story))
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
        ("ERROR", "query orders failed: no broker")
    ]
    assert (of(monitor, "failures-total"), of(monitor, "active")) == (1, 0)


def test_figures_add_up_over_batches_and_restarts():
    monitor = QueryMonitor()
    for batch in range(3):
        monitor.onQueryStarted(started())
        monitor.onQueryProgress(progressed(batch))
        monitor.onQueryTerminated(ended())
    expected = {"rows-total": 30, "batches-total": 3, "starts-total": 3, "batch-id": 2}
    assert {name: of(monitor, name) for name in expected} == expected


def test_prometheus_scrapes_rows_phases_lag_and_what_the_query_observes():
    monitor = QueryMonitor()
    monitor.onQueryProgress(progressed(observedMetrics={"kafka": {"bytes": 1234, "kind": "x"}}))
    with start_exporter(monitor, 0) as exporter:
        text = scrape(exporter.port)
    seen = {
        (sample.name, frozenset(sample.labels.items()) - {("query", "orders")}): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    prefix = "kafkacore_spark_query_"
    partition = frozenset({("topic", "t"), ("partition", "0")})
    assert seen[prefix + "rows_total", frozenset()] == 10
    assert seen[prefix + "processed_rows_rate", frozenset()] == 20
    assert seen[prefix + "phase_duration_ms", frozenset({("phase", "addBatch")})] == 300
    assert seen[prefix + "offsets_behind_latest_avg", frozenset()] == 2
    assert seen[prefix + "partition_offsets_behind_latest", partition] == 4
    assert seen[prefix + "observed", frozenset({("observation", "kafka"), ("figure", "bytes")})] == 1234


def test_batch_of_nothing_and_of_another_source_has_no_lag(caplog):
    monitor = QueryMonitor(level=logging.WARNING)
    monitor.onQueryProgress(progressed(sources=[], processedRowsPerSecond=float("nan"), durationMs={}))
    assert caplog.messages == ["orders: batch 0, 10 rows, 0 rows/s, 500 ms"]
    assert "offsets-behind-latest-max" not in monitor.metrics()[f"{GROUP}.query=orders"]


def test_queries_that_have_ended_are_forgotten_first():
    monitor = QueryMonitor()
    for number in range(MAX_QUERIES):
        monitor.onQueryStarted(started(str(uuid.UUID(int=number)), f"q{number}"))
    monitor.onQueryTerminated(ended(str(uuid.UUID(int=50))))
    monitor.onQueryStarted(started(str(uuid.UUID(int=MAX_QUERIES)), None))
    names = monitor.metrics()
    assert len(names) == MAX_QUERIES
    assert f"{GROUP}.query=q50" not in names
    assert f"{GROUP}.query={uuid.UUID(int=MAX_QUERIES)}" in names


def test_monitor_is_not_kept_alive_by_its_exporter():
    monitor = QueryMonitor()
    with start_exporter(monitor, 0) as exporter:
        del monitor
        gc.collect()
        assert scrape(exporter.port) == ""


@pytest.mark.timeout(240)
def test_query_that_runs_is_seen(spark, make_topic, our_broker):
    topic = make_topic([(n % 2, None, b"v") for n in range(10)])
    monitor = QueryMonitor()
    spark.streams.addListener(monitor)
    try:
        options = {
            "kafka.bootstrap.servers": our_broker.bootstrap_servers, "subscribe": topic,
            "startingOffsets": "earliest", "maxOffsetsPerTrigger": "6",
        }  # fmt: skip
        stream = spark.readStream.format("kafkacore").options(**options).load()
        writer = stream.writeStream.format("noop").queryName("seen").trigger(availableNow=True)
        query = writer.start()
        assert query.awaitTermination(2 * BUDGET_S)
        # Spark delivers the events on its own thread, after the query ends.
        eventually(lambda: not monitor.metrics().get(f"{GROUP}.query=seen", {}).get("active", 1))
    finally:
        spark.streams.removeListener(monitor)
    found = monitor.metrics()[f"{GROUP}.query=seen"]
    assert (found["rows-total"], found["batches-total"], found["failures-total"]) == (10, 2, 0)
    assert found["offsets-behind-latest-max"] == 0
    assert json.loads(query.recentProgress[0].json)["batchId"] == 0
