from collections.abc import Collection
from typing import Self, final

@final
class RecordSource:
    """Rows to be written as records.

    Each column is a list, tuple or other iterable, or Arrow data: whatever has ``__arrow_c_array__`` or
    ``__arrow_c_stream__`` (arrays and chunked arrays of pyarrow, series of polars). What is given must not be
    changed while this lives.

    Parameters
    ----------
    values, keys:
        ``bytes``, other buffers or ``None``; or Arrow binary or string, also large, view, dictionary or of
        fixed size. No keys at all is a null key for each row.
    headers:
        For each row pairs of a ``str`` and a buffer or ``None``, or ``None`` for no headers; or Arrow
        ``list<struct<key: string, value: binary>>`` or ``map<string, binary>``.
    timestamps:
        Milliseconds since the epoch as ``int``, or ``None`` where none is given; or Arrow int64 or timestamp.
    partitions:
        Numbers of partitions as ``int``, or ``None``; or Arrow int32 or int64.

    Attributes
    ----------
    row_count:
        Rows; also ``len()``.
    has_keys, has_headers, has_timestamps, has_partitions:
        Whether there is such a column.

    Raises
    ------
    TypeError
        A column is of another type.
    ValueError
        Columns are of different length, or Arrow data are malformed.
    """
    def __new__(
        cls,
        values: object,
        keys: object = None,
        headers: object = None,
        timestamps: object = None,
        partitions: object = None,
    ) -> Self: ...
    def __len__(self) -> int: ...
    @property
    def row_count(self) -> int: ...
    @property
    def has_keys(self) -> bool: ...
    @property
    def has_headers(self) -> bool: ...
    @property
    def has_timestamps(self) -> bool: ...
    @property
    def has_partitions(self) -> bool: ...
    @staticmethod
    def from_arrow(
        table: object,
        *,
        value: str = "value",
        key: str = "key",
        headers: str = "headers",
        timestamp: str = "timestamp",
        partition: str = "partition",
        ignored: Collection[str] = (),
    ) -> RecordSource:
        """The rows of a table, record batch or data frame, or of another stream of Arrow structs.

        Parameters
        ----------
        value, key, headers, timestamp, partition:
            Names of the columns; all but the values' may be missing.
        ignored:
            Names of columns that may be there and are not looked at.

        Raises
        ------
        TypeError
            It is no Arrow data, or a column is of a type that is not taken.
        ValueError
            There is no column of values, one more than these, or one name twice.
        """
