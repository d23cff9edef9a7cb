"""``format("kafkacore")`` in a real Spark, with our broker."""

import datetime

import pytest
from pyspark.errors import PySparkException, StreamingQueryException

RECORDS = [(n % 2, None if n % 3 == 0 else b"k%d" % n, b"v%d" % n) for n in range(100)]


@pytest.fixture(scope="module")
def topic(make_topic):
    return make_topic(RECORDS)


@pytest.fixture
def reader(reader_of, topic):
    return reader_of(topic)


@pytest.fixture
def stream(spark, our_broker):
    def of(topic, **options):
        return (
            spark.readStream.format("kafkacore")
            .option("kafka.bootstrap.servers", our_broker.bootstrap_servers)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .options(**options)
            .load()
        )

    return of


def drain(frame, folder, sink="parquet"):
    """Read the stream to its current end, and return the query."""
    writer = frame.writeStream.format(sink).option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(folder / "out"))
    query.awaitTermination()
    return query


def test_batch_read_gives_every_record_with_all_seven_columns(reader, topic):
    frame = reader.load()
    assert frame.columns == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    rows = sorted(frame.collect(), key=lambda row: row.timestamp)
    assert [(row.partition, row.key, row.value) for row in rows] == RECORDS
    assert {row.topic for row in rows} == {topic}
    assert [row.offset for row in rows] == [n // 2 for n in range(100)]
    assert {row.timestampType for row in rows} == {0}


def test_timestamps_are_those_of_the_records(reader, spark):
    first = reader.load().orderBy("timestamp").selectExpr("unix_millis(timestamp) AS ms").first()
    assert first.ms == 1_000


def test_users_schema_reads_those_columns_alone(reader):
    frame = reader.schema("value binary, offset bigint").load()
    assert frame.columns == ["value", "offset"]
    assert {bytes(row.value) for row in frame.collect()} == {value for _, _, value in RECORDS}


def test_topic_and_partition_alone_need_no_column_of_the_records(reader):
    assert reader.schema("topic string, partition int").load().groupBy("partition").count().count() == 2


def test_range_of_offsets_is_read_exactly(reader, topic):
    frame = (
        reader.option("startingOffsets", f'{{"{topic}":{{"0":10,"1":-2}}}}')
        .option("endingOffsets", f'{{"{topic}":{{"0":15,"1":3}}}}')
        .load()
    )
    read = sorted((row.partition, row.offset) for row in frame.select("partition", "offset").collect())
    assert read == [(0, n) for n in range(10, 15)] + [(1, n) for n in range(3)]


def test_starting_timestamp_finds_the_first_record_at_or_after_it(reader):
    frame = reader.option("startingTimestamp", "1090").load()
    assert sorted(bytes(row.value) for row in frame.select("value").collect()) == [
        b"v%d" % n for n in range(90, 100)
    ]


def test_min_partitions_splits_the_read_without_losing_a_record(reader):
    frame = reader.option("minPartitions", "8").load()
    assert frame.rdd.getNumPartitions() == 8
    assert frame.count() == 100


def test_headers_are_a_column_when_asked_for(reader_of, our_broker, make_topic):
    from kafkacore.producer import KafkaProducer

    topic = make_topic(partitions=1)
    with KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers) as producer:
        producer.send(topic, b"with", headers=[("a", b"1"), ("b", None)])
        producer.send(topic, b"without")
    frame = reader_of(topic, includeHeaders="true").load()
    rows = {bytes(row.value): row.headers for row in frame.collect()}
    assert [(header.key, header.value) for header in rows[b"with"]] == [("a", b"1"), ("b", None)]
    assert rows[b"without"] is None


def test_empty_topic_gives_no_rows(reader_of, make_topic):
    assert reader_of(make_topic()).load().count() == 0


def test_limit_ends_a_read_early_and_the_next_read_is_whole(reader):
    assert len(reader.load().limit(3).collect()) == 3
    assert reader.load().count() == 100


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("subscribe", "no-such-topic", "topic 'no-such-topic' does not exist"),
        ("startingOffset", "earliest", "did you mean startingOffsets"),
        ("kafka.fetch.max.bytes", "much", "kafka.fetch.max.bytes must be a whole number"),
    ],
)
def test_mistake_reaches_the_user_as_a_sentence(reader, option, value, sentence):
    with pytest.raises(PySparkException, match=sentence):
        reader.option(option, value).load().count()


def test_unknown_column_in_the_users_schema_is_named(reader):
    with pytest.raises(PySparkException, match="no column 'colour'"):
        reader.schema("colour string").load().count()


def test_available_now_reads_in_batches_and_a_second_run_only_what_is_new(
    spark, stream, make_topic, tmp_path
):
    topic = make_topic([(n % 2, None, b"%d" % n) for n in range(50)])
    query = drain(stream(topic, maxOffsetsPerTrigger="20"), tmp_path)
    assert [p["numInputRows"] for p in query.recentProgress if p["numInputRows"]] == [20, 20, 10]
    make_topic([(0, None, b"new")], topic=topic)
    drain(stream(topic), tmp_path)
    drain(stream(topic), tmp_path)
    values = sorted(int(row.value) if row.value != b"new" else -1 for row in _written(spark, tmp_path))
    assert values == [-1, *range(50)]


def _written(spark, folder):
    return spark.read.parquet(str(folder / "out")).select("value").collect()


def test_checkpoint_holds_the_offsets_in_the_built_in_sources_form(stream, make_topic, tmp_path):
    topic = make_topic([(0, None, b"a"), (1, None, b"b"), (1, None, b"c")])
    drain(stream(topic), tmp_path)
    offsets = (tmp_path / "checkpoint" / "offsets" / "0").read_text().splitlines()[-1]
    assert offsets == f'{{"{topic}": {{"0": 1, "1": 2}}}}'


def test_offsets_that_kafka_no_longer_has_fail_the_stream_with_what_to_do(stream, make_topic, tmp_path):
    topic = make_topic([(0, None, b"a")], partitions=1)
    frame = stream(topic, startingOffsets=f'{{"{topic}":{{"0":7}}}}')
    with pytest.raises(StreamingQueryException, match="failOnDataLoss"):
        drain(frame, tmp_path)


def test_timestamp_column_is_in_utc(reader):
    row = reader.load().orderBy("timestamp").first()
    assert row.timestamp.astimezone(datetime.UTC).year == 1970
