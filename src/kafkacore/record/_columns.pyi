from collections.abc import Iterable
from typing import Literal, Never, Self, final

from kafkacore.record._batch import BatchIterator, RecordBatch

@final
class RecordColumns:
    """Columns of records, exported by the Arrow PyCapsule interface: ``pyarrow.record_batch(columns)``.

    The memory is shared with every export and lives as long as any of them. Made by
    :meth:`ColumnBuilder.finish`.
    """
    def __init__(self, *args: Never, **kwargs: Never) -> None: ...
    def __len__(self) -> int: ...
    @property
    def num_rows(self) -> int:
        """Records."""
    @property
    def nbytes(self) -> int:
        """Bytes of memory taken."""
    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in their order."""
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

@final
class ColumnBuilder:
    """Collects records of batches as columns. One call at a time: give each thread its own.

    Parameters
    ----------
    columns:
        Names out of ``offset`` (int64), ``timestamp``, ``timestamp_type`` (int32, as :class:`TimestampType`),
        ``key``, ``value`` (binary), ``headers`` (list of struct of key: string, value: binary); in the order
        wanted.
    timestamp_unit:
        ``"ms"`` or ``"us"``. A timestamp that does not fit in microseconds becomes the nearest that does.
    timezone:
        Name of the time zone that the timestamp column bears, e.g. ``"UTC"``; ``None`` for none.
    headers_null_when_empty:
        Whether a record without headers has null, as in Spark's source, or an empty list.
    max_column_bytes:
        Bytes at which a column of keys, values or headers is full. Above 2 GiB 32-bit offsets end.

    Raises
    ------
    ValueError
        A name or unit that there is not, or a name twice.
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
        """Records so far."""
    @property
    def nbytes(self) -> int:
        """Bytes of memory taken so far."""
    def append(
        self,
        batch: RecordBatch,
        from_offset: int = 0,
        max_records: int | None = None,
        end_offset: int | None = None,
    ) -> tuple[int, int]:
        """Append records of ``batch`` whose offset is at least ``from_offset``; the GIL is released
        meanwhile.

        To go on where the last call stopped costs nothing for the records before.

        Parameters
        ----------
        max_records:
            How many at most; ``None`` for all.
        end_offset:
            Only records before this offset; ``None`` for all.

        Returns
        -------
        The number of records appended, and the offset from which to go on: ``batch.next_offset`` if the batch
        is exhausted, else that of the first record left: because of ``max_records`` or ``end_offset``, or
        because a column is full.

        Raises
        ------
        CorruptRecordError
            The batch is broken. Nothing of it has been appended.
        """
    def append_all(
        self,
        batches: BatchIterator,
        from_offset: int = 0,
        max_records: int | None = None,
        end_offset: int | None = None,
        read_committed: bool = False,
    ) -> tuple[int, int, int]:
        """Append whole batches, as many of the next ones as need nobody's decision, without the GIL.

        That is: of format 2, not compressed, no control batch, and all of it is wanted and has room. In front
        of the first other batch, also a broken one, it stops: ``next(batches)`` and :meth:`append` do that
        one, or say what is wrong with it.

        Parameters
        ----------
        batches:
            What :func:`read_batches` gave; it moves behind what was appended. CRCs are checked if it does so.
        from_offset:
            Only records from this offset on.
        max_records, end_offset:
            As for :meth:`append`; a batch that passes them is left.
        read_committed:
            Whether to leave transactional batches, which may have been aborted.

        Returns
        -------
        The number of records appended, the offset behind the last batch (-1 if there was none), and its
        leader epoch (-1 too).
        """
    def finish(self) -> RecordColumns:
        """The columns so far. The builder begins anew, empty."""
