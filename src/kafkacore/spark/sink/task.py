"""Write the Arrow batches of one task to Kafka, in a worker.

A task finishes only when every row is acknowledged. The producer's ``buffer_memory`` limits the rows that are
not yet acknowledged. When this memory is full, sending blocks, so Spark waits too. No Python object is
created per row.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkacore.errors import KafkaError
from kafkacore.spark.sink.columns import SinkColumns, TopicRows, rows_by_topic
from kafkacore.structs import printable

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacore.producer import KafkaProducer
    from kafkacore.producer._batch_future import BatchFuture

#: Maximum bytes of a key in an error message.
SHOWN_KEY_BYTES = 40
#: Number of batches to send between two checks of their results.
CHECKED_TOGETHER = 16


class RecordWriteError(KafkaError):
    """A record could not be written. The message names the record and the reason."""


class Written(NamedTuple):
    """Number of rows that a task has written, and bytes of their keys and values."""

    rows: int
    size_bytes: int


class _Sent(NamedTuple):
    future: BatchFuture
    part: TopicRows
    first_row: int


def write_rows(
    producer: KafkaProducer, batches: Iterable[pa.RecordBatch], columns: SinkColumns, topic: str | None
) -> Written:
    """Send all rows and wait until each is acknowledged.

    Raises
    ------
    RecordWriteError
        A record is too large or was not acknowledged, or its topic or partition does not exist.
    NullTopicError
        A row has no topic.
    """
    waiting: list[_Sent] = []
    next_check = CHECKED_TOGETHER
    rows = size_bytes = 0
    for batch in batches:
        for part in rows_by_topic(batch, columns, topic):
            waiting.append(_Sent(_send(producer, part, rows), part, rows))
            size_bytes += _size_of(part.table)
        rows += batch.num_rows
        if len(waiting) >= next_check:
            waiting = _unfinished(waiting)
            next_check = len(waiting) + CHECKED_TOGETHER
    producer.flush()
    _unfinished(waiting)
    return Written(rows, size_bytes)


def _unfinished(waiting: list[_Sent]) -> list[_Sent]:
    """Return the batches that are not yet acknowledged. If a batch has failed, raise its error."""
    left = []
    for sent in waiting:
        if not sent.future.is_done:
            left.append(sent)
        else:
            _check(sent)
    return left


def _size_of(table: pa.RecordBatch) -> int:
    import pyarrow.compute

    pc: Any = pyarrow.compute
    names = [name for name in ("key", "value") if name in table.schema.names]
    return sum(pc.sum(pc.binary_length(table.column(name))).as_py() or 0 for name in names)


def _send(producer: KafkaProducer, part: TopicRows, first_row: int) -> BatchFuture:
    try:
        return producer.send_arrow(part.topic, part.table, allow_empty=True)
    except (KafkaError, ValueError) as error:
        future = getattr(error, "future", None)
        row = getattr(error, "row", None)
        if row is None:
            row = _missing_partition(producer, part) if future is None else None
        raise _described(error, part, row, first_row, -1) from error


def _missing_partition(producer: KafkaProducer, part: TopicRows) -> int | None:
    """Return the first row whose partition is negative or does not exist in the topic."""
    import pyarrow.compute

    pc: Any = pyarrow.compute
    if "partition" not in part.table.schema.names:
        return None
    try:
        last = max(producer.partitions_for(part.topic), default=-1)
    except (KafkaError, ValueError):
        # The topic does not exist, which the original error already reports.
        return None
    given = part.table.column("partition")
    row: int = pc.index(pc.or_(pc.greater(given, last), pc.less(given, 0)), True).as_py()
    return row if row >= 0 else None


def _check(sent: _Sent) -> None:
    error: Any = sent.future.exception
    if error is not None:
        row = error.row
        partition = sent.future[row].topic_partition.partition
        raise _described(error, sent.part, row, sent.first_row, partition) from error


def _described(
    error: Exception, part: TopicRows, row: int | None, first_row: int, partition: int
) -> RecordWriteError:
    """Return an error that names the record, if the row is known."""
    if row is None:
        return RecordWriteError(f"topic {printable(part.topic)}: {type(error).__name__}: {error}")
    table = part.table
    where = f"topic {printable(part.topic)}"
    if partition < 0 and "partition" in table.schema.names:
        given = table.column("partition")[row].as_py()
        partition = -1 if given is None else given
    if partition >= 0:
        where += f", partition {partition}"
    key = table.column("key")[row].as_py() if "key" in table.schema.names else None
    if key is not None:
        where += f", key {key[:SHOWN_KEY_BYTES]!r}{'...' if len(key) > SHOWN_KEY_BYTES else ''}"
    in_batch = row if part.rows is None else part.rows[row].as_py()
    return RecordWriteError(
        f"row {first_row + in_batch} of the task ({where}) was not written: {type(error).__name__}: {error}"
    )
