"""Quotas of our broker as clients see them, in their metrics and in the throughput of other clients."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from eventually import BUDGET_S, eventually
from peers.jars import run_java

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.admin import ClientQuotaAlteration, KafkaAdminClient
from kafkacore.testing.embedded_broker import EmbeddedBroker

TOPIC = "limited"
PARTITION = TopicPartition(TOPIC, 0)
RECORDS, VALUE = 40, b"x" * 1000
#: Larger than a quota of 20,000 bytes per second, however slow the machine is. A reader with such a quota
#: receives no larger batch, so these records need a topic of their own.
LARGE, WRITTEN_ONLY = b"x" * 60_000, "written-only"


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    """Start a broker with two quota samples of a second.

    A client that has sent three seconds' worth of data pauses for two seconds.
    """
    limits = {
        "quota.window.num": 2,
        "quota.producer.overrides": "slow-writer=20000, producer-1=20000",
        "quota.consumer.overrides": "slow-reader=20000",
    }
    with EmbeddedBroker(**limits) as started:
        yield started


def figure(client: KafkaProducer | KafkaConsumer, name: str) -> float:
    return max(group[name] for group in client.metrics().values() if name in group)


def write(broker: EmbeddedBroker, client_id: str, user: str | None = None) -> float:
    """Write one batch after the other, and return the longest throttle time that the producer reports."""
    with KafkaProducer(**broker.client_settings(user), client_id=client_id) as producer:
        producer.send(WRITTEN_ONLY, LARGE, partition=0).get(BUDGET_S)
        for _ in range(RECORDS):
            producer.send(TOPIC, VALUE, partition=0).get(BUDGET_S)
        return figure(producer, "throttle-time-max")


def read(broker: EmbeddedBroker, client_id: str, user: str | None = None) -> float:
    """Read all records, and return the longest throttle time that the consumer reports."""
    with KafkaConsumer(
        **broker.client_settings(user), client_id=client_id, auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([PARTITION])
        end = consumer.end_offsets([PARTITION])[PARTITION]
        offsets: list[int] = []
        eventually(
            lambda: len(offsets) >= end,
            "the written records did not arrive",
            step=lambda: offsets.extend(
                [record.offset for found in consumer.poll(100).values() for record in found]
            ),
        )
        assert offsets == list(range(end))
        return figure(consumer, "fetch-throttle-time-max")


def test_producer_over_its_quota_is_told_and_others_are_not(broker: EmbeddedBroker) -> None:
    assert write(broker, "slow-writer") > 0
    assert write(broker, "other-writer") == 0


def test_consumer_over_its_quota_is_told_and_gets_everything(broker: EmbeddedBroker) -> None:
    write(broker, "other-writer")
    # A slow machine may spread the fetches over so many seconds that they stay below the quota.
    eventually(lambda: read(broker, "slow-reader") > 0)
    assert read(broker, "other-reader") == 0


def test_java_producer_is_told_of_its_throttling(broker: EmbeddedBroker, tmp_path: Path) -> None:
    config = tmp_path / "producer.properties"
    config.write_text("linger.ms=0\nclient.id=producer-1\n")
    printed = run_java(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", WRITTEN_ONLY, "--num-records", "2", "--record-size", "60000", "--throughput", "-1"),
        *("--bootstrap-server", broker.bootstrap_servers, "--command-config", str(config)),
        "--print-metrics",
    ).decode()
    (line,) = [line for line in printed.splitlines() if "produce-throttle-time-max" in line]
    assert float(line.rsplit(":", 1)[1]) > 0


# ---- By user -----------------------------------------------------------------------------------------------


@pytest.fixture
def guarded() -> Iterator[EmbeddedBroker]:
    """Start a broker with two SASL users, who use the same client ids."""
    more = {"quota.window.num": 2, "security_protocol": "SASL_PLAINTEXT"}
    with EmbeddedBroker(users={"slow": "slow-5ecret", "other": "other-5ecret"}, **more) as started:
        yield started


def test_user_over_a_quota_that_was_set_at_run_time_pauses_and_another_user_does_not(
    guarded: EmbeddedBroker,
) -> None:
    assert write(guarded, "same", "slow") == 0

    def limit(**limits: float | None) -> None:
        with KafkaAdminClient(**guarded.client_settings("other")) as admin:
            admin.alter_client_quotas([ClientQuotaAlteration({"user": "slow"}, limits)])

    limit(producer_byte_rate=20_000.0, consumer_byte_rate=20_000.0)
    assert write(guarded, "same", "slow") > 0
    assert write(guarded, "same", "other") == 0
    eventually(lambda: read(guarded, "same", "slow") > 0)
    assert read(guarded, "same", "other") == 0
    guarded.kill()
    guarded.start()
    # The quota belongs to the user, not to the client id.
    assert write(guarded, "another name", "slow") > 0
    limit(producer_byte_rate=None)
    assert write(guarded, "same", "slow") == 0
