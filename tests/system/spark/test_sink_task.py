"""How a task writes its rows, called directly and with our broker."""

import pickle

import pyarrow as pa
import pytest
from model.topic_reader import records_of
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kafkacore.spark.sink.columns import NullTopicError
from kafkacore.spark.sink.producers import PRODUCERS
from kafkacore.spark.sink.task import RecordWriteError
from kafkacore.spark.source import KafkaCoreDataSource

HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
SPARK = {
    "value": BinaryType(),
    "partition": IntegerType(),
    "timestamp": TimestampType(),
    "headers": ArrayType(HEADER),
}
ARROW = {
    "topic": pa.string(),
    "key": pa.string(),
    "value": pa.binary(),
    "partition": pa.int32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
}


@pytest.fixture
def write(our_broker):
    """Return a function that writes batches as a task does, with a pickled copy of the writer."""

    def write(*batches, streaming=False, **options):
        tables = [pa.record_batch({n: pa.array(v, ARROW[n]) for n, v in each.items()}) for each in batches]
        names = list(batches[0])
        schema = StructType([StructField(name, SPARK.get(name, StringType())) for name in names])
        source = KafkaCoreDataSource({"kafka.bootstrap.servers": our_broker.bootstrap_servers} | options)
        made = source.streamWriter(schema, False) if streaming else source.writer(schema, False)
        return pickle.loads(pickle.dumps(made)).write(iter(tables))

    yield write
    PRODUCERS.close()


@pytest.fixture
def read(our_broker):
    def read(*topics, partitions=2):
        found = records_of(our_broker.bootstrap_servers, topics, partitions)
        rows = [(r.topic, r.partition, r.key, r.value, r.timestamp, list(r.headers)) for r in found]
        return sorted(rows, key=repr)

    return read


def test_all_columns_in_any_order_are_written_as_they_are(write, read, make_topic):
    first, second = make_topic(), make_topic()
    message = write(
        {
            "headers": [[{"key": "h", "value": b"1"}, {"key": "n", "value": None}], None, []],
            "partition": [1, 0, 1],
            "value": [b"a", None, b"c"],
            "timestamp": [1_000, 2_999, 3_000],
            "topic": [second, first, second],
            "key": ["k", "l", None],
        }
    )
    assert (message.rows, message.size_bytes) == (3, 4)
    expected = [
        (first, 0, b"l", None, 2, []),
        (second, 1, None, b"c", 3, []),
        (second, 1, b"k", b"a", 1, [("h", b"1"), ("n", None)]),
    ]
    assert read(first, second) == sorted(expected, key=repr)


def test_rows_with_neither_key_nor_value_are_written_as_the_built_in_sink_does(write, read, make_topic):
    topic = make_topic()
    write({"key": [None, "k"], "value": [None, None], "partition": [0, 0]}, topic=topic)
    assert [record[2:4] for record in read(topic)] == [(None, None), (b"k", None)]


def test_rows_without_partition_go_where_their_key_says(write, read, make_topic):
    topic = make_topic(partitions=3)
    keys = [str(number) for number in range(50)]
    write(
        {"key": keys, "value": [b"v"] * 50, "partition": [None] * 50},
        {"key": keys, "value": [b"w"] * 50, "partition": [None] * 50},
        topic=topic,
    )
    by_key = {}
    for _, partition, key, *_ in read(topic, partitions=3):
        by_key.setdefault(key, set()).add(partition)
    assert len(by_key) == 50
    assert all(len(partitions) == 1 for partitions in by_key.values())
    assert {partition for one in by_key.values() for partition in one} == {0, 1, 2}


def test_producer_is_kept_for_the_next_task_of_the_same_configuration(write, read, make_topic):
    topic = make_topic()
    for number in range(3):
        write({"value": [b"%d" % number]}, topic=topic, streaming=True)
    assert len(PRODUCERS) == 1
    assert sorted(record[3] for record in read(topic)) == [b"0", b"1", b"2"]


@pytest.mark.parametrize(
    ("columns", "options", "sentence"),
    [
        (
            {"value": [b"a", b"b"], "key": ["x", "key" * 20], "partition": [0, 7]},
            # The producer waits for so long for the partition to appear.
            {"kafka.max.block.ms": "2000"},
            r"row 3 of the task \(topic \S+, partition 7, key 'keykeykey\w{31}'\.\.\.\).*no partition 7",
        ),
        (
            {"value": [b"a", b"b" * 2_000_000], "key": ["x", "y"], "partition": [0, 1]},
            {},
            r"row 3 of the task \(topic \S+, partition 1, key 'y'\).*MessageSizeTooLargeError",
        ),
        (
            {"value": [b"a", b"b"], "partition": [None, -1]},
            {},
            r"row 3 of the task .*invalid partition",
        ),
        (
            {"value": [b"a", b"b"], "timestamp": [0, -5_000]},
            {},
            r"row 3 of the task .*milliseconds since the epoch",
        ),
    ],
)
def test_record_that_cannot_be_written_is_named(write, make_topic, columns, options, sentence):
    good = {name: [values[0]] * 2 for name, values in columns.items()}
    with pytest.raises(RecordWriteError, match=sentence):
        write(good, columns, topic=make_topic(), **options)
    assert len(PRODUCERS) == 0


def test_record_among_mixed_topics_is_named_by_its_row_of_the_frame(write, make_topic):
    first, second = make_topic(), make_topic()
    with pytest.raises(
        RecordWriteError, match=rf"row 2 of the task \(topic {second}, partition 1, key 'c'\)"
    ):
        write({
            "topic": [second, first, second],
            "value": [b"1", b"2", b"3" * 2_000_000],
            "key": ["a", "b", "c"],
            "partition": [0, 0, 1],
        })  # fmt: skip


def test_name_that_is_no_topics_is_refused(write):
    with pytest.raises(RecordWriteError, match="is not a valid name"):
        write({"topic": ["no good"], "value": [b"1"], "partition": [0]})


def test_null_topic_fails_the_task(write):
    with pytest.raises(NullTopicError, match="KAFKA_NULL_TOPIC_IN_DATA"):
        write({"topic": [None], "value": [b"1"]})


def test_record_that_the_broker_refuses_is_named(write, our_broker, make_topic):
    from kafkacore.admin import KafkaAdminClient, NewTopic

    topic = "spark-small-messages"
    with KafkaAdminClient(bootstrap_servers=our_broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=1, topic_configs={"max.message.bytes": "500"})])
    with pytest.raises(RecordWriteError, match=r"row 1 of the task \(topic \S+, partition 0, key 'big'\)"):
        write({"value": [b"a", b"b" * 5_000], "key": ["small", "big"]}, topic=topic)


def test_more_than_the_buffer_memory_waits_instead_of_growing(write, read, make_topic):
    topic = make_topic(partitions=1)
    value = b"x" * 50_000
    batches = [{"value": [value] * 20} for _ in range(5)]
    message = write(*batches, topic=topic, **{"kafka.buffer.memory": "300000", "kafka.batch.size": "100000"})
    assert message.rows == len(read(topic, partitions=1)) == 100
