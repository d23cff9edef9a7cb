"""Record batches to columns: batches in, Arrow arrays out, without a Python object or call per record.

A value is copied once, from the fetch response (or what was decompressed) into the column. The columns leave
by the Arrow C data interface, so that pyarrow is needed neither to build nor to import this. Does not know:
topics, positions, transactions; control batches are skipped by the caller.
"""

cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free

from kafkacore.record.batch cimport RecordBatch
from kafkacore.record.columns_c cimport (
    ArrowArray, ArrowSchema, KC_COLUMN_KINDS, KC_HEADERS, KC_KEY, KC_OFFSET, KC_TIMESTAMP, KC_TIMESTAMP_TYPE,
    KC_VALUE, kc_buffer_reserve, kc_columns, kc_columns_bytes, kc_columns_mark, kc_columns_new,
    kc_columns_release, kc_columns_roll_back, kc_export_array, kc_export_schema, kc_mark, kc_variable_append,
    kc_variable_append_text, kc_variable_reserve_rows, kc_variable_set_validity,
)
from kafkacore.record.parse cimport PARSE_OK, RECORDS_LEFT, RecordFields, parse_record, read_header

cdef enum:
    # Beside the codes of `parse`.
    NO_MEMORY = -100
    # Of rows with 32-bit offsets.
    MAX_COLUMN_BYTES = 0x7FFFFFFF

cdef int64_t MAX_INT64 = 0x7FFFFFFFFFFFFFFF

_KINDS = {
    "offset": KC_OFFSET,
    "timestamp": KC_TIMESTAMP,
    "timestamp_type": KC_TIMESTAMP_TYPE,
    "key": KC_KEY,
    "value": KC_VALUE,
    "headers": KC_HEADERS,
}
_UNITS = {"ms": b"tsm:", "us": b"tsu:"}


@cython.final
cdef class RecordColumns:
    """Columns of records, exported by the Arrow PyCapsule interface: ``pyarrow.record_batch(columns)``.

    The memory is shared with every export and lives as long as any of them. Made by
    :meth:`ColumnBuilder.finish`.
    """
    cdef kc_columns *columns

    def __init__(self):
        raise TypeError("made by ColumnBuilder.finish()")

    def __dealloc__(self):
        if self.columns != NULL:
            kc_columns_release(self.columns)

    def __len__(self):
        return self.columns.rows

    @property
    def num_rows(self) -> int:
        """Records."""
        return self.columns.rows

    @property
    def nbytes(self) -> int:
        """Bytes of memory taken."""
        return kc_columns_bytes(self.columns)

    @property
    def column_names(self) -> list:
        """Names of the columns, in their order."""
        names = {kind: name for name, kind in _KINDS.items()}
        return [names[self.columns.columns[index]] for index in range(self.columns.column_count)]

    def __arrow_c_schema__(self):
        """A capsule ``arrow_schema``: a struct of the columns."""
        cdef ArrowSchema *schema = <ArrowSchema *> calloc(1, sizeof(ArrowSchema))
        if schema == NULL:
            raise MemoryError()
        capsule = PyCapsule_New(schema, "arrow_schema", _drop_schema)
        if kc_export_schema(self.columns, schema) < 0:
            raise MemoryError()
        return capsule

    def __arrow_c_array__(self, requested_schema=None):
        """Capsules ``arrow_schema`` and ``arrow_array``: a struct array of the columns.

        ``requested_schema`` is ignored, as the interface allows: the columns are what the builder was asked
        for.
        """
        cdef ArrowArray *array = <ArrowArray *> calloc(1, sizeof(ArrowArray))
        if array == NULL:
            raise MemoryError()
        capsule = PyCapsule_New(array, "arrow_array", _drop_array)
        if kc_export_array(self.columns, array) < 0:
            raise MemoryError()
        return self.__arrow_c_schema__(), capsule


cdef void _drop_schema(object capsule) noexcept:
    cdef ArrowSchema *schema = <ArrowSchema *> PyCapsule_GetPointer(capsule, "arrow_schema")
    # Empty if a consumer has moved the contents out.
    if schema.release != NULL:
        schema.release(schema)
    free(schema)


cdef void _drop_array(object capsule) noexcept:
    cdef ArrowArray *array = <ArrowArray *> PyCapsule_GetPointer(capsule, "arrow_array")
    if array.release != NULL:
        array.release(array)
    free(array)


