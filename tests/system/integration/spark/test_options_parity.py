"""Every option of a batch read gives the same rows with both sources, or both reject it."""

import json
import random
import uuid

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from kafkacore import KafkaProducer
from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.spark.reader.offsets import OffsetRange, split


@pytest.fixture(scope="module")
def topics(apache_kafka):
    """Create two topics, the name of one being a prefix of the other.

    The first has 10 and 40 records in its partitions, with timestamps of 1000 ms, 1010 ms and so on. The
    second has 5 records.
    """
    name = f"parity-{uuid.uuid4().hex[:8]}"
    with KafkaAdminClient(bootstrap_servers=apache_kafka.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, num_partitions=2), NewTopic(f"{name}-b", num_partitions=1)])
    with KafkaProducer(bootstrap_servers=apache_kafka.bootstrap_servers, linger_ms=5) as producer:
        for topic, partition, count in ((name, 0, 10), (name, 1, 40), (f"{name}-b", 0, 5)):
            for number in range(count):
                producer.send(topic, b"%d" % number, partition=partition, timestamp_ms=1000 + 10 * number)
    return name


@pytest.fixture
def read(spark, apache_kafka, topics):
    """Return a function that reads with a source and options, and returns the offsets of the rows."""

    def of(source, options):
        given = {
            "kafka.bootstrap.servers": apache_kafka.bootstrap_servers,
            "kafkaConsumer.pollTimeoutMs": "60000",
            **({} if {"assign", "subscribe", "subscribePattern"} & options.keys() else {"subscribe": topics}),
            **{name: value.replace("TOPIC", topics) for name, value in options.items()},
        }
        frame = spark.read.format(source).options(**given).load()
        return sorted(tuple(row) for row in frame.select("topic", "partition", "offset").collect())

    return of


#: How long Spark's source waits for records that do not exist; long enough to read those that do.
FOR_WHAT_NEVER_COMES = {"kafkaConsumer.pollTimeoutMs": "8000"}


