"""Decode a DataFrame column of raw record batches into rows with Kafka's columns.

The column holds, for example, whole segments from ``binaryFile`` or the records of fetch responses. To read
segment files, ``format("kafkacore-log")`` is faster, because the bytes do not pass through Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast

from kafkacore.decode.constant_columns import repeated_int32
from kafkacore.decode.formats import CORRUPT_RECORD
from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.columns.output import Output, OutputPlan
from kafkacore.spark.log_files.columns import plan_columns
from kafkacore.spark.log_files.options import corrupt_mode
from kafkacore.spark.log_files.reading import BATCH_ROWS, CorruptBatches, Selection, read_rows
from kafkacore.spark.options.values import refuse_unknown
from kafkacore.spark.typed.formats import FORMAT_OPTION_NAMES, default_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from kafkacore.decode.decoder import ArrowArray

_OPTION_NAMES = ("mode", "columnNameOfCorruptRecord")
_PARTITION_TYPES = ("int", "smallint", "tinyint")
#: Bytes of rows that are collected from several cells before they are returned as one Arrow batch.
_BATCH_BYTES = 8 << 20


#: Type of a topic name or a partition number.
T = TypeVar("T", str, int)


def decode_batches(
    df: DataFrame,
    column: str = "raw",
    *,
    keep: Sequence[str] = (),
    schema: StructType | str | None = None,
    topic: str | None = None,
    partition: int | None = None,
    topic_column: str | None = None,
    partition_column: str | None = None,
    options: Mapping[str, object] | None = None,
) -> DataFrame:
    """Return a DataFrame with one row for each record in a column of raw record batches.

    Parameters
    ----------
    df:
        DataFrame of a classic session or of Spark Connect.
    column:
        Name of a binary column. Each cell holds one or more record batches in the format of segments and
        fetch responses. An incomplete batch at the end of a cell is ignored. A null cell has no rows.
    keep:
        Columns of ``df`` to append after Kafka's columns.
    schema:
        The columns to return, as for ``format("kafkacore")``. The default is all columns except the headers.
    topic, partition:
        Value of the column of that name, if it is the same for all rows.
    topic_column, partition_column:
        Columns of ``df`` that contain the topic and the partition.
    options:
        ``includeHeaders``, ``value.format`` and the other format options, and ``mode``. With mode
        ``FAILFAST``, the default, a corrupt batch fails the query. With ``DROPMALFORMED`` and ``PERMISSIVE``,
        the batch is skipped. With ``PERMISSIVE``, a row with the reason takes its place if ``schema`` has the
        column ``_corrupt_record``.

    Returns
    -------
    DataFrame
        Columns of the schema, followed by those of ``keep``.

    Raises
    ------
    KafkaConfigurationError
        A column does not exist, has the wrong type or would occur twice, or an option is invalid.
    """
    from pyspark.sql.types import StructType

    given = {name.lower(): _text(value) for name, value in (options or {}).items()}
    refuse_unknown(given, (*_OPTION_NAMES, *FORMAT_OPTION_NAMES))
    for constant, named, what in ((topic, topic_column, "topic"), (partition, partition_column, "partition")):
        if constant is not None and named is not None:
            raise KafkaConfigurationError(f"set {what} or {what}_column, not both")
    wanted = default_schema(given) if schema is None else schema
    struct = cast("StructType", StructType.fromDDL(wanted)) if isinstance(wanted, str) else wanted
    types = {column: ("binary",), topic_column: ("string",), partition_column: _PARTITION_TYPES}
    beside = [name for name in (topic_column, partition_column) if name is not None]
    _check(df, {name: kinds for name, kinds in types.items() if name is not None}, struct, keep)
    corrupt_column = given.get("columnnameofcorruptrecord", CORRUPT_RECORD)
    decode = _Decode(
        plan=plan_columns(struct, given, corrupt_column),
        corrupt=CorruptBatches(corrupt_mode(given), corrupt_column),
        column=column,
        keep=tuple(keep),
        topic=topic,
        partition=partition,
        topic_column=topic_column,
        partition_column=partition_column,
    )
    there = {field.name: field for field in df.schema.fields}
    whole = StructType([*struct.fields, *(there[name] for name in keep)])
    return df.select(*dict.fromkeys((column, *keep, *beside))).mapInArrow(decode, whole)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check(
    df: DataFrame, types: Mapping[str, tuple[str, ...]], struct: StructType, keep: Sequence[str]
) -> None:
    kinds = {field.name: field.dataType.simpleString() for field in df.schema.fields}
    for name in (*types, *keep):
        if name not in kinds:
            raise KafkaConfigurationError(
                f"the DataFrame has no column {name!r}; its columns are {', '.join(kinds)}"
            )
        if "." in name or "`" in name:
            raise KafkaConfigurationError(
                f"Spark's mapInArrow cannot read column {name}: rename it without dots and backticks"
            )
        if kinds[name] not in types.get(name, (kinds[name],)):
            raise KafkaConfigurationError(
                f"column {name} must be of type {' or '.join(types[name])}, not {kinds[name]}"
            )
    names = [*struct.names, *keep]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise KafkaConfigurationError(
            f"the result would have two columns named {', '.join(twice)}: rename the columns in keep, or "
            "leave Kafka's columns of that name out of the schema"
        )


@dataclass(frozen=True)
class _Decode:
    """Function for ``mapInArrow``, which calls it once per task."""

    plan: OutputPlan
    corrupt: CorruptBatches
    column: str
    keep: tuple[str, ...]
    topic: str | None
    partition: int | None
    topic_column: str | None
    partition_column: str | None

    def __call__(self, cells: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        output = self.plan.output()
        pending: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in cells:
            for index in range(batch.num_rows):
                for found in self._cell(batch, index, output):
                    pending.append(found)
                    rows += found.num_rows
                    size += found.nbytes
                    if rows >= BATCH_ROWS or size >= _BATCH_BYTES:
                        yield from _joined(pending)
                        pending, rows, size = [], 0, 0
        yield from _joined(pending)

    def _cell(self, batch: pa.RecordBatch, index: int, output: Output) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        from kafkacore.record.segment_file import SegmentFile

        raw = batch.column(self.column)[index].as_buffer()
        if raw is None:
            return
        data = memoryview(raw).cast("B")
        kept = [batch.column(name).slice(index, 1) for name in self.keep]
        rows = read_rows(
            SegmentFile(lambda at, size: data[at : at + size], len(data)),
            output,
            Selection(),
            self.corrupt,
            name=", ".join([f"column {self.column}", *_named(self.keep, kept)]),
            topic=self._of(batch, index, self.topic_column, self.topic),
            partition=self._of(batch, index, self.partition_column, self.partition),
        )
        for made in rows:
            if not self.keep:
                yield made
                continue
            zeros = repeated_int32(0, made.num_rows)
            arrays = [*made.columns, *(one.take(zeros) for one in kept)]
            yield pa.RecordBatch.from_arrays(arrays, [*made.schema.names, *self.keep])

    def _of(self, batch: pa.RecordBatch, index: int, name: str | None, constant: T | None) -> T | None:
        return constant if name is None else batch.column(name)[index].as_py()


def _named(names: Sequence[str], kept: Sequence[ArrowArray]) -> Iterator[str]:
    """Yield name and value of each kept text or integer column, to identify a cell in an error message."""
    import pyarrow as pa

    for name, value in zip(names, kept, strict=True):
        if pa.types.is_string(value.type) or pa.types.is_integer(value.type):
            yield f"{name} {value[0].as_py()}"


def _joined(batches: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    if len(batches) == 1:
        yield batches[0]
    elif batches:
        yield from pa.Table.from_batches(batches).combine_chunks().to_batches()
