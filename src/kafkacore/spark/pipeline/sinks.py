"""Create the writer of a streaming DataFrame for each sink."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.pipeline.config import ConsoleSink, DeltaSink, KafkaSink, ParquetSink, Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

#: Columns that are written to a topic.
RECORD_COLUMNS = ("key", "value", "headers", "timestamp")
KEY_TYPES = ("string", "binary")


def stream_writer(frame: DataFrame, sink: Sink) -> DataStreamWriter:
    """Return the writer of ``frame`` to ``sink``, without trigger and checkpoint.

    Raises
    ------
    KafkaConfigurationError
        The sink is partitioned by a column that does not exist.
    """
    if isinstance(sink, KafkaSink):
        return records(frame).writeStream.format("kafkacore").options(**sink.sink_options())
    if isinstance(sink, ConsoleSink):
        return frame.writeStream.foreachBatch(_Console(sink))
    if missing := [name for name in sink.partition_by if name not in frame.columns]:
        raise KafkaConfigurationError(
            f"cannot partition by {', '.join(missing)}: the columns are {', '.join(frame.columns)}"
        )
    if isinstance(sink, DeltaSink):
        from kafkacore.spark.pipeline.delta import DeltaWriter

        return frame.writeStream.foreachBatch(DeltaWriter(sink))
    return _parquet(frame, sink)


def _parquet(frame: DataFrame, sink: ParquetSink) -> DataStreamWriter:
    writer = frame.writeStream.format("parquet").option("path", str(sink.path))
    return writer.partitionBy(*sink.partition_by) if sink.partition_by else writer


def records(frame: DataFrame) -> DataFrame:
    """Return the columns that are written to a topic.

    Without a column ``value``, the value is a JSON object of all columns except the key and the headers. A
    key or value of another type than string or binary is cast to string.
    """
    from pyspark.sql import functions as sql

    if "value" not in frame.columns:
        fields = [name for name in frame.columns if name not in ("key", "headers")]
        frame = frame.withColumn("value", sql.to_json(sql.struct(*fields)))
    kinds = dict(frame.dtypes)
    chosen = []
    for name in RECORD_COLUMNS:
        if name in frame.columns:
            column = frame[name]
            is_text = name in ("headers", "timestamp") or kinds[name] in KEY_TYPES
            chosen.append(column if is_text else column.cast("string").alias(name))
    return frame.select(*chosen)


class _Console:
    """Function for ``foreachBatch`` that prints a batch.

    Spark's own console sink prints from the JVM, whose output goes to a file.
    """

    def __init__(self, sink: ConsoleSink) -> None:
        self._sink = sink

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        import sys

        from pyspark.sql import functions as sql

        if self._sink.as_json:
            lines = frame.limit(self._sink.rows).select(sql.to_json(sql.struct("*"))).collect()
            sys.stdout.write("".join(f"{line[0]}\n" for line in lines))
        else:
            sys.stdout.write(f"batch {batch_id}\n")
            frame.show(self._sink.rows, truncate=False)
        sys.stdout.flush()
