"""Fixtures for tests that compare our source and sink with Spark's own, in one Spark session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from model import stuck_spark
from peers.jars import spark_kafka_jars
from peers.streams import Streams, Topic

from kafkacore.security.references import ALLOWED_PATHS
from kafkacore.spark.session import spark_session

if TYPE_CHECKING:
    from pathlib import Path

    from peers.apache_kafka import ApacheKafka
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start a session that has both ``format("kafka")`` and ``format("kafkacore")``."""
    folder = tmp_path_factory.mktemp("spark")
    jars = ",".join(str(jar) for jar in sorted(spark_kafka_jars().glob("*.jar")))
    (folder / "events").mkdir()
    # As in the other session: the event log of a query must contain no secret.
    events = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file:{folder}/events"}
    configs = {"spark.jars": jars, "spark.eventLog.compress": "false", **events, **stuck_spark.TRACES}
    with pytest.MonkeyPatch.context() as patch:
        # The planner and the workers inherit the environment that Spark is started with.
        patch.setenv(ALLOWED_PATHS, str(tmp_path_factory.getbasetemp()))
        with spark_session("kafkacore tests", folder, folder / "spark.log", configs=configs) as session:
            yield session


@pytest.fixture
def topic(apache_kafka: ApacheKafka) -> Topic:
    """Create a topic of two partitions for one test."""
    made = Topic(apache_kafka.bootstrap_servers)
    made.create()
    return made


@pytest.fixture
def streams(spark: SparkSession, tmp_path: Path) -> Streams:
    """Return a ``Streams``, which starts queries of either source with checkpoints in the test's folder."""
    return Streams(
        lambda source, options: spark.readStream.format(source).options(**options).load(), str(tmp_path)
    )
