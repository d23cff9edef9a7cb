"""Batch reads of Spark from any source, with helpers for readers, options and rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

PUSH_DOWN = "spark.sql.python.filterPushdown.enabled"


def dotted(options: Mapping[str, str]) -> dict[str, str]:
    """Return options given as keywords, with ``__`` replaced by a dot."""
    return {name.replace("__", "."): text for name, text in options.items()}


def reader_of(spark: SparkSession, source: str, servers: str, topic: str, **options: str) -> DataFrameReader:
    """Return ``spark.read`` ready to load, with ``options`` in the form of :func:`dotted`."""
    given = {"kafka.bootstrap.servers": servers, "subscribe": topic}
    return spark.read.format(source).options(**given, **dotted(options))


def rows_of(frame: DataFrame) -> list[tuple[Any, ...]]:
    """Return partition, offset, value and timestamp of each row, in order."""
    rows = frame.select("partition", "offset", "value", "timestamp").collect()
    return sorted((row.partition, row.offset, bytes(row.value), row.timestamp) for row in rows)


@contextmanager
def push_down(spark: SparkSession, enabled: bool = True) -> Iterator[None]:
    """Set within the block whether Spark pushes filters down to Python data sources."""
    before = spark.conf.get(PUSH_DOWN)
    spark.conf.set(PUSH_DOWN, str(enabled).lower())
    try:
        yield
    finally:
        spark.conf.set(PUSH_DOWN, str(before))
