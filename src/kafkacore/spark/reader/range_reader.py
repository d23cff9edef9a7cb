"""Base of the batch reader and the stream reader: tasks that each read one range of offsets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from kafkacore.spark.columns.output import OutputPlan
from kafkacore.spark.reader.fetch import read_range
from kafkacore.spark.reader.offsets import OffsetRange, split
from kafkacore.spark.reader.options import SourceOptions
from kafkacore.spark.worker.tasks import ReadingTask

if TYPE_CHECKING:
    import pyarrow as pa


class KafkaPartition(InputPartition):
    """Spark partition for one task, which reads a range of one topic partition."""

    def __init__(self, offsets: OffsetRange) -> None:
        super().__init__(offsets)
        self.offsets = offsets


class RangeReader(ReadingTask[KafkaPartition]):
    """Base of both readers. It splits ranges into tasks, and reads a range in a worker."""

    def __init__(self, options: SourceOptions, plan: OutputPlan) -> None:
        self._options = options
        self._output_plan = plan

    def _read(self, partition: KafkaPartition) -> Iterator[pa.RecordBatch]:
        return read_range(self._options, partition.offsets, self._output_plan.output())

    def _tasks(self, ranges: list[OffsetRange]) -> list[KafkaPartition]:
        pieces = split(ranges, self._options.min_partitions, self._options.max_records_per_partition)
        return [KafkaPartition(piece) for piece in pieces]
