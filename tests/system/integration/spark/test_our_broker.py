"""Spark's own ``kafka`` source and sink read and write every value through our broker."""

from __future__ import annotations

import json
import uuid

import pytest
from eventually import BUDGET_S
from model.spark_reads import reader_of, rows_of
from model.topic_reader import records_of
from peers.samples import T0
from peers.streams import Topic

from kafkacore import KafkaProducer

PARTITIONS = 2
CODECS = (None, "gzip", "snappy", "lz4", "zstd")
HEADERS = [("h", b"\x00\xff"), ("null", None)]


@pytest.fixture
def topic(our_broker):
    """Create a topic of two partitions on our broker for one test."""
    made = Topic(our_broker.bootstrap_servers)
    made.create()
    return made


def write(topic, numbers):
    """Write records whose keys, values and timestamps contain their numbers, in batches of each codec."""
    size = len(numbers) // len(CODECS)
    for index, codec in enumerate(CODECS):
        with KafkaProducer(bootstrap_servers=topic.bootstrap_servers, compression_type=codec) as producer:
            for number in numbers[index * size : (index + 1) * size]:
                producer.send(
                    topic.name,
                    b"value %d" % number * 20,
                    key=b"%d" % number if number % 3 else None,
                    headers=HEADERS if number % 2 else [],
                    partition=number % PARTITIONS,
                    timestamp_ms=T0 + number,
                )


def numbers_of(frame):
    return sorted(int(row.timestamp.timestamp() * 1000 + 0.5) - T0 for row in frame.collect())


def test_batch_read_by_sparks_own_source_gives_every_value(spark, topic):
    write(topic, range(500))
    frame = reader_of(spark, "kafka", topic.bootstrap_servers, topic.name, includeHeaders="true").load()
    rows = frame.collect()
    assert sorted(
        (bytes(row.value), row.key and bytes(row.key), [(one.key, one.value) for one in row.headers or ()])
        for row in rows
    ) == sorted(
        (b"value %d" % n * 20, bytearray(b"%d" % n) if n % 3 else None, HEADERS if n % 2 else [])
        for n in range(500)
    )
    for number in range(PARTITIONS):
        assert sorted(row.offset for row in rows if row.partition == number) == list(range(250))
    assert rows_of(frame) == rows_of(
        reader_of(spark, "kafkacore", topic.bootstrap_servers, topic.name).load()
    )


def test_sparks_own_source_reads_what_lies_between_times_and_offsets(spark, topic):
    write(topic, [*range(0, 500, 5)])
    write(topic, [*range(500, 600)])

    def read(**options):
        return numbers_of(reader_of(spark, "kafka", topic.bootstrap_servers, topic.name, **options).load())

    assert read(startingTimestamp=str(T0 + 510), endingTimestamp=str(T0 + 590)) == list(range(510, 590))
    by_partition = {topic.name: {"0": T0 + 550, "1": T0 + 599}}
    assert read(startingOffsetsByTimestamp=json.dumps(by_partition)) == [*range(550, 600, 2), 599]
    ends = {topic.name: {"0": 3, "1": 0}}
    assert len(read(endingOffsets=json.dumps(ends))) == 3


def test_sparks_own_stream_goes_on_at_its_checkpoint(streams, topic):
    def run(**options):
        found = {0: [], 1: []}
        for batch in streams.drain("kafka", topic, of=lambda row: bytes(row.value), **options):
            for (_, partition), values in batch.items():
                found[partition] += values
        return found

    def values(numbers):
        return {part: [b"value %d" % n * 20 for n in numbers if n % 2 == part] for part in range(PARTITIONS)}

    for first, last in ((0, 100), (100, 230)):
        with KafkaProducer(bootstrap_servers=topic.bootstrap_servers) as producer:
            for number in range(first, last):
                producer.send(topic.name, b"value %d" % number * 20, partition=number % PARTITIONS)
        assert run(maxOffsetsPerTrigger="60") == values(range(first, last))
    assert run() == {0: [], 1: []}


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_sparks_own_sink_writes_every_value(spark, topic, codec):
    columns = (
        "concat('key ', id) as key",
        "repeat(concat('value ', id), 20) as value",
        "cast(id % 2 as int) as partition",
        "if(id % 3 = 0, null, array(named_struct('key', 'h', 'value', cast('v' as binary)))) as headers",
    )
    (
        spark.range(0, 1000, 1, 4)
        .selectExpr(*columns)
        .write.format("kafka")
        .options(**{"kafka.bootstrap.servers": topic.bootstrap_servers, "topic": topic.name})
        .option("kafka.compression.type", codec)
        .save()
    )
    found = [
        (record.key, record.value, record.partition, list(record.headers))
        for record in records_of(topic.bootstrap_servers, [topic.name], PARTITIONS)
    ]
    assert sorted(found) == sorted(
        (b"key %d" % n, b"value %d" % n * 20, n % 2, [("h", b"v")] if n % 3 else []) for n in range(1000)
    )


def test_sparks_own_stream_writes_to_a_topic_what_it_reads_from_another(spark, topic, tmp_path):
    write(topic, range(300))
    copy = Topic(topic.bootstrap_servers)
    copy.name = f"copy-{uuid.uuid4().hex[:8]}"
    copy.create()
    options = {"kafka.bootstrap.servers": topic.bootstrap_servers}
    stream = spark.readStream.format("kafka").options(**options, subscribe=topic.name)
    for _ in range(2):
        query = (
            stream.option("startingOffsets", "earliest")
            .load()
            .select("key", "value", "partition")
            .writeStream.format("kafka")
            .options(**options, topic=copy.name, checkpointLocation=str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(2 * BUDGET_S)
    read, written = (
        sorted((row.partition, bytes(row.value), row.key and bytes(row.key)) for row in rows)
        for rows in (
            reader_of(spark, "kafka", one.bootstrap_servers, one.name).load().collect()
            for one in (topic, copy)
        )
    )
    assert written == read
    assert len(read) == 300
