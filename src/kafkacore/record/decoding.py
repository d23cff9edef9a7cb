"""Decode a buffer of record batches into columns with one call."""

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
    """Decode all records of the batches in ``buffer``, without control batches.

    Parameters
    ----------
    buffer:
        Consecutive record batches of any format, as in a fetch response or a log segment. A truncated batch
        at the end is left out.
    columns:
        Names from :data:`COLUMNS`, in the order of the result.
    from_offset:
        First offset; earlier records are left out.
    timestamp_unit, timezone:
        Unit, ``"ms"`` or ``"us"``, and name of the time zone of the timestamp column.
    headers_null_when_empty:
        Whether a record without headers gets null in the headers column, as in Spark's ``kafka`` source.
        Otherwise it gets an empty list.
    check_crcs:
        Whether to verify the checksum of each batch.
    max_decompressed_size:
        Maximum size of a decompressed batch in bytes.

    Returns
    -------
    RecordColumns
        The columns. pyarrow, polars, pandas and duckdb read them through the Arrow C data interface.

    Raises
    ------
    CorruptRecordError
        A batch is corrupt.
    OverflowError
        The records do not fit into columns of 2 GiB.
    ValueError
        A column name is unknown.
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
            raise OverflowError("a column exceeds 2 GiB; use ColumnBuilder to get several sets of columns")
