"""Tables computed from all that a sink holds; and how much that is. Does not know: streams, topics."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.pipeline.errors import SinkError, spark_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Aggregate:
    """A table computed from the whole sink after the stream has ended.

    Parameters
    ----------
    group_by:
        Columns to group by; the result is ordered by them.
    columns:
        Name of each result column and its SQL expression, such as ``("flights", "count(*)")``.
    path:
        Folder of the Parquet that is written, replacing what was there.
    """

    group_by: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    path: Path


def write_aggregate(spark: SparkSession, sink: Path, aggregate: Aggregate) -> None:
    """Compute ``aggregate`` from everything that the sink holds, and replace the former one."""
    from pyspark.sql import functions as sql

    with spark_errors(SinkError):
        held = spark.read.parquet(str(sink))
    with spark_errors(KafkaConfigurationError):
        columns = [sql.expr(expression).alias(name) for name, expression in aggregate.columns]
        table = held.groupBy(*aggregate.group_by).agg(*columns).orderBy(*aggregate.group_by).coalesce(1)
    with spark_errors(SinkError):
        table.write.mode("overwrite").parquet(str(aggregate.path))


def count_rows(spark: SparkSession, sink: Path) -> int:
    """How many rows the sink holds, by what its own list of files says.

    Raises
    ------
    SinkError
        A file that is on the list is not there or is damaged.
    """
    with spark_errors(SinkError):
        return spark.read.parquet(str(sink)).count()
