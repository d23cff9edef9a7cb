"""Compute a table from all the rows of a Parquet sink, and count these rows."""

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
    """Table that is computed from all rows of the sink after the stream has ended.

    Parameters
    ----------
    group_by:
        Columns to group by. The result is sorted by them.
    columns:
        Name of each result column and its SQL expression, such as ``("flights", "count(*)")``.
    path:
        Directory of the Parquet files. Its previous content is replaced.
    """

    group_by: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    path: Path


def write_aggregate(spark: SparkSession, sink: Path, aggregate: Aggregate) -> None:
    """Compute ``aggregate`` from all rows of the sink, and replace the previous result."""
    from pyspark.sql import functions as sql

    with spark_errors(SinkError):
        held = spark.read.parquet(str(sink))
    with spark_errors(KafkaConfigurationError):
        columns = [sql.expr(expression).alias(name) for name, expression in aggregate.columns]
        table = held.groupBy(*aggregate.group_by).agg(*columns).orderBy(*aggregate.group_by).coalesce(1)
    with spark_errors(SinkError):
        table.write.mode("overwrite").parquet(str(aggregate.path))


def count_rows(spark: SparkSession, sink: Path) -> int:
    """Return the number of rows in the sink, according to its list of files.

    Raises
    ------
    SinkError
        A file of the list is missing or damaged.
    """
    with spark_errors(SinkError):
        return spark.read.parquet(str(sink)).count()
