"""Decode record batches into Arrow columns, without a Python object or call per record.

A value is copied once, from the fetch response or the decompressed batch into the column. The columns are
exported through the Arrow C data interface, so this module does not need pyarrow. The caller skips control
batches.
"""

cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from libc.stdint cimport int32_t, int64_t

from kafkacore.record._batch cimport BatchIterator, RecordBatch
from kafkacore.record.columns_c cimport (
    ArrowArray, ArrowSchema, KC_COLUMN_KINDS, KC_HEADERS, KC_KEY, KC_NO_MEMORY, KC_OFFSET, KC_TIMESTAMP,
    KC_TIMESTAMP_TYPE, KC_VALUE, kc_columns, kc_columns_append, kc_columns_bytes, kc_columns_mark,
    kc_columns_new, kc_columns_release, kc_columns_reserve, kc_columns_roll_back, kc_columns_use,
    kc_export_array, kc_export_schema, kc_mark, kc_memory, kc_run,
)
from kafkacore.record.layout cimport PARTITION_LEADER_EPOCH_AT, TIMESTAMP_TYPE_BIT
from kafkacore.record.parse cimport PARSE_OK
from kafkacore.record.plain_batch cimport PlainBatches, plain_batch
from kafkacore.wire._blocks cimport block_alloc, block_capacity, block_free, block_realloc
from kafkacore.wire._construction cimport made_only_by
from kafkacore.wire.exclusive cimport begin_use, check_unused
from kafkacore.wire.memory cimport calloc, free
from kafkacore.wire.primitives cimport load_int32

cdef enum:
    # Maximum data bytes of a column with 32-bit offsets.
    MAX_COLUMN_BYTES = 0x7FFFFFFF

cdef int64_t MAX_INT64 = 0x7FFFFFFFFFFFFFFF

cdef kc_memory _memory
_memory.alloc, _memory.realloc = block_alloc, block_realloc
_memory.free, _memory.capacity = block_free, block_capacity
kc_columns_use(&_memory)

