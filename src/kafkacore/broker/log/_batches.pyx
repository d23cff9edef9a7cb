"""Walks over the record batches of a log file, by their headers.

Bytes of a file in; headers, positions and what is wrong with the bytes out. One call walks a whole chunk,
so that recovery and the search for an offset cost nothing per record. Does not know: files, indexes, records.
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
from kafkacore.wire.primitives cimport load_int32, load_int64, store_int32, store_int64

from kafkacore.errors import CorruptRecordError


cdef inline int64_t batch_size(const uint8_t *at) noexcept nogil:
    """Size of the batch whose header, all of which is there, is at `at`; -1 if it cannot be a batch."""
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
    return (f"no batch: base offset {load_int64(at + BASE_OFFSET_AT)}, length {load_int32(at + LENGTH_AT)}, "
            f"magic {at[MAGIC_AT]}, last offset delta {load_int32(at + LAST_OFFSET_DELTA_AT)}")


def walk_batches(const uint8_t[::1] chunk, int64_t position, int64_t end, bint check_crcs):
    """Headers of the batches that begin in ``chunk``.

    Parameters
    ----------
    chunk:
        Bytes of a file from ``position`` on.
    end:
        Position at which the file ends; a batch that passes it is torn.
    check_crcs:
        Compute each batch's CRC, for which all of it must lie in ``chunk``. Otherwise its header must.

    Returns
    -------
    tuple
        The headers, with positions in the file; the position behind the last of them; how many bytes
        from there on the next step needs; and what is wrong there, ``None`` if nothing is.
    """
    cdef list headers = []
    cdef BatchHeader header
    cdef int64_t at = 0
    cdef int64_t length = chunk.shape[0]
    cdef int64_t size
    cdef const uint8_t *start
    while at < length and position + at < end:
        if end - position - at < RECORDS_AT:
            return headers, position + at, 0, f"{end - position - at} bytes are no batch"
        if length - at < RECORDS_AT:
            return headers, position + at, RECORDS_AT, None
        start = &chunk[at]
        size = batch_size(start)
        if size < 0:
            return headers, position + at, 0, no_batch(start)
        if size > end - position - at:
            return headers, position + at, 0, f"batch of {size} bytes is cut after {end - position - at}"
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


def find_batch(const uint8_t[::1] chunk, int64_t target_offset):
    """The first batch of ``chunk`` that ends at ``target_offset`` or later.

    Returns
    -------
    tuple
        Whether it was found; its position in ``chunk``, or where to go on (which may lie behind the
        chunk); and its size. Size −1: there stands something that is no batch.
    """
    cdef int64_t at = 0
    cdef int64_t length = chunk.shape[0]
    cdef int64_t size = 0
    while length - at >= RECORDS_AT:
        size = batch_size(&chunk[at])
        if size < 0:
            return False, at, -1
        if last_offset_of(&chunk[at]) >= target_offset:
            return True, at, size
        at += size
    return False, at, 0


def whole_batches(const uint8_t[::1] chunk, int64_t limit_offset):
    """How much of the start of ``chunk`` is whole batches that end before ``limit_offset``.

    Returns
    -------
    tuple
        Their size in bytes, and the offset behind the last of them, −1 if there is none.
    """
    cdef int64_t at = 0
    cdef int64_t length = chunk.shape[0]
    cdef int64_t size
    cdef int64_t last_offset
    cdef int64_t next_offset = -1
    while length - at >= RECORDS_AT:
        size = batch_size(&chunk[at])
        if size < 0 or size > length - at:
            break
        last_offset = last_offset_of(&chunk[at])
        if last_offset >= limit_offset:
            break
        at += size
        next_offset = last_offset + 1
    return at, next_offset


cpdef bytearray placed_header(RecordBatch batch, int64_t base_offset, int32_t leader_epoch,
                              bint is_append_time, int64_t max_timestamp):
    """The header of ``batch`` as it will stand in the log, a copy: its records are written from where
    they are.

    Parameters
    ----------
    batch:
        As :func:`~kafkacore.record.validate_batch` gives it.
    base_offset, leader_epoch:
        Its place. Outside the CRC, which stays as it is.
    is_append_time, max_timestamp:
        Whether ``max_timestamp`` is the time of all its records, or the latest of the times that each of them
        has. If the header does not say so yet, the CRC is computed anew.
    """
    cdef const uint8_t *came
    cdef bytearray header
    cdef uint8_t *at
    cdef uint8_t time_bit = TIMESTAMP_TYPE_BIT if is_append_time else 0
    cdef uint32_t crc
    if batch.magic != CURRENT_MAGIC:
        raise CorruptRecordError(f"a batch of format {batch.magic} is not placed", offset=batch.base_offset)
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
