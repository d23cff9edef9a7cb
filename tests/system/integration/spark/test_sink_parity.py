"""Our sink and Spark's own write the same records of one DataFrame, or fail with similar errors."""

import uuid

import pytest
from model.spark_reads import dotted
from model.topic_reader import records_of
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from kafkacore.admin import KafkaAdminClient, NewTopic

PARTITIONS = 3


@pytest.fixture
def make_topic(apache_kafka):
    def make(partitions=PARTITIONS):
        name = f"sink-{uuid.uuid4().hex[:8]}"
        with KafkaAdminClient(bootstrap_servers=apache_kafka.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(name, num_partitions=partitions)])
        return name

    return make


@pytest.fixture
def write(apache_kafka):
    """Return a function that writes a DataFrame with one request in flight.

    A broker that has just created a topic may reject one batch and accept the next. That batch is then the
    first of its producer, and Java's producer would retry the rejected one in vain for two minutes.
    """

    def write(frame, sink, **options):
        (
            frame.write.format(sink)
            .option("kafka.bootstrap.servers", apache_kafka.bootstrap_servers)
            .option("kafka.max.block.ms", "60000")
            .option("kafka.max.in.flight.requests.per.connection", "1")
            .options(**dotted(options))
            .mode("append")
            .save()
        )

    return write


@pytest.fixture
def read(apache_kafka):
    """Return all records of a topic by partition, in order."""

    def read(topic, partitions=PARTITIONS):
        found = {number: [] for number in range(partitions)}
        for record in records_of(apache_kafka.bootstrap_servers, [topic], partitions):
            found[record.partition].append((record.key, record.value, list(record.headers)))
        return found

    return read


HEADERS = (
    "array(named_struct('key', 'h', 'value', cast(cast(id as string) as binary)), "
    "named_struct('key', 'n', 'value', cast(null as binary)))"
)
FRAMES = {
    "strings": ["cast(id as string) as key", "concat('v', id) as value"],
    "binary": ["cast(concat('k', id) as binary) as key", "cast(cast(id as string) as binary) as value"],
    "keys that are null": [
        "if(id % 2 = 0, cast(id as string), null) as key",
        "'v' as value",
        "0 as partition",
    ],
    "nothing at all": ["cast(null as binary) as key", "cast(null as string) as value", "1 as partition"],
    "values that are null": ["cast(id as string) as key", "cast(null as string) as value"],
    "headers": ["cast(id as string) as key", "'v' as value", f"if(id % 3 = 0, null, {HEADERS}) as headers"],
    "empty headers and bytes": [
        "'' as key",
        "cast('' as binary) as value",
        f"slice({HEADERS}, 1, 0) as headers",
    ],
    "partitions": ["cast(id as string) as value", "cast(id % 3 as int) as partition"],
    "partitions here and there": [
        "cast(id as string) as key",
        "'v' as value",
        "if(id % 2 = 0, 1, cast(null as int)) as partition",
    ],
    "columns of other names": ["id", "cast(id as string) as value", "1 as partition", "'x' as Key"],
}


@pytest.mark.parametrize("columns", FRAMES.values(), ids=FRAMES)
def test_same_frame_gives_the_same_records(spark, make_topic, write, read, columns):
    frame = spark.range(0, 60, 1, 1).selectExpr(*columns)
    found = {}
    for sink in ("kafka", "kafkacore"):
        topic = make_topic()
        write(frame, sink, topic=topic)
        found[sink] = read(topic)
    assert sum(map(len, found["kafka"].values())) == 60
    assert found["kafkacore"] == found["kafka"]


def test_rows_of_mixed_topics_go_where_they_say(spark, make_topic, write, read):
    found = {}
    for sink in ("kafka", "kafkacore"):
        topics = [make_topic(), make_topic()]
        frame = spark.range(0, 60, 1, 2).selectExpr(
            f"if(id % 3 = 0, '{topics[0]}', '{topics[1]}') as topic",
            "cast(id as string) as key",
            "cast(id as string) as value",
        )
        write(frame, sink)
        found[sink] = [
            {number: sorted(map(repr, records)) for number, records in read(topic).items()}
            for topic in topics
        ]
    assert found["kafkacore"] == found["kafka"]
    assert sum(len(records) for records in found["kafka"][0].values()) == 20