from kafkacore.wire.copying import refuse_copy

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

    The memory is shared with every export and lives as long as any of them. :meth:`ColumnBuilder.finish`
    creates the columns.
    """
    cdef kc_columns *columns

    def __init__(self):
        raise TypeError("RecordColumns can be created only by ColumnBuilder.finish()")

    def __reduce__(self):
        refuse_copy(self, "the columns share memory with their exports; copy pyarrow.record_batch(columns)")

    def __dealloc__(self):
        if self.columns != NULL:
            kc_columns_release(self.columns)

    def __len__(self):
        return self.columns.rows

    @property
    def num_rows(self) -> int:
        """Number of records."""
        return self.columns.rows

    @property
    def nbytes(self) -> int:
        """Allocated memory in bytes."""
        return kc_columns_bytes(self.columns)

    @property
    def column_names(self) -> list:
        """Names of the columns, in order."""
        names = {kind: name for name, kind in _KINDS.items()}
        return [names[self.columns.columns[index]] for index in range(self.columns.column_count)]

    def __repr__(self):
        return f"<RecordColumns {len(self)} rows: {', '.join(self.column_names)}>"

    def _repr_html_(self):
        """Return the first rows as an HTML table, which Jupyter shows."""
        from kafkacore.record.html_table import html_table

        return html_table(self)

    def __arrow_c_schema__(self):
        """Return a capsule ``arrow_schema``: a struct of the columns."""
        cdef ArrowSchema *schema = <ArrowSchema *> calloc(1, sizeof(ArrowSchema))
        if schema == NULL:
            raise MemoryError()
        try:
            capsule = PyCapsule_New(schema, "arrow_schema", _drop_schema)
        except BaseException:
            free(schema)
            raise
        if kc_export_schema(self.columns, schema) < 0:
            raise MemoryError()
        return capsule

    def __arrow_c_array__(self, requested_schema=None):
        """Return capsules ``arrow_schema`` and ``arrow_array``: a struct array of the columns.

        ``requested_schema`` is ignored, as the interface allows: the arguments of :class:`ColumnBuilder`
        determine the columns.
        """
        cdef ArrowArray *array = <ArrowArray *> calloc(1, sizeof(ArrowArray))
        if array == NULL:
            raise MemoryError()
        try:
            capsule = PyCapsule_New(array, "arrow_array", _drop_array)
        except BaseException:
            free(array)
            raise
        if kc_export_array(self.columns, array) < 0:
            raise MemoryError()
        return self.__arrow_c_schema__(), capsule


made_only_by(RecordColumns, "ColumnBuilder.finish()")


cdef void _drop_schema(object capsule) noexcept:
    cdef ArrowSchema *schema = <ArrowSchema *> PyCapsule_GetPointer(capsule, "arrow_schema")
    # A consumer that has moved the contents out has set `release` to NULL.
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
    cdef kc_columns *columns
    cdef object kinds
    cdef bytes timestamp_format
    cdef int64_t timestamp_factor
    cdef int64_t max_column_bytes
    cdef bint headers_null_when_empty
    cdef bint busy

    def __cinit__(self, columns, str timestamp_unit="ms", str timezone=None,
                  bint headers_null_when_empty=True, int64_t max_column_bytes=MAX_COLUMN_BYTES):
        # A subclass of str is not accepted as a name, because it may override equality.
        names = [str(name) if type(name) is str else repr(name) for name in columns]
        if len(set(names)) != len(names) or not set(names) <= set(_KINDS):
            raise ValueError(
                f"invalid columns {names}: choose from {', '.join(_KINDS)}, each at most once"
            )
        if timestamp_unit not in _UNITS:
            raise ValueError(f"invalid timestamp_unit {timestamp_unit!r}: choose 'ms' or 'us'")
        self.kinds = [_KINDS[name] for name in names]
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
        made.timestamp_factor = self.timestamp_factor
        made.max_column_bytes = self.max_column_bytes
        made.headers_null_when_empty = self.headers_null_when_empty
        return made

    @property
    def num_rows(self) -> int:
        """Number of records appended."""
        return self.columns.rows

    @property
    def nbytes(self) -> int:
        """Allocated memory in bytes."""
        check_unused(self.busy, self)
        return kc_columns_bytes(self.columns)

    def __reduce__(self):
        refuse_copy(self, "the builder is still being filled; copy the result of finish()")

    def append(self, RecordBatch batch not None, int64_t from_offset=0, max_records=None,
               end_offset=None) -> tuple:
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
        cdef kc_run run
        cdef int64_t rows
        cdef int error
        begin_use(&self.busy, self)
        try:
            batch.open()
            run.from_offset = from_offset
            run.left = MAX_INT64 if max_records is None else max(<int64_t> max_records, 0)
            run.end_offset = MAX_INT64 if end_offset is None else end_offset
            _begin(batch, &run)
            rows = self.columns.rows
            with nogil:
                error = self._append(&run)
            if error == KC_NO_MEMORY:
                raise MemoryError()
            if error != PARSE_OK:
                batch.fail(error, run.index)
            batch.stopped_at, batch.stopped_index = run.pos, run.index
            batch.stopped_offset = run.next_offset
            return self.columns.rows - rows, run.next_offset
        finally:
            self.busy = False

    @cython.cdivision(True)
    cdef int _append(self, kc_run *run) noexcept nogil:
        """Append all requested records, or none after an error.

        Returns PARSE_OK, KC_NO_MEMORY, or the parse error of the record with index `run.index`.
        """
        cdef kc_mark mark = kc_columns_mark(self.columns)
        cdef int32_t records = run.record_count - run.index
        cdef int64_t bytes_left = run.end - run.pos
        cdef int64_t rows = min(run.left, records)
        cdef int error
        if rows < records:
            # Estimate the size from the average record size. The column grows if these records are larger.
            bytes_left = bytes_left // records * rows
        error = KC_NO_MEMORY
        if kc_columns_reserve(self.columns, rows, bytes_left) == 0:
            error = kc_columns_append(self.columns, run)
        if error != PARSE_OK:
            kc_columns_roll_back(self.columns, &mark)
        return error

    def append_all(self, BatchIterator batches not None, int64_t from_offset=0, max_records=None,
                   end_offset=None, bint read_committed=False) -> tuple:
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
        cdef PlainBatches all_of
        cdef int64_t rows
        begin_use(&self.busy, self)
        try:
            all_of.read_committed = read_committed
            all_of.check_crcs = batches.check_crcs
            all_of.from_offset = from_offset
            all_of.left = MAX_INT64 if max_records is None else max(<int64_t> max_records, 0)
            all_of.end_offset = MAX_INT64 if end_offset is None else end_offset
            all_of.at = batches.payload.data + batches.at
            all_of.end = batches.payload.data + batches.payload.size
            all_of.next_offset = all_of.leader_epoch = -1
            rows = self.columns.rows
            with nogil:
                self._append_batches(&all_of)
            batches.at = all_of.at - batches.payload.data
            return self.columns.rows - rows, all_of.next_offset, all_of.leader_epoch
        finally:
            self.busy = False

    @cython.nonecheck(False)
    cdef void _append_batches(self, PlainBatches *all_of) noexcept nogil:
        cdef kc_run run
        cdef kc_mark mark
        cdef Py_ssize_t size
        cdef int64_t rows
        while True:
            size = plain_batch(all_of, &run)
            if size == 0:
                return
            if run.next_offset > all_of.from_offset:
                rows = self.columns.rows
                mark = kc_columns_mark(self.columns)
                if self._append(&run) != PARSE_OK:
                    return
                if run.index < run.record_count:
                    kc_columns_roll_back(self.columns, &mark)
                    return
                all_of.left -= self.columns.rows - rows
            all_of.next_offset = run.next_offset
            all_of.leader_epoch = load_int32(all_of.at + PARTITION_LEADER_EPOCH_AT)
            all_of.at += size

    def finish(self) -> RecordColumns:
        """Return the collected columns, and reset the builder."""
        cdef RecordColumns made
        cdef kc_columns *empty
        # Create the result before the builder changes: creating an object may run a finalizer, and a
        # finalizer may run any code.
        made = RecordColumns.__new__(RecordColumns)
        check_unused(self.busy, self)
        empty = self._empty()
        made.columns = self.columns
        self.columns = empty
        return made


cdef void _begin(RecordBatch batch, kc_run *run) noexcept:
    run.base_offset, run.last_offset_delta = batch.base_offset, batch.last_offset_delta
    run.base_timestamp, run.max_timestamp = batch.base_timestamp, batch.max_timestamp
    run.has_log_append_time = batch.attributes & TIMESTAMP_TYPE_BIT != 0
    run.timestamp_type = batch.timestamp_type_id()
    run.record_count = batch.record_count
    run.pos, run.end, run.index = batch.records_at, batch.records_end, 0
    run.next_offset = batch.base_offset
    if batch.stopped_at != NULL and batch.stopped_offset == run.from_offset:
        run.pos, run.index = batch.stopped_at, batch.stopped_index
