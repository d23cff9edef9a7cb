"""What docs/SPARK.md shows runs as it stands, block after block in one session, on Apache Kafka."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from model.topic_reader import await_markers
from peers.shown_code import code_blocks
from pyspark.sql.streaming import StreamingQueryManager

from kafkacore import KafkaProducer
from kafkacore.admin import KafkaAdminClient, NewTopic

pytestmark = pytest.mark.timeout(240)
ORDERS = [{"id": n, "item": "tea", "price": 60.0 * n} for n in range(4)]
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture
def topics(apache_kafka) -> None:
    """Those that the pages name."""
    servers = apache_kafka.bootstrap_servers
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic(name, 1) for name in ("orders", "orders-eu", "copies", "dear")])
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for order in ORDERS:
            for topic in ("orders", "orders-eu"):
                producer.send(topic, json.dumps(order).encode(), key=b"k")


@pytest.fixture
def listeners(monkeypatch, spark) -> Iterator[None]:
    """What is added to the session that all tests share does not stay."""
    added: list[Any] = []
    add = StreamingQueryManager.addListener
    monkeypatch.setattr(
        StreamingQueryManager, "addListener", lambda self, one: (added.append(one), add(self, one))[1]
    )
    yield
    for one in added:
        spark.streams.removeListener(one)


@pytest.fixture
def shown(spark, apache_kafka, topics, listeners, tmp_path, monkeypatch) -> Iterator[dict[str, Any]]:
    """The names that the blocks have made."""
    places = {
        "localhost:9092": apache_kafka.bootstrap_servers,
        "/backup/kafka": str(apache_kafka.segments_dir),
        '"path", "orders"': f'"path", "{tmp_path}/orders"',
        '"orders.checkpoint"': f'"{tmp_path}/orders.checkpoint"',
        '"copies.checkpoint"': f'"{tmp_path}/copies.checkpoint"',
        '"once.checkpoint"': f'"{tmp_path}/once.checkpoint"',
        "port=9400": "port=0",
    }
    names: dict[str, Any] = {"spark": spark}
    pushdown = spark.conf.get(PUSHDOWN)
    for block in code_blocks("docs/SPARK.md", places):
        exec(block, names)
    yield names
    spark.conf.set(PUSHDOWN, pushdown)
    names["exporter"].close()
    for query in spark.streams.active:
        query.stop()


def count(spark, servers: str, topic: str) -> int:
    """Records that a reader of committed ones finds."""
    options = {"kafka.bootstrap.servers": servers, "kafka.isolation.level": "read_committed"}
    return spark.read.format("kafkacore").options(**options, subscribe=topic).load().count()


def test_spark_page_runs_from_block_to_block(shown, spark, apache_kafka, tmp_path):
    assert shown["query"].lastProgress["numInputRows"] == len(ORDERS)
    assert spark.read.parquet(str(tmp_path / "orders")).count() == len(ORDERS)
    assert [row["value"] for row in shown["recent"].select("value").orderBy("offset").collect()] == [
        json.dumps(order).encode() for order in ORDERS
    ]
    assert [(row.id, row.price, row._corrupt_record) for row in shown["prices"].orderBy("id").collect()] == [
        (order["id"], order["price"], None) for order in ORDERS
    ]
    for query in spark.streams.active:
        query.processAllAvailable()
    servers = apache_kafka.bootstrap_servers
    for topic in ("copies", "dear"):
        await_markers(servers, topic, 1)
    # One query at least once, one exactly once.
    assert count(spark, servers, "copies") == 2 * len(ORDERS)
    assert count(spark, servers, "dear") == sum(order["price"] > 100 for order in ORDERS)
    assert shown["decoded"].count() == len(ORDERS)
    assert shown["restored"].where("topic = 'orders-eu'").count() == len(ORDERS)
