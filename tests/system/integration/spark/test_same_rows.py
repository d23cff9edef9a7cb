"""Our source and Spark's own read the same rows from one topic of Apache Kafka."""

import uuid

import pytest
from model.spark_reads import reader_of

from kafkacore import KafkaProducer
from kafkacore.admin import KafkaAdminClient, NewTopic


@pytest.fixture(scope="module")
def topic(apache_kafka):
    name = f"same-{uuid.uuid4().hex[:8]}"
    with KafkaAdminClient(bootstrap_servers=apache_kafka.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, num_partitions=3)])
    with KafkaProducer(bootstrap_servers=apache_kafka.bootstrap_servers) as producer:
        for number in range(300):
            headers = [("h", b"%d" % number)] if number % 3 == 0 else []
            key = None if number % 5 == 0 else b"k%d" % number
            producer.send(name, b"v%d" % number, key=key, partition=number % 3, headers=headers)
    return name


def test_batch_read_gives_the_same_rows_and_schema(spark, apache_kafka, topic):
    def read(source):
        return reader_of(spark, source, apache_kafka.bootstrap_servers, topic, includeHeaders="true").load()

    ours, theirs = read("kafkacore"), read("kafka")
    assert ours.schema == theirs.schema
    rows = sorted(ours.collect(), key=lambda row: (row.partition, row.offset))
    assert len(rows) == 300
    assert rows == sorted(theirs.collect(), key=lambda row: (row.partition, row.offset))
