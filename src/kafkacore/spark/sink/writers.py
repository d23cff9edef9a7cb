"""What Spark calls to write: a schema and options in; writers that travel to the workers by pickle out.

Does not know: how rows become records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.sink.columns import SinkColumns, sink_columns
from kafkacore.spark.sink.options import SinkOptions, parse_sink_options
from kafkacore.spark.worker.process import begin_task

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from kafkacore.spark.sink.exactly_once import TaskTransaction

#: Spark's local property of a streaming query's tasks (``StreamExecution.QUERY_ID_KEY``).
QUERY_ID = "sql.streaming.queryId"


@dataclass
class KafkaCommitMessage(WriterCommitMessage):
    """What a task has written, and that all of it is acknowledged.

    Attributes
    ----------
    rows, size_bytes:
        Records, and the bytes of their keys and values.
    """

    rows: int
    size_bytes: int


@dataclass
class KafkaTransactionMessage(WriterCommitMessage):
    """What a task has written and left open, for the driver to commit."""

    transaction: TaskTransaction


class _Writer:
    """What both writers do in a worker: at least once."""

    def __init__(self, options: SinkOptions, columns: SinkColumns) -> None:
        self._options = options
        self._columns = columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task. Spark calls this in a worker."""
        begin_task()
        return self._write(iterator)

    def _write(self, batches: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        from kafkacore.spark.sink.producers import lend_producer
        from kafkacore.spark.sink.task import write_rows

        with lend_producer(self._options.producer_configs) as producer:
            written = write_rows(producer, batches, self._columns, self._options.topic)
        return KafkaCommitMessage(written.rows, written.size_bytes)


# PySpark's own annotations have the base class take rows.
class KafkaBatchWriter(_Writer, DataSourceArrowWriter):  # type: ignore[misc]
    """``df.write``: at least once, as the built-in sink. A task that is run again writes its rows again."""

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing to do: each task has waited until its records were acknowledged."""

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing can be done: what tasks have written stays. Messages of failed tasks are ``None``."""


# As above.
class KafkaStreamWriter(_Writer, DataSourceStreamArrowWriter):  # type: ignore[misc]
    """``df.writeStream``: at least once, as the built-in sink; with ``exactly.once`` in transactions.

    Without, a micro-batch that Spark repeats is written again.
    """

    def _write(self, batches: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        if not self._options.exactly_once:
            return super()._write(batches)
        from kafkacore.spark.sink.exactly_once import write_task

        query_id, task = _identity()
        return KafkaTransactionMessage(write_task(self._options, self._columns, batches, query_id, task))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        """At least once, nothing to do: each task has waited until its records were acknowledged."""
        if not self._options.exactly_once:
            return
        from kafkacore.spark.sink.exactly_once import commit_batch

        commit_batch(self._options, _transactions(messages), batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        """At least once, nothing can be done: what tasks have written stays. A failed task's message is
        ``None``.
        """
        if not self._options.exactly_once:
            return
        from kafkacore.spark.sink.exactly_once import abort_batch

        abort_batch(self._options, _transactions(messages))


def _transactions(messages: list[WriterCommitMessage | None]) -> list[TaskTransaction]:
    return [one.transaction for one in messages if isinstance(one, KafkaTransactionMessage)]


def _identity() -> tuple[str, int]:
    """The query's id, which its checkpoint keeps, and the number of this task."""
    context = TaskContext.get()
    query_id = None if context is None else context.getLocalProperty(QUERY_ID)
    if context is None or query_id is None:
        raise KafkaConfigurationError(
            "exactly.once works in a task of a streaming query, and this one has no query id: leave it out"
        )
    return query_id, context.partitionId()


def batch_writer(schema: StructType, options: Mapping[str, str], overwrite: bool) -> KafkaBatchWriter:
    """The writer of ``df.write``.

    Raises
    ------
    KafkaConfigurationError
        Columns or options that cannot be, or a mode other than append.
    """
    if overwrite:
        raise KafkaConfigurationError("a topic can only be appended to: use .mode('append')")
    parsed = parse_sink_options(options, streaming=False)
    return KafkaBatchWriter(parsed, sink_columns(schema, parsed.topic))


def stream_writer(schema: StructType, options: Mapping[str, str]) -> KafkaStreamWriter:
    """The writer of ``df.writeStream``; both output modes that Spark gives Python sinks append.

    Raises
    ------
    KafkaConfigurationError
        Columns or options that cannot be.
    """
    parsed = parse_sink_options(options, streaming=True)
    return KafkaStreamWriter(parsed, sink_columns(schema, parsed.topic))
