/* Kafka's primitive types in memory: integers in network byte order and varints (Kafka's ByteUtils).
 *
 * A `read` function gets a position, which it advances, and the end of the readable bytes. It returns 0, or
 * -1 without moving the position, and never reads at or past the end. A `load` or `store` function does no
 * checks: its caller has made sure that the bytes are there. */
#ifndef KAFKACORE_PRIMITIVES_H
#define KAFKACORE_PRIMITIVES_H

#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define KC_BE16(v) (v)
#define KC_BE32(v) (v)
#define KC_BE64(v) (v)
#else
#define KC_BE16(v) __builtin_bswap16(v)
#define KC_BE32(v) __builtin_bswap32(v)
#define KC_BE64(v) __builtin_bswap64(v)
#endif

/* ---- Fixed size ---- */
static inline int16_t kc_load_int16(const uint8_t *at) {
    uint16_t value;
    memcpy(&value, at, 2);
    return (int16_t)KC_BE16(value);
}

static inline int32_t kc_load_int32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, 4);
    return (int32_t)KC_BE32(value);
}

static inline int64_t kc_load_int64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, 8);
    return (int64_t)KC_BE64(value);
}

static inline void kc_store_int16(uint8_t *at, int16_t value) {
    uint16_t raw = KC_BE16((uint16_t)value);
    memcpy(at, &raw, 2);
}

static inline void kc_store_int32(uint8_t *at, int32_t value) {
    uint32_t raw = KC_BE32((uint32_t)value);
    memcpy(at, &raw, 4);
}

static inline void kc_store_int64(uint8_t *at, int64_t value) {
    uint64_t raw = KC_BE64((uint64_t)value);
    memcpy(at, &raw, 8);
}

static inline int kc_read_int8(const uint8_t **pos, const uint8_t *end, int8_t *out) {
    if (end - *pos < 1) return -1;
    *out = (int8_t)**pos;
    *pos += 1;
    return 0;
}

static inline int kc_read_int16(const uint8_t **pos, const uint8_t *end, int16_t *out) {
    if (end - *pos < 2) return -1;
    *out = kc_load_int16(*pos);
    *pos += 2;
    return 0;
}

static inline int kc_read_int32(const uint8_t **pos, const uint8_t *end, int32_t *out) {
    if (end - *pos < 4) return -1;
    *out = kc_load_int32(*pos);
    *pos += 4;
    return 0;
}

static inline int kc_read_int64(const uint8_t **pos, const uint8_t *end, int64_t *out) {
    if (end - *pos < 8) return -1;
    *out = kc_load_int64(*pos);
    *pos += 8;
    return 0;
}

/* ---- Zigzag: signed numbers of small magnitude become small unsigned ones ---- */
static inline uint64_t kc_zigzag(int64_t value) { return ((uint64_t)value << 1) ^ (0 - ((uint64_t)value >> 63)); }

static inline int64_t kc_unzigzag(uint64_t raw) { return (int64_t)((raw >> 1) ^ (0 - (raw & 1))); }

/* ---- Varints: seven bits a byte, the lowest first. A varint has up to 5 bytes, a varlong up to 10 ---- */
enum { KC_MAX_VARINT_SIZE = 5, KC_MAX_VARLONG_SIZE = 10 };

/* Bits beyond the 32nd or 64th are rejected; ByteUtils drops them. `last` is the largest valid value of byte
 * number `max`. Every caller passes constants. */
static inline __attribute__((always_inline)) int kc_read_base128(const uint8_t **pos, const uint8_t *end, int max,
                                                                 uint8_t last, uint64_t *out) {
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

static inline int kc_read_unsigned_varint(const uint8_t **pos, const uint8_t *end, uint32_t *out) {
    uint64_t raw;
    if (kc_read_base128(pos, end, KC_MAX_VARINT_SIZE, 0x0F, &raw) < 0) return -1;
    *out = (uint32_t)raw;
    return 0;
}

static inline int kc_read_unsigned_varlong(const uint8_t **pos, const uint8_t *end, uint64_t *out) {
    return kc_read_base128(pos, end, KC_MAX_VARLONG_SIZE, 0x01, out);
}

static inline int kc_read_varint(const uint8_t **pos, const uint8_t *end, int32_t *out) {
    uint32_t raw;
    if (kc_read_unsigned_varint(pos, end, &raw) < 0) return -1;
    *out = (int32_t)kc_unzigzag(raw);
    return 0;
}

static inline int kc_read_varlong(const uint8_t **pos, const uint8_t *end, int64_t *out) {
    uint64_t raw;
    if (kc_read_unsigned_varlong(pos, end, &raw) < 0) return -1;
    *out = kc_unzigzag(raw);
    return 0;
}

enum { KC_SHORT_VARINT_SIZE = 3 }; /* up to 2,097,151 unsigned, or about a million in either sign */

/* Read an unsigned varint of up to KC_SHORT_VARINT_SIZE bytes without a loop. Returns the position after it,
 * or NULL if the varint is longer. */
static inline const uint8_t *kc_load_short_varint(const uint8_t *at, uint32_t *out) {
    uint32_t value = at[0];
    if (value >= 0x80) {
        value = (value & 0x7F) | (uint32_t)at[1] << 7;
        if (at[1] >= 0x80) {
            value = (value & 0x3FFF) | (uint32_t)at[2] << 14;
            if (at[2] >= 0x80) return 0;
            at++;
        }
        at++;
    }
    *out = value;
    return at + 1;
}

/* Write 1 to 10 bytes (1 to 5 for a 32-bit value) and return the position after them. */
static inline uint8_t *kc_store_unsigned_varlong(uint8_t *at, uint64_t value) {
    if (value < 0x80) {
        *at = (uint8_t)value;
        return at + 1;
    }
    if (value < 0x4000) {
        at[0] = (uint8_t)(value | 0x80);
        at[1] = (uint8_t)(value >> 7);
        return at + 2;
    }
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

/* Write a signed number. A varint and a varlong of the same value have the same bytes. */
static inline uint8_t *kc_store_varlong(uint8_t *at, int64_t value) {
    return kc_store_unsigned_varlong(at, kc_zigzag(value));
}

/* Compute ceil(bits / 7) without a division by 7: (9 * bits + 64) / 64 is the same for up to 64 bits. */
static inline int kc_size_of_unsigned_varlong(uint64_t value) {
    return ((64 - __builtin_clzll(value | 1)) * 9 + 64) / 64;
}

static inline int kc_size_of_varlong(int64_t value) { return kc_size_of_unsigned_varlong(kc_zigzag(value)); }

#endif
