from collections.abc import Collection
from typing import Self, final

@final
class RecordSource:
    """Columns of records to be written.

    Each column is a list, tuple or other iterable, or Arrow data: an object with ``__arrow_c_array__`` or
    ``__arrow_c_stream__``, such as arrays and chunked arrays of pyarrow and series of polars. The data must
    not change while this object exists.

    Parameters
    ----------
    values, keys:
        ``bytes``, other buffers or ``None``; or Arrow binary or string, including the large, view, dictionary
        and fixed-size types. Without keys every row has a null key.
    headers:
        For each row, a list of pairs, or ``None`` for no headers. In a pair, the name is a ``str``, and the
        value is a buffer or ``None``. Arrow data has the type ``list<struct<key: string, value: binary>>`` or
        ``map<string, binary>``.
    timestamps:
        Milliseconds since the epoch as ``int``, or ``None`` for no timestamp; or Arrow int64 or timestamp.
    partitions:
        Partition numbers as ``int``, or ``None`` for no partition; or Arrow int32 or int64.

    Attributes
    ----------
    row_count:
        Number of rows; also ``len()``.
    has_keys, has_headers, has_timestamps, has_partitions:
        Whether this column was given.

    Raises
    ------
    TypeError
        The type of a column is not supported.
    ValueError
        Columns have different lengths, or Arrow data is malformed.
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
        """Return the rows of a table, record batch or data frame, or of another stream of Arrow structs.

        Parameters
        ----------
        table:
            An object with ``__arrow_c_array__`` or ``__arrow_c_stream__``.
        value, key, headers, timestamp, partition:
            Names of the columns. Only the column of the values is required.
        ignored:
            Names of other columns that the table may have.

        Raises
        ------
        TypeError
            ``table`` is not Arrow data, or the type of a column is not supported.
        ValueError
            The column of the values is missing, or a column is unknown or occurs twice.
        """
