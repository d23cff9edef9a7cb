"""A producer's batch checked before it is appended: bytes in, the batch or what is wrong with it out.

Every record is looked at, without the GIL and without an object of it. Source of the checks: Kafka's
``LogValidator``. Does not know: the log, topics, what a client is told.
"""

cimport cython
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
    # Beside the codes of `parse`: a record that is whole and that the topic does not take.
    REFUSED = 1
    # Bytes of records that are looked at faster than another thread takes the GIL and gives it back.
    ALONE_UP_TO = 16 * 1024


cdef struct Walk:
    # What records must be, and how far they have been looked at.
    bint needs_keys
    int64_t earliest
    int64_t latest
    const uint8_t *pos
    int32_t index
    int64_t timestamp
    int64_t offset
    int64_t max_timestamp
    bint has_key
    # How many were refused, and of how many the caller wants to know which.
    int32_t refused_count
    int32_t max_refused


@cython.nonecheck(False)
cdef int walk_on(RecordBatch batch, Walk *walk) noexcept nogil:
    """Check the records from `walk.index` on, and that their offsets are 0, 1, 2 ... as a producer has to
    write them. REFUSED: the record before `walk.index` is not for this topic, and one of those to be named.
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
            walk.refused_count += 1
            if walk.refused_count <= walk.max_refused:
                return REFUSED
    return PARSE_OK if walk.pos == batch.records_end else RECORDS_LEFT


def judge_records(RecordBatch batch not None, *, bint needs_keys=False, int64_t earliest_ms=INT64_MIN,
                  int64_t latest_ms=INT64_MAX, int max_refused=1000):
    """Decompress a batch and look at each of its records.

    Parameters
    ----------
    needs_keys:
        A record without a key is refused.
    earliest_ms, latest_ms:
        A record with a timestamp outside is refused; one without, whose timestamp is -1, is not.
    max_refused:
        How many of those that are refused to name.

    Returns
    -------
    tuple
        The largest timestamp, -1 if there is none; how many records are refused; and of the first of them
        ``(index, timestamp)``, the timestamp ``None`` for one that lacks its key.

    Raises
    ------
    CorruptRecordError
        The records break the format, are not as many as the header says, or their offsets do not rise by one.
    """
    cdef Walk walk
    cdef int error = REFUSED
    cdef list refused = []
    batch.open()
    walk.refused_count, walk.max_refused = 0, max_refused
    walk.needs_keys, walk.earliest, walk.latest = needs_keys, earliest_ms, latest_ms
    walk.pos, walk.index, walk.timestamp, walk.max_timestamp = batch.records_at, 0, -1, -1
    while error == REFUSED:
        if batch.records_end - walk.pos > ALONE_UP_TO:
            with nogil:
                error = walk_on(batch, &walk)
        else:
            error = walk_on(batch, &walk)
        if error == REFUSED:
            is_late = walk.has_key or not needs_keys
            refused.append((walk.index - 1, walk.timestamp if is_late else None))
    if error != PARSE_OK:
        batch.fail(error, walk.index)
    return walk.max_timestamp, walk.refused_count, refused


@cython.nonecheck(False)
cdef int seek_time(RecordBatch batch, Walk *walk, int64_t start_offset) noexcept nogil:
    """Walk to the first record from `start_offset` on that is not earlier than `walk.earliest`: REFUSED, or
    PARSE_OK if there is none."""
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
            return REFUSED
    return PARSE_OK


def first_at_time(RecordBatch batch not None, int64_t timestamp_ms, int64_t start_offset=0):
    """Return ``(timestamp, offset)`` of the first record that is not earlier than a time, or ``None``.

    Parameters
    ----------
    start_offset:
        Records before it are passed over.

    Raises
    ------
    CorruptRecordError
        The records break the format.
    """
    cdef Walk walk
    cdef int error
    batch.open()
    walk.earliest, walk.pos, walk.index = timestamp_ms, batch.records_at, 0
    with nogil:
        error = seek_time(batch, &walk, start_offset)
    if error == PARSE_OK:
        return None
    if error != REFUSED:
        batch.fail(error, walk.index)
    return walk.timestamp, walk.offset


def validate_batch(buffer, bint check_records=True, Py_ssize_t max_decompressed_size=_DEFAULT_MAX_SIZE):
    """The one batch that ``buffer`` consists of, checked as a broker has to before it appends it.

    As Kafka's ``LogValidator``: one whole batch of format 2, its CRC, at least one record, as many records as
    offsets, offsets that rise by one, a base sequence where there is a producer id; no control batch.

    Parameters
    ----------
    check_records:
        Whether to decompress and check each record too, without making objects of them.

    Raises
    ------
    CorruptRecordError
        The bytes break the format.
    InvalidRecordError
        They are a batch that no producer may send.
    """
    cdef BatchIterator batches = read_batches(buffer, True, max_decompressed_size)
    cdef RecordBatch batch
    cdef int64_t offsets
    if batches.payload.size > MAGIC_AT and batches.payload.data[MAGIC_AT] < CURRENT_MAGIC:
        raise CorruptRecordError(f"magic {batches.payload.data[MAGIC_AT]} < {CURRENT_MAGIC} from a client")
    batch = next(batches, None)
    if batch is None:
        raise CorruptRecordError(f"no whole batch in {batches.payload.size} bytes")
    if batch.size_in_bytes != batches.payload.size:
        raise InvalidRecordError(f"{batches.payload.size - batch.size_in_bytes} bytes behind the batch")
    if batch.is_control:
        raise InvalidRecordError("Clients are not allowed to write control records")
    # In 64 bits: the delta is from outside, and may be the largest that there is.
    offsets = <int64_t> batch.last_offset_delta + 1
    if batch.record_count == 0 or batch.record_count != offsets:
        raise InvalidRecordError(f"{batch.record_count} records in {offsets} offsets")
    if batch.producer_id >= 0 and (batch.base_sequence < 0 or batch.producer_epoch < 0):
        raise InvalidRecordError(f"producer {batch.producer_id} without sequence number or epoch")
    if check_records:
        judge_records(batch)
    return batch


def with_codec(RecordBatch batch not None, int codec, level=None) -> bytearray:
    """The same batch, its records compressed by ``codec`` (0 for not at all) but not encoded anew.

    Parameters
    ----------
    level:
        As for :func:`kafkacore.record.compression.compress`.
    """
    cdef uint8_t[::1] view
    cdef uint8_t *at
    cdef Py_ssize_t start, size
    cdef uint32_t crc
    if batch.magic != CURRENT_MAGIC:
        raise InvalidRecordError(f"a batch of format {batch.magic} cannot be compressed again")
    batch.open()
    start = batch.records_at - batch.records.data
    records = batch.records.slice(start, start + (batch.records_end - batch.records_at))
    made = bytearray(batch.source.slice(batch.position, batch.position + RECORDS_AT))
    made += compress(codec, records, level) if codec else records
    view = made
    at = &view[0]
    size = view.shape[0]
    store_int32(at + LENGTH_AT, <int32_t> (size - LOG_OVERHEAD))
    store_int16(at + ATTRIBUTES_AT, <int16_t> (batch.attributes & ~COMPRESSION_MASK | codec))
    with nogil:
        crc = crc32c_of(0, at + ATTRIBUTES_AT, size - ATTRIBUTES_AT)
    store_int32(at + CRC_AT, <int32_t> crc)
    return made
