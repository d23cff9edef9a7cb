/* Numbers: the tokens that Jackson accepts, and the values that its getters return. Part of json_columns_impl.c.
 *
 * If the digits are at most 2^53 and the power of ten is at most 22, one operation gives the correctly rounded double.
 * strtod_l in the C locale reads all other numbers. A float is never read as a double first, because that would round
 * twice. */
#ifndef KAFKACORE_JSON_NUMBERS_H
#define KAFKACORE_JSON_NUMBERS_H

#include <locale.h>
#include <math.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

#include "json_nodes.h"

typedef __int128 kj_int128;

enum { KJ_NUMBER_INT, KJ_NUMBER_FLOAT, KJ_NUMBER_SPECIAL /* NaN or infinity */ };

typedef struct {
    const uint8_t *start, *end;
    int32_t kind;
    int32_t negative;
    int32_t digit_count;  /* before and after the decimal point, and in the exponent */
    int32_t fraction_digits;
    int64_t exponent;     /* as written; a value far out of range if it does not fit */
    double special;
} kj_number;

static inline int is_digit(uint8_t byte) { return (uint8_t)(byte - '0') < 10; }

/* The C locale, in which the decimal point is '.'. Created by kj_new. */
static locale_t c_locale;

static const uint8_t *scan_word(const uint8_t *p, const char *word) {
    size_t size = strlen(word);
    return memcmp(p, word, size) == 0 ? p + size : NULL;
}

/* Scan NaN, Infinity or INF at `p`, after a sign if `sign` is not 0. Return the position after it, or NULL. */
static const uint8_t *scan_special(const kj_decoder *decoder, const uint8_t *p, uint8_t sign, kj_number *number) {
    const uint8_t *end = scan_word(p, "Infinity");
    if (!decoder->allow_non_numeric) return NULL;
    number->kind = KJ_NUMBER_SPECIAL;
    number->special = sign == '-' ? -HUGE_VAL : HUGE_VAL;
    if (end == NULL && sign) end = scan_word(p, "INF");
    if (end == NULL && !sign) {
        end = scan_word(p, "NaN");
        number->special = (double)NAN;
    }
    return end;
}

static const uint8_t *scan_exponent(const uint8_t *p, kj_number *number) {
    int negative = *p == '-';
    if (*p == '-' || *p == '+') p++;
    if (!is_digit(*p)) return NULL;
    for (; is_digit(*p); p++) {
        number->digit_count++;
        if (number->exponent < 100000000000) number->exponent = number->exponent * 10 + (*p - '0');
    }
    if (negative) number->exponent = -number->exponent;
    return p;
}

/* Scan the number at `p`. Return the position after it, or NULL if it is invalid. */
static const uint8_t *scan_number(const kj_decoder *decoder, const uint8_t *p, kj_number *number) {
    number->start = p;
    number->kind = KJ_NUMBER_INT;
    number->exponent = 0;
    number->fraction_digits = 0;
    number->negative = *p == '-';
    if (UNLIKELY(!is_digit(*p))) {
        uint8_t sign = *p == '-' || *p == '+' ? *p++ : 0;
        if (!is_digit(*p) || sign != '-') {
            number->end = scan_special(decoder, p, sign, number);
            return number->end;
        }
    }
    const uint8_t *digits = p;
    if (*p == '0' && is_digit(p[1])) return NULL;
    while (is_digit(*p)) p++;
    if (p - digits > KJ_MAX_NUMBER_DIGITS) return NULL;
    number->digit_count = (int32_t)(p - digits);
    if (*p == '.') {
        const uint8_t *fraction = ++p;
        while (is_digit(*p)) p++;
        if (p == fraction || p - fraction > KJ_MAX_NUMBER_DIGITS) return NULL;
        number->fraction_digits = (int32_t)(p - fraction);
        number->digit_count += number->fraction_digits;
        number->kind = KJ_NUMBER_FLOAT;
    }
    if ((*p | 0x20) == 'e') {
        number->kind = KJ_NUMBER_FLOAT;
        const uint8_t *exponent = p + 1;
        p = scan_exponent(exponent, number);
        if (p == NULL || p - exponent > KJ_MAX_NUMBER_DIGITS + 1) return NULL;
    }
    if (number->digit_count > KJ_MAX_NUMBER_DIGITS) return NULL;
    number->end = p;
    return p;
}

/* Get the value of an integer token. Return 0 if it does not fit 64 bits. */
static inline int int_value(const kj_number *number, int64_t *out) {
    const uint8_t *p = number->start + number->negative;
    uint64_t value = 0;
    if (number->digit_count > 19) return 0;
    for (; p < number->end; p++) value = value * 10 + (uint64_t)(*p - '0');
    if (value > (uint64_t)INT64_MAX + (uint64_t)number->negative) return 0;
    *out = (int64_t)(number->negative ? 0 - value : value);
    return 1;
}

/* Get the digits of a number as an integer, and the power of ten to multiply it by. Return 0 if there are more than 19
 * significant digits. */
static int mantissa_of(const kj_number *number, uint64_t *mantissa, int64_t *exponent) {
    uint64_t value = 0;
    int kept = 0;
    for (const uint8_t *p = number->start + number->negative; p < number->end; p++) {
        if (*p == '.') continue;
        if (!is_digit(*p)) break;
        if (kept == 19) return 0;
        value = value * 10 + (uint64_t)(*p - '0');
        kept += value != 0;
    }
    *mantissa = value;
    *exponent = number->exponent - number->fraction_digits;
    return 1;
}

