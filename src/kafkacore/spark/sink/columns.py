"""Find which columns of a DataFrame to write, and split the DataFrame's batches by topic.

Names and types are those of Spark's built-in sink. There is also a column ``timestamp``. As in the
built-in sink, partition -1 is an error. If the partition is null, the key determines the partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkacore.errors import KafkaConfigurationError, KafkaError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from kafkacore.decode.decoder import ArrowArray

#: Allowed types of each written column, in Spark's notation.
TYPES = {
    "topic": ("string",),
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "headers": ("array<struct<key:string,value:binary>>",),
    "partition": ("int",),
    "timestamp": ("timestamp", "double"),
}
MS_PER_S = 1000.0
#: Exclusive upper bound of a timestamp in ms, which has 64 bits.
END_OF_TIMES = 2.0**63


class NullTopicError(KafkaError):
    """A row has no topic, and the option ``topic`` is not set."""


class TimestampOfNoTimeError(KafkaError):
    """A row's timestamp in seconds is NaN, infinite or out of range."""


class SinkColumns(NamedTuple):
    """Columns of a DataFrame that are written. Picklable.

    Attributes
    ----------
    places:
        Name and index of each column that is passed to the producer.
    topic:
        Index of the column with the topic; ``None`` if the option ``topic`` is set.
    has_seconds:
        Whether the timestamps are ``double`` values in seconds since 1970, as in Spark's cast from double to
        timestamp.
    """

    places: tuple[tuple[str, int], ...]
    topic: int | None
    has_seconds: bool


def sink_columns(schema: StructType, topic: str | None) -> SinkColumns:
    """Check the columns of a DataFrame. Columns with other names are not written.

    Parameters
    ----------
    schema:
        Schema of the DataFrame.
    topic:
        The option ``topic``, which takes precedence over the column.

    Raises
    ------
    KafkaConfigurationError
        The column ``value`` or the topic is missing, or a column has the wrong type.
    """
    found: dict[str, int] = {}
    for place, field in enumerate(schema.fields):
        found.setdefault(field.name, place)
    if topic is not None:
        found.pop("topic", None)
    elif "topic" not in found:
        raise KafkaConfigurationError("no topic: set .option('topic', ...), or add a column named topic")
    if "value" not in found:
        raise KafkaConfigurationError(
            f"no column value among {', '.join(schema.names)}: name the column to write value"
        )
    for name, types in TYPES.items():
        if name in found:
            kind = schema.fields[found[name]].dataType.simpleString()
            if kind not in types:
                raise KafkaConfigurationError(
                    f"column {name} must be of type {' or '.join(types)}, not {kind}: cast it or drop it"
                )
    sent = tuple((name, found[name]) for name in TYPES if name in found and name != "topic")
    has_seconds = "timestamp" in found and schema.fields[found["timestamp"]].dataType.typeName() == "double"
    return SinkColumns(sent, found.get("topic"), has_seconds)


class TopicRows(NamedTuple):
    """Rows of one topic, in order.

    Attributes
    ----------
    rows:
        Index of each row in the original batch; ``None`` if the whole batch has this topic.
    """

    topic: str
    table: pa.RecordBatch
    rows: ArrowArray | None


def rows_by_topic(batch: pa.RecordBatch, columns: SinkColumns, topic: str | None) -> Iterator[TopicRows]:
    """Split a batch by topic and yield the columns for the producer.

    An error is raised before the first rows of the batch are yielded.

    Raises
    ------
    NullTopicError
        A row has no topic.
    TimestampOfNoTimeError
        The timestamp of a row is NaN, infinite or out of range.
    """
    import pyarrow as pa

    if not batch.num_rows:
        return
    sent = [batch.column(place) for _, place in columns.places]
    names = [name for name, _ in columns.places]
    if columns.has_seconds:
        at = names.index("timestamp")
        sent[at] = _milliseconds(sent[at])
    table = pa.record_batch(sent, names=names)
    if columns.topic is None:
        assert topic is not None, "the driver has checked that the topic is set"
        yield TopicRows(topic, table, None)
        return
    yield from _divided(table, batch.column(columns.topic))


def _divided(table: pa.RecordBatch, topics: ArrowArray) -> Iterator[TopicRows]:
    import pyarrow.compute

    pc: Any = pyarrow.compute
    if topics.null_count:
        row = pc.index(topics.is_null(), True).as_py()
        raise NullTopicError(
            f"[KAFKA_NULL_TOPIC_IN_DATA] row {row} of a batch has a null topic: set .option('topic', ...), "
            "or fill the column topic in each row"
        )
    encoded = topics.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    if len(names) == 1:
        yield TopicRows(str(names[0]), table, None)
        return
    # The sort is stable, so the rows of a topic keep their order.
    order = pc.array_sort_indices(encoded.indices)
    grouped = table.take(order)
    counts = pc.value_counts(encoded.indices)
    sizes = dict(zip(counts.field(0).to_pylist(), counts.field(1).to_pylist(), strict=True))
    start = 0
    for number, name in enumerate(names):
        size = sizes[number]
        yield TopicRows(str(name), grouped.slice(start, size), order.slice(start, size))
        start += size


def _milliseconds(seconds: ArrowArray) -> ArrowArray:
    import pyarrow as pa
    import pyarrow.compute

    pc: Any = pyarrow.compute
    milliseconds = pc.floor(pc.multiply(seconds, MS_PER_S))
    # NaN fails both comparisons.
    is_time = pc.and_(pc.greater_equal(milliseconds, -END_OF_TIMES), pc.less(milliseconds, END_OF_TIMES))
    row = pc.index(is_time, False).as_py()
    if row >= 0:
        raise TimestampOfNoTimeError(
            f"row {row} of a batch has the timestamp {seconds[row].as_py()}, which is not a valid number of "
            "seconds since 1970: correct it, or set it to null for the current time"
        )
    times: ArrowArray = milliseconds.cast(pa.int64())
    return times