def test_option_topic_wins_over_the_column(spark, make_topic, write, read):
    for sink in ("kafka", "kafkacore"):
        topic = make_topic()
        frame = spark.range(0, 6, 1, 1).selectExpr("'elsewhere' as topic", "'v' as value", "'k' as key")
        write(frame, sink, topic=topic)
        assert sum(map(len, read(topic).values())) == 6


ERRORS = {
    "no topic": (["'v' as value"], {}, "topic option required", "no topic"),
    "no value": (["'k' as key"], {"topic": "t"}, "'value' not found", "no column value"),
    "value of another type": (
        ["1 as value"],
        {"topic": "t"},
        "value attribute unsupported",
        "column value must",
    ),
    "key of another type": (
        ["'v' as value", "1.5 as key"],
        {"topic": "t"},
        "key attribute unsupported",
        "column key must",
    ),
    "headers of another type": (
        ["'v' as value", "'h' as headers"],
        {"topic": "t"},
        "headers attribute",
        "column headers must",
    ),
    "partition of another type": (
        ["'v' as value", "id as partition"],
        {"topic": "t"},
        "partition attribute",
        "column partition must",
    ),
    "topic of another type": (["'v' as value", "1 as topic"], {}, "topic attribute", "column topic must"),
    "null topic": (
        ["'v' as value", "cast(null as string) as topic"],
        {},
        "contains a null topic",
        "KAFKA_NULL_TOPIC_IN_DATA",
    ),
    "key serializer": (
        ["'v' as value"],
        {"topic": "t", "kafka__key__serializer": "x"},
        "key.serializer",
        "key.serializer",
    ),
    "value serializer": (
        ["'v' as value"],
        {"topic": "t", "kafka__value__serializer": "x"},
        "value.serializer",
        "value.serializer",
    ),
    "negative partition": (
        ["'v' as value", "-1 as partition"],
        {"topic": "new"},
        "Invalid partition",
        "invalid partition",
    ),
    "partition that is not there": (
        ["'v' as value", "9 as partition"],
        # The partition does not exist, so the producer waits this long in vain.
        {"topic": "new", "kafka__max__block__ms": "10000"},
        "[Pp]artition",
        "row 0 of the task .*no partition 9",
    ),
    "too large": (
        ["repeat('v', 2000000) as value"],
        {"topic": "new"},
        "max.request.size",
        "row 0 of the task .*TOO_LARGE",
    ),
    "no name of a topic": (
        ["'v' as value"],
        {"topic": "no good"},
        "no good",
        "no good",
    ),
}


@pytest.mark.parametrize(("columns", "options", "theirs", "ours"), ERRORS.values(), ids=ERRORS)
def test_error_is_of_the_same_kind(spark, make_topic, write, columns, options, theirs, ours):
    frame = spark.range(0, 1, 1, 1).selectExpr(*columns)
    if options.get("topic") == "new":
        options = options | {"topic": make_topic()}
    for sink, sentence in (("kafka", theirs), ("kafkacore", ours)):
        # A failed batch job raises Py4JJavaError, a failed analysis PySpark's exception.
        with pytest.raises((PySparkException, Py4JJavaError), match=sentence):
            write(frame, sink, **options)


@pytest.mark.parametrize("mode", ["overwrite", "ignore"])
def test_modes_that_do_not_append_are_refused(spark, apache_kafka, mode):
    frame = spark.range(1).selectExpr("'v' as value")
    for sink in ("kafka", "kafkacore"):
        writer = frame.write.format(sink).option("topic", "t").mode(mode)
        with pytest.raises(PySparkException):
            writer.option("kafka.bootstrap.servers", apache_kafka.bootstrap_servers).save()
