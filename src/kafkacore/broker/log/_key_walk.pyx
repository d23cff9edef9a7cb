"""The first pass of compaction: maps each key to the offset of its last record.

Plain batches are processed without the GIL. The pass stops before a compressed batch, a transactional batch
or a marker. The caller processes that batch separately. The code follows Kafka's
``Cleaner.buildOffsetMapForSegment``.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t

from kafkacore.broker.log._offset_map cimport OffsetMap
from kafkacore.record._batch cimport RecordBatch
from kafkacore.record.layout cimport BASE_OFFSET_AT, RECORDS_AT
from kafkacore.record.parse cimport PARSE_OK, RECORDS_LEFT, RecordFields, describe, parse_record
from kafkacore.wire._payload cimport Payload
from kafkacore.wire.exclusive cimport begin_use
from kafkacore.wire.primitives cimport load_int64

from kafkacore.errors import CorruptRecordError

#: Reasons for which a pass stops: the caller must process the next batch separately, or the map is full.
STOPPED_AT_BATCH, STOPPED_FULL = <int> SPECIAL_BATCH, <int> FULL

cdef dict _REASONS = {
    <int> BAD_BATCH: "not a valid batch",
    <int> BAD_CRC: "the CRC of a batch is wrong",
    <int> TOO_LARGE: "the remaining batches do not fit into one segment",
}


cdef int stopped(int code, const Batch *batch) except -1:
    """Raise the error that `code` stands for. Do nothing if `code` is a reason to stop."""
    if code in (NEEDS_MORE, SPECIAL_BATCH, FULL):
        return 0
    if code == NO_MEMORY:
        raise MemoryError
    reason = _REASONS.get(code) or describe(code)
    raise CorruptRecordError(reason, offset=load_int64(batch.at + BASE_OFFSET_AT))


@cython.nonecheck(False)
cdef int put_keys(OffsetMap offsets, const Batch *batch, const uint8_t *pos, const uint8_t *end,
                  int64_t start_offset) noexcept nogil:
    cdef RecordFields fields
    cdef int64_t offset
    cdef int error
    for _ in range(batch.record_count):
        error = parse_record(&pos, end, batch.last_offset_delta, &fields)
        if error != PARSE_OK:
            return error
        offset = batch.base_offset + fields.offset_delta
        if fields.key_size >= 0 and offset >= start_offset:
            if offsets.put(fields.key, fields.key_size, offset) < 0:
                return FULL
            offsets.latest_offset = offset
    if pos != end:
        return RECORDS_LEFT
    if batch.last_offset >= start_offset:
        offsets.latest_offset = batch.last_offset
    return PARSE_OK


def map_keys(OffsetMap offsets not None, chunk, int64_t start_offset):
    """Add the keys of the plain batches at the start of ``chunk`` to ``offsets``.

    Parameters
    ----------
    offsets:
        Map to fill.
    chunk:
        Bytes of a segment, beginning with a batch.
    start_offset:
        Offset of the first record to add.

    Returns
    -------
    tuple
        Three items:

        - The position in the chunk at which the pass stopped.
        - The reason: ``STOPPED_AT_BATCH``, ``STOPPED_FULL``, or any other value if more of the file is
          needed.
        - The number of bytes that the next call needs, beginning at that position.

    Raises
    ------
    CorruptRecordError
        A batch is damaged.
    """
    cdef Batch batch
    cdef int64_t at = 0
    cdef Payload payload = Payload(chunk)
    cdef int64_t size = payload.size
    cdef const uint8_t *data = payload.data
    cdef int code = NEEDS_MORE
    batch.at, batch.size = data, RECORDS_AT
    begin_use(&offsets.in_use, offsets)
    with nogil:
        while at < size:
            code = read_batch(data + at, size - at, &batch)
            if code == PARSE_OK:
                code = SPECIAL_BATCH if is_special(&batch) else put_keys(
                    offsets, &batch, batch.at + RECORDS_AT, batch.at + batch.size, start_offset)
            if code != PARSE_OK:
                break
            at += batch.size
            code = NEEDS_MORE
            batch.size = RECORDS_AT
    offsets.in_use = False
    stopped(code, &batch)
    return at, code, batch.size


def map_batch(OffsetMap offsets not None, RecordBatch batch not None, int64_t start_offset) -> bool:
    """Add the keys of one batch, compressed or not. Return whether the map is full.

    The parameters and errors are the same as those of :func:`map_keys`.
    """
    cdef Batch fields
    cdef int code
    batch.open()
    code = read_batch(batch.source.data + batch.position, batch.size_in_bytes, &fields)
    if code == PARSE_OK:
        begin_use(&offsets.in_use, offsets)
        with nogil:
            code = put_keys(offsets, &fields, batch.records_at, batch.records_end, start_offset)
        offsets.in_use = False
    elif code == NEEDS_MORE:
        code = BAD_BATCH
    if code != PARSE_OK:
        stopped(code, &fields)
    return code == FULL
