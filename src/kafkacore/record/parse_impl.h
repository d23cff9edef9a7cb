/* One record of a batch, found in memory: positions out, or what is wrong as a code.
 *
 * Used by every loop over records. The whole record is checked, its headers too, before anything of it is believed.
 * Does not know: batches' headers, compression.
 */
#ifndef KAFKACORE_PARSE_IMPL_H
#define KAFKACORE_PARSE_IMPL_H

#include <stdint.h>

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

enum {
    /* A header's key size and value size. */
    KC_MIN_HEADER_SIZE = 2,
};

/* An unsigned varint of at most `max` bytes, the last of which may be at most `last`: strict, no bit is dropped. 0 or
 * -1. Not inlined: the longer ones are few. */
static __attribute__((noinline, unused)) int kc_read_unsigned(const uint8_t **pos, const uint8_t *end, int max, uint8_t last, uint64_t *out) {
    const uint8_t *at = *pos;
    uint64_t value = 0;
    for (int index = 0; index < max; index++) {
        if (at >= end) return -1;
        uint8_t byte = *at++;
        if (index == max - 1 && byte > last) return -1;
        value |= (uint64_t)(byte & 0x7F) << (7 * index);
        if (byte < 0x80) {
            *out = value;
            *pos = at;
            return 0;
        }
    }
    return -1;
}

/* Zigzag varints. Those of one and two bytes, nearly all, are read without a loop. */
static inline int kc_read_varint(const uint8_t **pos, const uint8_t *end, int32_t *out) {
    const uint8_t *at = *pos;
    uint64_t raw;
    if (end - at >= 2) {
        uint32_t low = at[0];
        if (low < 0x80) {
            *out = (int32_t)(low >> 1) ^ -(int32_t)(low & 1);
            *pos = at + 1;
            return 0;
        }
        if (at[1] < 0x80) {
            low = (low & 0x7F) | (uint32_t)at[1] << 7;
            *out = (int32_t)(low >> 1) ^ -(int32_t)(low & 1);
            *pos = at + 2;
            return 0;
        }
    }
    if (kc_read_unsigned(pos, end, 5, 0x0F, &raw) < 0) return -1;
    *out = (int32_t)((uint32_t)raw >> 1) ^ -(int32_t)(raw & 1);
    return 0;
}

static inline int kc_read_varlong(const uint8_t **pos, const uint8_t *end, int64_t *out) {
    const uint8_t *at = *pos;
    uint64_t raw;
    if (at < end && at[0] < 0x80)
        raw = *(*pos)++;
    else if (kc_read_unsigned(pos, end, 10, 0x01, &raw) < 0)
        return -1;
    *out = (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
    return 0;
}

/* A varint size, -1 for null, and the bytes after it. */
static inline int kc_read_sized(const uint8_t **pos, const uint8_t *end, const uint8_t **data, int32_t *size) {
    if (kc_read_varint(pos, end, size) < 0 || *size < -1 || *size > end - *pos) return -1;
    *data = *pos;
    *pos += *size > 0 ? *size : 0;
    return 0;
}

/* A header; its key may not be null. */
static inline int kc_read_header(const uint8_t **pos, const uint8_t *end, const uint8_t **key, int32_t *key_size,
                                 const uint8_t **value, int32_t *value_size) {
    if (kc_read_sized(pos, end, key, key_size) < 0 || *key_size < 0) return -1;
    return kc_read_sized(pos, end, value, value_size);
}

/* The header count at `at` and the headers, which have to reach to `end`. */
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

/* The record at `pos`, which moves behind it. Nothing has moved if it returns another than KC_PARSE_OK. */
static inline int kc_parse_record(const uint8_t **pos, const uint8_t *end, int32_t last_offset_delta,
                                  kc_record *out) {
    const uint8_t *at = *pos;
    int32_t length;
    if (kc_read_varint(&at, end, &length) < 0 || length < 0 || length > end - at) return KC_BAD_LENGTH;
    end = at + length;
    if (at == end) return KC_BAD_FIELD;
    at++; /* the attributes, which mean nothing */
    if (kc_read_varlong(&at, end, &out->timestamp_delta) < 0 || kc_read_varint(&at, end, &out->offset_delta) < 0)
        return KC_BAD_FIELD;
    /* Beyond the last offset, a reader's position would move back at the end of the batch. */
    if (out->offset_delta < 0 || out->offset_delta > last_offset_delta) return KC_BAD_OFFSET;
    if (kc_read_sized(&at, end, &out->key, &out->key_size) < 0) return KC_BAD_KEY;
    if (kc_read_sized(&at, end, &out->value, &out->value_size) < 0) return KC_BAD_VALUE;
    int error = kc_parse_headers(at, end, out);
    if (error == KC_PARSE_OK) *pos = end;
    return error;
}

#endif
