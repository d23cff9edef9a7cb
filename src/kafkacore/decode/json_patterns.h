/* Read dates and times by a pattern, like java.time's formatters in strict mode. Part of json_columns_impl.c.
 *
 * json_patterns.py compiles a pattern to a program: pairs of an operation and its argument. */
#ifndef KAFKACORE_JSON_PATTERNS_H
#define KAFKACORE_JSON_PATTERNS_H

#include "json_times.h"

struct kj_pattern {
    int32_t size;
    uint8_t program[];
};

typedef struct {
    int64_t year, month, day, hour, minute, second, micros, half_hour, afternoon;
    kj_time zone;
} kj_parts;

static inline uint8_t lower(uint8_t byte) { return byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte; }

/* Read exactly `width` digits, or from 1 to 18 if `width` is 1. */
static int read_number(const uint8_t **p, const uint8_t *end, int width, int64_t *out) {
    int64_t value = width == 1 ? read_digits(p, end, 1, 18) : 0;
    for (int index = 0; width > 1 && index < width; index++) {
        if (*p == end || !is_digit(**p)) return 0;
        value = value * 10 + (*(*p)++ - '0');
    }
    *out = value;
    return value >= 0;
}

static int read_year(const uint8_t **p, const uint8_t *end, int width, int64_t *out) {
    const uint8_t *start;
    uint8_t sign = *p < end && (**p == '-' || **p == '+') && width != 2 ? *(*p)++ : 0;
    if (sign == '+' && width == 1) return 0;
    start = *p;
    if (!sign && width > 1) {
        if (!read_number(p, end, width, out)) return 0;
        if (width == 2) *out += 2000;
        return 1;
    }
    *out = read_digits(p, end, width, 9);
    /* A plus sign is only allowed before more than `width` digits. */
    if (*out < 0 || (sign == '+' && *p - start <= width) || (sign == '-' && *out == 0)) return 0;
    if (sign == '-') *out = -*out;
    return 1;
}

static int read_month_name(const uint8_t **p, const uint8_t *end, int in_full, int64_t *out) {
    static const char *const names[] = {"january", "february", "march",     "april",   "may",      "june",
                                        "july",    "august",   "september", "october", "november", "december"};
    for (int month = 0; month < 12; month++) {
        int64_t size = in_full ? (int64_t)strlen(names[month]) : 3, at = 0;
        while (at < size && at < end - *p && lower((*p)[at]) == (uint8_t)names[month][at]) at++;
        if (at == size) {
            *p += size;
            *out = month + 1;
            return 1;
        }
    }
    return 0;
}

/* Read an offset by the pattern X, XX, XXX, x, xx or xxx. Z is compiled to xx. */
static int read_offset(const uint8_t **p, const uint8_t *end, int letter, int width, kj_time *zone) {
    int64_t hours, minutes = 0;
    zone->has_offset = 1;
    zone->offset_s = 0;
    if (*p < end && letter == 'X' && lower(**p) == 'z') {
        ++*p;
        return 1;
    }
    if (*p == end || (**p != '+' && **p != '-')) return 0;
    int negative = *(*p)++ == '-';
    if (!read_number(p, end, 2, &hours)) return 0;
    if (width == 3) {
        if (*p == end || *(*p)++ != ':' || !read_number(p, end, 2, &minutes)) return 0;
    } else if (width == 2 || (*p < end && is_digit(**p))) {
        if (!read_number(p, end, 2, &minutes)) return 0;
    }
    zone->offset_s = hours * 3600 + minutes * 60;
    if (minutes > 59 || zone->offset_s > 18 * 3600) return 0;
    if (negative) zone->offset_s = -zone->offset_s;
    return 1;
}

