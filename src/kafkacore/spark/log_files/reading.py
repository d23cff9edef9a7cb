"""Convert the batches of a segment file to Arrow record batches, and report damage.

No Python object is created per record. A run of batches is converted from the file's bytes to columns in one
call, unless a batch needs separate treatment.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafkacore.errors import CorruptRecordError
from kafkacore.logs import logger_of
from kafkacore.record import ColumnBuilder, RecordBatch
from kafkacore.record.segment_file import Damage, SegmentFile
from kafkacore.structs import INT64_MAX

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacore.decode.decoder import ArrowArray
    from kafkacore.spark.columns.output import Output

#: Maximum rows of an Arrow batch, and maximum bytes of one of its columns. With so many rows, the JVM's cost
#: per batch (about 0.2 ms) is negligible; more rows would only take more memory of the worker.
BATCH_ROWS = 100_000
MAX_COLUMN_BYTES = 8 << 20
MAX_OFFSET = INT64_MAX

logger = logger_of(__name__)


@dataclass(frozen=True)
class Selection:
    """Selection of the records to read.

    Parameters
    ----------
    from_offset, end_offset:
        Range of offsets; ``end_offset`` is exclusive.
    aborted:
        For read_committed, the first and last offset of each aborted transaction, by producer id. ``None``
        for read_uncommitted.
    """

    from_offset: int = 0
    end_offset: int = MAX_OFFSET
    aborted: Mapping[int, Sequence[tuple[int, int]]] | None = field(default=None, repr=False)

    def is_aborted(self, batch: RecordBatch) -> bool:
        if self.aborted is None or not batch.is_transactional:
            return False
        return any(
            first <= batch.base_offset <= last for first, last in self.aborted.get(batch.producer_id, ())
        )


def read_columns(
    file: SegmentFile, fetched: Sequence[str], selection: Selection
) -> Iterator[pa.RecordBatch | Damage]:
    """Yield the records of ``file`` as columns, in batches of up to :data:`BATCH_ROWS` rows.

    A :class:`Damage` is yielded after the records that precede it in the file and before the records that
    follow it.
    """
    return _Columns(file, fetched, selection).read()


class _Columns:
    def __init__(self, file: SegmentFile, fetched: Sequence[str], selection: Selection) -> None:
        self._file = file
        self._selection = selection
        self._builder = ColumnBuilder(fetched, "us", "UTC", max_column_bytes=MAX_COLUMN_BYTES)

    def read(self) -> Iterator[pa.RecordBatch | Damage]:
        file, builder, wanted = self._file, self._builder, self._selection
        is_committed = wanted.aborted is not None
        while True:
            if builder.num_rows >= BATCH_ROWS:
                yield from self._rows()
            _, next_offset, _ = builder.append_all(
                file.batches,
                wanted.from_offset,
                BATCH_ROWS - builder.num_rows,
                wanted.end_offset,
                is_committed,
            )
            file.next_offset = max(file.next_offset, next_offset)
            found = file.next_batch()
            if found is None:
                break
            damage: Damage | None
            if isinstance(found, Damage):
                damage = found
            elif found.base_offset >= wanted.end_offset:
                break
            else:
                damage = yield from self._append(found)
            if damage is not None:
                yield from self._rows()
                yield damage
                file.resume_at(damage.next_position)
        yield from self._rows()

    def _append(self, batch: RecordBatch) -> Generator[pa.RecordBatch, None, Damage | None]:
        """Append the selected records of a batch. Return a :class:`Damage` if a record is malformed.

        A batch with a valid CRC can contain malformed records.
        """
        wanted, at = self._selection, self._selection.from_offset
        if batch.is_control or batch.next_offset <= at or wanted.is_aborted(batch):
            return None
        try:
            while True:
                left = BATCH_ROWS - self._builder.num_rows
                _, at = self._builder.append(batch, at, left, wanted.end_offset)
                if at >= min(batch.next_offset, wanted.end_offset):
                    return None
                yield from self._rows()
        except CorruptRecordError as error:
            return Damage(self._file.position_of(batch), self._file.position, error.reason, error.offset)

    def _rows(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        if self._builder.num_rows:
            yield pa.record_batch(self._builder.finish())


# ---- Rows for Spark ----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class CorruptBatches:
    """Treatment of corrupt batches.

    Parameters
    ----------
    mode:
        ``FAILFAST`` raises an error. ``DROPMALFORMED`` and ``PERMISSIVE`` skip the batch. With
        ``PERMISSIVE``, a row that describes the batch takes its place if the schema has the column.
    column:
        Name of the column for the description.
    """

    mode: str
    column: str

    def row(self, sentence: str, schema: pa.Schema, cause: Damage) -> pa.RecordBatch | None:
        """Return the row that describes a corrupt batch; ``None`` if the batch is only skipped.

        Raises
        ------
        CorruptRecordError
            The mode is ``FAILFAST``.
        """
        import pyarrow as pa

        if self.mode == "FAILFAST":
            raise CorruptRecordError(
                f"{sentence}. Set the option mode to PERMISSIVE or DROPMALFORMED to skip this batch",
                offset=cause.offset,
            )
        logger.warning("%s; skipped %d bytes", sentence, cause.next_position - cause.position)
        index = schema.get_field_index(self.column)
        if self.mode != "PERMISSIVE" or index < 0:
            return None
        arrays: list[ArrowArray] = [pa.nulls(1, one.type) for one in schema]
        # With the option `format`, the column may be binary, because it also holds the bytes of malformed
        # records.
        is_binary = pa.types.is_binary(schema.field(index).type)
        arrays[index] = pa.array([sentence.encode() if is_binary else sentence], schema.field(index).type)
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def read_rows(
    file: SegmentFile,
    output: Output,
    selection: Selection,
    corrupt: CorruptBatches,
    *,
    name: str,
    topic: str | None,
    partition: int | None,
    may_be_cut: bool = True,
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of ``output`` for the records of ``file``.

    Parameters
    ----------
    file:
        The segment file, or a range of it.
    output:
        Builder of the batches.
    selection:
        Records to read.
    corrupt:
        Treatment of corrupt batches.
    name:
        Name of the file, for messages.
    topic, partition:
        Topic and partition of the records; ``None`` if unknown.
    may_be_cut:
        Whether a file that ends within a batch is treated as incomplete rather than damaged.

    Raises
    ------
    CorruptRecordError
        A batch is corrupt, and the mode of ``corrupt`` is FAILFAST.
    """
    from kafkacore.spark.columns.output import batches

    for found in read_columns(file, output.fetched, selection):
        if not isinstance(found, Damage):
            yield from batches(output, found, topic, partition)
        elif found.is_cut and may_be_cut:
            logger.warning(
                "%s ends at position %d: %s. The file was copied while it was written; skipping the "
                "incomplete batch",
                name,
                found.position,
                found.reason,
            )
        else:
            row = corrupt.row(f"{name}, position {found.position}: {found.reason}", output.schema, found)
            if row is not None:
                yield row
