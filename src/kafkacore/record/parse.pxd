"""Parse one record of a batch in memory, without a Python object.

All loops over records use `parse_record`, which checks the whole record including its headers. The functions
are written in C because the loop that fills columns is written in C.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

cdef extern from "parse_impl.h":
    cdef enum:
        PARSE_OK "KC_PARSE_OK"
        BAD_LENGTH "KC_BAD_LENGTH"
        BAD_FIELD "KC_BAD_FIELD"
        BAD_KEY "KC_BAD_KEY"
        BAD_VALUE "KC_BAD_VALUE"
        BAD_HEADER_COUNT "KC_BAD_HEADER_COUNT"
        BAD_HEADER "KC_BAD_HEADER"
        BAD_END "KC_BAD_END"
        BAD_OFFSET "KC_BAD_OFFSET"
        RECORDS_LEFT "KC_RECORDS_LEFT"

    ctypedef struct RecordFields "kc_record":
        int64_t timestamp_delta
        int32_t offset_delta
        # -1 for null.
        int32_t key_size
        int32_t value_size
        int32_t header_count
        const uint8_t *key
        const uint8_t *value
        const uint8_t *headers

    # Read a header, whose key must not be null. Returns 0, or -1 if the header is invalid.
    int read_header "kc_read_header"(const uint8_t **pos, const uint8_t *end, const uint8_t **key,
                                     int32_t *key_size, const uint8_t **value,
                                     int32_t *value_size) noexcept nogil
    # Parse the record at `pos` and advance `pos`; after an error `pos` is unchanged. Returns PARSE_OK or an
    # error code.
    int parse_record "kc_parse_record"(const uint8_t **pos, const uint8_t *end, int32_t last_offset_delta,
                                       RecordFields *out) noexcept nogil


cdef inline str describe(int error):
    """Return the description of an error code."""
    if error == BAD_LENGTH:
        return "a record's length exceeds its batch"
    if error == BAD_FIELD:
        return "a record is too short for its fixed fields"
    if error == BAD_KEY:
        return "a record's key size exceeds the record"
    if error == BAD_VALUE:
        return "a record's value size exceeds the record"
    if error == BAD_HEADER_COUNT:
        return "a record's header count exceeds the record"
    if error == BAD_HEADER:
        return "a record's header exceeds the record or has a null key"
    if error == BAD_END:
        return "a record has extra bytes at its end"
    if error == BAD_OFFSET:
        return "a record's offset delta is outside its batch"
    assert error == RECORDS_LEFT
    return "a batch has extra bytes after its last record"
