"""One record of a batch, found in memory without a Python object: positions out, or what is wrong as a code.

Used by every loop over records. The whole record is checked, its headers too, before anything of it is
believed. Does not know: batches' headers, compression.
"""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t

from kafkacore.record.layout cimport MIN_HEADER_SIZE
from kafkacore.wire.primitives cimport read_int8, read_varint, read_varlong

cdef enum ParseError:
    PARSE_OK = 0
    BAD_LENGTH = -1
    BAD_FIELD = -2
    BAD_KEY = -3
    BAD_VALUE = -4
    BAD_HEADER_COUNT = -5
    BAD_HEADER = -6
    BAD_END = -7
    BAD_OFFSET = -8
    RECORDS_LEFT = -9


cdef struct RecordFields:
    int64_t timestamp_delta
    int32_t offset_delta
    # -1 for null.
    int32_t key_size
    int32_t value_size
    int32_t header_count
    const uint8_t *key
    const uint8_t *value
    const uint8_t *headers


cdef inline int read_sized(const uint8_t **pos, const uint8_t *end, const uint8_t **data,
                           int32_t *size) noexcept nogil:
    """A varint size, -1 for null, and the bytes after it."""
    if read_varint(pos, end, size) < 0 or size[0] < -1 or size[0] > end - pos[0]:
        return -1
    data[0] = pos[0]
    if size[0] > 0:
        pos[0] += size[0]
    return 0


cdef inline int read_header(const uint8_t **pos, const uint8_t *end, const uint8_t **key, int32_t *key_size,
                            const uint8_t **value, int32_t *value_size) noexcept nogil:
    """A header; its key may not be null."""
    if read_sized(pos, end, key, key_size) < 0 or key_size[0] < 0:
        return -1
    return read_sized(pos, end, value, value_size)


cdef inline ParseError parse_record(const uint8_t **pos, const uint8_t *end, int32_t last_offset_delta,
                                    RecordFields *out) noexcept nogil:
    """The record at `pos`, which moves behind it. Nothing has moved if it returns another than PARSE_OK."""
    cdef const uint8_t *at = pos[0]
    cdef const uint8_t *key
    cdef const uint8_t *value
    cdef int32_t length = 0
    cdef int32_t key_size = 0
    cdef int32_t value_size = 0
    cdef int8_t attributes = 0
    if read_varint(&at, end, &length) < 0 or length < 0 or length > end - at:
        return BAD_LENGTH
    end = at + length
    if (read_int8(&at, end, &attributes) < 0 or read_varlong(&at, end, &out.timestamp_delta) < 0
            or read_varint(&at, end, &out.offset_delta) < 0):
        return BAD_FIELD
    # Beyond the last offset, a reader's position would move back at the end of the batch.
    if out.offset_delta < 0 or out.offset_delta > last_offset_delta:
        return BAD_OFFSET
    if read_sized(&at, end, &out.key, &out.key_size) < 0:
        return BAD_KEY
    if read_sized(&at, end, &out.value, &out.value_size) < 0:
        return BAD_VALUE
    if (read_varint(&at, end, &out.header_count) < 0 or out.header_count < 0
            or out.header_count > (end - at) // MIN_HEADER_SIZE):
        return BAD_HEADER_COUNT
    out.headers = at
    for _ in range(out.header_count):
        if read_header(&at, end, &key, &key_size, &value, &value_size) < 0:
            return BAD_HEADER
    if at != end:
        return BAD_END
    pos[0] = end
    return PARSE_OK


cdef inline str describe(int error):
    """What a code says, in words."""
    if error == BAD_LENGTH:
        return "a record's length passes the end of its batch"
    if error == BAD_FIELD:
        return "a record ends within its fixed fields"
    if error == BAD_KEY:
        return "a record's key size passes its end"
    if error == BAD_VALUE:
        return "a record's value size passes its end"
    if error == BAD_HEADER_COUNT:
        return "a record's header count passes its end"
    if error == BAD_HEADER:
        return "a record's header passes its end or has a null key"
    if error == BAD_END:
        return "a record has bytes left at its end"
    if error == BAD_OFFSET:
        return "a record's offset delta lies outside its batch"
    assert error == RECORDS_LEFT
    return "a batch has bytes left behind its last record"