static const double POWERS_OF_TEN[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                       1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
static const float FLOAT_POWERS_OF_TEN[] = {1e0f, 1e1f, 1e2f, 1e3f, 1e4f, 1e5f, 1e6f, 1e7f, 1e8f, 1e9f, 1e10f};

static double double_value(const kj_number *number) {
    uint64_t mantissa;
    int64_t exponent, integer;
    if (number->kind == KJ_NUMBER_SPECIAL) return number->special;
    /* An integer -0 becomes 0, not a negative zero. */
    if (number->kind == KJ_NUMBER_INT && int_value(number, &integer)) return (double)integer;
    if (mantissa_of(number, &mantissa, &exponent) && mantissa <= (1ull << 53) && exponent >= -22 && exponent <= 22) {
        /* Both operands are exact, so the single rounding is correct (Clinger). */
        double value = (double)mantissa;
        value = exponent < 0 ? value / POWERS_OF_TEN[-exponent] : value * POWERS_OF_TEN[exponent];
        return number->negative ? -value : value;
    }
    return strtod_l((const char *)number->start, NULL, c_locale);
}

static float float_value(const kj_number *number) {
    uint64_t mantissa;
    int64_t exponent, integer;
    if (number->kind == KJ_NUMBER_SPECIAL) return (float)number->special;
    if (number->kind == KJ_NUMBER_INT && int_value(number, &integer)) return (float)integer;
    if (mantissa_of(number, &mantissa, &exponent) && mantissa <= (1u << 24) && exponent >= -10 && exponent <= 10) {
        float value = (float)mantissa;
        value = exponent < 0 ? value / FLOAT_POWERS_OF_TEN[-exponent] : value * FLOAT_POWERS_OF_TEN[exponent];
        return number->negative ? -value : value;
    }
    return strtof_l((const char *)number->start, NULL, c_locale);
}

/* Compute digits × 10^exponent as a decimal of the node's precision and scale, rounded half up. Skip other characters.
 * Return 0 if it does not fit. */
static int decimal_from(const kj_node *node, const uint8_t *p, const uint8_t *end, int64_t exponent, int negative,
                        kj_int128 *out) {
    kj_int128 value = 0;
    int64_t shift = exponent + node->scale, digits = 0, wanted, seen = 0;
    int round_up = 0;
    while (p < end && (*p == '0' || !is_digit(*p))) p++;
    for (const uint8_t *at = p; at < end; at++) digits += is_digit(*at);
    *out = 0;
    if (digits == 0) return 1;
    wanted = digits + shift; /* number of digits of the result */
    if (wanted > node->precision) return 0;
    for (; p < end && seen < wanted; p++) {
        if (!is_digit(*p)) continue;
        value = value * 10 + (*p - '0');
        seen++;
    }
    for (; seen < wanted; seen++) value *= 10;
    if (shift < 0 && wanted >= 0) {
        while (p < end && !is_digit(*p)) p++;
        round_up = p < end && *p >= '5';
    }
    value += round_up;
    if (round_up) {
        kj_int128 limit = 1;
        for (int32_t power = 0; power < node->precision; power++) limit *= 10;
        if (value >= limit) return 0;
    }
    *out = negative ? -value : value;
    return 1;
}

static inline int fits_int32(int64_t value) { return value >= INT32_MIN && value <= INT32_MAX; }

static int number_decimal(const kj_node *node, const kj_number *number, kj_int128 *out) {
    const uint8_t *end = number->start + number->negative;
    int64_t scale = number->fraction_digits - number->exponent;
    if (number->kind == KJ_NUMBER_SPECIAL || !fits_int32(number->exponent) || !fits_int32(scale)) return 0;
    while (is_digit(*end) || *end == '.') end++;
    return decimal_from(node, number->start, end, -scale, number->negative, out);
}

/* Read a decimal from text in the syntax of java.math.BigDecimal. As in Spark, commas are ignored. */
static int text_decimal(const kj_node *node, const uint8_t *p, const uint8_t *end, kj_int128 *out) {
    int64_t digits = 0, fraction = 0, exponent = 0;
    int in_fraction = 0, negative, exponent_negative, any = 0;
    while (p < end && *p == ',') p++;
    negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) p++;
    const uint8_t *start = p;
    for (; p < end && (is_digit(*p) || *p == ',' || (*p == '.' && !in_fraction)); p++) {
        in_fraction |= *p == '.';
        digits += is_digit(*p);
        fraction += is_digit(*p) && in_fraction;
    }
    const uint8_t *digits_end = p;
    if (digits == 0) return 0;
    if (p < end) {
        if ((*p++ | 0x20) != 'e') return 0;
        while (p < end && *p == ',') p++;
        exponent_negative = p < end && *p == '-';
        if (p < end && (*p == '-' || *p == '+')) p++;
        for (; p < end; p++) {
            if (*p == ',') continue;
            if (!is_digit(*p)) return 0;
            any = 1;
            if (exponent < 100000000000) exponent = exponent * 10 + (*p - '0');
        }
        if (!any) return 0;
        if (exponent_negative) exponent = -exponent;
    }
    if (!fits_int32(exponent) || !fits_int32(fraction - exponent)) return 0;
    return decimal_from(node, start, digits_end, exponent - fraction, negative, out);
}

#endif
