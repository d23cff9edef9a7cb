"""The one-call form of columns: a buffer of batches in, one set of columns out. Does not know: positions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from kafkacore.record._batch import read_batches
from kafkacore.record._columns import ColumnBuilder, RecordColumns
from kafkacore.record.compression import DEFAULT_MAX_DECOMPRESSED_SIZE

if TYPE_CHECKING:
    from typing_extensions import Buffer

COLUMNS = ("offset", "timestamp", "timestamp_type", "key", "value", "headers")


def decode(
    buffer: Buffer,
    columns: Iterable[str] = COLUMNS,
    *,
    from_offset: int = 0,
    timestamp_unit: Literal["ms", "us"] = "ms",
    timezone: str | None = None,
    headers_null_when_empty: bool = True,
    check_crcs: bool = True,
    max_decompressed_size: int = DEFAULT_MAX_DECOMPRESSED_SIZE,
) -> RecordColumns:
    """All records of the batches in ``buffer``, control batches left out.

    Parameters
    ----------
    buffer:
        Record batches of any format, one behind the other, as in a fetch response or a log segment. One that
        is cut short at the end is left out.
    columns:
        Of :data:`COLUMNS`, in the order wanted.
    from_offset:
        Records before it are left out.
    timestamp_unit, timezone:
        ``"ms"`` or ``"us"``, and a time zone's name, of the timestamp column.
    headers_null_when_empty:
        A record without headers has null, as in Spark's ``kafka`` source, and not an empty list.
    check_crcs:
        Compare each batch with its checksum.
    max_decompressed_size:
        The most that one compressed batch may grow to, in bytes.

    Returns
    -------
    RecordColumns
        Which pyarrow, polars, pandas and duckdb take by the Arrow C data interface.

    Raises
    ------
    CorruptRecordError
        A batch is broken.
    OverflowError
        The records do not fit into columns of 2 GiB.
    ValueError
        There is no such column.
    """
    builder = ColumnBuilder(columns, timestamp_unit, timezone, headers_null_when_empty)
    batches = read_batches(buffer, check_crcs, max_decompressed_size)
    while True:
        builder.append_all(batches, from_offset)
        batch = next(batches, None)
        if batch is None:
            return builder.finish()
        if batch.is_control:
            continue
        _, next_offset = builder.append(batch, from_offset)
        if next_offset < batch.next_offset:
            raise OverflowError("more than 2 GiB in one column; use ColumnBuilder")
