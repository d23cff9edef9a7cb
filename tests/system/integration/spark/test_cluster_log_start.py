"""Both sources treat records that were deleted before a stream read them alike.

The tests set ``failOnDataLoss`` to true and to false.
"""

import json
import uuid

import pytest
from peers.jars import run_java
from pyspark.errors import StreamingQueryException

from kafkacore import KafkaProducer
from kafkacore.admin import KafkaAdminClient, NewTopic

PARTITIONS = 2
BATCH = 100


@pytest.fixture
def kafka(apache_kafka, tmp_path):
    return Topic(apache_kafka.bootstrap_servers, tmp_path)


class Topic:
    """A topic that grows and loses its oldest records."""

    def __init__(self, bootstrap, folder):
        self.bootstrap = bootstrap
        self.name = f"log-start-{uuid.uuid4().hex[:8]}"
        self._folder = folder
        with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
            admin.create_topics([NewTopic(self.name, num_partitions=PARTITIONS)])

    def append(self):
        with KafkaProducer(bootstrap_servers=self.bootstrap) as producer:
            for partition in range(PARTITIONS):
                producer.send_batch(self.name, [b"v"] * BATCH, partition=partition)
            producer.flush()

    def delete_before(self, offset):
        places = [{"topic": self.name, "partition": n, "offset": offset} for n in range(PARTITIONS)]
        file = self._folder / "offsets.json"
        file.write_text(json.dumps({"version": 1, "partitions": places}))
        command = "org.apache.kafka.tools.DeleteRecordsCommand"
        run_java(command, "--bootstrap-server", self.bootstrap, "--offset-json-file", str(file))


def drain(spark, source, kafka, folder, fail_on_data_loss):
    """Read all available records, starting at the checkpoint."""
    frame = (
        spark.readStream.format(source)
        .option("kafka.bootstrap.servers", kafka.bootstrap)
        .option("subscribe", kafka.name)
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", str(fail_on_data_loss).lower())
        .load()
        .select("partition", "offset")
    )
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(folder / "out"))
    query.awaitTermination()


def test_log_start_that_has_passed_the_checkpoint_fails_or_is_where_it_goes_on(spark, kafka, tmp_path):
    sources = ("kafkacore", "kafka")
    kafka.append()
    for source in sources:
        drain(spark, source, kafka, tmp_path / source, fail_on_data_loss=True)
    kafka.append()
    kafka.delete_before(150)
    for source in sources:
        with pytest.raises(StreamingQueryException, match="failOnDataLoss"):
            drain(spark, source, kafka, tmp_path / source, fail_on_data_loss=True)
        drain(spark, source, kafka, tmp_path / source, fail_on_data_loss=False)
    left = [(n, offset) for n in range(PARTITIONS) for offset in (*range(100), *range(150, 200))]
    for source in sources:
        rows = spark.read.parquet(str(tmp_path / source / "out")).collect()
        assert sorted(map(tuple, rows)) == left, source
