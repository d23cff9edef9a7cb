"""Scans the record batches of a log file by their headers, and writes the headers of new batches.

One call scans a whole chunk of a file, so that recovery and searches do no work per record.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint32_t

from kafkacore.record._batch cimport RecordBatch
from kafkacore.record._header cimport BatchHeader
from kafkacore.record.layout cimport (
    ATTRIBUTES_AT, BASE_OFFSET_AT, CRC_AT, CURRENT_MAGIC, LAST_OFFSET_DELTA_AT, LENGTH_AT, LOG_OVERHEAD,
    MAGIC_AT, MAX_TIMESTAMP_AT, PARTITION_LEADER_EPOCH_AT, RECORDS_AT, TIMESTAMP_TYPE_BIT,
)
from kafkacore.wire._crc32c cimport crc32c_of
from kafkacore.wire._payload cimport Payload
from kafkacore.wire.primitives cimport load_int32, load_int64, store_int32, store_int64

from kafkacore.errors import CorruptRecordError


cdef inline int64_t batch_size(const uint8_t *at) noexcept nogil:
    """Return the size of the batch with a complete header at `at`, or -1 if that is not a batch."""
    cdef int64_t base_offset = load_int64(at + BASE_OFFSET_AT)
    cdef int32_t length = load_int32(at + LENGTH_AT)
    cdef int32_t delta = load_int32(at + LAST_OFFSET_DELTA_AT)
    if length < RECORDS_AT - LOG_OVERHEAD or at[MAGIC_AT] != CURRENT_MAGIC:
        return -1
    if base_offset < 0 or delta < 0 or delta >= INT64_MAX - base_offset:
        return -1
    return <int64_t> length + LOG_OVERHEAD


cdef inline int64_t last_offset_of(const uint8_t *at) noexcept nogil:
    return load_int64(at + BASE_OFFSET_AT) + load_int32(at + LAST_OFFSET_DELTA_AT)


cdef str no_batch(const uint8_t *at):
    return (f"not a valid batch: base offset {load_int64(at + BASE_OFFSET_AT)}, "
            f"length {load_int32(at + LENGTH_AT)}, magic {at[MAGIC_AT]}, "
            f"last offset delta {load_int32(at + LAST_OFFSET_DELTA_AT)}")


def walk_batches(chunk, int64_t position, int64_t end, bint check_crcs):
    """Return the headers of the batches in ``chunk``.

    Parameters
    ----------
    chunk:
        Bytes of the file from ``position`` on.
    position:
        Position of ``chunk`` in the file.
    end:
        Size of the file. A batch that extends beyond the end is torn.
    check_crcs:
        Whether to verify CRCs. If so, a batch must be completely in ``chunk`` to be returned. Otherwise only
        its header must be in ``chunk``.

    Returns
    -------
    tuple
        Four items:

        - The headers, with their positions in the file.
        - The position after the last of these batches.
        - The number of bytes that the next call needs from that position on.
        - A description of the damage at that position, or ``None``.
    """
    cdef list headers = []
    cdef BatchHeader header
    cdef int64_t at = 0
    cdef Payload payload = Payload(chunk)
    cdef int64_t length = payload.size
    cdef int64_t size
    cdef const uint8_t *start
    while at < length and position + at < end:
        if end - position - at < RECORDS_AT:
            return headers, position + at, 0, f"the last {end - position - at} bytes are too few for a batch"
        if length - at < RECORDS_AT:
            return headers, position + at, RECORDS_AT, None
        start = payload.data + at
        size = batch_size(start)
        if size < 0:
            return headers, position + at, 0, no_batch(start)
        if size > end - position - at:
            torn = f"a batch of {size} bytes is cut off after {end - position - at}"
            return headers, position + at, 0, torn
        if check_crcs and size > length - at:
            return headers, position + at, size, None
        header = BatchHeader.__new__(BatchHeader)
        try:
            header.fill(start, 0)
            if check_crcs:
                header.check_crc(start)
        except CorruptRecordError as error:
            return headers, position + at, 0, error.reason
        header.position = position + at
        headers.append(header)
        at += size
    return headers, position + at, RECORDS_AT, None


def find_batch(chunk, int64_t target_offset):
    """Find the first batch of ``chunk`` that ends at or after ``target_offset``.

    Returns
    -------
    tuple
        Three items:

        - Whether the batch was found.
        - Its position in ``chunk``, or the position at which to continue, which may be after the chunk.
        - Its size, or -1 if the bytes at the position are not a batch.
    """
    cdef int64_t at = 0
    cdef Payload payload = Payload(chunk)
    cdef int64_t length = payload.size
    cdef int64_t size = 0
    while length - at >= RECORDS_AT:
        size = batch_size(payload.data + at)
        if size < 0:
            return False, at, -1
        if last_offset_of(payload.data + at) >= target_offset:
            return True, at, size
        at += size
    return False, at, 0


def whole_batches(chunk, int64_t limit_offset):
    """Measure the whole batches at the start of ``chunk`` that end before ``limit_offset``.

    Returns
    -------
    tuple
        Total size of these batches in bytes, and the offset after the last batch, or -1 if there is no batch.
    """
    cdef int64_t at = 0
    cdef Payload payload = Payload(chunk)
    cdef int64_t length = payload.size
    cdef int64_t size
    cdef int64_t last_offset
    cdef int64_t next_offset = -1
    while length - at >= RECORDS_AT:
        size = batch_size(payload.data + at)
        if size < 0 or size > length - at:
            break
        last_offset = last_offset_of(payload.data + at)
        if last_offset >= limit_offset:
            break
        at += size
        next_offset = last_offset + 1
    return at, next_offset


cpdef bytearray stored_header(RecordBatch batch, int64_t base_offset, int32_t leader_epoch,
                              bint is_append_time, int64_t max_timestamp):
    """Return the header of ``batch`` as stored in the log. The records are written unchanged, without a copy.

    Parameters
    ----------
    batch:
        Result of :func:`~kafkacore.record.validate_batch`.
    base_offset, leader_epoch:
        New values for the header. The CRC does not cover them, so it stays the same.
    is_append_time:
        Whether all records get ``max_timestamp``, the time of the append.
    max_timestamp:
        Largest timestamp in milliseconds since the epoch. If this or ``is_append_time`` changes the header,
        the CRC is recomputed.

    Raises
    ------
    CorruptRecordError
        The batch has an older format than version 2.
    """
    cdef const uint8_t *came
    cdef bytearray header
    cdef uint8_t *at
    cdef uint8_t time_bit = TIMESTAMP_TYPE_BIT if is_append_time else 0
    cdef uint32_t crc
    if batch.magic != CURRENT_MAGIC:
        raise CorruptRecordError(
            f"cannot append a batch of record format {batch.magic}", offset=batch.base_offset
        )
    came = batch.source.data + batch.position
    header = PyByteArray_FromStringAndSize(<const char *> came, RECORDS_AT)
    at = <uint8_t *> PyByteArray_AS_STRING(header)
    store_int64(at + BASE_OFFSET_AT, base_offset)
    store_int32(at + PARTITION_LEADER_EPOCH_AT, leader_epoch)
    if (load_int64(at + MAX_TIMESTAMP_AT) != max_timestamp
            or at[ATTRIBUTES_AT + 1] & TIMESTAMP_TYPE_BIT != time_bit):
        at[ATTRIBUTES_AT + 1] = at[ATTRIBUTES_AT + 1] & ~TIMESTAMP_TYPE_BIT | time_bit
        store_int64(at + MAX_TIMESTAMP_AT, max_timestamp)
        with nogil:
            crc = crc32c_of(0, at + ATTRIBUTES_AT, RECORDS_AT - ATTRIBUTES_AT)
            crc = crc32c_of(crc, came + RECORDS_AT, <size_t> (batch.size_in_bytes - RECORDS_AT))
        store_int32(at + CRC_AT, <int32_t> crc)
    return header
