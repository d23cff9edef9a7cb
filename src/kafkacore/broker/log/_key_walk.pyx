"""The first walk of compaction over a part of a log's file: which keys there are, and where last.

Bytes of batches in, a filled map out. Plain batches are dealt with without the GIL; before one that needs a
codec or a decision the walk stops, and the caller gives it in by itself. Source of the behaviour: Kafka's
``Cleaner.buildOffsetMapForSegment``. Does not know: files, segments, transactions.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t

from kafkacore.broker.log._offset_map cimport OffsetMap
from kafkacore.record._batch cimport RecordBatch
from kafkacore.record.layout cimport BASE_OFFSET_AT, RECORDS_AT
from kafkacore.record.parse cimport PARSE_OK, RECORDS_LEFT, RecordFields, describe, parse_record
from kafkacore.wire.exclusive cimport begin_use
from kafkacore.wire.primitives cimport load_int64

from kafkacore.errors import CorruptRecordError

#: The walk stands before a batch that the caller has to give in; the map is full.
STOPPED_AT_BATCH, STOPPED_FULL = <int> LOOK, <int> FULL

cdef dict _REASONS = {
    <int> BAD_BATCH: "there is no batch",
    <int> BAD_CRC: "the CRC of a batch is wrong",
    <int> TOO_LARGE: "what is left of the segment does not fit into one",
}


cdef int stopped(int code, const Batch *batch) except -1:
    """Say what is wrong, unless the walk has only stopped."""
    if code in (NEEDS_MORE, LOOK, FULL):
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


def map_keys(OffsetMap offsets not None, const uint8_t[::1] chunk, int64_t start_offset):
    """Put the keys of the plain batches in ``chunk`` into ``offsets``, those from ``start_offset`` on.

    Returns
    -------
    tuple
        Where the walk has stopped, and why: ``STOPPED_AT_BATCH``, ``STOPPED_FULL``, or something else if it
        needs more of the file; and how many bytes from there on it needs to see.

    Raises
    ------
    CorruptRecordError
        There is no sound batch.
    """
    cdef Batch batch
    cdef int64_t at = 0
    cdef int64_t size = chunk.shape[0]
    cdef const uint8_t *data = &chunk[0] if size else NULL
    cdef int code = NEEDS_MORE
    batch.at, batch.size = data, RECORDS_AT
    begin_use(&offsets.in_use, offsets)
    with nogil:
        while at < size:
            code = read_batch(data + at, size - at, &batch)
            if code == PARSE_OK:
                code = LOOK if is_special(&batch) else put_keys(
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
    """As :func:`map_keys` for one batch, compressed or not; whether the map is full."""
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
