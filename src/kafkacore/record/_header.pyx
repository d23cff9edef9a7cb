"""Read and check the headers of record batches, and set the two fields that a broker assigns.

The records are not read. The checks are those of Kafka's ``DefaultRecordBatch`` and
``ByteBufferLogInputStream``.
"""

import zlib

from cpython.buffer cimport PyBUF_READ, PyBUF_WRITABLE, Py_buffer, PyBuffer_Release, PyObject_GetBuffer
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t

from kafkacore.record.layout cimport (
    ATTRIBUTES_AT, BASE_OFFSET_AT, BASE_SEQUENCE_AT, BASE_TIMESTAMP_AT, COMPRESSION_MASK, CONTROL_BIT, CRC_AT,
    CURRENT_MAGIC, DELETE_HORIZON_BIT, LAST_OFFSET_DELTA_AT, LENGTH_AT, LOG_OVERHEAD, MAGIC_AT,
    MAX_TIMESTAMP_AT, OLD_ATTRIBUTES_AT, OLD_CRC_AT, OLD_MIN_LENGTH, OLD_TIMESTAMP_AT,
    OLD_TIMESTAMP_SIZE, PARTITION_LEADER_EPOCH_AT, PRODUCER_EPOCH_AT, PRODUCER_ID_AT, RECORD_COUNT_AT,
    RECORDS_AT, TIMESTAMP_TYPE_BIT, TRANSACTIONAL_BIT,
)
from kafkacore.wire._crc32c cimport crc32c_of
from kafkacore.wire._construction cimport made_only_by
from kafkacore.wire._payload cimport Payload
from kafkacore.wire.primitives cimport load_int16, load_int32, load_int64, store_int32, store_int64

from kafkacore.errors import CorruptRecordError
from kafkacore.record.compression import CODECS as _CODECS
from kafkacore.structs import Compression, TimestampType

cdef int64_t MAX_INT64 = 0x7FFFFFFFFFFFFFFF
# The first message format that supports each codec, by the number of the codec.
cdef int8_t _MIN_MAGIC[COMPRESSION_MASK + 1]
for _code in range(COMPRESSION_MASK + 1):
    if _code != Compression.NONE:
        _MIN_MAGIC[_code] = _CODECS[_code].min_magic if _code in _CODECS else 127
# The members of Compression by codec number. The property `compression` is read for each batch. Calling
# `Compression(number)` would take longer than the rest of the property.
cdef list _COMPRESSIONS = [
    Compression(code) if code in _CODECS or code == Compression.NONE else None
    for code in range(COMPRESSION_MASK + 1)
]
cdef object _CREATE_TIME = TimestampType.CREATE_TIME
cdef object _LOG_APPEND_TIME = TimestampType.LOG_APPEND_TIME
cdef object _NO_TIMESTAMP_TYPE = TimestampType.NO_TIMESTAMP_TYPE


cdef Py_ssize_t whole_batch_size(const uint8_t *at, Py_ssize_t left) except -1:
    """Return the size of the batch at `at`, or 0 if it is not complete.

    The CRC does not cover the length and the magic, so both are checked against their limits.
    """
    cdef int64_t offset, length, least
    if left < LOG_OVERHEAD:
        return 0
    offset = load_int64(at + BASE_OFFSET_AT)
    length = load_int32(at + LENGTH_AT)
    if length < OLD_MIN_LENGTH:
        raise CorruptRecordError(
            f"batch length {length} is less than the minimum of {OLD_MIN_LENGTH}", offset=offset
        )
    if left <= MAGIC_AT:
        return 0
    if at[MAGIC_AT] > CURRENT_MAGIC:
        raise CorruptRecordError(
            f"unknown magic {at[MAGIC_AT]}; the newest is {CURRENT_MAGIC}", offset=offset
        )
    least = RECORDS_AT - LOG_OVERHEAD if at[MAGIC_AT] == CURRENT_MAGIC else OLD_MIN_LENGTH
    if at[MAGIC_AT] == 1:
        least += OLD_TIMESTAMP_SIZE
    if length < least:
        raise CorruptRecordError(f"batch length {length} is less than the minimum of {least}", offset=offset)
    if length > left - LOG_OVERHEAD:
        return 0
    return LOG_OVERHEAD + length


cdef uint32_t old_crc_of(const uint8_t *message, Py_ssize_t size) except? 0:
    """Return the CRC of a message of format 0 or 1: CRC-32, not CRC-32C, of all bytes after the CRC."""
    return zlib.crc32(PyMemoryView_FromMemory(<char *> message + MAGIC_AT, size - MAGIC_AT, PyBUF_READ))


