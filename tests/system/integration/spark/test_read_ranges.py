"""Both sources read ranges with gaps, and ranges before the log start offset, alike on Apache Kafka."""

from __future__ import annotations

import json
import random
import uuid

import pytest
from log_start import move_log_start
from model.dose import dose, new_seed
from model.spark_reads import push_down, reader_of, rows_of
from peers.mixed_transactions import PARTITIONS, MixedTransactions
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from kafkacore import KafkaProducer
from kafkacore.admin import KafkaAdminClient, NewTopic

STEPS = dose(120, 2_000)
ROWS = 40


@pytest.fixture
def read(spark, apache_kafka):
    """Return a function that reads a topic with either source."""

    def of(source, topic, **options):
        return rows_of(reader_of(spark, source, apache_kafka.bootstrap_servers, topic, **options).load())

    return of


def new_topic(apache_kafka, partitions):
    name = f"ranges-{uuid.uuid4().hex[:8]}"
    with KafkaAdminClient(bootstrap_servers=apache_kafka.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, num_partitions=partitions)])
    return name


@pytest.fixture(scope="module")
def transactions(apache_kafka):
    """Write interleaved transactions, all of which are complete."""
    name = new_topic(apache_kafka, PARTITIONS)
    mixed = MixedTransactions(apache_kafka.bootstrap_servers, name, random.Random(new_seed()))
    mixed.write(STEPS)
    return mixed


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
@pytest.mark.parametrize("pieces", ["1", "40"])
def test_transactions_give_the_same_rows_however_the_read_is_split(read, transactions, level, pieces):
    # Some of these small ranges contain only markers or aborted records.
    ours = read("kafkacore", transactions.topic, kafka__isolation__level=level, minPartitions=pieces)
    theirs = read("kafka", transactions.topic, kafka__isolation__level=level)
    assert ours == theirs
    assert len(ours) > 0
    if level == "read_committed":
        visible = [*transactions.committed.values(), *transactions.plain.values()]
        assert {value for _, _, value, _ in ours} == {value for values in visible for value in values}


@pytest.fixture
def shortened(apache_kafka):
    """Write 40 records to one partition, then delete the first 30."""
    name = new_topic(apache_kafka, 1)
    with KafkaProducer(bootstrap_servers=apache_kafka.bootstrap_servers) as producer:
        for number in range(ROWS):
            producer.send(name, b"%d" % number, partition=0)
    move_log_start(apache_kafka.bootstrap_servers, name, 0, 30)
    return name


@pytest.mark.parametrize(
    ("first", "end", "numbers"),
    [(0, ROWS, range(30, ROWS)), (5, 20, []), (25, 31, [30]), (35, 38, range(35, 38))],
)
def test_what_has_been_deleted_is_passed_over_by_both(read, shortened, first, end, numbers):
    bounds = {
        "startingOffsets": json.dumps({shortened: {"0": first}}),
        "endingOffsets": json.dumps({shortened: {"0": end}}),
        "failOnDataLoss": "false",
    }
    ours, theirs = (read(source, shortened, **bounds) for source in ("kafkacore", "kafka"))
    assert ours == theirs
    assert [offset for _, offset, _, _ in ours] == list(numbers)


def test_or_it_fails_both(read, shortened):
    bounds = {"startingOffsets": json.dumps({shortened: {"0": 0}})}
    for source in ("kafkacore", "kafka"):
        # An error in a Python worker is raised as PySpark's exception, one in a task of the JVM as
        # Py4JJavaError.
        with pytest.raises((PySparkException, Py4JJavaError), match=r"(?i)data.?loss"):
            read(source, shortened, **bounds)


def test_conditions_that_are_pushed_down_give_the_same_rows(spark, apache_kafka, transactions):
    def frame(source):
        reader = reader_of(spark, source, apache_kafka.bootstrap_servers, transactions.topic)
        return reader.load().select("partition", "offset", "timestamp")

    rows = frame("kafka").orderBy("timestamp").collect()
    moment = rows[len(rows) // 2].timestamp
    for conditions in (
        "partition IN (0, 2) AND offset > 10 AND offset <= 50",
        f"timestamp >= timestamp_micros({int(moment.timestamp() * 1_000_000)}) AND partition <> 1",
        f"topic = '{transactions.topic}' AND offset = 12",
    ):
        with push_down(spark):
            ours = sorted(frame("kafkacore").where(conditions).collect())
        assert ours == sorted(frame("kafka").where(conditions).collect())
        assert ours
