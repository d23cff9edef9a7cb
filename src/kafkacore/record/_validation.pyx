"""Validate a producer's batch before it is appended to a log.

Every record is checked without the GIL and without a Python object. The checks are those of Kafka's
``LogValidator``.
"""

cimport cython
from cpython.bytearray cimport PyByteArray_AS_STRING
from libc.stdint cimport INT64_MAX, INT64_MIN, int16_t, int32_t, int64_t, uint8_t, uint32_t

from kafkacore.record._batch cimport BatchIterator, RecordBatch
from kafkacore.record.layout cimport (
    ATTRIBUTES_AT, COMPRESSION_MASK, CRC_AT, CURRENT_MAGIC, LENGTH_AT, LOG_OVERHEAD, MAGIC_AT, RECORDS_AT,
)
from kafkacore.record.parse cimport BAD_OFFSET, PARSE_OK, RECORDS_LEFT, RecordFields, parse_record
from kafkacore.wire._crc32c cimport crc32c_of
from kafkacore.wire.primitives cimport store_int16, store_int32

from kafkacore.errors import CorruptRecordError, InvalidRecordError
from kafkacore.record._batch import read_batches
from kafkacore.record.compression import DEFAULT_MAX_DECOMPRESSED_SIZE as _DEFAULT_MAX_DECOMPRESSED_SIZE
from kafkacore.record.compression import compress

cdef Py_ssize_t _DEFAULT_MAX_SIZE = _DEFAULT_MAX_DECOMPRESSED_SIZE
cdef enum:
    # Result code in addition to those of `parse`: the record is valid, but the topic rejects it.
    REJECTED = 1
    # Checking this many bytes of records is faster than releasing and reacquiring the GIL.
    MAX_SIZE_WITH_GIL = 16 * 1024


cdef struct Scan:
    # Requirements that the records must meet, and the position of the scan.
    bint needs_keys
    int64_t earliest
    int64_t latest
    const uint8_t *pos
    int32_t index
    int64_t timestamp
    int64_t offset
    int64_t max_timestamp
    bint has_key
    # Number of rejected records, and the maximum number of them to return.
    int32_t rejected_count
    int32_t max_rejected


@cython.nonecheck(False)
cdef int scan_to_rejected(RecordBatch batch, Scan *walk) noexcept nogil:
    """Check the records from `walk.index` on; their offset deltas must be 0, 1, 2 and so on.

    Returns REJECTED after each of the first `max_rejected` records that the topic rejects. `walk.index` is
    then the index of the record after the rejected record. Further rejected records are only counted.
    """
    cdef RecordFields fields
    cdef int error
    while walk.index < batch.record_count:
        error = parse_record(&walk.pos, batch.records_end, batch.last_offset_delta, &fields)
        if error != PARSE_OK:
            return error
        if fields.offset_delta != walk.index:
            return BAD_OFFSET
        walk.index += 1
        walk.timestamp = batch.timestamp_of(&fields)
        walk.max_timestamp = max(walk.max_timestamp, walk.timestamp)
        walk.has_key = fields.key_size >= 0
        if (walk.needs_keys and not walk.has_key) or (
                walk.timestamp != -1 and not walk.earliest <= walk.timestamp <= walk.latest):
            walk.rejected_count += 1
            if walk.rejected_count <= walk.max_rejected:
                return REJECTED
    return PARSE_OK if walk.pos == batch.records_end else RECORDS_LEFT


def scan_records(RecordBatch batch not None, *, bint needs_keys=False, int64_t earliest_ms=INT64_MIN,
                 int64_t latest_ms=INT64_MAX, int max_rejected=1000):
    """Decompress a batch and check each of its records.

    Parameters
    ----------
    batch:
        The batch.
    needs_keys:
        Whether records without a key are rejected.
    earliest_ms, latest_ms:
        Range of valid timestamps. A record with a timestamp outside this range is rejected. A record without
        a timestamp (-1) is accepted.
    max_rejected:
        Maximum number of rejected records to return.

    Returns
    -------
    tuple
        The largest timestamp (or -1), the number of rejected records, and a list of the first rejected
        records. Each entry is ``(index, timestamp)``. The timestamp is ``None`` if the record was rejected
        because it has no key.

    Raises
    ------
    CorruptRecordError
        A record is malformed, the record count in the header is wrong, or the offsets do not increase by one.
    """
    cdef Scan walk
    cdef int error = REJECTED
    cdef list rejected = []
    batch.open()
    walk.rejected_count, walk.max_rejected = 0, max_rejected
    walk.needs_keys, walk.earliest, walk.latest = needs_keys, earliest_ms, latest_ms
    walk.pos, walk.index, walk.timestamp, walk.max_timestamp = batch.records_at, 0, -1, -1
    while error == REJECTED:
        if batch.records_end - walk.pos > MAX_SIZE_WITH_GIL:
            with nogil:
                error = scan_to_rejected(batch, &walk)
        else:
            error = scan_to_rejected(batch, &walk)
        if error == REJECTED:
            is_late = walk.has_key or not needs_keys
            rejected.append((walk.index - 1, walk.timestamp if is_late else None))
    if error != PARSE_OK:
        batch.fail(error, walk.index)
    return walk.max_timestamp, walk.rejected_count, rejected


