"""Where each task of ours begins in a worker: Spark's two calls in, those of our readers and writers out.

Does not know: what a task reads or writes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import InputPartition

from kafkacore.spark.worker_process import begin_task

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import WriterCommitMessage


class ReadingTask(ABC):
    """Of a reader of batches or of micro-batches; a partition of its own is of a class of its own."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """What Spark calls."""
        # Spark replaces an empty plan by one partition of nothing.
        if type(partition) is InputPartition:
            return iter(())
        begin_task()
        return self._read(partition)

    @abstractmethod
    def _read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The rows of one partition."""


class WritingTask(ABC):
    """Of a writer of batches or of micro-batches."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """What Spark calls."""
        begin_task()
        return self._write(iterator)

    @abstractmethod
    def _write(self, batches: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task; what the driver is to know of it."""
