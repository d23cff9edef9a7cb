"""Build the Arrow batches of a task, with exactly the schema that the query asks for.

The driver creates and checks an :class:`OutputPlan` and sends it to the workers. Each task creates an
:class:`Output` from the plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kafkacore.decode.kafka_columns import COLUMN_OF, Column, KafkaColumnArrays
from kafkacore.decode.typed_batches import in_parts
from kafkacore.spark.columns.schema import arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa


class Output(Protocol):
    """Builder of the batches of one task."""

    @property
    def fetched(self) -> tuple[str, ...]:
        """Names of the columns of :mod:`kafkacore.record` that :meth:`batch` needs; never empty."""

    @property
    def schema(self) -> pa.Schema:
        """Schema of every batch."""

    def batch(self, found: pa.RecordBatch, topic: str | None, partition: int | None) -> pa.RecordBatch:
        """Return the batch for decoded records.

        Parameters
        ----------
        found:
            Records of one partition, in order of offsets, with the columns :attr:`fetched`.
        topic, partition:
            Topic and partition of the records; ``None`` if unknown, as for a single segment file.
        """


class OutputPlan(Protocol):
    """Picklable description of the batches of a read."""

    def output(self) -> Output: ...


def kafka_columns(plan: OutputPlan) -> Mapping[str, Column]:
    """Return, by name, those columns of ``plan`` that contain a column of Kafka without decoding it.

    Filters on these columns can be pushed down.
    """
    columns: Mapping[str, Column] = getattr(plan, "kafka_columns", {})
    return columns


def batches(
    output: Output, found: pa.RecordBatch, topic: str | None, partition: int | None
) -> Iterator[pa.RecordBatch]:
    """Return the batch for ``found``, or several smaller batches if a decoded column would be too large.

    Raises
    ------
    ColumnTooLargeError
        A single decoded record is too large for a column.
    """
    return in_parts(lambda part: output.batch(part, topic, partition), found)


@dataclass(frozen=True)
class KafkaColumns:
    """Plan of a read that returns Kafka's columns without decoding."""

    columns: tuple[Column, ...]

    @property
    def kafka_columns(self) -> Mapping[str, Column]:
        return {column: column for column in self.columns}

    def output(self) -> Output:
        return _KafkaOutput(self.columns)


class _KafkaOutput:
    def __init__(self, columns: tuple[Column, ...]) -> None:
        self._columns = columns
        self.fetched = tuple(dict.fromkeys(COLUMN_OF[c] for c in columns if c in COLUMN_OF)) or ("offset",)
        self.schema = arrow_schema(columns)
        self._kafka = KafkaColumnArrays()

    def batch(self, found: pa.RecordBatch, topic: str | None, partition: int | None) -> pa.RecordBatch:
        import pyarrow as pa

        arrays = [self._kafka.array(column, found, topic, partition) for column in self._columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
