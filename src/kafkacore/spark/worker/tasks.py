"""The entry point of a read task in a Python worker, shared by the batch, stream and log file readers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from pyspark.sql.datasource import InputPartition

from kafkacore.spark.worker.process import begin_task

if TYPE_CHECKING:
    import pyarrow as pa


PartitionT = TypeVar("PartitionT", bound=InputPartition)


class ReadingTask(ABC, Generic[PartitionT]):
    """Base of all readers. Each reader has its own subclass of ``InputPartition``."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a partition. Spark calls this in a worker."""
        # Spark replaces an empty plan by one plain InputPartition, which has no rows.
        if type(partition) is InputPartition:
            return iter(())
        begin_task()
        return self._read(cast(PartitionT, partition))

    @abstractmethod
    def _read(self, partition: PartitionT) -> Iterator[pa.RecordBatch]:
        """Return the rows of one partition."""
