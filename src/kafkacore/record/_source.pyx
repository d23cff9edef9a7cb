"""Columns of records to be encoded, which the encoding loops read row by row without the GIL.

Values, keys, headers, timestamps and partitions are either Python objects or Arrow data. The data is not
copied; only pointers to it are collected.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t

from kafkacore.record._arrow_columns cimport import_bytes, import_partitions, import_timestamps, validity_of
from kafkacore.record._arrow_headers cimport import_headers
from kafkacore.record._arrow_table cimport ArrowColumn, open_arrow
from kafkacore.record.column cimport Column, column_row
from kafkacore.record._gather cimport gather_bytes, gather_headers, gather_partitions, gather_timestamps
from kafkacore.record.store cimport batch_size_bound, store_bytes
from kafkacore.wire.primitives cimport size_of_varlong, store_varlong

from kafkacore.wire.copying import refuse_copy

cdef enum:
    MAX_ROWS = 0x7FFFFFFF


@cython.final
@cython.no_gc_clear
cdef class RecordSource:
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

    def __cinit__(self, values, keys=None, headers=None, timestamps=None, partitions=None):
        self.set_columns(values, keys, headers, timestamps, partitions)

    def __len__(self):
        return self.row_count

    def __reduce__(self):
        refuse_copy(self, "a RecordSource refers to the columns that it was created from; copy the columns")

    @staticmethod
    def from_arrow(table, *, str value="value", str key="key", str headers="headers",
                   str timestamp="timestamp", str partition="partition", ignored=()):
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
        cdef ArrowColumn whole
        if not _is_arrow(table):
            raise TypeError(
                f"not an Arrow table: {type(table).__name__!r} has neither __arrow_c_array__ nor "
                "__arrow_c_stream__"
            )
        whole = open_arrow(table, "the table")
        if whole.format != "+s":
            raise TypeError(
                f"Arrow data of type {whole.format!r} is not a table; pass single columns to RecordSource()"
            )
        names = whole.names
        wanted = [value, key, headers, timestamp, partition]
        for name in names:
            if name not in wanted and name not in ignored:
                raise ValueError(f"unknown column {name!r}; the columns are {', '.join(wanted)}")
            if name in wanted and names.count(name) > 1:
                raise ValueError(f"the table has {names.count(name)} columns named {name!r}")
        if value not in names:
            raise ValueError(f"the table has no column {value!r}")
        _check_no_null_rows(whole)
        columns = [whole.child(names.index(name), f"column {name!r}") if name in names else None
                   for name in wanted]
        return RecordSource(*columns)

    cdef int set_columns(self, values, keys, headers, timestamps, partitions) except -1:
        self.row_count = 0
        self.owners = []
        values = _opened(values, "values")
        self.row_count = _length_of(values)
        if self.row_count > MAX_ROWS:
            raise ValueError(f"{self.row_count} rows exceed the limit of 2^31 - 1 rows per call")
        self.import_into(values, &self.values, "values")
        self.has_keys = keys is not None
        if self.has_keys:
            self.import_into(self.checked(keys, "keys"), &self.keys, "keys")
        self.has_headers = headers is not None
        if self.has_headers:
            headers = self.checked(headers, "headers")
            if isinstance(headers, ArrowColumn):
                import_headers(headers, &self.headers, self.owners)
            else:
                gather_headers(headers, &self.headers, self.owners)
        self.has_timestamps = timestamps is not None
        if self.has_timestamps:
            timestamps = self.checked(timestamps, "timestamps")
            if isinstance(timestamps, ArrowColumn):
                self.timestamps = import_timestamps(timestamps, self.owners)
            else:
                self.timestamps = gather_timestamps(timestamps, self.owners)
        self.has_partitions = partitions is not None
        if self.has_partitions:
            partitions = self.checked(partitions, "partitions")
            if isinstance(partitions, ArrowColumn):
                self.partitions = import_partitions(partitions, self.owners)
            else:
                self.partitions = gather_partitions(partitions, self.owners)
        return 0

    cdef int import_into(self, source, Column *out, str name) except -1:
        if isinstance(source, ArrowColumn):
            return import_bytes(source, out, self.owners)
        return gather_bytes(source, name, out, self.owners)

    cdef object checked(self, source, str name):
        """Open a column and check that it has as many rows as the values."""
        opened = _opened(source, name)
        if _length_of(opened) != self.row_count:
            raise ValueError(f"there are {_length_of(opened)} {name} but {self.row_count} values")
        return opened

    @cython.nonecheck(False)
    cdef Py_ssize_t headers_size(self, Py_ssize_t row) noexcept nogil:
        """Return the encoded size of a row's headers in bytes, without their count."""
        cdef const uint8_t *data = NULL
        cdef Py_ssize_t total = 0
        cdef Py_ssize_t size
        cdef int64_t at
        if self.headers.starts == NULL:
            return 0
        for at in range(self.headers.starts[row], self.headers.starts[row + 1]):
            size = column_row(&self.headers.names, at, &data)
            total += size_of_varlong(size) + size
            size = column_row(&self.headers.values, at, &data)
            total += size_of_varlong(size) + max(size, 0)
        return total

    @cython.nonecheck(False)
    cdef uint8_t *store_headers(self, uint8_t *at, Py_ssize_t row) noexcept nogil:
        """Write a row's headers and return the position after them. The caller has written their count."""
        cdef const uint8_t *data = NULL
        cdef Py_ssize_t size
        cdef int64_t header
        for header in range(self.headers.starts[row], self.headers.starts[row + 1]):
            size = column_row(&self.headers.names, header, &data)
            at = store_bytes(store_varlong(at, size), data, size)
            size = column_row(&self.headers.values, header, &data)
            at = store_bytes(store_varlong(at, size), data, size)
        return at

    cdef Py_ssize_t size_upper_bound(self, Py_ssize_t row) noexcept nogil:
        """Return the :func:`batch_size_bound` of this row."""
        cdef const uint8_t *data = NULL
        return batch_size_bound(
            self.key(row, &data), self.value(row, &data), self.headers_size(row), self.header_count(row)
        )


cdef bint _is_arrow(source):
    return hasattr(source, "__arrow_c_array__") or hasattr(source, "__arrow_c_stream__")


cdef object _opened(source, str name):
    """Return ``source`` as an ArrowColumn or as a tuple. No other code can change a tuple."""
    if isinstance(source, ArrowColumn) or type(source) is tuple:
        return source
    if _is_arrow(source):
        return open_arrow(source, name)
    if isinstance(source, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"{name} must be a list or Arrow data, not a single {type(source).__name__!r}")
    return tuple(source)


cdef Py_ssize_t _length_of(opened) except -1:
    return (<ArrowColumn> opened).row_count if isinstance(opened, ArrowColumn) else len(<tuple?> opened)


cdef int _check_no_null_rows(ArrowColumn table) except -1:
    cdef Py_ssize_t at
    for at in range(table.piece_count):
        if validity_of(table.pieces[at].array, table.name) != NULL:
            raise ValueError("the table has null rows; only single columns of a row may be null")
    return 0
