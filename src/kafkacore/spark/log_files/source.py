"""``spark.read.format("kafkacore-log")``: what Spark calls.

Options and a schema in, tasks and record batches out. Spark makes these objects in processes of its own and
pickles them to the workers.

Spark imports this module to find the format, for every job of whatever source: it imports nothing but
PySpark's own classes before a method is called.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from kafkacore.spark.log_files.options import LogOptions
    from kafkacore.spark.log_files.planning import FileRange
    from kafkacore.spark.output import OutputPlan


#: Of remote files, made ahead while Spark takes the rows before. Local ones come out of the page cache, and
#: there a second thread only takes turns with the first.
AHEAD_BYTES = 16 << 20


class LogPartition(InputPartition):
    """One task's work: ranges of files."""

    def __init__(self, ranges: list[FileRange]) -> None:
        super().__init__(ranges)
        self.ranges = ranges


class KafkaCoreLogDataSource(DataSource):
    """Kafka's log segment files, with the columns of ``kafkacore``. No broker is needed."""

    @classmethod
    def name(cls) -> str:
        return "kafkacore-log"

    def schema(self) -> StructType | str:
        from kafkacore.spark.formats import default_schema

        return default_schema(self.options)

    def reader(self, schema: StructType) -> LogReader:
        from kafkacore.spark.log_files.columns import plan_columns
        from kafkacore.spark.log_files.options import parse_log_options

        options = parse_log_options(self.options)
        return LogReader(options, plan_columns(schema, self.options, options.corrupt_column))


class LogReader(DataSourceReader):
    """Every record of the files, once."""

    def __init__(self, options: LogOptions, plan: OutputPlan) -> None:
        self._options = options
        self._plan = plan

    def partitions(self) -> Sequence[InputPartition]:
        from kafkacore.spark.log_files.planning import plan_tasks

        return [LogPartition(ranges) for ranges in plan_tasks(self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from kafkacore.spark.worker_process import begin_task

        # Spark replaces an empty plan by one partition of nothing.
        if isinstance(partition, LogPartition):
            begin_task()
            for one in partition.ranges:
                rows = self._read(one)
                yield from _ahead(rows) if one.file.is_remote else rows

    def _read(self, one: FileRange) -> Iterator[pa.RecordBatch]:
        from kafkacore.record.segment_file import SegmentFile
        from kafkacore.spark.log_files.files import Storage
        from kafkacore.spark.log_files.reading import CorruptBatches, read_rows

        file, options = one.file, self._options
        with Storage(options.storage).open(file.path) as read:
            yield from read_rows(
                SegmentFile(read, file.size, one.start, one.end, chunk_bytes=file.chunk_bytes),
                self._plan.output(),
                one.selection,
                CorruptBatches(options.mode, options.corrupt_column),
                name=file.shown,
                topic=file.topic,
                partition=file.partition,
                may_be_cut=file.is_last,
            )


def _ahead(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from kafkacore.spark.prefetch import Prefetch

    # A request to an object store has a time limit of its own, and cannot be interrupted.
    with Prefetch(rows, lambda batch: batch.nbytes, AHEAD_BYTES, lambda: None) as ahead:
        yield from ahead