def at(first, second):
    """Return the JSON of an offset or timestamp for each of the two partitions."""
    return json.dumps({"TOPIC": {"0": first, "1": second}})


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({"subscribe": " TOPIC , TOPIC-b,,"}, 55),
        ({"SUBSCRIBE": "TOPIC", "StartingOffsets": " Earliest", "endingoffsets": "LATEST "}, 50),
        ({"assign": '{"TOPIC": [1, 99]}'}, 40),
        ({"assign": "{}"}, 0),
        ({"subscribePattern": "TOPIC"}, 55),
        ({"subscribePattern": "(?i)^parit[w-z&&[^x]]++-\\p{XDigit}{8}$"}, None),
        ({"subscribePattern": "no-such-topic"}, 0),
        ({"subscribePattern": "^(__.*|TOPIC)$"}, 50),
        ({"startingOffsets": at(3, -2)}, 47),
        ({"startingOffsets": at(3.7, 4)}, 43),
        ({"endingOffsets": at(3, -1)}, 43),
        ({"startingOffsets": at(3, 4), "endingOffsets": at(5, 4)}, 2),
        ({"startingTimestamp": " 1050 ", "startingOffsetsByTimestamp": "?", "startingOffsets": "?"}, 40),
        ({"startingOffsetsByTimestamp": at(1050, 1300), "startingOffsets": "latest"}, 15),
        ({"startingTimestamp": "1100", "startingOffsetsByTimestampStrategy": "Latest"}, 30),
        ({"startingOffsetsByTimestamp": at(-1, -2)}, 40),
        ({"endingTimestamp": "1050"}, 10),
        ({"endingTimestamp": "9999"}, 50),
        ({"endingOffsetsByTimestamp": at(1050, 1300)}, 35),
        ({"minPartitions": "7", "maxRecordsPerPartition": "9"}, 50),
        ({"failOnDataLoss": "FALSE", "endingOffsets": at(3, 400), **FOR_WHAT_NEVER_COMES}, 43),
        ({"maxOffsetsPerTrigger": "x", "maxTriggerDelay": "x", "someOption": "x", "topic": "x"}, 50),
        (
            {
                "kafka.group.id": "mine",
                "groupIdPrefix": "x",
                "KAFKA.Isolation.Level": "read_committed",
                "kafka.check.crcs": "TRUE",
                "kafka.connections.max.idle.ms": "-1",
                "kafka.default.api.timeout.ms": "50000",
                "kafka.group.protocol": "classic",
                "kafka.sasl.jaas.config": "x",
                "kafka.no.such.setting": "x",
            },
            50,
        ),
    ],
)  # fmt: skip
def test_option_gives_the_rows_of_sparks_own_source(read, options, count):
    ours = read("kafkacore", options)
    assert ours == read("kafka", options)
    assert count is None or len(ours) == count


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"subscribe": "TOPIC", "subscribePattern": "x"}, "exactly one of assign, subscribe"),
        ({"subscribe": " , "}, "subscribe is empty"),
        ({"subscribe": "no-such-topic"}, "'no-such-topic' does not exist"),
        ({"assign": '{"no-such-topic": [0]}'}, "'no-such-topic' does not exist"),
        ({"assign": '{"TOPIC": ["0"]}'}, "assign must be JSON such as"),
        ({"subscribePattern": " "}, "subscribePattern is empty"),
        ({"subscribePattern": "("}, "not a supported regular expression"),
        ({"startingOffsets": "latest"}, "nothing would be read"),
        ({"startingOffsets": at(3, -1)}, "nothing would be read"),
        ({"startingOffsets": '{"TOPIC": {"0": 3}}'}, "KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED"),
        ({"startingOffsets": at("3", 4)}, "startingOffsets must be JSON such as"),
        ({"startingOffsets": at(3, 50)}, "RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET"),
        ({"endingOffsets": at(3, -2)}, "nothing would be read"),
        ({"endingOffsets": at(3, 400)}, "KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE"),
        ({"startingOffsets": at(5, 4), "endingOffsets": at(3, 5)}, "UNRESOLVED_START_OFFSET_GREATER"),
        (
            {"startingOffsets": at(5, 4), "endingOffsets": '{"TOPIC": {"0": 7}}'},
            "MISMATCHED_TOPIC_PARTITIONS_BETWEEN_START_OFFSET_AND_END_OFFSET",
        ),
        ({"startingTimestamp": "1100"}, "choose an earlier timestamp"),
        ({"startingTimestamp": "x"}, "milliseconds since 1970"),
        ({"startingTimestamp": "1", "startingOffsetsByTimestampStrategy": "x"}, '"error" or "latest"'),
        (
            {"startingOffsetsByTimestamp": '{"TOPIC": {"0": 1050}}'},
            "KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED",
        ),
        ({"startingTimestamp": "1080", "endingTimestamp": "1050"}, "RESOLVED_START_OFFSET_GREATER"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "3"}, "must not exceed"),
        ({"minPartitions": "0"}, "minPartitions must be above 0"),
        ({"maxRecordsPerPartition": "0"}, "maxRecordsPerPartition must be above 0"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss must be true or false"),
        ({"includeHeaders": "yes"}, "includeHeaders must be true or false"),
        ({"fetchOffset.numRetries": "x"}, "fetchOffset.numRetries must be a whole number"),
        ({"kafkaConsumer.pollTimeoutMs": "x"}, "kafkaConsumer.pollTimeoutMs must be a whole number"),
        ({"kafka.auto.offset.reset": "earliest"}, "set startingOffsets instead"),
        ({"kafka.key.deserializer": "x"}, "kafka.key.deserializer is set by the source"),
        ({"kafka.value.deserializer": "x"}, "kafka.value.deserializer is set by the source"),
        ({"kafka.enable.auto.commit": "false"}, "kafka.enable.auto.commit is set by the source"),
        ({"kafka.interceptor.classes": ""}, "kafka.interceptor.classes is set by the source"),
        ({"kafka.check.crcs": "maybe"}, "kafka.check.crcs must be true or false"),
        ({"kafka.isolation.level": "x"}, "isolation_level"),
    ],
)
def test_what_sparks_own_source_refuses_is_answered_with_a_sentence(read, options, sentence):
    # Fail fast instead of retrying.
    options = {"fetchOffset.numRetries": "1", "kafkaConsumer.pollTimeoutMs": "1500", **options}
    with pytest.raises(PySparkException, match=sentence):
        read("kafkacore", options)
    with pytest.raises((PySparkException, Py4JJavaError)):
        read("kafka", options)


def test_ranges_of_offsets_are_cut_as_sparks_own_source_cuts_them(spark):
    """Compare with Spark's ``KafkaOffsetRangeCalculator``, called in the JVM."""
    jvm = spark._jvm
    scala, kafka010 = jvm.scala, jvm.org.apache.spark.sql.kafka010
    convert = scala.jdk.javaapi.CollectionConverters

    def theirs(ranges, min_partitions, max_records):
        options = jvm.java.util.HashMap()
        if min_partitions:
            options.put("minPartitions", str(min_partitions))
        if max_records:
            options.put("maxRecordsPerPartition", str(max_records))
        calculator = kafka010.KafkaOffsetRangeCalculator.apply(
            jvm.org.apache.spark.sql.util.CaseInsensitiveStringMap(options)
        )
        given = jvm.java.util.ArrayList()
        for each in ranges:
            tp = jvm.org.apache.kafka.common.TopicPartition(each.topic, each.partition)
            given.add(kafka010.KafkaOffsetRange(tp, each.start, each.end, scala.Option.empty()))
        nowhere = convert.asScala(jvm.java.util.ArrayList()).toSeq()
        found = convert.asJava(calculator.getRanges(convert.asScala(given).toSeq(), nowhere))
        return [
            OffsetRange(each.topic(), each.partition(), each.fromOffset(), each.untilOffset())
            for each in found
        ]

    chance = random.Random(7)
    for _ in range(30):
        sizes = [chance.choice([0, 1, 9, chance.randint(1, 1000)]) for _ in range(chance.randint(1, 4))]
        ranges = [OffsetRange("t", number, 7, 7 + size) for number, size in enumerate(sizes)]
        wanted = chance.choice([None, chance.randint(1, 20)]), chance.choice([None, chance.randint(1, 200)])
        assert split(ranges, *wanted) == theirs(ranges, *wanted), (sizes, wanted)
