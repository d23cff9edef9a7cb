"""Parses single batches for the two passes of compaction."""

from libc.stdint cimport INT64_MAX, int16_t, int32_t, int64_t, uint8_t, uint32_t

from kafkacore.record.layout cimport (
    ATTRIBUTES_AT, BASE_OFFSET_AT, BASE_TIMESTAMP_AT, COMPRESSION_MASK, CONTROL_BIT, CRC_AT, CURRENT_MAGIC,
    LAST_OFFSET_DELTA_AT, LENGTH_AT, LOG_OVERHEAD, MAGIC_AT, MAX_TIMESTAMP_AT, PRODUCER_ID_AT,
    RECORD_COUNT_AT, RECORDS_AT, TRANSACTIONAL_BIT,
)
from kafkacore.record.parse cimport PARSE_OK
from kafkacore.wire._crc32c cimport crc32c_of
from kafkacore.wire.primitives cimport load_int16, load_int32, load_int64

cdef enum:
    # Codes with which a pass stops. A pass also stops with the codes of `parse`, which are negative.
    NEEDS_MORE = 1
    SPECIAL_BATCH = 2
    FULL = 3
    BAD_BATCH = 4
    BAD_CRC = 5
    NO_MEMORY = 6
    TOO_LARGE = 7


cdef struct Batch:
    const uint8_t *at
    int64_t size
    int64_t base_offset
    int64_t last_offset
    int64_t base_timestamp
    int64_t max_timestamp
    int64_t producer_id
    int32_t last_offset_delta
    int32_t record_count
    int16_t attributes


cdef inline int read_batch(const uint8_t *at, int64_t left, Batch *out) noexcept nogil:
    """Parse the header at `at` and verify the CRC. Rewriting a damaged batch would give it a valid CRC."""
    out.at, out.size = at, RECORDS_AT
    if left < RECORDS_AT:
        return NEEDS_MORE
    out.size = <int64_t> load_int32(at + LENGTH_AT) + LOG_OVERHEAD
    out.base_offset = load_int64(at + BASE_OFFSET_AT)
    out.last_offset_delta = load_int32(at + LAST_OFFSET_DELTA_AT)
    if (out.size < RECORDS_AT or at[MAGIC_AT] != CURRENT_MAGIC or out.base_offset < 0
            or out.last_offset_delta < 0 or out.base_offset >= INT64_MAX - out.last_offset_delta):
        return BAD_BATCH
    if out.size > left:
        return NEEDS_MORE
    if (<uint32_t> load_int32(at + CRC_AT)
            != crc32c_of(0, at + ATTRIBUTES_AT, <size_t> (out.size - ATTRIBUTES_AT))):
        return BAD_CRC
    out.last_offset = out.base_offset + out.last_offset_delta
    out.attributes = load_int16(at + ATTRIBUTES_AT)
    out.base_timestamp = load_int64(at + BASE_TIMESTAMP_AT)
    out.max_timestamp = load_int64(at + MAX_TIMESTAMP_AT)
    out.producer_id = load_int64(at + PRODUCER_ID_AT)
    out.record_count = load_int32(at + RECORD_COUNT_AT)
    if out.record_count < 0 or out.record_count > <int64_t> out.last_offset_delta + 1:
        return BAD_BATCH
    return PARSE_OK


cdef inline bint is_special(const Batch *batch) noexcept nogil:
    """Whether the batch is compressed, transactional or a marker."""
    return batch.attributes & (COMPRESSION_MASK | CONTROL_BIT | TRANSACTIONAL_BIT) != 0


cdef int stopped(int code, const Batch *batch) except -1