@cython.final
cdef class ColumnBuilder:
    """Collects records of batches as columns. Not for two threads at a time.

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
    cdef kc_columns *columns
    cdef object kinds
    cdef bytes timestamp_format
    cdef int64_t timestamp_factor
    cdef int64_t max_column_bytes
    cdef bint wanted[<int> KC_COLUMN_KINDS]
    cdef bint headers_null_when_empty
    cdef bint busy

    def __cinit__(self, columns, str timestamp_unit="ms", str timezone=None,
                  bint headers_null_when_empty=True, int64_t max_column_bytes=MAX_COLUMN_BYTES):
        names = list(columns)
        if len(set(names)) != len(names) or not set(names) <= set(_KINDS):
            raise ValueError(f"columns {names}: choose among {', '.join(_KINDS)}, each at most once")
        if timestamp_unit not in _UNITS:
            raise ValueError(f"timestamp_unit {timestamp_unit!r}: choose 'ms' or 'us'")
        self.kinds = [_KINDS[name] for name in names]
        for kind in self.kinds:
            self.wanted[<int> kind] = True
        self.timestamp_format = _UNITS[timestamp_unit] + (timezone or "").encode("ascii")
        self.timestamp_factor = 1 if timestamp_unit == "ms" else 1000
        self.headers_null_when_empty = headers_null_when_empty
        self.max_column_bytes = min(max_column_bytes, MAX_COLUMN_BYTES)
        self.columns = self._empty()

    def __dealloc__(self):
        if self.columns != NULL:
            kc_columns_release(self.columns)

    cdef kc_columns *_empty(self) except NULL:
        cdef int32_t kinds[<int> KC_COLUMN_KINDS]
        cdef int32_t count = 0
        cdef kc_columns *made
        for kind in self.kinds:
            kinds[count] = kind
            count += 1
        made = kc_columns_new(kinds, count, self.timestamp_format)
        if made == NULL:
            raise MemoryError()
        return made

    @property
    def num_rows(self) -> int:
        """Records so far."""
        return self.columns.rows

    @property
    def nbytes(self) -> int:
        """Bytes of memory taken so far."""
        return kc_columns_bytes(self.columns)

    def append(self, RecordBatch batch not None, int64_t from_offset=0, max_records=None) -> tuple:
        """Append records of ``batch`` whose offset is at least ``from_offset``; the GIL is released
        meanwhile.

        Parameters
        ----------
        max_records:
            How many at most; ``None`` for all.

        Returns
        -------
        The number of records appended, and the offset from which to go on: ``batch.next_offset`` if the batch
        is exhausted, else that of the first record left, because of ``max_records`` or because a column is
        full.

        Raises
        ------
        CorruptRecordError
            The batch is broken. Nothing of it has been appended.
        """
        cdef int64_t limit = MAX_INT64 if max_records is None else max(<int64_t> max_records, 0)
        cdef int64_t next_offset = batch.base_offset
        cdef int64_t rows
        cdef int32_t index = 0
        cdef int error
        cdef kc_mark mark
        if self.busy:
            raise RuntimeError("two threads use one ColumnBuilder")
        self.busy = True
        try:
            batch.open()
            rows = self.columns.rows
            mark = kc_columns_mark(self.columns)
            with nogil:
                error = self._append(batch, from_offset, limit, &index, &next_offset)
                if error != PARSE_OK:
                    kc_columns_roll_back(self.columns, &mark)
            if error == NO_MEMORY:
                raise MemoryError()
            if error != PARSE_OK:
                batch.fail(error, index)
            return self.columns.rows - rows, next_offset
        finally:
            self.busy = False

    cdef int _append(self, RecordBatch batch, int64_t from_offset, int64_t limit, int32_t *index,
                     int64_t *next_offset) noexcept nogil:
        """The loop over records; PARSE_OK, NO_MEMORY, or what is wrong with record `index`."""
        cdef const uint8_t *pos = batch.records_at
        cdef RecordFields fields
        cdef int64_t offset
        cdef int64_t left = min(limit, batch.record_count)
        cdef int error
        if self._reserve_rows(left) < 0:
            return NO_MEMORY
        while index[0] < batch.record_count:
            error = parse_record(&pos, batch.records_end, batch.last_offset_delta, &fields)
            if error != PARSE_OK:
                return error
            offset = batch.base_offset + fields.offset_delta
            if offset >= from_offset:
                if left == 0 or not self._has_room(&fields, pos):
                    next_offset[0] = offset
                    return PARSE_OK
                if self._append_row(&fields, pos, offset, batch) < 0:
                    return NO_MEMORY
                left -= 1
            index[0] += 1
        if pos != batch.records_end:
            return RECORDS_LEFT
        next_offset[0] = batch.base_offset + batch.last_offset_delta + 1
        return PARSE_OK

    cdef int _reserve_rows(self, int64_t more) noexcept nogil:
        cdef kc_columns *columns = self.columns
        cdef int64_t rows = columns.rows
        if self.wanted[<int> KC_OFFSET] and kc_buffer_reserve(&columns.offset, rows * 8, more * 8) < 0:
            return -1
        if self.wanted[<int> KC_TIMESTAMP] and kc_buffer_reserve(&columns.timestamp, rows * 8, more * 8) < 0:
            return -1
        if (self.wanted[<int> KC_TIMESTAMP_TYPE]
                and kc_buffer_reserve(&columns.timestamp_type, rows * 4, more * 4) < 0):
            return -1
        if self.wanted[<int> KC_KEY] and kc_variable_reserve_rows(&columns.key, rows, more) < 0:
            return -1
        if self.wanted[<int> KC_VALUE] and kc_variable_reserve_rows(&columns.value, rows, more) < 0:
            return -1
        if self.wanted[<int> KC_HEADERS] and kc_variable_reserve_rows(&columns.headers, rows, more) < 0:
            return -1
        return 0

    cdef bint _has_room(self, RecordFields *fields, const uint8_t *end) noexcept nogil:
        """Whether the record, which ends at `end`, may be appended; into empty columns it always may."""
        cdef kc_columns *columns = self.columns
        # A byte that is not UTF-8 becomes three.
        cdef int64_t header_bytes = 3 * (end - fields.headers)
        if columns.rows == 0:
            return True
        if self.wanted[<int> KC_KEY] and fields.key_size > self.max_column_bytes - columns.key.data.size:
            return False
        if (self.wanted[<int> KC_VALUE]
                and fields.value_size > self.max_column_bytes - columns.value.data.size):
            return False
        return not self.wanted[<int> KC_HEADERS] or (
            header_bytes <= self.max_column_bytes - columns.header_key.data.size
            and header_bytes <= self.max_column_bytes - columns.header_value.data.size
            and fields.header_count <= MAX_COLUMN_BYTES - columns.header_rows
        )

    cdef int _append_row(self, RecordFields *fields, const uint8_t *end, int64_t offset,
                         RecordBatch batch) noexcept nogil:
        cdef kc_columns *columns = self.columns
        cdef int64_t row = columns.rows
        if self.wanted[<int> KC_OFFSET]:
            (<int64_t *> columns.offset.data)[row] = offset
        if self.wanted[<int> KC_TIMESTAMP]:
            (<int64_t *> columns.timestamp.data)[row] = _scaled(batch.timestamp_of(fields),
            self.timestamp_factor)
        if self.wanted[<int> KC_TIMESTAMP_TYPE]:
            (<int32_t *> columns.timestamp_type.data)[row] = batch.timestamp_type_id()
        if (self.wanted[<int> KC_KEY]
                and kc_variable_append(&columns.key, row, fields.key, fields.key_size) < 0):
            return -1
        if (self.wanted[<int> KC_VALUE]
                and kc_variable_append(&columns.value, row, fields.value, fields.value_size) < 0):
            return -1
        if self.wanted[<int> KC_HEADERS] and self._append_headers(fields, end, row) < 0:
            return -1
        columns.rows += 1
        return 0

    cdef int _append_headers(self, RecordFields *fields, const uint8_t *end, int64_t row) noexcept nogil:
        cdef kc_columns *columns = self.columns
        cdef const uint8_t *pos = fields.headers
        cdef const uint8_t *key = NULL
        cdef const uint8_t *value = NULL
        cdef int32_t key_size = 0, value_size = 0
        cdef int64_t count = fields.header_count
        if (kc_variable_reserve_rows(&columns.header_key, columns.header_rows, count) < 0
                or kc_variable_reserve_rows(&columns.header_value, columns.header_rows, count) < 0):
            return -1
        for _ in range(count):
            # Cannot fail: the record was parsed.
            read_header(&pos, end, &key, &key_size, &value, &value_size)
            if (kc_variable_append_text(&columns.header_key, columns.header_rows, key, key_size) < 0
                    or kc_variable_append(&columns.header_value, columns.header_rows, value, value_size) < 0):
                return -1
            columns.header_rows += 1
        (<int32_t *> columns.headers.offsets.data)[row + 1] = <int32_t> columns.header_rows
        kc_variable_set_validity(&columns.headers, row, count > 0 or not self.headers_null_when_empty)
        return 0

    def finish(self) -> RecordColumns:
        """The columns so far. The builder begins anew, empty."""
        cdef RecordColumns made
        cdef kc_columns *empty
        if self.busy:
            raise RuntimeError("two threads use one ColumnBuilder")
        empty = self._empty()
        made = RecordColumns.__new__(RecordColumns)
        made.columns = self.columns
        self.columns = empty
        return made


cdef inline int64_t _scaled(int64_t timestamp_ms, int64_t factor) noexcept nogil:
    if factor == 1:
        return timestamp_ms
    if timestamp_ms > MAX_INT64 // factor:
        return MAX_INT64
    if timestamp_ms < -(MAX_INT64 // factor):
        return -MAX_INT64 - 1
    return timestamp_ms * factor
