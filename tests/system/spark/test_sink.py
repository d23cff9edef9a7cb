"""``df.write`` and ``df.writeStream`` as a user calls them, with our broker."""

import pytest
from eventually import BUDGET_S
from model.topic_reader import records_of
from pyspark.errors import PySparkException


@pytest.fixture
def read(our_broker):
    def read(*topics):
        found = records_of(our_broker.bootstrap_servers, topics, 2)
        return sorted((record.topic, record.key, record.value) for record in found)

    return read


def written(frame, broker, **options):
    return (
        frame.write.format("kafkacore")
        .option("kafka.bootstrap.servers", broker.bootstrap_servers)
        .options(**options)
        .mode("append")
    )


def test_batch_of_several_tasks_is_written_whole(spark, our_broker, make_topic, read):
    topics = make_topic(), make_topic()
    frame = spark.range(0, 3_000, 1, 3).selectExpr(
        f"if(id % 2 = 0, '{topics[0]}', '{topics[1]}') as topic",
        "cast(id as string) as key",
        "cast(id as string) as value",
        "id as not_written",
    )
    written(frame, our_broker).save()
    expected = [(topics[n % 2], b"%d" % n, b"%d" % n) for n in range(3_000)]
    assert read(*topics) == sorted(expected)


def test_failed_task_says_which_record_and_why(spark, our_broker, make_topic):
    frame = spark.range(0, 4, 1, 1).selectExpr("'k' as key", "'v' as value", "cast(id as int) as partition")
    with pytest.raises(PySparkException, match=r"row 2 of the task \(topic \S+, partition 2, key 'k'\)"):
        written(frame, our_broker, topic=make_topic()).save()


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (["'v' as value"], "no topic"),
        (["'t' as topic"], "no column value"),
        (["1 as value", "'t' as topic"], "column value must be of type string or binary, not int"),
        (["'v' as value", "cast(null as string) as topic"], "KAFKA_NULL_TOPIC_IN_DATA"),
    ],
)
def test_frame_that_cannot_be_written_fails_with_a_sentence(spark, our_broker, columns, sentence):
    with pytest.raises(PySparkException, match=sentence):
        written(spark.range(1).selectExpr(*columns), our_broker).save()


def test_overwriting_is_refused(spark, our_broker):
    frame = spark.range(1).selectExpr("'v' as value")
    with pytest.raises(PySparkException, match=r"mode\('append'\)"):
        written(frame, our_broker, topic="t").mode("overwrite").save()


@pytest.mark.parametrize("mode", ["append", "complete"])
def test_stream_writes_its_batches_in_both_output_modes(spark, our_broker, make_topic, read, tmp_path, mode):
    source = make_topic([(0, None, b"%d" % number) for number in range(20)])
    target = make_topic()
    frame = (
        spark.readStream.format("kafkacore")
        .option("kafka.bootstrap.servers", our_broker.bootstrap_servers)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 10)
        .load()
    )
    if mode == "complete":
        frame = frame.groupBy("topic").count().selectExpr("'all' as key", "cast(count as string) as value")
    else:
        frame = frame.select("key", "value")
    query = (
        frame.writeStream.format("kafkacore")
        .option("kafka.bootstrap.servers", our_broker.bootstrap_servers)
        .option("topic", target)
        .option("checkpointLocation", str(tmp_path))
        .queryName(f"sink-{mode}")
        .outputMode(mode)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(BUDGET_S)
    assert query.exception() is None
    values = [value for _, _, value in read(target)]
    if mode == "complete":
        assert values == [b"10", b"20"]
    else:
        assert sorted(map(int, values)) == list(range(20))
