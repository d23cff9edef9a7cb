"""Build messages of format 0 and 1, which clients before Kafka 0.11 read.

Without compression, each record is a separate message. With compression, one message wraps all records. These
formats have neither record headers nor producer ids. The builder behaves like Kafka's
``MemoryRecordsBuilder``, and down-conversion like Kafka's ``RecordsUtil``.
"""

cimport cython
from cpython.buffer cimport (
    PyBUF_READ, PyBUF_SIMPLE, Py_buffer, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t

from kafkacore.record._batch cimport RecordBatch
from kafkacore.record._header cimport old_crc_of
from kafkacore.record.layout cimport (
    BASE_OFFSET_AT, COMPRESSION_MASK, LENGTH_AT, LOG_OVERHEAD, MAGIC_AT, OLD_ATTRIBUTES_AT, OLD_CRC_AT,
    OLD_MIN_LENGTH, OLD_TIMESTAMP_AT, OLD_TIMESTAMP_SIZE, TIMESTAMP_TYPE_BIT,
)
from kafkacore.record.parse cimport PARSE_OK, RecordFields, parse_record
from kafkacore.record.store cimport store_bytes
from kafkacore.wire._blocks cimport block_capacity, block_free, block_realloc
from kafkacore.wire._payload cimport Payload
from kafkacore.wire.exclusive cimport begin_use
from kafkacore.wire.primitives cimport store_int32, store_int64

from kafkacore.errors import (
    CorruptRecordError,
    IllegalStateError,
    MessageSizeTooLargeError,
    UnsupportedCompressionTypeError,
)
from kafkacore.record._batch import read_batches
from kafkacore.record.compression import DEFAULT_MAX_DECOMPRESSED_SIZE as _DEFAULT_MAX_SIZE
from kafkacore.record.compression import CODECS as _CODECS
from kafkacore.record.compression import compress
from kafkacore.record.old_lz4 import with_old_checksum
from kafkacore.structs import Compression, TimestampType
from kafkacore.wire.copying import refuse_copy

cdef enum:
    MAX_INT32 = 0x7FFFFFFF
    FIRST_CAPACITY = 4096
    # Number of records to convert before another thread may take the GIL. A batch can have millions of
    # records.
    RECORDS_PER_TURN = 1024

cdef int _NONE = Compression.NONE
cdef int _LZ4 = Compression.LZ4


cdef int _check_codec(int codec, int magic) except -1:
    """Raise an error if format ``magic`` does not support the codec. zstd needs format 2 (KIP-110)."""
    found = _CODECS.get(codec)
    if found is not None and magic < <int> found.min_magic:
        raise UnsupportedCompressionTypeError(
            f"message format {magic} does not support {found.name} compression"
        )
    return 0


@cython.final
cdef class LegacyBatchBuilder:
    """A builder of messages of format 0 or 1.

    Parameters
    ----------
    magic:
        The message format, 0 or 1.
    compression, compression_level:
        A :class:`Compression`, and the codec's level.
    timestamp_type:
        Timestamp type of messages of format 1.
    log_append_time_ms:
        Time of all messages with ``LOG_APPEND_TIME``, in milliseconds since the epoch.

    Raises
    ------
    UnsupportedCompressionTypeError
        These formats do not support zstd (KIP-110).
    ValueError
        The format, codec or timestamp type is unknown.
    """

    def __cinit__(self, int magic, compression=Compression.NONE, compression_level=None,
                  timestamp_type=TimestampType.CREATE_TIME, int64_t log_append_time_ms=-1):
        if magic not in (0, 1):
            raise ValueError(f"message format must be 0 or 1, not {magic}")
        self.magic = magic
        self.codec = Compression(compression)
        _check_codec(self.codec, magic)
        self.compression_level = compression_level
        timestamp_type = TimestampType(timestamp_type)
        self.is_log_append_time = magic == 1 and timestamp_type is TimestampType.LOG_APPEND_TIME
        self.attributes = TIMESTAMP_TYPE_BIT if self.is_log_append_time else 0
        self.log_append_time_ms = log_append_time_ms
        self.max_timestamp = -1

    def __dealloc__(self):
        block_free(self.data)

    def __reduce__(self):
        refuse_copy(self, "copy bytes(builder.close()), the finished messages")

    def __getbuffer__(self, Py_buffer *view, int flags):
        if not self.is_closed:
            raise BufferError("the builder is open and its memory may still move; call close() first")
        PyBuffer_FillInfo(view, self, self.data, self.size, True, flags)

    cdef int put(self, int64_t offset, int64_t timestamp_ms, const uint8_t *key, Py_ssize_t key_size,
                 const uint8_t *value, Py_ssize_t value_size, int codec) except -1:
        """Append one message."""
        cdef Py_ssize_t timestamp_size = OLD_TIMESTAMP_SIZE if self.magic == 1 else 0
        cdef Py_ssize_t total, capacity
        cdef uint8_t *message
        cdef uint8_t *at
        if key_size > MAX_INT32 or value_size > MAX_INT32:
            raise MessageSizeTooLargeError("a message is larger than 2 GiB")
        total = LOG_OVERHEAD + OLD_MIN_LENGTH + timestamp_size + max(key_size, 0) + max(value_size, 0)
        if total > MAX_INT32 - self.size:
            raise MessageSizeTooLargeError("the messages are larger than 2 GiB")
        if total > self.capacity - self.size:
            capacity = max(2 * self.capacity, self.size + total, FIRST_CAPACITY)
            grown = block_realloc(self.data, self.size, capacity)
            if grown == NULL:
                raise MemoryError()
            self.data = <uint8_t *> grown
            self.capacity = block_capacity(grown)
        message = self.data + self.size
        store_int64(message + BASE_OFFSET_AT, offset)
        store_int32(message + LENGTH_AT, <int32_t> (total - LOG_OVERHEAD))
        message[MAGIC_AT] = self.magic
        message[OLD_ATTRIBUTES_AT] = <uint8_t> (codec | self.attributes)
        at = message + OLD_TIMESTAMP_AT
        if self.magic == 1:
            store_int64(at, timestamp_ms)
            at += OLD_TIMESTAMP_SIZE
        store_int32(at, <int32_t> key_size)
        at = store_bytes(at + 4, key, key_size)
        store_int32(at, <int32_t> value_size)
        store_bytes(at + 4, value, value_size)
        store_int32(message + OLD_CRC_AT, <int32_t> old_crc_of(message, total))
        self.size += total
        return 0

    cdef int put_record(self, int64_t offset, int64_t timestamp_ms, const uint8_t *key, Py_ssize_t key_size,
                        const uint8_t *value, Py_ssize_t value_size) except -1:
        begin_use(&self.in_use, self)
        try:
            return self.put_next(offset, timestamp_ms, key, key_size, value, value_size)
        finally:
            self.in_use = False

    cdef int put_next(self, int64_t offset, int64_t timestamp_ms, const uint8_t *key, Py_ssize_t key_size,
                      const uint8_t *value, Py_ssize_t value_size) except -1:
        """Append a record. The checksum may release the GIL, so the caller must have set `in_use`."""
        if self.is_closed:
            raise IllegalStateError("the builder is already closed")
        if self.record_count > 0 and offset <= self.last_offset:
            raise ValueError(f"offset {offset} must be larger than the previous offset {self.last_offset}")
        if self.is_log_append_time:
            timestamp_ms = self.log_append_time_ms
        if self.record_count == 0:
            self.base_offset = offset
        # Offsets in a compressed set of format 1 are relative, so that a broker need not rewrite the set.
        is_relative = self.magic == 1 and self.codec != _NONE
        self.put(offset - self.base_offset if is_relative else offset, timestamp_ms, key, key_size, value,
                 value_size, _NONE)
        self.last_offset = offset
        self.max_timestamp = max(self.max_timestamp, timestamp_ms)
        self.record_count += 1
        return 0

    def append(self, int64_t offset, int64_t timestamp_ms, key, value) -> None:
        """Append a record.

        Parameters
        ----------
        offset:
            Offset of the record, larger than that of the previous record.
        timestamp_ms:
            Milliseconds since the epoch; ignored in format 0.
        key, value:
            ``bytes`` or another contiguous buffer, or ``None``.

        Raises
        ------
        ValueError
            The offset is not larger than the previous one.
        IllegalStateError
            The builder is already closed.
        """
        cdef Payload key_payload, value_payload
        cdef const uint8_t *key_at = NULL
        cdef const uint8_t *value_at = NULL
        cdef Py_ssize_t key_size = -1, value_size = -1
        if key is not None:
            key_payload = Payload(key)
            key_at, key_size = key_payload.data, key_payload.size
        if value is not None:
            value_payload = Payload(value)
            value_at, value_size = value_payload.data, value_payload.size
        self.put_record(offset, timestamp_ms, key_at, key_size, value_at, value_size)

    def close(self):
        """Finish the messages. With compression, wrap the compressed set in one message.

        Returns
        -------
        memoryview
            All messages, read-only. The view keeps the memory alive.

        Raises
        ------
        IllegalStateError
            The builder is already closed, or has no messages.
        """
        begin_use(&self.in_use, self)
        try:
            if self.is_closed:
                raise IllegalStateError("the builder is already closed")
            if self.record_count == 0:
                raise IllegalStateError("the builder has no messages; append a record before close()")
            if self.codec != _NONE:
                self._wrap()
            self.is_closed = True
        finally:
            self.in_use = False
        return memoryview(self)

    cdef int _wrap(self) except -1:
        """Replace the set by one message that contains it in compressed form.

        This message has the last offset and the latest timestamp of the set.
        """
        cdef Py_buffer view
        cdef uint8_t *plain = self.data
        cdef Py_ssize_t size = self.size
        source = PyMemoryView_FromMemory(<char *> plain, size, PyBUF_READ)
        packed = compress(self.codec, source, self.compression_level)
        source.release()
        if self.magic == 0 and self.codec == _LZ4:
            packed = with_old_checksum(packed)
        PyObject_GetBuffer(packed, &view, PyBUF_SIMPLE)
        self.data, self.size, self.capacity = NULL, 0, 0
        try:
            self.put(self.last_offset, self.max_timestamp, NULL, -1, <const uint8_t *> view.buf, view.len,
                     self.codec)
        except BaseException:
            block_free(self.data)
            self.data, self.size, self.capacity = plain, size, size
            raise
        finally:
            PyBuffer_Release(&view)
        block_free(plain)
        return 0


# ---- Converting --------------------------------------------------------------------------------------------
def down_convert(buffer, int to_magic, int64_t first_offset=0,
                 Py_ssize_t max_decompressed_size=_DEFAULT_MAX_SIZE) -> bytes:
    """Convert the batches in ``buffer`` for a client that supports message formats up to ``to_magic``.

    Record headers and control batches are left out. A batch of format ``to_magic`` or older stays unchanged;
    a converted batch keeps its codec. Uncompressed messages before ``first_offset`` are left out too. In the
    old formats, each such message is a batch of its own, and the response to a fetch begins with the batch
    that contains the requested offset. Some versions of librdkafka rely on this.

    Parameters
    ----------
    buffer:
        Consecutive batches.
    to_magic:
        The message format, 0 or 1.
    first_offset:
        Offset from which the client reads.
    max_decompressed_size:
        Maximum size of a decompressed batch in bytes.

    Raises
    ------
    UnsupportedCompressionTypeError
        A batch is compressed by zstd (KIP-110).
    CorruptRecordError
        A batch is corrupt.
    ValueError
        The format is not 0 or 1.
    """
    return down_convert_some(buffer, to_magic, first_offset, max_decompressed_size)[0]


def down_convert_some(buffer, int to_magic, int64_t first_offset=0,
                      Py_ssize_t max_decompressed_size=_DEFAULT_MAX_SIZE,
                      int64_t max_plain_bytes=INT64_MAX) -> tuple:
    """Convert batches as :func:`down_convert` does, up to a size.

    The conversion stops once the batches read have a total decompressed size of ``max_plain_bytes`` or more.

    Returns
    -------
    tuple
        The converted batches, and the decompressed size in bytes of the batches that were read.
    """
    cdef RecordBatch batch
    cdef int64_t plain_bytes = 0
    if to_magic not in (0, 1):
        raise ValueError(f"message format must be 0 or 1, not {to_magic}")
    out = bytearray()
    data = memoryview(buffer).cast("B")
    for batch in read_batches(data, True, max_decompressed_size):
        if batch.magic <= to_magic:
            out += data[batch.position:batch.position + batch.size_in_bytes]
        elif not batch.is_control:
            _check_codec(batch.attributes & COMPRESSION_MASK, to_magic)
            _convert(batch, to_magic, first_offset, out)
        if batch.records_at != NULL:
            plain_bytes += batch.records_end - batch.records_at
        if plain_bytes >= max_plain_bytes:
            break
    return bytes(out), plain_bytes


cdef int _convert(RecordBatch batch, int to_magic, int64_t first_offset, bytearray out) except -1:
    cdef bint is_plain = batch.attributes & COMPRESSION_MASK == _NONE
    cdef LegacyBatchBuilder builder = LegacyBatchBuilder(
        to_magic, batch.attributes & COMPRESSION_MASK, None,
        TimestampType.LOG_APPEND_TIME if batch.attributes & TIMESTAMP_TYPE_BIT else TimestampType.CREATE_TIME,
        batch.max_timestamp,
    )
    cdef const uint8_t *pos
    cdef RecordFields fields
    cdef int32_t index
    cdef int64_t offset
    cdef int64_t last_offset = -1
    cdef int error
    batch.open()
    pos = batch.records_at
    for index in range(batch.record_count):
        error = parse_record(&pos, batch.records_end, batch.last_offset_delta, &fields)
        if error != PARSE_OK:
            batch.fail(error, index)
        offset = batch.base_offset + fields.offset_delta
        if index > 0 and offset <= last_offset:
            raise CorruptRecordError(
                f"offset {offset} follows offset {last_offset} (record {index} of {batch.record_count} "
                f"in batch {batch.base_offset})",
                offset=batch.base_offset,
            )
        last_offset = offset
        if not is_plain or offset >= first_offset:
            builder.put_record(offset, batch.timestamp_of(&fields), fields.key, fields.key_size, fields.value,
                               fields.value_size)
        if index % RECORDS_PER_TURN == RECORDS_PER_TURN - 1:
            with nogil:
                pass
    if builder.record_count > 0:
        out += builder.close()
    return 0
