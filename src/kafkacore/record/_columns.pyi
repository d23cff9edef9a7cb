from collections.abc import Iterable
from typing import Literal, Never, Self, final

from kafkacore.record._batch import BatchIterator, RecordBatch

@final
class RecordColumns:
    """Columns of records, exported by the Arrow PyCapsule interface: ``pyarrow.record_batch(columns)``.

    The memory is shared with every export and lives as long as any of them. :meth:`ColumnBuilder.finish`
    creates the columns.
    """
    def __init__(self, *args: Never, **kwargs: Never) -> None: ...
    def __len__(self) -> int: ...
    @property
    def num_rows(self) -> int:
        """Number of records."""
    def _repr_html_(self) -> str:
        """Return the first rows as an HTML table, which Jupyter shows."""
    @property
    def nbytes(self) -> int:
        """Allocated memory in bytes."""
    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in order."""
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

@final
class ColumnBuilder:
    """Collects the records of batches in columns. A builder is not thread-safe: use one per thread.

    Parameters
    ----------
    columns:
        Names of the columns in the order of the result: ``offset`` (int64), ``timestamp``, ``timestamp_type``
        (int32, as :class:`TimestampType`), ``key`` and ``value`` (binary), ``headers`` (list of struct of
        key: string, value: binary).
    timestamp_unit:
        ``"ms"`` or ``"us"``. A timestamp outside the range of microseconds becomes the nearest value in the
        range.
    timezone:
        Name of the time zone of the timestamp column, e.g. ``"UTC"``; ``None`` for no time zone.
    headers_null_when_empty:
        Whether a record without headers gets null in the headers column, as in Spark's source. Otherwise it
        gets an empty list.
    max_column_bytes:
        Size in bytes at which a column of keys, values or headers is full; at most 2 GiB, the limit of 32-bit
        offsets.

    Raises
    ------
    ValueError
        A column or unit is unknown, or a column is named twice.
    """
    def __new__(
        cls,
        columns: Iterable[str],
        timestamp_unit: Literal["ms", "us"] = "ms",
        timezone: str | None = None,
        headers_null_when_empty: bool = True,
        max_column_bytes: int = ...,
    ) -> Self: ...
    @property
    def num_rows(self) -> int:
        """Number of records appended."""
    @property
    def nbytes(self) -> int:
        """Allocated memory in bytes."""
    def append(
        self,
        batch: RecordBatch,
        from_offset: int = 0,
        max_records: int | None = None,
        end_offset: int | None = None,
    ) -> tuple[int, int]:
        """Append records of a batch, without the GIL.

        A call that continues where the last call stopped does not read the records before that position
        again.

        Parameters
        ----------
        batch:
            The batch.
        from_offset:
            First offset; earlier records are skipped.
        max_records:
            Maximum number of records; ``None`` for no limit.
        end_offset:
            Only records before this offset are appended; ``None`` for no limit.

        Returns
        -------
        tuple
            The number of records appended, and the offset at which to continue. That is ``batch.next_offset``
            if the batch is exhausted. Otherwise it is the offset of the first record left over because of
            ``max_records``, ``end_offset`` or a full column.

        Raises
        ------
        CorruptRecordError
            The batch is corrupt. None of its records has been appended.
        """
    def append_all(
        self,
        batches: BatchIterator,
        from_offset: int = 0,
        max_records: int | None = None,
        end_offset: int | None = None,
        read_committed: bool = False,
    ) -> tuple[int, int, int]:
        """Append the next batches without the GIL, as long as each can be appended as a whole.

        A batch qualifies if it has format 2, is uncompressed, is not a control batch, is valid and fits
        completely. The method stops before the first batch that does not qualify. ``next(batches)`` and
        :meth:`append` then handle that batch or raise its error.

        Parameters
        ----------
        batches:
            The iterator of :func:`read_batches`; it is advanced past the appended batches. CRCs are verified
            if the iterator was created with ``check_crcs``.
        from_offset:
            First offset; earlier records are skipped.
        max_records, end_offset:
            As for :meth:`append`; a batch that exceeds them is not appended.
        read_committed:
            Whether to stop at transactional batches, which may have been aborted.

        Returns
        -------
        tuple
            The number of records appended, the next offset after the last appended batch, and the leader
            epoch of that batch. Offset and epoch are -1 if no batch was appended.
        """
    def finish(self) -> RecordColumns:
        """Return the collected columns, and reset the builder."""
