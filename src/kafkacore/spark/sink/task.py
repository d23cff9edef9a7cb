"""What a task of a write does in its worker: Arrow batches in, records acknowledged by Kafka.

Returns only when each row is acknowledged. What may wait is bounded by the producer's ``buffer_memory``: when
that is taken, sending waits, and with it Spark. No object is made per row. Does not know: micro-batches.
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

#: How much of a key an error shows.
SHOWN_KEY_BYTES = 40
#: After how many more hand-overs to the producer it is looked what has become of them.
CHECKED_TOGETHER = 16


class RecordWriteError(KafkaError):
    """A record could not be written; says which, and why."""


class Written(NamedTuple):
    """What a task has written: rows, and bytes of their keys and values."""

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
        A record is too large, for a topic or partition that there is not, or was not acknowledged.
    NullTopicError
        A row has no topic.
    """
    waiting: list[_Sent] = []
    looks_at = CHECKED_TOGETHER
    rows = size_bytes = 0
    for batch in batches:
        for part in rows_by_topic(batch, columns, topic):
            waiting.append(_Sent(_send(producer, part, rows), part, rows))
            size_bytes += _size_of(part.table)
        rows += batch.num_rows
        if len(waiting) >= looks_at:
            waiting = _settled(waiting)
            looks_at = len(waiting) + CHECKED_TOGETHER
    producer.flush()
    _settled(waiting)
    return Written(rows, size_bytes)


def _settled(waiting: list[_Sent]) -> list[_Sent]:
    """Those whose outcome is open still; an acknowledged one holds its rows no longer."""
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
    """The first row for a partition that the topic does not have, or that is no number of one."""
    import pyarrow.compute

    pc: Any = pyarrow.compute
    if "partition" not in part.table.schema.names:
        return None
    try:
        last = max(producer.partitions_for(part.topic), default=-1)
    except (KafkaError, ValueError):
        # There is no such topic, which the error at hand says already.
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
    """An error that says which record it is about, as far as that is known."""
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
