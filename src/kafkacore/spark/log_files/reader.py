"""The reader of ``format("kafkacore-log")``, which the driver creates and sends to the workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from kafkacore.record.segment_file import SegmentFile
from kafkacore.spark.log_files.files import Storage
from kafkacore.spark.log_files.planning import FileRange, plan_tasks
from kafkacore.spark.log_files.reading import CorruptBatches, read_rows
from kafkacore.spark.worker.prefetch import Prefetch
from kafkacore.spark.worker.tasks import ReadingTask

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacore.spark.columns.output import OutputPlan
    from kafkacore.spark.log_files.options import LogOptions

#: Maximum bytes of rows that are prefetched from remote files. Local files are not prefetched: they are read
#: from the page cache, where a second thread does not help.
AHEAD_BYTES = 16 << 20


class LogPartition(InputPartition):
    """Spark partition for one task, which reads ranges of files."""

    def __init__(self, ranges: list[FileRange]) -> None:
        super().__init__(ranges)
        self.ranges = ranges


class LogReader(ReadingTask[LogPartition], DataSourceReader):
    """Reader of all selected records of the files."""

    def __init__(self, options: LogOptions, plan: OutputPlan) -> None:
        self._options = options
        self._plan = plan

    def partitions(self) -> Sequence[InputPartition]:
        return [LogPartition(ranges) for ranges in plan_tasks(self._options)]

    def _read(self, partition: LogPartition) -> Iterator[pa.RecordBatch]:
        for one in partition.ranges:
            rows = self._rows(one)
            yield from _ahead(rows) if one.file.is_remote else rows

    def _rows(self, one: FileRange) -> Iterator[pa.RecordBatch]:
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
    # The interrupt function does nothing: a request to an object store cannot be interrupted, but has its own
    # timeout.
    with Prefetch(rows, lambda batch: batch.nbytes, AHEAD_BYTES, lambda: None) as ahead:
        yield from ahead