static int read_part(const uint8_t **p, const uint8_t *end, const uint8_t *operation, kj_parts *parts) {
    int width = operation[1];
    int64_t scale = 100000;
    switch (operation[0]) {
    case 'y': return read_year(p, end, width, &parts->year);
    case 'M': return width > 2 ? read_month_name(p, end, width > 3, &parts->month)
                               : read_number(p, end, width, &parts->month);
    case 'd': return read_number(p, end, width, &parts->day);
    case 'H': return read_number(p, end, width, &parts->hour);
    case 'h': return read_number(p, end, width, &parts->half_hour) && parts->half_hour >= 1 && parts->half_hour <= 12;
    case 'm': return read_number(p, end, width, &parts->minute);
    case 's': return read_number(p, end, width, &parts->second);
    case 'S':
        if (*p == end || !is_digit(**p)) return 0;
        for (; width > 0 && *p < end && is_digit(**p); width--, scale /= 10) parts->micros += (*(*p)++ - '0') * scale;
        return 1;
    case 'a':
        if (end - *p < 2 || lower((*p)[1]) != 'm' || (lower(**p) != 'a' && lower(**p) != 'p')) return 0;
        parts->afternoon = lower(**p) == 'p';
        *p += 2;
        return 1;
    case 'X':
    case 'x': return read_offset(p, end, operation[0], width, &parts->zone);
    case 'V':
        if (*p == end) return 0;
        parse_zone(*p, end, &parts->zone);
        *p = end;
        return 1;
    default:
        if (*p == end || lower(**p) != lower(operation[1])) return 0;
        ++*p;
        return 1;
    }
}

/* Run the program from `at` to `stop`. The part in brackets may be missing as a whole. */
static int read_parts(const uint8_t **p, const uint8_t *end, const uint8_t *at, const uint8_t *stop, kj_parts *parts) {
    while (at < stop) {
        if (*at == '[') {
            const uint8_t *inside = *p, *behind = at + 2 + 2 * at[1];
            kj_parts found = *parts;
            if (read_parts(&inside, end, at + 2, behind, &found)) {
                *p = inside;
                *parts = found;
            }
            at = behind;
        } else {
            if (!read_part(p, end, at, parts)) return 0;
            at += 2;
        }
    }
    return 1;
}

static int parse_pattern(const kj_pattern *pattern, const uint8_t *p, const uint8_t *end, kj_time *time) {
    kj_parts parts = {.year = 1970, .month = 1, .day = 1};
    if (!read_parts(&p, end, pattern->program, pattern->program + pattern->size, &parts) || p != end) return 0;
    if (parts.half_hour) parts.hour = parts.half_hour % 12 + 12 * parts.afternoon;
    *time = parts.zone;
    return join_time(parts.year, parts.month, parts.day, parts.hour, parts.minute, parts.second, parts.micros,
                     &time->local_us);
}

static int append_date_text(kj_decoder *decoder, kj_node *node, kj_text *text) {
    int32_t days = 0;
    kj_time time;
    int found;
    if (node->pattern != NULL) {
        found = parse_pattern(node->pattern, text->start, text->end, &time);
        if (found) {
            int64_t of_day = time.local_us % (SECONDS_PER_DAY * US_PER_SECOND);
            days = (int32_t)(time.local_us / (SECONDS_PER_DAY * US_PER_SECOND) - (of_day < 0));
        }
        if (!found && decoder->date_fallback) found = parse_date(text->start, text->end, &days);
    } else {
        found = parse_date(text->start, text->end, &days);
    }
    if (!found && decoder->date_fallback) {
        found = parse_days(text->start, text->end, &days);
        if (!found) {
            int result = without_gmt(decoder, text);
            if (result != KJ_OK) return result;
            found = parse_date(text->start, text->end, &days);
        }
    }
    if (!found) return KJ_WRONG;
    APPEND_NUMBER(node, int32_t, days);
    return KJ_OK;
}

static int append_local_text(kj_node *node, const kj_text *text) {
    kj_time time;
    int found = node->pattern != NULL ? parse_pattern(node->pattern, text->start, text->end, &time)
                                      : parse_time(text->start, text->end, &time);
    if (!found || time.has_offset || time.zone != NULL) return KJ_WRONG;
    APPEND_NUMBER(node, int64_t, time.local_us);
    return KJ_OK;
}

static int append_time_text(kj_decoder *decoder, kj_node *node, kj_text *text) {
    kj_time time;
    int result = KJ_WRONG, found;
    if (node->kind == KJ_TIMESTAMP_NTZ) return append_local_text(node, text);
    found = node->pattern != NULL ? parse_pattern(node->pattern, text->start, text->end, &time)
                                  : parse_time(text->start, text->end, &time);
    if (found) result = append_time(decoder, node, &time);
    if (result != KJ_WRONG || !decoder->time_fallback) return result;
    if (node->pattern != NULL && parse_time(text->start, text->end, &time)) result = append_time(decoder, node, &time);
    if (result != KJ_WRONG) return result;
    result = without_gmt(decoder, text);
    if (result != KJ_OK) return result;
    return parse_time(text->start, text->end, &time) ? append_time(decoder, node, &time) : KJ_WRONG;
}

#endif
