"""The writers that Spark calls. The driver creates them and sends them to the workers."""

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
    """Message of a task whose records are all acknowledged.

    Attributes
    ----------
    rows, size_bytes:
        Number of records, and bytes of their keys and values.
    """

    rows: int
    size_bytes: int


@dataclass
class KafkaTransactionMessage(WriterCommitMessage):
    """Message of a task that has left its transaction open for the driver to commit."""

    transaction: TaskTransaction


class _Writer:
    """Base class of the batch writer and the streaming writer. It writes records at least once."""

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


# mypy reports a conflict, because PySpark's annotations declare that the base class gets rows.
class KafkaBatchWriter(_Writer, DataSourceArrowWriter):  # type: ignore[misc]
    """Writer of ``df.write``. It writes at least once, like the built-in sink.

    A task that Spark retries writes its rows again.
    """

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Do nothing, because each task has waited until its records were acknowledged."""

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Do nothing, because written records cannot be removed."""


# mypy reports a conflict, because PySpark's annotations declare that the base class gets rows.
class KafkaStreamWriter(_Writer, DataSourceStreamArrowWriter):  # type: ignore[misc]
    """Writer of ``df.writeStream``.

    With ``exactly.once`` it writes in transactions. Otherwise it writes at least once, like the built-in
    sink: a micro-batch that Spark repeats is written again.
    """

    def _write(self, batches: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        if not self._options.exactly_once:
            return super()._write(batches)
        from kafkacore.spark.sink.exactly_once import write_task

        query_id, task = _identity()
        return KafkaTransactionMessage(write_task(self._options, self._columns, batches, query_id, task))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        """Commit the transactions of the tasks. Without ``exactly.once`` there is nothing to do."""
        if not self._options.exactly_once:
            return
        from kafkacore.spark.sink.exactly_once import commit_batch

        commit_batch(self._options, _transactions(messages), batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's
        """Abort the transactions of the tasks. A failed task has ``None`` in ``messages``.

        Without ``exactly.once``, written records cannot be removed.
        """
        if not self._options.exactly_once:
            return
        from kafkacore.spark.sink.exactly_once import abort_batch

        abort_batch(self._options, _transactions(messages))


def _transactions(messages: list[WriterCommitMessage | None]) -> list[TaskTransaction]:
    return [one.transaction for one in messages if isinstance(one, KafkaTransactionMessage)]


def _identity() -> tuple[str, int]:
    """Return the query's id, which is stored in its checkpoint, and the number of this task."""
    context = TaskContext.get()
    query_id = None if context is None else context.getLocalProperty(QUERY_ID)
    if context is None or query_id is None:
        raise KafkaConfigurationError(
            "exactly.once works only in a streaming query, but this task has no query id: remove exactly.once"
        )
    return query_id, context.partitionId()


def batch_writer(schema: StructType, options: Mapping[str, str], overwrite: bool) -> KafkaBatchWriter:
    """Return the writer of ``df.write``.

    Raises
    ------
    KafkaConfigurationError
        A column or an option is invalid, or the mode is not append.
    """
    if overwrite:
        raise KafkaConfigurationError("the sink can only append to a topic: use .mode('append')")
    parsed = parse_sink_options(options, streaming=False)
    return KafkaBatchWriter(parsed, sink_columns(schema, parsed.topic))


def stream_writer(schema: StructType, options: Mapping[str, str]) -> KafkaStreamWriter:
    """Return the writer of ``df.writeStream``, which appends in every output mode.

    Raises
    ------
    KafkaConfigurationError
        A column or an option is invalid.
    """
    parsed = parse_sink_options(options, streaming=True)
    return KafkaStreamWriter(parsed, sink_columns(schema, parsed.topic))
