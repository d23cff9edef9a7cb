"""Find batches that can be appended to columns as a whole, without a Python object.

Such a batch has format 2, is uncompressed, is not a control batch, has a valid header and CRC, and is
requested completely. `_batch` handles all other batches and reports their errors.
"""

from libc.stdint cimport INT64_MAX, int16_t, int32_t, int64_t, uint8_t, uint32_t

from kafkacore.record.columns_c cimport kc_run
from kafkacore.record.layout cimport (
    ATTRIBUTES_AT, BASE_OFFSET_AT, BASE_TIMESTAMP_AT, COMPRESSION_MASK, CONTROL_BIT, CRC_AT, CURRENT_MAGIC,
    LAST_OFFSET_DELTA_AT, LENGTH_AT, LOG_OVERHEAD, MAGIC_AT, MAX_TIMESTAMP_AT, MIN_RECORD_SIZE,
    RECORD_COUNT_AT, RECORDS_AT, TIMESTAMP_TYPE_BIT, TRANSACTIONAL_BIT,
)
from kafkacore.wire._crc32c cimport crc32c_of
from kafkacore.wire.primitives cimport load_int16, load_int32, load_int64


cdef struct PlainBatches:
    const uint8_t *at
    const uint8_t *end
    int64_t from_offset
    int64_t end_offset
    int64_t left
    int64_t next_offset
    int32_t leader_epoch
    bint check_crcs
    bint read_committed


cdef inline Py_ssize_t plain_batch(PlainBatches *all_of, kc_run *run) noexcept nogil:
    """Return the size of the batch at `at` and set `run` to its records; 0 if the batch does not qualify."""
    cdef const uint8_t *at = all_of.at
    cdef Py_ssize_t left = all_of.end - at
    cdef int64_t length
    cdef int16_t attributes, refused = COMPRESSION_MASK | CONTROL_BIT
    if left < RECORDS_AT or at[MAGIC_AT] != CURRENT_MAGIC:
        return 0
    length = load_int32(at + LENGTH_AT)
    if length < RECORDS_AT - LOG_OVERHEAD or length > left - LOG_OVERHEAD:
        return 0
    attributes = load_int16(at + ATTRIBUTES_AT)
    if all_of.read_committed:
        refused |= TRANSACTIONAL_BIT
    run.base_offset = load_int64(at + BASE_OFFSET_AT)
    run.last_offset_delta = load_int32(at + LAST_OFFSET_DELTA_AT)
    run.record_count = load_int32(at + RECORD_COUNT_AT)
    # Check the conditions of BatchHeader.check() and the limits of the request.
    if (attributes & refused or run.base_offset < 0 or run.last_offset_delta < 0
            or run.base_offset > INT64_MAX - 1 - run.last_offset_delta
            or run.record_count < 0 or run.record_count > <int64_t> run.last_offset_delta + 1
            or run.record_count > (length + LOG_OVERHEAD - RECORDS_AT) // MIN_RECORD_SIZE
            or run.record_count > all_of.left
            or run.base_offset + run.last_offset_delta >= all_of.end_offset):
        return 0
    if (all_of.check_crcs and <uint32_t> load_int32(at + CRC_AT)
            != crc32c_of(0, at + ATTRIBUTES_AT, <size_t> (length + LOG_OVERHEAD - ATTRIBUTES_AT))):
        return 0
    run.base_timestamp = load_int64(at + BASE_TIMESTAMP_AT)
    run.max_timestamp = load_int64(at + MAX_TIMESTAMP_AT)
    run.has_log_append_time = run.timestamp_type = attributes & TIMESTAMP_TYPE_BIT != 0
    run.pos = at + RECORDS_AT
    run.end = at + LOG_OVERHEAD + length
    run.index = 0
    run.from_offset = all_of.from_offset
    run.end_offset = all_of.end_offset
    run.left = all_of.left
    run.next_offset = run.base_offset + run.last_offset_delta + 1
    return LOG_OVERHEAD + length
