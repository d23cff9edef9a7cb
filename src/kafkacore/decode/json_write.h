/* Write JSON values to string columns in the format of Jackson's generator. Part of json_columns_impl.c. */
#ifndef KAFKACORE_JSON_WRITE_H
#define KAFKACORE_JSON_WRITE_H

#include <stdio.h>

#include "json_numbers.h"
#include "json_text.h"

static int put_bytes(kj_node *node, const void *data, int64_t size) {
    int result = reserve_bytes(node, size);
    if (result != KJ_OK) return result;
    memcpy(node->bytes + node->bytes_size, data, (size_t)size);
    node->bytes_size += size;
    return KJ_OK;
}

/* Write text in quotes. As in Jackson, characters above U+FFFF and unpaired surrogates are escaped. */
static int put_text(kj_node *node, const kj_text *text) {
    static const char *const named[] = {['\b'] = "b", ['\t'] = "t", ['\n'] = "n", ['\f'] = "f", ['\r'] = "r"};
    /* One byte becomes an escape of at most six bytes. */
    int result = reserve_bytes(node, 6 * (text->end - text->start) + 2);
    if (result != KJ_OK) return result;
    uint8_t *out = node->bytes + node->bytes_size;
    const uint8_t *p = text->start;
    *out++ = '"';
    while (p < text->end) {
        uint32_t point = next_point(&p, text->end);
        char escaped[16];
        if (point == '"' || point == '\\') {
            *out++ = '\\';
            *out++ = (uint8_t)point;
        } else if (point < 0x20 && point <= '\r' && named[point] != NULL) {
            *out++ = '\\';
            *out++ = (uint8_t)*named[point];
        } else if (point < 0x20 || (point >= 0xD800 && point < 0xE000)) {
            snprintf(escaped, sizeof escaped, "\\u%04X", point);
            memcpy(out, escaped, 6);
            out += 6;
        } else if (point >= 0x10000) {
            snprintf(escaped, sizeof escaped, "\\u%04X\\u%04X", 0xD800 + ((point - 0x10000) >> 10),
                     0xDC00 + (point & 0x3FF));
            memcpy(out, escaped, 12);
            out += 12;
        } else {
            out = put_utf8(out, point);
        }
    }
    *out++ = '"';
    node->bytes_size = out - node->bytes;
    return KJ_OK;
}

/* Format a double with the fewest digits that identify it, as Double.toString of Java 19 and newer. Return the size. */
static int format_double(double value, char *out) {
    char digits[40];
    char *at = out;
    int count = 0, exponent;
    if (value == 0) return sprintf(out, signbit(value) ? "-0.0" : "0.0");
    for (int precision = 1; precision < 17; precision++) {
        snprintf(digits, sizeof digits, "%.*e", precision, value);
        for (char *point = digits; *point; point++)
            if (*point == ',') *point = '.';
        if (strtod_l(digits, NULL, c_locale) == value) break;
    }
    const char *p = digits;
    if (*p == '-') *at++ = *p++;
    exponent = atoi(strchr(digits, 'e') + 1);
    char plain[32] = {0};
    for (; *p != 'e'; p++)
        if (is_digit((uint8_t)*p)) plain[count++] = *p;
    while (count > 1 && plain[count - 1] == '0') count--;
    if (exponent >= 7 || exponent < -3) {
        *at++ = plain[0];
        *at++ = '.';
        if (count == 1) *at++ = '0';
        memcpy(at, plain + 1, (size_t)(count - 1));
        at += count - 1;
        return (int)(at - out) + sprintf(at, "E%d", exponent);
    }
    if (exponent < 0) {
        *at++ = '0';
        *at++ = '.';
        for (int zero = exponent + 1; zero < 0; zero++) *at++ = '0';
        memcpy(at, plain, (size_t)count);
        return (int)(at + count - out);
    }
    for (int index = 0; index <= exponent; index++) *at++ = index < count ? plain[index] : '0';
    *at++ = '.';
    if (count <= exponent + 1) {
        *at++ = '0';
    } else {
        memcpy(at, plain + exponent + 1, (size_t)(count - exponent - 1));
        at += count - exponent - 1;
    }
    return (int)(at - out);
}

static int put_number(kj_node *node, const kj_number *number) {
    char text[64];
    double value;
    if (number->kind == KJ_NUMBER_INT) {
        if (number->negative && number->digit_count == 1 && number->start[1] == '0') return put_bytes(node, "0", 1);
        return put_bytes(node, number->start, number->end - number->start);
    }
    value = double_value(number);
    if (isnan(value)) return put_bytes(node, "\"NaN\"", 5);
    if (isinf(value)) return value < 0 ? put_bytes(node, "\"-Infinity\"", 11) : put_bytes(node, "\"Infinity\"", 10);
    return put_bytes(node, text, format_double(value, text));
}

#endif
