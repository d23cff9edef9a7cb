"""Filters of a query with push-down on and off: the same rows, read by fewer tasks."""

import pytest
from model.spark_reads import push_down

from kafkacore.spark.reader.batch_reader import KafkaBatchReader

RECORDS = [(n % 3, None, b"v%d" % n) for n in range(90)]


@pytest.fixture(scope="module")
def topic(make_topic):
    return make_topic(RECORDS, partitions=3)


@pytest.fixture
def frame(reader_of, topic):
    return reader_of(topic).load()


@pytest.mark.parametrize(
    ("condition", "tasks", "numbers"),
    [
        ("partition = 1", 1, [n for n in range(90) if n % 3 == 1]),
        ("partition <> 1 AND offset >= 25", 2, [n for n in range(75, 90) if n % 3 != 1]),
        ("offset BETWEEN 10 AND 11", 3, list(range(30, 36))),
        # Each partition is read from the first record at or after this time; records are 1 ms apart.
        ("timestamp >= timestamp_millis(1000 + 60) AND partition = 0", 1, list(range(60, 90, 3))),
        ("partition = 0 AND value = CAST('v3' AS BINARY)", 1, [3]),
        ("topic LIKE 'no-%'", 1, []),
        ("offset < 5 AND offset > 6", 1, []),
    ],
)
def test_the_rows_are_the_same_and_the_tasks_fewer(spark, frame, condition, tasks, numbers):
    with push_down(spark, False):
        wanted = sorted(int(row.value[1:]) for row in frame.where(condition).collect())
        # Without push-down the query still works, and reads every partition.
        assert frame.where(condition).rdd.getNumPartitions() in (3, 0)
    with push_down(spark, True):
        pushed = frame.where(condition)
        assert sorted(int(row.value[1:]) for row in pushed.collect()) == wanted == numbers
        assert pushed.rdd.getNumPartitions() in (tasks, 0)


def test_push_down_leans_on_the_check_that_spark_has(our_broker, topic):
    """Fail if Spark no longer compares the method's ``__func__``, on which the push-down switch relies."""
    from pyspark.sql.datasource import DataSourceReader

    from kafkacore.spark.columns.output import KafkaColumns
    from kafkacore.spark.reader.options import parse_options

    options = parse_options(
        {"kafka.bootstrap.servers": our_broker.bootstrap_servers, "subscribe": topic}, streaming=False
    )
    reader = KafkaBatchReader(options, KafkaColumns(("value",)))
    assert reader.pushFilters.__func__ is DataSourceReader.pushFilters
    assert list(reader.pushFilters([])) == []
