"""Batch reads of Spark, of whichever source: brokers, a topic and options in, a reader out; its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

PUSH_DOWN = "spark.sql.python.filterPushdown.enabled"


def dotted(options: Mapping[str, str]) -> dict[str, str]:
    """Options as keywords name them: ``__`` stands for a dot."""
    return {name.replace("__", "."): text for name, text in options.items()}


def reader_of(spark: SparkSession, source: str, servers: str, topic: str, **options: str) -> DataFrameReader:
    """``spark.read``, to be loaded; ``options`` as :func:`dotted` has them."""
    given = {"kafka.bootstrap.servers": servers, "subscribe": topic}
    return spark.read.format(source).options(**given, **dotted(options))


def rows_of(frame: DataFrame) -> list[tuple[Any, ...]]:
    """Partition, offset, value and time of each row, in order."""
    rows = frame.select("partition", "offset", "value", "timestamp").collect()
    return sorted((row.partition, row.offset, bytes(row.value), row.timestamp) for row in rows)


@contextmanager
def push_down(spark: SparkSession, enabled: bool = True) -> Iterator[None]:
    """Whether conditions are handed to sources in Python, until the block ends."""
    before = spark.conf.get(PUSH_DOWN)
    spark.conf.set(PUSH_DOWN, str(enabled).lower())
    try:
        yield
    finally:
        spark.conf.set(PUSH_DOWN, str(before))
