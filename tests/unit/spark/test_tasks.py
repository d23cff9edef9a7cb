"""Each of our Spark tasks starts in the same function."""

import pytest
from pyspark.sql.datasource import InputPartition

from kafkacore.spark.log_files.reader import LogReader
from kafkacore.spark.reader.batch_reader import KafkaBatchReader
from kafkacore.spark.reader.stream_reader import KafkaStreamReader
from kafkacore.spark.sink import writers
from kafkacore.spark.sink.writers import KafkaBatchWriter, KafkaStreamWriter
from kafkacore.spark.worker import tasks
from kafkacore.spark.worker.tasks import ReadingTask


@pytest.fixture
def steps(monkeypatch):
    steps = []
    for module in (tasks, writers):
        monkeypatch.setattr(module, "begin_task", lambda: steps.append("begin"))
    return steps


class Own(InputPartition):
    pass


class Reader(ReadingTask):
    def __init__(self, steps):
        self.steps = steps

    def _read(self, partition):
        self.steps.append("read")
        return iter(["rows"])


class Writer(KafkaBatchWriter):
    def __init__(self, steps):
        self.steps = steps

    def _write(self, batches):
        self.steps.append("write")
        return list(batches)


def test_task_begins_before_it_reads_or_writes(steps):
    assert list(Reader(steps).read(Own(1))) == ["rows"]
    assert Writer(steps).write(iter(["rows"])) == ["rows"]
    assert steps == ["begin", "read", "begin", "write"]


def test_partition_that_spark_has_in_the_place_of_an_empty_plan_gives_nothing(steps):
    assert list(Reader(steps).read(InputPartition(None))) == []
    assert steps == []


@pytest.mark.parametrize("reader", [KafkaBatchReader, KafkaStreamReader, LogReader])
def test_readers_of_ours_begin_there(reader):
    assert reader.read is ReadingTask.read


@pytest.mark.parametrize("writer", [KafkaBatchWriter, KafkaStreamWriter])
def test_writers_of_ours_begin_there(writer):
    assert writer.write is writers._Writer.write
