"""Run the code blocks of the pages on Spark unchanged, in one session, on Apache Kafka."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from model.topic_reader import await_markers
from peers.shown_code import ROOT, page_blocks
from pyspark.sql.streaming import StreamingQueryManager

from kafkacore import KafkaProducer
from kafkacore.admin import KafkaAdminClient, NewTopic

pytestmark = pytest.mark.timeout(240)
ORDERS = [{"id": n, "item": "tea", "price": 60.0 * n} for n in range(4)]
#: Page → folders in it that the test replaces. The pages are in the order in which their blocks run.
PAGES = {
    "docs/start/spark.md": (),
    "docs/guides/spark-source.md": ("raw-orders", "raw-orders.checkpoint", "/backup/kafka"),
    "docs/guides/spark-typed-values.md": (),
    "docs/guides/spark-sink.md": ("copies.checkpoint",),
    "docs/guides/spark-exactly-once.md": ("once.checkpoint",),
    "docs/guides/spark-pipeline.md": ("./orders.delta", "./orders-delta.checkpoint"),
}
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture
def topics(apache_kafka) -> None:
    """Create the topics that the pages use."""
    servers = apache_kafka.bootstrap_servers
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic(name, 1) for name in ("orders", "orders-eu", "copies")])
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for order in ORDERS:
            for topic in ("orders", "orders-eu"):
                producer.send(topic, json.dumps(order).encode(), key=b"k")


@pytest.fixture
def listeners(monkeypatch, spark) -> Iterator[None]:
    """Remove the listeners that the blocks add to the shared session."""
    added: list[Any] = []
    add = StreamingQueryManager.addListener
    monkeypatch.setattr(
        StreamingQueryManager, "addListener", lambda self, one: (added.append(one), add(self, one))[1]
    )
    yield
    for one in added:
        spark.streams.removeListener(one)


@pytest.fixture
def shown(spark, apache_kafka, topics, listeners, tmp_path) -> Iterator[dict[str, Any]]:
    """Run the blocks, and return the names that they define."""
    names: dict[str, Any] = {"spark": spark}
    pushdown = spark.conf.get(PUSHDOWN)
    for page, folders in PAGES.items():
        places = {"localhost:9092": apache_kafka.bootstrap_servers}
        places |= {f'"{folder}"': f'"{tmp_path / folder}"' for folder in folders}
        if "/backup/kafka" in folders:
            del places['"/backup/kafka"']
            places["/backup/kafka"] = str(apache_kafka.segments_dir)
        for number, block in enumerate(page_blocks(page, places)):
            assert block.why_not_run is not None
            exec(compile(block.code, f"{page}, block {number}", "exec"), names)
    yield names
    spark.conf.set(PUSHDOWN, pushdown)
    for query in spark.streams.active:
        query.stop()


def count(spark, servers: str, topic: str) -> int:
    """Count the records that a read_committed reader finds."""
    options = {"kafka.bootstrap.servers": servers, "kafka.isolation.level": "read_committed"}
    return spark.read.format("kafkacore").options(**options, subscribe=topic).load().count()


def test_pages_on_spark_run_from_block_to_block(shown, spark, apache_kafka, tmp_path):
    assert shown["behind"].total == 0
    assert spark.read.parquet(str(tmp_path / "raw-orders")).count() == len(ORDERS)
    assert [row["value"] for row in shown["recent"].select("value").orderBy("offset").collect()] == [
        json.dumps(order).encode() for order in ORDERS
    ]
    assert shown["secure"] is not None
    assert shown["restored"].where("topic = 'orders-eu'").count() == len(ORDERS)
    assert shown["decoded"].count() == len(ORDERS)
    assert [(row.id, row.price, row._corrupt_record) for row in shown["prices"].orderBy("id").collect()] == [
        (order["id"], order["price"], None) for order in ORDERS
    ]
    assert shown["result"].rows == len(ORDERS)
    for query in spark.streams.active:
        query.processAllAvailable()
    servers = apache_kafka.bootstrap_servers
    await_markers(servers, "copies", 1)
    # So far only the batch query has written records: the two streams start at the latest offset.
    assert count(spark, servers, "copies") == len(ORDERS)
    with KafkaProducer(bootstrap_servers=servers) as producer:
        producer.send("orders", b"late")
    for query in spark.streams.active:
        query.processAllAvailable()
    # The exactly-once stream commits before its marker is written.
    await_markers(servers, "copies", 1)
    assert count(spark, servers, "copies") == len(ORDERS) + 2


def test_reasons_name_this_test():
    """Check that every page that names this test is in its list of pages."""
    for page in (ROOT / "docs").rglob("*.md"):
        if f"spark/{Path(__file__).name}" in page.read_text():
            assert str(page.relative_to(ROOT)) in PAGES
