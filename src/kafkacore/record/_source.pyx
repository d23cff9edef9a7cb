"""The columns of many records, to be encoded: lists or Arrow data in, rows as pointers out, without the GIL.

Values, keys, headers, timestamps and partitions each come as Python objects or as Arrow data; nothing is
copied but pointers. Does not know: batches, partitioners.
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

    def __cinit__(self, values, keys=None, headers=None, timestamps=None, partitions=None):
        self.set_columns(values, keys, headers, timestamps, partitions)

    def __len__(self):
        return self.row_count

    def __reduce__(self):
        refuse_copy(self, "it points into the columns it was made of; copy those")

    @staticmethod
    def from_arrow(table, *, str value="value", str key="key", str headers="headers",
                   str timestamp="timestamp", str partition="partition", ignored=()):
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
        cdef ArrowColumn whole
        if not _is_arrow(table):
            raise TypeError(f"{type(table).__name__!r} has neither __arrow_c_array__ nor __arrow_c_stream__")
        whole = open_arrow(table, "the table")
        if whole.format != "+s":
            raise TypeError(f"Arrow data of type {whole.format!r} are no table; columns go to RecordSource()")
        names = whole.names
        wanted = [value, key, headers, timestamp, partition]
        for name in names:
            if name not in wanted and name not in ignored:
                raise ValueError(f"column {name!r} is none of {', '.join(wanted)}")
            if name in wanted and names.count(name) > 1:
                raise ValueError(f"there are {names.count(name)} columns {name!r}")
        if value not in names:
            raise ValueError(f"there is no column {value!r}")
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
            raise ValueError(f"{self.row_count} rows; at most 2^31 - 1 are taken at once")
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
        """The column, opened, of as many rows as there are values."""
        opened = _opened(source, name)
        if _length_of(opened) != self.row_count:
            raise ValueError(f"{_length_of(opened)} {name} for {self.row_count} values")
        return opened

    @cython.nonecheck(False)
    cdef Py_ssize_t headers_size(self, Py_ssize_t row) noexcept nogil:
        """Bytes of a row's headers in a record, without their count."""
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
        """Write them behind their count; where they end."""
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
        """Return what :func:`batch_size_bound` gives for this row."""
        cdef const uint8_t *data = NULL
        return batch_size_bound(
            self.key(row, &data), self.value(row, &data), self.headers_size(row), self.header_count(row)
        )


cdef bint _is_arrow(source):
    return hasattr(source, "__arrow_c_array__") or hasattr(source, "__arrow_c_stream__")


cdef object _opened(source, str name):
    """An ArrowColumn, or a tuple that nobody else changes."""
    if isinstance(source, ArrowColumn) or type(source) is tuple:
        return source
    if _is_arrow(source):
        return open_arrow(source, name)
    if isinstance(source, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"{name} is {type(source).__name__!r}; a list of them, or Arrow data, is wanted")
    return tuple(source)


cdef Py_ssize_t _length_of(opened) except -1:
    return (<ArrowColumn> opened).row_count if isinstance(opened, ArrowColumn) else len(<tuple?> opened)


cdef int _check_no_null_rows(ArrowColumn table) except -1:
    cdef Py_ssize_t at
    for at in range(table.piece_count):
        if validity_of(table.pieces[at].array, table.name) != NULL:
            raise ValueError("the table has rows that are null as a whole")
    return 0
