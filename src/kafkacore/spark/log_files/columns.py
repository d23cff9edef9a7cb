"""Plan the columns of a read of segment files or raw batches, including the column for corrupt batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.columns.output import Output, OutputPlan
from kafkacore.spark.typed.formats import plan_output

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_FORMATS = ("value.format", "key.format")


def plan_columns(schema: StructType, options: Mapping[str, str], corrupt_column: str) -> OutputPlan:
    """Return the plan of ``schema``, which may have a column for the description of a corrupt batch.

    Raises
    ------
    KafkaConfigurationError
        The column for corrupt batches is not a nullable string, or
        :func:`~kafkacore.spark.typed.formats.plan_output` fails.
    """
    given = {name.lower() for name in options}
    if corrupt_column not in schema.names or given.intersection(_FORMATS):
        # With a key or value format, `plan_output` plans the column for corrupt batches, too. In this case
        # the column also contains values that cannot be decoded.
        return plan_output(schema, options)
    field = schema[corrupt_column]
    if field.dataType.simpleString() != "string" or not field.nullable:
        raise KafkaConfigurationError(f"column {corrupt_column} must be a nullable string")
    rest = type(schema)([one for one in schema.fields if one.name != corrupt_column])
    return WithCorruptColumn(plan_output(rest, options), corrupt_column, schema.names.index(corrupt_column))


@dataclass(frozen=True)
class WithCorruptColumn:
    """Plan that inserts a column into another plan at ``index``. The column is null for every record."""

    plan: OutputPlan
    column: str
    index: int

    def output(self) -> Output:
        return _WithCorruptOutput(self.plan.output(), self.column, self.index)


class _WithCorruptOutput:
    def __init__(self, output: Output, column: str, index: int) -> None:
        import pyarrow as pa

        self._output = output
        self._index = index
        self.fetched = output.fetched
        self.schema = output.schema.insert(index, pa.field(column, pa.string()))

    def batch(self, found: pa.RecordBatch, topic: str | None, partition: int | None) -> pa.RecordBatch:
        import pyarrow as pa

        made = self._output.batch(found, topic, partition)
        arrays = list(made.columns)
        arrays.insert(self._index, pa.nulls(made.num_rows, pa.string()))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
