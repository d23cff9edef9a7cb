"""Topics with records, and readers of them, for the tests of the Spark source."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pytest
from model import spark_reads

from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.producer import KafkaProducer

if TYPE_CHECKING:
    from pyspark.sql import DataFrameReader, SparkSession

    from kafkacore.testing.embedded_broker import EmbeddedBroker

Record = tuple[int, bytes | None, bytes | None]


@pytest.fixture(scope="session")
def make_topic(our_broker) -> Callable[..., str]:
    """Return a function that creates a topic and writes ``(partition, key, value)`` records to it."""
    numbers = itertools.count()

    def make(records: Sequence[Record] = (), partitions: int = 2, topic: str | None = None) -> str:
        if topic is None:
            topic = f"spark-{next(numbers)}"
            with KafkaAdminClient(bootstrap_servers=our_broker.bootstrap_servers) as admin:
                admin.create_topics([NewTopic(topic, num_partitions=partitions)])
        with KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers, linger_ms=5) as producer:
            futures = [
                producer.send(topic, value, key=key, partition=partition, timestamp_ms=1_000 + count)
                for count, (partition, key, value) in enumerate(records)
            ]
            producer.flush()
        assert all(future.succeeded() for future in futures)
        return topic

    return make


@pytest.fixture
def reader_of(spark: SparkSession, our_broker: EmbeddedBroker) -> Callable[..., DataFrameReader]:
    """Return a function that prepares ``spark.read`` for a topic on our broker, without ``load()``."""

    def of(topic: str, **options: str) -> DataFrameReader:
        return spark_reads.reader_of(spark, "kafkacore", our_broker.bootstrap_servers, topic, **options)

    return of
