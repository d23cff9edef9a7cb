"""Writing record batches: records in, one sealed batch for the socket out.

A record is encoded once, straight into the memory that is written to the socket; a compressed batch is
compressed when it is sealed. Layout and choices are those of Kafka's ``MemoryRecordsBuilder``. Does not know:
partitions, linger, memory limits of the producer.
"""

cimport cython
from cpython.buffer cimport (
    PyBUF_READ, PyBUF_SIMPLE, Py_buffer, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

from kafkacore.record.layout cimport (
    ATTRIBUTES_AT, BASE_OFFSET_AT, BASE_SEQUENCE_AT, BASE_TIMESTAMP_AT, CONTROL_BIT, CRC_AT, CURRENT_MAGIC,
    LAST_OFFSET_DELTA_AT, LENGTH_AT, LOG_OVERHEAD, MAGIC_AT, MAX_RECORD_OVERHEAD, MAX_TIMESTAMP_AT,
    PARTITION_LEADER_EPOCH_AT, PRODUCER_EPOCH_AT, PRODUCER_ID_AT, RECORD_COUNT_AT, RECORDS_AT,
    TIMESTAMP_TYPE_BIT, TRANSACTIONAL_BIT,
)
from kafkacore.wire._crc32c cimport crc32c_of
from kafkacore.wire.primitives cimport (
    size_of_varint, size_of_varlong, store_int16, store_int32, store_int64, store_varint, store_varlong,
)

from kafkacore.errors import IllegalStateError, MessageSizeTooLargeError
from kafkacore.record.compression import Compression, compress
from kafkacore.structs import TimestampType

cdef enum:
    MAX_INT32 = 0x7FFFFFFF
    # Grown by doubling, so that a thousand idle partitions do not take a thousand full batches.
    FIRST_CAPACITY = 4096
    # Of the records before compression; a batch's size on the wire is an int32.
    MAX_SIZE = MAX_INT32 - 65536


cdef bytes _encode_headers(headers):
    """The headers of a record, as they stand in it behind their count."""
    cdef bytearray encoded = bytearray()
    cdef uint8_t scratch[8]
    for name, value in headers:
        raw = name.encode()
        encoded += <bytes> (<char *> scratch)[:store_varint(scratch, <int32_t> len(raw)) - scratch]
        encoded += raw
        if value is None:
            encoded += <bytes> (<char *> scratch)[:store_varint(scratch, -1) - scratch]
        else:
            raw = bytes(memoryview(value))
            encoded += <bytes> (<char *> scratch)[:store_varint(scratch, <int32_t> len(raw)) - scratch]
            encoded += raw
    return bytes(encoded)


@cython.final
cdef class RecordBatchBuilder:
    """One batch of format 2 as it is filled, and sealed.

    Parameters
    ----------
    batch_size:
        Bytes of the batch on the wire at which it counts as full. The first record always fits.
    compression:
        A :class:`Compression`.
    compression_level:
        The library's; ``None`` for the default.
    timestamp_type:
        What the batch says of its timestamps.
    compression_ratio:
        Expected compressed size through plain size; a compressed batch takes plain bytes up to
        ``batch_size / compression_ratio``.

    Attributes
    ----------
    size_in_bytes:
        Bytes so far, header included: before compression while it is open, on the wire once it is sealed.
    base_timestamp, max_timestamp:
        Milliseconds since the epoch, -1 while it is empty.
    """

    def __cinit__(self, Py_ssize_t batch_size, compression=Compression.NONE, compression_level=None,
                  timestamp_type=TimestampType.CREATE_TIME, double compression_ratio=1.0):
        if batch_size < 0:
            raise ValueError(f"batch_size {batch_size} < 0")
        self.codec = Compression(compression)
        self.timestamp_type = TimestampType(timestamp_type)
        self.compression_level = compression_level
        self.batch_size = batch_size
        self.limit = min(batch_size, MAX_SIZE)
        if self.codec != 0 and 0.0 < compression_ratio < 1.0:
            self.limit = <Py_ssize_t> min(batch_size / compression_ratio, <double> MAX_SIZE)
        self.capacity = max(min(self.limit, FIRST_CAPACITY), RECORDS_AT)
        self.data = <uint8_t *> malloc(self.capacity)
        if self.data == NULL:
            raise MemoryError()
        self.size_in_bytes = RECORDS_AT
        self.base_timestamp = self.max_timestamp = -1

    def __dealloc__(self):
        free(self.data)

    def __getbuffer__(self, Py_buffer *view, int flags):
        if not self.is_sealed:
            raise BufferError("the batch is open, its memory still moves")
        PyBuffer_FillInfo(view, self, self.data, self.size_in_bytes, True, flags)

    # ---- Filling -------------------------------------------------------------------------------------------
    cdef int reserve(self, Py_ssize_t size) except -1 nogil:
        cdef Py_ssize_t capacity
        cdef void *grown
        if size <= self.capacity - self.size_in_bytes:
            return 0
        capacity = max(2 * self.capacity, self.size_in_bytes + size)
        if capacity > self.limit >= self.size_in_bytes + size:
            capacity = self.limit
        grown = realloc(self.data, capacity)
        if grown == NULL:
            with gil:
                raise MemoryError()
        self.data = <uint8_t *> grown
        self.capacity = capacity
        return 0

    cdef int append_bytes(self, int64_t timestamp_ms, const uint8_t *key, Py_ssize_t key_size,
                          const uint8_t *value, Py_ssize_t value_size, const uint8_t *headers,
                          Py_ssize_t headers_size, int32_t header_count) except -2 nogil:
        """As `append`, from memory; a size of -1 is null. The headers are encoded already, without their
        count.
        """
        cdef int64_t delta
        cdef Py_ssize_t length
        cdef uint8_t *at
        if self.is_closed:
            with gil:
                raise IllegalStateError("the batch is sealed")
        if max(key_size, 0) + max(value_size, 0) + headers_size > MAX_SIZE - MAX_RECORD_OVERHEAD - RECORDS_AT:
            with gil:
                raise MessageSizeTooLargeError("a record of more than 2 GiB")
        if self.record_count == 0:
            delta = 0
        else:
            delta = <int64_t> (<uint64_t> timestamp_ms - <uint64_t> self.base_timestamp)
        length = (
            1 + size_of_varlong(delta) + size_of_varint(self.record_count)
            + size_of_varint(<int32_t> key_size) + max(key_size, 0)
            + size_of_varint(<int32_t> value_size) + max(value_size, 0)
            + size_of_varint(header_count) + headers_size
        )
        if (self.record_count > 0
                and size_of_varint(<int32_t> length) + length > self.limit - self.size_in_bytes):
            return -1
        self.reserve(5 + length)
        at = store_varint(self.data + self.size_in_bytes, <int32_t> length)
        at[0] = 0
        at = store_varlong(at + 1, delta)
        at = store_varint(at, self.record_count)
        at = store_varint(at, <int32_t> key_size)
        if key_size > 0:
            memcpy(at, key, key_size)
            at += key_size
        at = store_varint(at, <int32_t> value_size)
        if value_size > 0:
            memcpy(at, value, value_size)
            at += value_size
        at = store_varint(at, header_count)
        if headers_size > 0:
            memcpy(at, headers, headers_size)
            at += headers_size
        self.size_in_bytes = at - self.data
        if self.record_count == 0:
            self.base_timestamp = self.max_timestamp = timestamp_ms
        elif timestamp_ms > self.max_timestamp:
            self.max_timestamp = timestamp_ms
        self.record_count += 1
        return self.record_count - 1

    cpdef int append(self, int64_t timestamp_ms, key, value, headers=()) except -2:
        """Add a record.

        Parameters
        ----------
        timestamp_ms:
            Milliseconds since the epoch.
        key, value:
            ``bytes`` or another contiguous buffer, or ``None``.
        headers:
            Pairs of a ``str`` and ``bytes`` or ``None``.

        Returns
        -------
        Its place in the batch (0 for the first), or -1 if the batch has no room for it.

        Raises
        ------
        IllegalStateError
            The batch is sealed.
        """
        cdef Py_buffer key_view, value_view
        cdef bytes encoded = None
        cdef const uint8_t *header_bytes = NULL
        cdef Py_ssize_t headers_size = 0
        cdef int32_t header_count = 0
        if headers:
            header_count = <int32_t> len(headers)
            encoded = _encode_headers(headers)
            header_bytes = <const uint8_t *> PyBytes_AS_STRING(encoded)
            headers_size = PyBytes_GET_SIZE(encoded)
        _open_view(key, &key_view)
        try:
            _open_view(value, &value_view)
            try:
                return self.append_bytes(
                    timestamp_ms, <const uint8_t *> key_view.buf, key_view.len,
                    <const uint8_t *> value_view.buf, value_view.len, header_bytes, headers_size,
                    header_count,
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
        """Seal the batch: compress it, write its header, compute the CRC; the GIL is released for all of it.

        Returns
        -------
        A read-only memoryview of the whole batch, which keeps its memory alive.

        Raises
        ------
        IllegalStateError
            The batch is sealed already, or empty.
        """
        cdef int attributes = self.codec
        if self.is_closed:
            raise IllegalStateError("the batch is sealed already")
        if self.record_count == 0:
            raise IllegalStateError("the batch is empty")
        self.is_closed = True
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
                raise
        with nogil:
            self.write_header(self.data, self.size_in_bytes, base_offset, partition_leader_epoch, attributes,
                              producer_id, producer_epoch, base_sequence)
        self.is_sealed = True
        return memoryview(self)

    cdef int _compress(self) except -1:
        """Put the compressed records in the place of the plain ones."""
        cdef Py_buffer view
        cdef void *shrunk
        # Nothing else moves the memory: the batch is closed.
        plain = PyMemoryView_FromMemory(
            <char *> self.data + RECORDS_AT, self.size_in_bytes - RECORDS_AT, PyBUF_READ
        )
        packed = compress(self.codec, plain, self.compression_level)
        plain.release()
        PyObject_GetBuffer(packed, &view, PyBUF_SIMPLE)
        try:
            if view.len > self.capacity - RECORDS_AT:
                self.reserve(view.len - self.size_in_bytes + RECORDS_AT)
            memcpy(self.data + RECORDS_AT, view.buf, view.len)
            self.size_in_bytes = RECORDS_AT + view.len
            # What is left was the plain records'; a sealed batch may wait long for its broker.
            shrunk = realloc(self.data, self.size_in_bytes)
            if shrunk != NULL:
                self.data = <uint8_t *> shrunk
                self.capacity = self.size_in_bytes
        finally:
            PyBuffer_Release(&view)
        return 0

    cdef bint full(self) noexcept nogil:
        return self.is_closed or (self.record_count > 0 and self.size_in_bytes >= self.limit)

    @property
    def is_full(self) -> bool:
        """No further record is expected to fit."""
        return self.full()


cdef int _open_view(source, Py_buffer *view) except -1:
    """The bytes of `source`; length -1 for None. bytes, the common case, needs no buffer protocol."""
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
