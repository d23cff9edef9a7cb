"""Quotas of our broker as clients see them: in their figures, and by what others do meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.jars import run_java

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.testing.embedded_broker import EmbeddedBroker

TOPIC = "limited"
PARTITION = TopicPartition(TOPIC, 0)
RECORDS, VALUE = 40, b"x" * 1000
LIMIT_MS = 30_000


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    """Two samples of a second: a client that has sent three seconds' worth pauses for two."""
    limits = {
        "quota.window.num": 2,
        "quota.producer.overrides": "slow-writer=20000, producer-1=20000",
        "quota.consumer.overrides": "slow-reader=20000",
    }
    with EmbeddedBroker(**limits) as started:
        yield started


def figure(client: KafkaProducer | KafkaConsumer, name: str) -> float:
    return max(group[name] for group in client.metrics().values() if name in group)


def write(broker: EmbeddedBroker, client_id: str) -> float:
    """One batch after the other; the longest throttling that the producer was told of."""
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id=client_id) as producer:
        for _ in range(RECORDS):
            producer.send(TOPIC, VALUE, partition=0).get(30)
        return figure(producer, "throttle-time-max")


def test_producer_over_its_quota_is_told_and_others_are_not(broker: EmbeddedBroker) -> None:
    assert write(broker, "slow-writer") > 0
    assert write(broker, "other-writer") == 0


def test_consumer_over_its_quota_is_told_and_gets_everything(broker: EmbeddedBroker) -> None:
    write(broker, "other-writer")
    for client_id in ("slow-reader", "other-reader"):
        with KafkaConsumer(
            bootstrap_servers=broker.bootstrap_servers, client_id=client_id, auto_offset_reset="earliest"
        ) as consumer:
            consumer.assign([PARTITION])
            end = consumer.end_offsets([PARTITION])[PARTITION]
            deadline_ms = SYSTEM_CLOCK.monotonic_ms() + LIMIT_MS
            offsets: list[int] = []
            while len(offsets) < end:
                assert SYSTEM_CLOCK.monotonic_ms() < deadline_ms, "what was written did not come"
                offsets += [record.offset for found in consumer.poll(100).values() for record in found]
            assert offsets == list(range(end))
            told = figure(consumer, "fetch-throttle-time-max")
            assert (told > 0) == (client_id == "slow-reader")


def test_java_producer_is_told_of_its_throttling(broker: EmbeddedBroker, tmp_path: Path) -> None:
    config = tmp_path / "producer.properties"
    config.write_text("linger.ms=0\nbatch.size=2000\nclient.id=producer-1\n")
    printed = run_java(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", TOPIC, "--num-records", "40", "--record-size", "1000", "--throughput", "-1"),
        *("--bootstrap-server", broker.bootstrap_servers, "--command-config", str(config)),
        "--print-metrics",
    ).decode()
    (line,) = [line for line in printed.splitlines() if "produce-throttle-time-max" in line]
    assert float(line.rsplit(":", 1)[1]) > 0
