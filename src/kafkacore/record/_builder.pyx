"""Build record batches of format 2.

A record is encoded once, directly into the memory that is written to the socket. A compressed batch is
compressed when it is sealed. Layout and decisions follow Kafka's ``MemoryRecordsBuilder``.
"""

cimport cython
from cpython.buffer cimport (
    PyBUF_READ, PyBUF_SIMPLE, Py_buffer, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from kafkacore.record.layout cimport (
    ATTRIBUTES_AT, BASE_OFFSET_AT, BASE_SEQUENCE_AT, BASE_TIMESTAMP_AT, CONTROL_BIT, CRC_AT, CURRENT_MAGIC,
    LAST_OFFSET_DELTA_AT, LENGTH_AT, LOG_OVERHEAD, MAGIC_AT, MAX_FIELDS_OVERHEAD, MAX_TIMESTAMP_AT,
    PARTITION_LEADER_EPOCH_AT, PRODUCER_EPOCH_AT, PRODUCER_ID_AT, RECORD_COUNT_AT, RECORDS_AT,
    TIMESTAMP_TYPE_BIT, TRANSACTIONAL_BIT,
)
from kafkacore.record.column cimport column_row
from kafkacore.record._source cimport RecordSource
from kafkacore.record.store cimport append_field, record_length, store_bytes, store_record
from kafkacore.wire._crc32c cimport crc32c_of
from kafkacore.wire._blocks cimport block_alloc, block_capacity, block_free, block_realloc
from kafkacore.wire._gil_handoff cimport gil_handoff_received, gil_handoff_request
from kafkacore.wire.primitives cimport size_of_varlong, store_int16, store_int32, store_int64

from kafkacore.errors import IllegalStateError, MessageSizeTooLargeError
from kafkacore.record.compression import compress
from kafkacore.structs import Compression, TimestampType
from kafkacore.wire.copying import refuse_copy

cdef enum:
    MAX_INT32 = 0x7FFFFFFF
    # The memory grows in steps, so that a thousand idle partitions do not need the memory of a thousand full
    # batches.
    FIRST_CAPACITY = 4096
    SMALL_CAPACITY = 65536
    # Below this size, the CRC is computed with the GIL held. The computation takes some microseconds, but
    # reacquiring the GIL from a busy thread takes milliseconds.
    SEAL_WITH_GIL = 65536
    # Maximum size of the records before compression; the size of a batch on the wire is an int32.
    MAX_SIZE = MAX_INT32 - 65536

cdef object _NO_HEADERS = ()


cdef bytes _encode_headers(headers, int32_t *count):
    """Return the encoded headers of a record, without their count, and set `count`."""
    cdef bytearray encoded = bytearray()
    for name, value in headers:
        count[0] += 1
        append_field(encoded, name.encode())
        append_field(encoded, None if value is None else bytes(memoryview(value)))
    return bytes(encoded)


@cython.final
cdef class RecordBatchBuilder:
    """A builder of one batch of format 2.

    Parameters
    ----------
    batch_size:
        Size on the wire, in bytes, at which the batch is full. The first record always fits.
    compression:
        A :class:`Compression`.
    compression_level:
        One of the codec's levels (``compression.CODECS``); ``None`` for the default.
    timestamp_type:
        Timestamp type of the batch.
    compression_ratio:
        Expected ratio of compressed to uncompressed size. A compressed batch accepts ``batch_size /
        compression_ratio`` uncompressed bytes.

    Attributes
    ----------
    size_in_bytes:
        Size of the batch in bytes, including the header. It is the uncompressed size while the batch is open,
        and the size on the wire once the batch is sealed.
    base_timestamp, max_timestamp:
        Milliseconds since the epoch; -1 while the batch is empty.
    """

    def __cinit__(self, Py_ssize_t batch_size, compression=Compression.NONE, compression_level=None,
                  timestamp_type=TimestampType.CREATE_TIME, double compression_ratio=1.0):
        if batch_size < 0:
            raise ValueError(f"batch_size must not be negative: {batch_size}")
        # Calling `Compression` takes as long as appending ten records, so a member is used as it is.
        self.codec = compression if type(compression) is Compression else Compression(compression)
        self.timestamp_type = timestamp_type
        if self.timestamp_type != 0:
            self.timestamp_type = TimestampType(timestamp_type)
        self.compression_level = compression_level
        self.batch_size = batch_size
        self.limit = min(batch_size, MAX_SIZE)
        if self.codec != 0 and 0.0 < compression_ratio < 1.0:
            self.limit = <Py_ssize_t> min(batch_size / compression_ratio, <double> MAX_SIZE)
        self.size_in_bytes = RECORDS_AT
        self.base_timestamp = self.max_timestamp = -1

    def __dealloc__(self):
        block_free(self.data)

    def __reduce__(self):
        refuse_copy(self, "copy bytes(builder.close()), the sealed batch")

    def __getbuffer__(self, Py_buffer *view, int flags):
        if not self.is_sealed:
            raise BufferError("the batch is open and its memory may still move; call close() first")
        PyBuffer_FillInfo(view, self, self.data, self.size_in_bytes, True, flags)

    # ---- Filling -------------------------------------------------------------------------------------------
    @cython.cdivision(True)
    cdef int ensure_capacity(self, int64_t delta, Py_ssize_t key_size, Py_ssize_t value_size,
                             Py_ssize_t headers_size, int32_t header_count,
                             Py_ssize_t rows_left) except -2 nogil:
        """Allocate memory for a record, and for up to `rows_left` more records of the same size.

        Returns 0 when the record may be stored, and -1 when it does not fit into the batch.
        """
        cdef Py_ssize_t record_size = record_length(
            delta, self.record_count, key_size, value_size, headers_size, header_count
        )
        cdef Py_ssize_t needed, capacity
        cdef void *grown
        record_size += size_of_varlong(record_size)
        needed = self.size_in_bytes + record_size
        if self.is_closed:
            with gil:
                raise IllegalStateError("the batch is sealed; no more records can be appended")
        if record_size > MAX_SIZE - RECORDS_AT:
            with gil:
                raise MessageSizeTooLargeError("the record is larger than 2 GiB")
        if needed <= self.capacity:
            return 0
        if self.record_count > 0 and needed > self.limit:
            return -1
        # Assume that the following records have the same size.
        capacity = needed + record_size * min(rows_left, self.limit // record_size)
        capacity = max(capacity, FIRST_CAPACITY, self.capacity * (4 if self.capacity < SMALL_CAPACITY else 2))
        capacity = max(min(capacity, self.limit), needed)
        grown = block_realloc(self.data, 0 if self.data == NULL else self.size_in_bytes, capacity)
        if grown == NULL:
            with gil:
                raise MemoryError()
        self.data = <uint8_t *> grown
        self.capacity = max(min(<Py_ssize_t> block_capacity(grown), self.limit), needed)
        return 0

    cdef int append_bytes(self, int64_t timestamp_ms, const uint8_t *key, Py_ssize_t key_size,
                          const uint8_t *value, Py_ssize_t value_size, const uint8_t *headers,
                          Py_ssize_t headers_size, int32_t header_count) except -2 nogil:
        """Append a record, whose key and value are in memory. A size of -1 means null.

        The headers are already encoded, without their count.
        """
        cdef uint8_t *at
        cdef int64_t delta = 0
        if self.record_count > 0:
            delta = <int64_t> (<uint64_t> timestamp_ms - <uint64_t> self.base_timestamp)
        if (max(key_size, 0) + max(value_size, 0) + headers_size
                > self.capacity - MAX_FIELDS_OVERHEAD - self.size_in_bytes):
            if self.ensure_capacity(delta, key_size, value_size, headers_size, header_count, 0) < 0:
                return -1
        at = store_record(self.data + self.size_in_bytes, delta, self.record_count, key, key_size, value,
                          value_size, headers_size, header_count)
        at = store_bytes(at, headers, headers_size)
        return self.count_record(at, timestamp_ms)

    cdef inline int count_record(self, const uint8_t *end, int64_t timestamp_ms) noexcept nogil:
        """Add the stored record, which ends at `end`, to the counters, and return its index in the batch."""
        self.max_record_size = max(self.max_record_size, end - self.data - self.size_in_bytes)
        self.size_in_bytes = end - self.data
        if self.record_count == 0:
            self.base_timestamp = self.max_timestamp = timestamp_ms
        elif timestamp_ms > self.max_timestamp:
            self.max_timestamp = timestamp_ms
        self.record_count = self.record_count + 1
        return self.record_count - 1

    @cython.nonecheck(False)
    cdef Py_ssize_t append_rows(self, RecordSource source, const int32_t *indices, Py_ssize_t start,
                                Py_ssize_t count, int64_t default_timestamp) except -2 nogil:
        """Append rows of `source` and return how many fit. An empty batch accepts at least one row.

        `indices` contains the row numbers, beginning at `indices[start]`. If `indices` is NULL, the rows
        begin at row `start`.
        """
        cdef const uint8_t *key = NULL
        cdef const uint8_t *value = NULL
        cdef Py_ssize_t key_size, value_size, row, done
        cdef Py_ssize_t headers_size = 0
        cdef int32_t header_count = 0
        cdef int64_t timestamp_ms, delta
        cdef uint8_t *at
        for done in range(count):
            row = start + done if indices == NULL else indices[start + done]
            key_size = column_row(&source.keys, row, &key)
            value_size = column_row(&source.values, row, &value)
            timestamp_ms = source.timestamp(row, default_timestamp)
            if source.headers.starts != NULL:
                header_count = source.header_count(row)
                headers_size = source.headers_size(row) if header_count > 0 else 0
            delta = 0
            if self.record_count > 0:
                delta = <int64_t> (<uint64_t> timestamp_ms - <uint64_t> self.base_timestamp)
            if (max(key_size, 0) + max(value_size, 0) + headers_size
                    > self.capacity - MAX_FIELDS_OVERHEAD - self.size_in_bytes):
                if self.ensure_capacity(delta, key_size, value_size, headers_size, header_count,
                                        count - done - 1) < 0:
                    return done
            at = store_record(self.data + self.size_in_bytes, delta, self.record_count, key, key_size, value,
                              value_size, headers_size, header_count)
            if header_count > 0:
                at = source.store_headers(at, row)
            self.count_record(at, timestamp_ms)
        return count

    # Disable binding: append() is then a plain builtin function, which the interpreter calls fastest.
    @cython.binding(False)
    @cython.embedsignature(True)
    @cython.embedsignature.format("clinic")
    def append(self, int64_t timestamp_ms, key, value, headers=()):
        """Append a record.

        Parameters
        ----------
        timestamp_ms:
            Milliseconds since the epoch.
        key, value:
            ``bytes`` or another contiguous buffer, or ``None``.
        headers:
            Pairs of ``str`` and ``bytes`` or ``None``.

        Returns
        -------
        int
            Index of the record in the batch, from 0, or -1 if the record does not fit.

        Raises
        ------
        IllegalStateError
            The batch is sealed.
        """
        if (headers is _NO_HEADERS and (value is None or PyBytes_CheckExact(value))
                and (key is None or PyBytes_CheckExact(key))):
            return self.append_bytes(timestamp_ms, _data_of(key), _size_of(key), _data_of(value),
                                     _size_of(value), NULL, 0, 0)
        return self.append_buffers(timestamp_ms, key, value, headers)

    cdef int append_buffers(self, int64_t timestamp_ms, key, value, headers) except -2:
        """Append a record, as `append` does. The arguments may have any supported type."""
        cdef Py_buffer key_view, value_view
        cdef bytes encoded = b""
        cdef int32_t header_count = 0
        if headers:
            encoded = _encode_headers(headers, &header_count)
        _open_view(key, &key_view)
        try:
            _open_view(value, &value_view)
            try:
                return self.append_bytes(
                    timestamp_ms, <const uint8_t *> key_view.buf, key_view.len,
                    <const uint8_t *> value_view.buf, value_view.len,
                    <const uint8_t *> PyBytes_AS_STRING(encoded), PyBytes_GET_SIZE(encoded), header_count,
                )
            finally:
                _close_view(value, &value_view)
        finally:
            _close_view(key, &key_view)

    # ---- Sealing -------------------------------------------------------------------------------------------
    cdef int write_header(self, uint8_t *batch, Py_ssize_t size, int64_t base_offset, int32_t leader_epoch,
                          int attributes, int64_t producer_id, int16_t producer_epoch,
                          int32_t base_sequence) noexcept nogil:
        store_int64(batch + BASE_OFFSET_AT, base_offset)
        store_int32(batch + LENGTH_AT, <int32_t> (size - LOG_OVERHEAD))
        store_int32(batch + PARTITION_LEADER_EPOCH_AT, leader_epoch)
        batch[MAGIC_AT] = CURRENT_MAGIC
        store_int16(batch + ATTRIBUTES_AT, <int16_t> attributes)
        store_int32(batch + LAST_OFFSET_DELTA_AT, self.record_count - 1)
        store_int64(batch + BASE_TIMESTAMP_AT, self.base_timestamp)
        store_int64(batch + MAX_TIMESTAMP_AT, self.max_timestamp)
        store_int64(batch + PRODUCER_ID_AT, producer_id)
        store_int16(batch + PRODUCER_EPOCH_AT, producer_epoch)
        store_int32(batch + BASE_SEQUENCE_AT, base_sequence)
        store_int32(batch + RECORD_COUNT_AT, self.record_count)
        store_int32(batch + CRC_AT, <int32_t> crc32c_of(0, batch + ATTRIBUTES_AT, size - ATTRIBUTES_AT))
        return 0

    def close(self, int64_t producer_id=-1, int16_t producer_epoch=-1, int32_t base_sequence=-1,
              bint is_transactional=False, bint is_control=False, int64_t base_offset=0,
              int32_t partition_leader_epoch=-1):
        """Seal the batch: compress it, write its header and compute the CRC.

        Compression and the CRC of a large batch run without the GIL.

        Returns
        -------
        memoryview
            The whole batch, read-only. The view keeps the memory alive.

        Raises
        ------
        IllegalStateError
            The batch is already sealed, or is empty.
        """
        cdef int attributes = self.codec
        cdef Py_ssize_t capacity
        if self.is_closed:
            raise IllegalStateError("the batch is already sealed")
        if self.record_count == 0:
            raise IllegalStateError("the batch is empty; append a record before close()")
        self.is_closed = True
        capacity = self.capacity
        self.capacity = 0
        if self.timestamp_type == 1:
            attributes |= TIMESTAMP_TYPE_BIT
        if is_transactional:
            attributes |= TRANSACTIONAL_BIT
        if is_control:
            attributes |= CONTROL_BIT
        if self.codec != 0:
            try:
                self._compress()
            except BaseException:
                self.is_closed = False
                self.capacity = capacity
                raise
        if self.size_in_bytes <= SEAL_WITH_GIL:
            self.write_header(self.data, self.size_in_bytes, base_offset, partition_leader_epoch, attributes,
                              producer_id, producer_epoch, base_sequence)
        else:
            with nogil:
                self.write_header(self.data, self.size_in_bytes, base_offset, partition_leader_epoch,
                                  attributes, producer_id, producer_epoch, base_sequence)
                gil_handoff_request()
            gil_handoff_received()
        self.is_sealed = True
        return memoryview(self)

    cdef int restamp(self, int64_t producer_id, int16_t producer_epoch, int32_t base_sequence) except -1:
        """Change the producer id, epoch and sequence number of a sealed batch in place.

        The batch must not be in flight.
        """
        if not self.is_sealed:
            raise IllegalStateError("the batch is not sealed")
        store_int64(self.data + PRODUCER_ID_AT, producer_id)
        store_int16(self.data + PRODUCER_EPOCH_AT, producer_epoch)
        store_int32(self.data + BASE_SEQUENCE_AT, base_sequence)
        store_int32(self.data + CRC_AT, <int32_t> crc32c_of(
            0, self.data + ATTRIBUTES_AT, self.size_in_bytes - ATTRIBUTES_AT))
        return 0

    cdef int _compress(self) except -1:
        """Compress the records, and replace them by the result."""
        cdef Py_buffer view
        cdef void *block
        # The batch is closed, so the memory does not move.
        plain = PyMemoryView_FromMemory(
            <char *> self.data + RECORDS_AT, self.size_in_bytes - RECORDS_AT, PyBUF_READ
        )
        packed = compress(self.codec, plain, self.compression_level)
        plain.release()
        PyObject_GetBuffer(packed, &view, PyBUF_SIMPLE)
        try:
            # The bytes are copied into a block of the exact size, because a sealed batch may wait
            # long for its broker.
            block = block_alloc(RECORDS_AT + view.len)
            if block == NULL:
                raise MemoryError()
            memcpy(<uint8_t *> block + RECORDS_AT, view.buf, view.len)
            block_free(self.data)
            self.data = <uint8_t *> block
            self.size_in_bytes = RECORDS_AT + view.len
        finally:
            PyBuffer_Release(&view)
        return 0

    cdef bint full(self) noexcept nogil:
        return self.is_closed or (self.record_count > 0 and self.size_in_bytes >= self.limit)

    @property
    def is_full(self) -> bool:
        """Whether the batch is full; no further record is expected to fit."""
        return self.full()


cdef inline const uint8_t *_data_of(source) noexcept:
    if source is None:
        return NULL
    return <const uint8_t *> PyBytes_AS_STRING(source)


cdef inline Py_ssize_t _size_of(source) noexcept:
    return -1 if source is None else PyBytes_GET_SIZE(source)


cdef int _open_view(source, Py_buffer *view) except -1:
    """Set `view` to the bytes of `source`. For None, the length is -1.

    `bytes`, the common case, needs no buffer protocol.
    """
    if source is None:
        view.buf = NULL
        view.len = -1
    elif PyBytes_CheckExact(source):
        view.buf = PyBytes_AS_STRING(source)
        view.len = PyBytes_GET_SIZE(source)
    else:
        PyObject_GetBuffer(source, view, PyBUF_SIMPLE)
    return 0


cdef int _close_view(source, Py_buffer *view) except -1:
    if source is not None and not PyBytes_CheckExact(source):
        PyBuffer_Release(view)
    return 0
