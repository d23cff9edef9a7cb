/* Parse one record of a batch in memory.
 *
 * All loops over records use this. It checks the whole record with its headers before it returns. */
#ifndef KAFKACORE_PARSE_IMPL_H
#define KAFKACORE_PARSE_IMPL_H

#include <stdint.h>

#include "kafkacore/record/layout.h"
#include "kafkacore/wire/primitives.h"

enum {
    KC_PARSE_OK = 0,
    KC_BAD_LENGTH = -1,
    KC_BAD_FIELD = -2,
    KC_BAD_KEY = -3,
    KC_BAD_VALUE = -4,
    KC_BAD_HEADER_COUNT = -5,
    KC_BAD_HEADER = -6,
    KC_BAD_END = -7,
    KC_BAD_OFFSET = -8,
    KC_RECORDS_LEFT = -9,
};

typedef struct {
    int64_t timestamp_delta;
    int32_t offset_delta;
    /* -1 for null. */
    int32_t key_size;
    int32_t value_size;
    int32_t header_count;
    const uint8_t *key;
    const uint8_t *value;
    const uint8_t *headers;
} kc_record;

/* Read a varint size, -1 for null, and the bytes after it. */
static inline int kc_read_sized(const uint8_t **pos, const uint8_t *end, const uint8_t **data, int32_t *size) {
    if (kc_read_varint(pos, end, size) < 0 || *size < -1 || *size > end - *pos) return -1;
    *data = *pos;
    *pos += *size > 0 ? *size : 0;
    return 0;
}

/* Read a header; its key must not be null. This function is not inlined, because it inlines the varints and
 * most records have no headers. */
static __attribute__((noinline, unused)) int kc_read_header(const uint8_t **pos, const uint8_t *end,
                                                            const uint8_t **key, int32_t *key_size,
                                                            const uint8_t **value, int32_t *value_size) {
    if (kc_read_sized(pos, end, key, key_size) < 0 || *key_size < 0) return -1;
    return kc_read_sized(pos, end, value, value_size);
}

/* Parse the header count at `at` and the headers, which must end at `end`. */
static inline int kc_parse_headers(const uint8_t *at, const uint8_t *end, kc_record *out) {
    const uint8_t *key, *value;
    int32_t key_size, value_size;
    if (end - at == 1 && *at == 0) {
        out->header_count = 0;
        out->headers = end;
        return KC_PARSE_OK;
    }
    if (kc_read_varint(&at, end, &out->header_count) < 0 || out->header_count < 0 ||
        out->header_count > (end - at) / KC_MIN_HEADER_SIZE)
        return KC_BAD_HEADER_COUNT;
    out->headers = at;
    for (int32_t index = 0; index < out->header_count; index++)
        if (kc_read_header(&at, end, &key, &key_size, &value, &value_size) < 0) return KC_BAD_HEADER;
    return at == end ? KC_PARSE_OK : KC_BAD_END;
}

/* Parse field by field, with a bounds check at each. */
static __attribute__((noinline, unused)) int kc_parse_carefully(const uint8_t **pos, const uint8_t *end,
                                                                int32_t last_offset_delta, kc_record *out) {
    const uint8_t *at = *pos;
    int32_t length;
    if (kc_read_varint(&at, end, &length) < 0 || length < 0 || length > end - at) return KC_BAD_LENGTH;
    end = at + length;
    if (at == end) return KC_BAD_FIELD;
    at++; /* the attributes of a record are unused */
    if (kc_read_varlong(&at, end, &out->timestamp_delta) < 0 || kc_read_varint(&at, end, &out->offset_delta) < 0)
        return KC_BAD_FIELD;
    /* An offset beyond the last would move a reader's position backwards at the end of the batch. */
    if (out->offset_delta < 0 || out->offset_delta > last_offset_delta) return KC_BAD_OFFSET;
    if (kc_read_sized(&at, end, &out->key, &out->key_size) < 0) return KC_BAD_KEY;
    if (kc_read_sized(&at, end, &out->value, &out->value_size) < 0) return KC_BAD_VALUE;
    int error = kc_parse_headers(at, end, out);
    if (error == KC_PARSE_OK) *pos = end;
    return error;
}

enum {
    /* Length, attributes, timestamp delta, offset delta and key size. */
    KC_FIXED_PART = KC_SHORT_VARINT_SIZE + 1 + KC_MAX_VARLONG_SIZE + KC_SHORT_VARINT_SIZE + KC_SHORT_VARINT_SIZE,
};

/* Not inlined, because most timestamps are within 64 ms of the batch's first and take one byte. */
static __attribute__((noinline, unused)) int kc_read_timestamp_delta(const uint8_t **pos, const uint8_t *end,
                                                                     int64_t *out) {
    return kc_read_varlong(pos, end, out);
}

/* Read a short size and its bytes, which are within `end` unless the size is null. Returns the position after
 * them, or NULL. */
static inline const uint8_t *kc_short_sized(const uint8_t *at, const uint8_t *end, const uint8_t **data,
                                            int32_t *size) {
    uint32_t raw;
    at = kc_load_short_varint(at, &raw);
    if (at == 0) return 0;
    *data = at;
    if (raw & 1) {
        *size = -1;
        return raw == 1 ? at : 0;
    }
    *size = (int32_t)(raw >> 1);
    return *size <= end - at ? at + *size : 0;
}

/* Parse the record at `pos` and advance `pos`. Returns KC_PARSE_OK, or an error code and leaves `pos`
 * unchanged.
 *
 * An ordinary record that is not at the very end of the batch takes the fewest steps. Anything unusual goes
 * to kc_parse_carefully, which alone reports errors. */
static inline int kc_parse_record(const uint8_t **pos, const uint8_t *batch_end, int32_t last_offset_delta,
                                  kc_record *out) {
    const uint8_t *at = *pos, *end;
    uint32_t length, raw;
    if (batch_end - at < KC_FIXED_PART) goto carefully;
    at = kc_load_short_varint(at, &length);
    if (at == 0 || length & 1 || (length >>= 1) > batch_end - at) goto carefully;
    end = at + length;
    at++;
    if (at[0] < 0x80) {
        out->timestamp_delta = kc_unzigzag(at[0]);
        at++;
    } else if (kc_read_timestamp_delta(&at, batch_end, &out->timestamp_delta) < 0) {
        goto carefully;
    }
    at = kc_load_short_varint(at, &raw);
    if (at == 0 || raw & 1 || (raw >>= 1) > (uint32_t)last_offset_delta) goto carefully;
    out->offset_delta = (int32_t)raw;
    at = kc_short_sized(at, end, &out->key, &out->key_size);
    if (at == 0 || batch_end - at < KC_SHORT_VARINT_SIZE) goto carefully;
    at = kc_short_sized(at, end, &out->value, &out->value_size);
    /* If an earlier field exceeded the end, so does this position, so one check covers all fields. */
    if (at == 0 || at >= end) goto carefully;
    if (at + 1 == end && *at == 0) {
        out->header_count = 0;
        out->headers = end;
    } else if (kc_parse_headers(at, end, out) != KC_PARSE_OK) {
        goto carefully;
    }
    *pos = end;
    return KC_PARSE_OK;
carefully:
    return kc_parse_carefully(pos, batch_end, last_offset_delta, out);
}

#endif
