"""What batch and stream reading share: a range of offsets as Spark's partition, read in a worker.

Ranges in, tasks and record batches out. Does not know: where a range comes from.
"""

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
    """One task's work: a range of one topic partition."""

    def __init__(self, offsets: OffsetRange) -> None:
        super().__init__(offsets)
        self.offsets = offsets


class RangeReader(ReadingTask[KafkaPartition]):
    """What both readers do in a worker, and how they divide ranges."""

    def __init__(self, options: SourceOptions, plan: OutputPlan) -> None:
        self._options = options
        self._output_plan = plan

    def _read(self, partition: KafkaPartition) -> Iterator[pa.RecordBatch]:
        return read_range(self._options, partition.offsets, self._output_plan.output())

    def _tasks(self, ranges: list[OffsetRange]) -> list[KafkaPartition]:
        pieces = split(ranges, self._options.min_partitions, self._options.max_records_per_partition)
        return [KafkaPartition(piece) for piece in pieces]
