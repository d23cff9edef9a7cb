/* Strings: find their end, resolve escapes, and replace invalid UTF-8. Part of json_columns_impl.c. */
#ifndef KAFKACORE_JSON_TEXT_H
#define KAFKACORE_JSON_TEXT_H

#include "json_nodes.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

typedef struct {
    const uint8_t *start, *end; /* between the quotes */
    int32_t has_escape, has_high; /* contains a backslash; contains a byte >= 0x80 */
} kj_text;

static inline int hex_digit(uint8_t byte) {
    if (byte >= '0' && byte <= '9') return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* Return the value of the four digits of \uXXXX, or -1. */
static inline int32_t hex_unit(const uint8_t *p) {
    int32_t unit = 0;
    for (int index = 0; index < 4; index++) {
        int digit = hex_digit(p[index]);
        if (digit < 0) return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

/* Return the position after the escape at the backslash `p`, or NULL if it is invalid. */
static const uint8_t *skip_escape(const kj_decoder *decoder, const uint8_t *p) {
    switch (p[1]) {
    case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't': return p + 2;
    case '\'': return decoder->allow_single_quotes ? p + 2 : NULL;
    case 'u': return hex_unit(p + 2) < 0 ? NULL : p + 6;
    default: return NULL;
    }
}

/* Return the first quote, backslash or byte below 0x20 at or after `p`. Set *has_high if a byte above 0x7F precedes it.
 * The zeros after the record stop the loop. */
static inline const uint8_t *plain_end(const uint8_t *p, uint8_t quote, int32_t *has_high) {
#ifdef __SSE2__
    const __m128i quotes = _mm_set1_epi8((char)quote), slashes = _mm_set1_epi8('\\'), control = _mm_set1_epi8(0x1F);
    for (;;) {
        __m128i block = _mm_loadu_si128((const __m128i *)p);
        __m128i special = _mm_or_si128(_mm_cmpeq_epi8(block, quotes), _mm_cmpeq_epi8(block, slashes));
        special = _mm_or_si128(special, _mm_cmpeq_epi8(_mm_min_epu8(block, control), block));
        uint32_t stops = (uint32_t)_mm_movemask_epi8(special), high = (uint32_t)_mm_movemask_epi8(block);
        if (stops) {
            uint32_t at = (uint32_t)__builtin_ctz(stops);
            *has_high |= (high & ((1u << at) - 1)) != 0;
            return p + at;
        }
        *has_high |= high != 0;
        p += 16;
    }
#else
    for (;; p++) {
        if (*p == quote || *p == '\\' || *p < 0x20) return p;
        *has_high |= *p >= 0x80;
    }
#endif
}

/* Scan text that starts at `p`, after the opening quote. Return the position after the closing quote, or NULL. */
static inline const uint8_t *scan_text(const kj_decoder *decoder, const uint8_t *p, uint8_t quote, kj_text *text) {
    text->start = p;
    text->has_escape = text->has_high = 0;
    for (;;) {
        p = plain_end(p, quote, &text->has_high);
        if (LIKELY(*p == quote)) {
            text->end = p;
            return p + 1;
        }
        if (*p != '\\') return NULL;
        text->has_escape = 1;
        p = skip_escape(decoder, p);
        if (p == NULL) return NULL;
    }
}

/* Return the number of bytes of the UTF-8 character at `p`. For an invalid one, return minus the number of bytes that
 * one U+FFFD replaces: like Java's decoder, the longest valid start of a character. */
static inline int utf8_size(const uint8_t *p, const uint8_t *end) {
    int64_t left = end - p;
    uint8_t lead = p[0], low = 0x80, high = 0xBF;
    int size;
    if (lead < 0x80) return 1;
    if (lead < 0xC2 || lead > 0xF4) return -1;
    size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
    if (lead == 0xED && left >= 2 && p[1] > high && p[1] <= 0xBF) return left >= 3 && (p[2] & 0xC0) == 0x80 ? -3 : -2;
    if (left < 2 || p[1] < low || p[1] > high) return -1;
    for (int index = 2; index < size; index++)
        if (left <= index || (p[index] & 0xC0) != 0x80) return -index;
    return size;
}

static int is_utf8(const uint8_t *p, const uint8_t *end) {
    while (p < end) {
        int size = utf8_size(p, end);
        if (size < 0) return 0;
        p += size;
    }
    return 1;
}

static inline uint8_t *put_utf8(uint8_t *out, uint32_t point) {
    if (point < 0x80) {
        *out++ = (uint8_t)point;
    } else if (point < 0x800) {
        *out++ = (uint8_t)(0xC0 | point >> 6);
        *out++ = (uint8_t)(0x80 | (point & 0x3F));
    } else if (point < 0x10000) {
        *out++ = (uint8_t)(0xE0 | point >> 12);
        *out++ = (uint8_t)(0x80 | (point >> 6 & 0x3F));
        *out++ = (uint8_t)(0x80 | (point & 0x3F));
    } else {
        *out++ = (uint8_t)(0xF0 | point >> 18);
        *out++ = (uint8_t)(0x80 | (point >> 12 & 0x3F));
        *out++ = (uint8_t)(0x80 | (point >> 6 & 0x3F));
        *out++ = (uint8_t)(0x80 | (point & 0x3F));
    }
    return out;
}

static inline int is_high_surrogate(int32_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
static inline int is_low_surrogate(int32_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

/* Return the code point of the next character of scanned text. An unpaired surrogate is returned as it is. */
static inline uint32_t next_point(const uint8_t **at, const uint8_t *end) {
    const uint8_t *p = *at;
    uint32_t point;
    int32_t unit, low;
    if (*p == '\\') {
        *at = p + 2;
        switch (p[1]) {
        case 'b': return '\b';
        case 'f': return '\f';
        case 'n': return '\n';
        case 'r': return '\r';
        case 't': return '\t';
        case 'u': break;
        default: return p[1];
        }
        unit = hex_unit(p + 2);
        *at = p + 6;
        if (!is_high_surrogate(unit) || end - p < 12 || p[6] != '\\' || p[7] != 'u') return (uint32_t)unit;
        low = hex_unit(p + 8);
        if (!is_low_surrogate(low)) return (uint32_t)unit;
        *at = p + 12;
        return 0x10000 + (((uint32_t)unit - 0xD800) << 10) + ((uint32_t)low - 0xDC00);
    }
    int size = utf8_size(p, end);
    if (size < 0) {
        *at = p - size;
        return 0xFFFD;
    }
    *at = p + size;
    if (size == 1) return *p;
    point = *p & (0xFFu >> (size + 1));
    for (int index = 1; index < size; index++) point = point << 6 | (p[index] & 0x3Fu);
    return point;
}

/* Write text as valid UTF-8 without escapes. `out` has three times its size. An unpaired surrogate becomes `half`. */
static uint8_t *unescape(const kj_text *text, uint8_t *out, uint8_t half) {
    const uint8_t *p = text->start;
    while (p < text->end) {
        if (*p < 0x80 && *p != '\\') {
            *out++ = *p++;
            continue;
        }
        uint32_t point = next_point(&p, text->end);
        if (point >= 0xD800 && point < 0xE000)
            *out++ = half;
        else
            out = put_utf8(out, point);
    }
    return out;
}

static int reserve_scratch(kj_decoder *decoder, int64_t size) {
    if (size <= decoder->scratch_capacity) return KJ_OK;
    uint8_t *scratch = kc_realloc(decoder->scratch, (size_t)size + KJ_SLACK);
    if (scratch == NULL) return KJ_NO_MEMORY;
    decoder->scratch = scratch;
    decoder->scratch_capacity = size;
    return KJ_OK;
}

/* Make text valid UTF-8 without escapes, in decoder->scratch if it has to change. Return KJ_OK or KJ_NO_MEMORY. */
static inline int plain_text(kj_decoder *decoder, kj_text *text, uint8_t half) {
    if (LIKELY(!text->has_escape && (!text->has_high || is_utf8(text->start, text->end)))) return KJ_OK;
    if (reserve_scratch(decoder, 3 * (text->end - text->start)) != KJ_OK) return KJ_NO_MEMORY;
    text->end = unescape(text, decoder->scratch, half);
    text->start = decoder->scratch;
    text->has_escape = 0;
    return KJ_OK;
}

static int append_text(kj_node *node, const kj_text *text) {
    int64_t size = text->end - text->start;
    int plain = !text->has_escape && (!text->has_high || is_utf8(text->start, text->end));
    int result = reserve_row(node);
    if (LIKELY(result == KJ_OK)) result = reserve_bytes(node, (plain ? size : 3 * size) + 1);
    if (UNLIKELY(result != KJ_OK)) return result;
    uint8_t *out = node->bytes + node->bytes_size;
    if (UNLIKELY(!plain)) {
        size = unescape(text, out, '?') - out;
    } else if (size <= 16) {
        /* Both buffers have at least 16 bytes left. */
        memcpy(out, text->start, 16);
    } else {
        memcpy(out, text->start, (size_t)size);
    }
    node->bytes_size += size;
    end_bytes_row(node);
    return KJ_OK;
}

#endif