cdef class BatchHeader:
    """The header of one batch; the fields have Kafka's names.

    For a message of format 0 or 1 (``magic``), the offsets are those of the message, or of the last message
    of a compressed set. ``record_count`` and fields that the format lacks are -1.

    Attributes
    ----------
    position:
        Position of the batch, in bytes from the start of the buffer.
    size_in_bytes:
        Size of the whole batch with its header.
    base_timestamp, max_timestamp:
        Milliseconds since the epoch, or -1.
    """

    def __init__(self):
        raise TypeError("a BatchHeader can be created only by read_batch_headers()")

    def __reduce__(self):
        return _header_of, (
            self.position, self.size_in_bytes, self.base_offset, self.base_timestamp, self.max_timestamp,
            self.producer_id, self.crc, self.partition_leader_epoch, self.base_sequence, self.record_count,
            self.producer_epoch, self.magic, self.attributes, self.last_offset_delta,
        )

    cdef int fill(self, const uint8_t *data, Py_ssize_t position) except -1:
        """Read the fields. The caller has checked that the batch is complete (`whole_batch_size`)."""
        cdef const uint8_t *at = data + position
        self.position = position
        # The addition needs 64 bits: `walk_headers` also reads the headers of incomplete batches, and their
        # length can be any int32.
        self.size_in_bytes = LOG_OVERHEAD + <Py_ssize_t> load_int32(at + LENGTH_AT)
        self.base_offset = load_int64(at + BASE_OFFSET_AT)
        self.magic = <int8_t> at[MAGIC_AT]
        if self.magic < CURRENT_MAGIC:
            return self.fill_old(at)
        self.partition_leader_epoch = load_int32(at + PARTITION_LEADER_EPOCH_AT)
        self.crc = <uint32_t> load_int32(at + CRC_AT)
        self.attributes = load_int16(at + ATTRIBUTES_AT)
        self.last_offset_delta = load_int32(at + LAST_OFFSET_DELTA_AT)
        self.base_timestamp = load_int64(at + BASE_TIMESTAMP_AT)
        self.max_timestamp = load_int64(at + MAX_TIMESTAMP_AT)
        self.producer_id = load_int64(at + PRODUCER_ID_AT)
        self.producer_epoch = load_int16(at + PRODUCER_EPOCH_AT)
        self.base_sequence = load_int32(at + BASE_SEQUENCE_AT)
        self.record_count = load_int32(at + RECORD_COUNT_AT)
        return self.check()

    cdef int fill_old(self, const uint8_t *at) except -1:
        self.crc = <uint32_t> load_int32(at + OLD_CRC_AT)
        self.attributes = at[OLD_ATTRIBUTES_AT] & (COMPRESSION_MASK | TIMESTAMP_TYPE_BIT)
        self.partition_leader_epoch = self.producer_id = self.producer_epoch = self.base_sequence = -1
        self.record_count = -1
        self.base_timestamp = self.max_timestamp = -1
        if self.magic == 1:
            self.base_timestamp = self.max_timestamp = load_int64(at + OLD_TIMESTAMP_AT)
        else:
            self.attributes &= COMPRESSION_MASK
        if self.magic < _MIN_MAGIC[self.attributes & COMPRESSION_MASK]:
            raise CorruptRecordError(
                f"message format {self.magic} does not have compression codec "
                f"{self.attributes & COMPRESSION_MASK}",
                offset=self.base_offset,
            )
        if self.base_offset < 0 or self.base_offset == MAX_INT64:
            raise CorruptRecordError(f"invalid base offset {self.base_offset}", offset=self.base_offset)
        return 0

    cdef int check(self) except -1:
        """Check the fields without reading the records.

        Callers trust the fields: they allocate memory for the record count and add to the offsets.
        """
        if self.base_offset < 0 or self.base_offset > MAX_INT64 - 1 - max(self.last_offset_delta, 0):
            raise CorruptRecordError(f"invalid base offset {self.base_offset}", offset=self.base_offset)
        if self.last_offset_delta < 0:
            raise CorruptRecordError(
                f"negative last offset delta {self.last_offset_delta}", offset=self.base_offset
            )
        if self.record_count < 0 or self.record_count > <int64_t> self.last_offset_delta + 1:
            raise CorruptRecordError(
                f"invalid record count {self.record_count} in a batch of "
                f"{<int64_t> self.last_offset_delta + 1} offsets",
                offset=self.base_offset,
            )
        if self.magic < _MIN_MAGIC[self.attributes & COMPRESSION_MASK]:
            raise CorruptRecordError(
                f"unknown compression codec {self.attributes & COMPRESSION_MASK}", offset=self.base_offset
            )
        return 0

    cdef int check_crc(self, const uint8_t *batch) except -1:
        cdef uint32_t computed
        cdef size_t size = <size_t> (self.size_in_bytes - ATTRIBUTES_AT)
        if self.magic < CURRENT_MAGIC:
            computed = old_crc_of(batch, self.size_in_bytes)
        elif size > 1024:
            with nogil:
                computed = crc32c_of(0, batch + ATTRIBUTES_AT, size)
        else:
            computed = crc32c_of(0, batch + ATTRIBUTES_AT, size)
        if computed != self.crc:
            raise CorruptRecordError(
                f"CRC mismatch: computed {computed:#010x}, the header has {self.crc:#010x}",
                offset=self.base_offset,
            )
        return 0

    @property
    def last_offset(self) -> int:
        """Offset of the last record. Compaction may have removed that record."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Next offset after this batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record; -1 for none. Sequence numbers wrap from 2^31 - 1 to 0."""
        return self.sequence_end()

    cdef int64_t sequence_end(self) noexcept:
        if self.base_sequence < 0:
            return -1
        return (<int64_t> self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def compression(self):
        """Compression codec, as :class:`Compression`."""
        return _COMPRESSIONS[self.attributes & COMPRESSION_MASK]

    @property
    def timestamp_type(self):
        """Timestamp type, as :class:`TimestampType`."""
        if self.magic == 0:
            return _NO_TIMESTAMP_TYPE
        return _LOG_APPEND_TIME if self.attributes & TIMESTAMP_TYPE_BIT else _CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return self.magic == CURRENT_MAGIC and self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.magic == CURRENT_MAGIC and self.attributes & CONTROL_BIT != 0

    @property
    def has_delete_horizon(self) -> bool:
        """Whether ``base_timestamp`` is the time from which tombstones may be removed (KIP-534)."""
        return self.magic == CURRENT_MAGIC and self.attributes & DELETE_HORIZON_BIT != 0

    def __repr__(self):
        return (
            f"<{type(self).__name__} offsets {self.base_offset}..{self.last_offset}, "
            f"{self.record_count} records, {self.size_in_bytes} bytes, magic {self.magic}>"
        )


made_only_by(BatchHeader, "read_batch_headers()")


def _header_of(
    Py_ssize_t position, Py_ssize_t size_in_bytes, int64_t base_offset, int64_t base_timestamp,
    int64_t max_timestamp, int64_t producer_id, uint32_t crc, int32_t partition_leader_epoch,
    int32_t base_sequence, int32_t record_count, int16_t producer_epoch, int8_t magic, int16_t attributes,
    int32_t last_offset_delta,
):
    """Create a copy of a header from the values that ``__reduce__`` of the header returned."""
    cdef BatchHeader header = BatchHeader.__new__(BatchHeader)
    header.position, header.size_in_bytes = position, size_in_bytes
    header.base_offset, header.last_offset_delta = base_offset, last_offset_delta
    header.base_timestamp, header.max_timestamp = base_timestamp, max_timestamp
    header.producer_id, header.producer_epoch = producer_id, producer_epoch
    header.base_sequence, header.record_count = base_sequence, record_count
    header.crc, header.partition_leader_epoch = crc, partition_leader_epoch
    header.magic, header.attributes = magic, attributes
    return header


def read_batch_headers(buffer) -> list:
    """Return the headers of all complete batches of any format in ``buffer``.

    Neither the records nor the CRCs are checked. A truncated batch at the end is left out.

    Raises
    ------
    CorruptRecordError
        A header is invalid.
    """
    cdef Payload payload = Payload(buffer)
    cdef Py_ssize_t at = 0, size
    cdef BatchHeader header
    headers = []
    while True:
        size = whole_batch_size(payload.data + at, payload.size - at)
        if size == 0:
            return headers
        header = BatchHeader.__new__(BatchHeader)
        header.fill(payload.data, at)
        headers.append(header)
        at += size


def assign_offset(buffer, int64_t base_offset, int32_t leader_epoch) -> None:
    """Write the base offset and the leader epoch into a batch, in place.

    The CRC does not cover these fields, so it stays valid.

    Parameters
    ----------
    buffer:
        A writable buffer that starts with a batch of format 2.
    base_offset, leader_epoch:
        The new values.
    """
    cdef Py_buffer view
    cdef uint8_t *batch
    PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE)
    try:
        batch = <uint8_t *> view.buf
        if view.len < RECORDS_AT or batch[MAGIC_AT] != CURRENT_MAGIC:
            raise CorruptRecordError("the buffer is not a batch of message format 2", offset=base_offset)
        store_int64(batch + BASE_OFFSET_AT, base_offset)
        store_int32(batch + PARTITION_LEADER_EPOCH_AT, leader_epoch)
    finally:
        PyBuffer_Release(&view)