@cython.nonecheck(False)
cdef int seek_time(RecordBatch batch, Scan *walk, int64_t start_offset) noexcept nogil:
    """Find the first record from `start_offset` on with a timestamp of `walk.earliest` or later.

    Returns REJECTED if it was found, and PARSE_OK otherwise.
    """
    cdef RecordFields fields
    cdef int error
    while walk.index < batch.record_count:
        error = parse_record(&walk.pos, batch.records_end, batch.last_offset_delta, &fields)
        if error != PARSE_OK:
            return error
        walk.index += 1
        walk.timestamp = batch.timestamp_of(&fields)
        walk.offset = batch.base_offset + fields.offset_delta
        if walk.timestamp >= walk.earliest and walk.offset >= start_offset:
            return REJECTED
    return PARSE_OK


def first_at_time(RecordBatch batch not None, int64_t timestamp_ms, int64_t start_offset=0):
    """Return ``(timestamp, offset)`` of the first record at or after a time, or ``None``.

    Parameters
    ----------
    batch:
        The batch.
    timestamp_ms:
        The time in milliseconds since the epoch.
    start_offset:
        Records before this offset are skipped.

    Raises
    ------
    CorruptRecordError
        A record is malformed.
    """
    cdef Scan walk
    cdef int error
    batch.open()
    walk.earliest, walk.pos, walk.index = timestamp_ms, batch.records_at, 0
    with nogil:
        error = seek_time(batch, &walk, start_offset)
    if error == PARSE_OK:
        return None
    if error != REJECTED:
        batch.fail(error, walk.index)
    return walk.timestamp, walk.offset


def validate_batch(buffer, bint check_records=True, Py_ssize_t max_decompressed_size=_DEFAULT_MAX_SIZE):
    """Check the one batch in ``buffer`` as a broker does before an append, and return the batch.

    As in Kafka's ``LogValidator``, the buffer must be exactly one batch of format 2 with a valid CRC. It must
    not be a control batch. It needs at least one record, as many records as offsets, offsets that increase by
    one, and a base sequence if it has a producer id.

    Parameters
    ----------
    buffer:
        The bytes of the batch.
    check_records:
        Whether to decompress the batch and check each record too, without creating Python objects.
    max_decompressed_size:
        Maximum size of the decompressed batch in bytes.

    Raises
    ------
    CorruptRecordError
        The bytes are malformed.
    InvalidRecordError
        A producer must not send this batch.
    """
    cdef BatchIterator batches = read_batches(buffer, True, max_decompressed_size)
    cdef RecordBatch batch
    cdef int64_t offsets
    if batches.payload.size > MAGIC_AT and batches.payload.data[MAGIC_AT] < CURRENT_MAGIC:
        raise CorruptRecordError(
            f"message format {batches.payload.data[MAGIC_AT]} is too old; produce requests need format "
            f"{CURRENT_MAGIC}"
        )
    batch = next(batches, None)
    if batch is None:
        raise CorruptRecordError(f"{batches.payload.size} bytes do not contain a complete batch")
    if batch.size_in_bytes != batches.payload.size:
        raise InvalidRecordError(
            f"{batches.payload.size - batch.size_in_bytes} bytes follow the batch; send one batch per "
            "partition"
        )
    if batch.is_control:
        raise InvalidRecordError("Clients are not allowed to write control records")
    # The sum has 64 bits, because the delta is untrusted and may be the largest int32.
    offsets = <int64_t> batch.last_offset_delta + 1
    if batch.record_count == 0 or batch.record_count != offsets:
        raise InvalidRecordError(f"a batch of {offsets} offsets has {batch.record_count} records")
    if batch.producer_id >= 0 and (batch.base_sequence < 0 or batch.producer_epoch < 0):
        raise InvalidRecordError(
            f"a batch of producer id {batch.producer_id} has no sequence number or no epoch"
        )
    if check_records:
        scan_records(batch)
    return batch


def with_codec(RecordBatch batch not None, int codec, level=None) -> bytearray:
    """Return a copy of the batch with its records recompressed by another codec. The records do not change.

    Parameters
    ----------
    batch:
        A batch of format 2.
    codec:
        Number of the codec; 0 for no compression.
    level:
        As for :func:`kafkacore.record.compression.compress`.
    """
    cdef bytearray made
    cdef uint8_t *at
    cdef Py_ssize_t start, size
    cdef uint32_t crc
    if batch.magic != CURRENT_MAGIC:
        raise InvalidRecordError(f"a batch of message format {batch.magic} cannot be recompressed")
    batch.open()
    start = batch.records_at - batch.records.data
    records = batch.records.slice(start, start + (batch.records_end - batch.records_at))
    made = bytearray(batch.source.slice(batch.position, batch.position + RECORDS_AT))
    made += compress(codec, records, level) if codec else records
    at = <uint8_t *> PyByteArray_AS_STRING(made)
    size = len(made)
    store_int32(at + LENGTH_AT, <int32_t> (size - LOG_OVERHEAD))
    store_int16(at + ATTRIBUTES_AT, <int16_t> (batch.attributes & ~COMPRESSION_MASK | codec))
    with nogil:
        crc = crc32c_of(0, at + ATTRIBUTES_AT, size - ATTRIBUTES_AT)
    store_int32(at + CRC_AT, <int32_t> crc)
    return made
