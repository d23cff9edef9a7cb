/* Read dates and times in text by the rules of Spark's casts. Part of json_columns_impl.c. */
#ifndef KAFKACORE_JSON_TIMES_H
#define KAFKACORE_JSON_TIMES_H

#include "json_numbers.h"
#include "json_text.h"

#define US_PER_SECOND 1000000ll
#define SECONDS_PER_DAY 86400ll

/* A local time with an offset, the name of a zone, or neither. */
typedef struct {
    int64_t local_us;
    int32_t has_offset; /* whether offset_s is set */
    int64_t offset_s;
    const uint8_t *zone, *zone_end; /* name of the zone, or NULL for the session's zone */
} kj_time;

static int is_leap(int64_t year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

static int is_date(int64_t year, int64_t month, int64_t day) {
    static const int8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (month < 1 || month > 12 || day < 1) return 0;
    return day <= days[month - 1] + (month == 2 && is_leap(year));
}

/* Return the days since 1970-01-01 in the proleptic Gregorian calendar. */
static int64_t days_from(int64_t year, int64_t month, int64_t day) {
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static inline int is_trimmed(uint8_t byte) { return byte <= 0x20 || byte == 0x7F; }

static void trim(const uint8_t **p, const uint8_t **end) {
    while (*p < *end && is_trimmed(**p)) ++*p;
    while (*end > *p && is_trimmed((*end)[-1])) --*end;
}

/* Read `least` to `most` digits and advance *p. Return their value, or -1 if the number of digits is different. */
static int64_t read_digits(const uint8_t **p, const uint8_t *end, int least, int most) {
    const uint8_t *start = *p;
    int64_t value = 0;
    while (*p < end && is_digit(**p) && *p - start <= most) value = value * 10 + (*(*p)++ - '0');
    return *p - start < least || *p - start > most ? -1 : value;
}

static int parse_date(const uint8_t *p, const uint8_t *end, int32_t *out) {
    int64_t year, month = 1, day = 1, days, sign = 1;
    trim(&p, &end);
    if (p == end) return 0;
    if (*p == '-' || *p == '+') sign = *p++ == '-' ? -1 : 1;
    year = read_digits(&p, end, 4, 7);
    if (year < 0) return 0;
    if (p < end) {
        if (*p++ != '-') return 0;
        month = read_digits(&p, end, 1, 2);
        if (month < 0) return 0;
        if (p < end) {
            if (*p++ != '-') return 0;
            day = read_digits(&p, end, 1, 2);
            /* As in Spark, any text may follow after a space or T. */
            if (day < 0 || (p < end && *p != ' ' && *p != 'T')) return 0;
        }
    }
    year *= sign;
    if (!is_date(year, month, day)) return 0;
    days = days_from(year, month, day);
    if (!fits_int32(days)) return 0;
    *out = (int32_t)days;
    return 1;
}

/* Read a date written as the number of days since 1970, as Spark 1.5 did. */
static int parse_days(const uint8_t *p, const uint8_t *end, int32_t *out) {
    int negative = p < end && *p == '-';
    int64_t value = 0;
    if (p < end && (*p == '-' || *p == '+')) p++;
    if (p == end) return 0;
    for (; p < end; p++) {
        if (!is_digit(*p)) return 0;
        value = value * 10 + (*p - '0');
        if (value > INT32_MAX) return 0;
    }
    value = negative ? -value : value;
    /* Days before the start of the Gregorian calendar would need the Julian calendar. */
    if (!fits_int32(value) || value < -141427) return 0;
    *out = (int32_t)value;
    return 1;
}

/* Read an offset +hh:mm, +h:mm, +hh:m, +hhmm, +hh, +h, +hhmmss or +hh:mm:ss in seconds. Return 0 if it is invalid. */
static int parse_offset(const uint8_t *p, const uint8_t *end, int64_t *out) {
    int64_t hours, minutes = 0, seconds = 0;
    int negative = p < end && *p == '-', colon = 0;
    if (p == end || (*p != '-' && *p != '+')) return 0;
    p++;
    const uint8_t *start = p;
    hours = read_digits(&p, end, 1, 6);
    if (hours < 0) return 0;
    int64_t size = p - start;
    if (size == 4) {
        minutes = hours % 100;
        hours /= 100;
    } else if (size == 6) {
        seconds = hours % 100;
        minutes = hours / 100 % 100;
        hours /= 10000;
    } else if (size > 2) {
        return 0;
    }
    if (size <= 2 && p < end) {
        if (*p++ != ':') return 0;
        colon = 1;
        start = p;
        minutes = read_digits(&p, end, 1, 2);
        if (minutes < 0 || (p - start == 1 && p < end)) return 0;
    }
    if (colon && p < end) {
        if (*p++ != ':') return 0;
        seconds = read_digits(&p, end, 2, 2);
        if (seconds < 0) return 0;
    }
    if (p != end || hours > 18 || minutes > 59 || seconds > 59) return 0;
    *out = hours * 3600 + minutes * 60 + seconds;
    if (*out > 18 * 3600) return 0;
    if (negative) *out = -*out;
    return 1;
}

static void parse_zone(const uint8_t *p, const uint8_t *end, kj_time *time) {
    /* Like Java's trim(), which removes all characters up to the space. */
    while (p < end && *p <= 0x20) p++;
    while (end > p && end[-1] <= 0x20) end--;
    time->has_offset = 1;
    time->offset_s = 0;
    if (end - p == 1 && *p == 'Z') return;
    if (end - p == 3 && (memcmp(p, "UTC", 3) == 0 || memcmp(p, "GMT", 3) == 0)) return;
    if (parse_offset(p, end, &time->offset_s)) return;
    time->has_offset = 0;
    time->zone = p;
    time->zone_end = end;
}

/* Compute microseconds since 1970 from a date and a time of day. Return 0 if they are invalid or out of range. */
static int join_time(int64_t year, int64_t month, int64_t day, int64_t hour, int64_t minute, int64_t second,
                     int64_t micros, int64_t *out) {
    int64_t seconds, us;
    if (!is_date(year, month, day) || hour > 23 || minute > 59 || second > 59) return 0;
    seconds = days_from(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second;
    /* The second of the smallest times is out of range itself; adding the microseconds brings it back into range. */
    if (__builtin_mul_overflow(seconds + (seconds < 0), US_PER_SECOND, &us)) return 0;
    return !__builtin_add_overflow(us, micros - (seconds < 0 ? US_PER_SECOND : 0), out);
}

/* Read a time in one of the formats that Spark accepts without a pattern. A time of day alone is not accepted, because
 * Spark would take the date on which it is read. */
static int parse_time(const uint8_t *p, const uint8_t *end, kj_time *time) {
    int64_t year, month = 1, day = 1, hour = 0, minute = 0, second = 0, micros = 0, sign = 1;
    time->has_offset = 0;
    time->zone = NULL;
    trim(&p, &end);
    if (p == end) return 0;
    if (*p == '-' || *p == '+') sign = *p++ == '-' ? -1 : 1;
    year = read_digits(&p, end, 4, 6);
    if (year < 0) return 0;
    if (p < end) {
        if (*p++ != '-' || (month = read_digits(&p, end, 1, 2)) < 0) return 0;
    }
    if (p < end) {
        if (*p++ != '-' || (day = read_digits(&p, end, 1, 2)) < 0) return 0;
    }
    if (p < end) {
        if (*p != ' ' && *p != 'T') return 0;
        p++;
        if ((hour = read_digits(&p, end, 1, 2)) < 0) return 0;
    }
    if (p < end) {
        if (*p++ != ':' || (minute = read_digits(&p, end, 1, 2)) < 0) return 0;
    }
    if (p < end) {
        if (*p++ != ':' || (second = read_digits(&p, end, 1, 2)) < 0) return 0;
    }
    if (p < end && *p == '.') {
        int64_t digits = 0;
        for (p++; p < end && is_digit(*p); p++, digits++)
            if (digits < 6) micros = micros * 10 + (*p - '0');
        for (; digits < 6; digits++) micros *= 10;
    }
    if (p < end) parse_zone(p, end, time);
    return join_time(sign * year, month, day, hour, minute, second, micros, &time->local_us);
}

/* Copy text such as 2020-01-02T00:00GMT+01:00 to the scratch without its first "GMT". Return KJ_WRONG without one. */
static int without_gmt(kj_decoder *decoder, kj_text *text) {
    const uint8_t *p = text->start;
    while (text->end - p >= 3 && memcmp(p, "GMT", 3) != 0) p++;
    if (text->end - p < 3) return KJ_WRONG;
    int64_t before = p - text->start, behind = text->end - p - 3;
    if (text->start != decoder->scratch) {
        if (reserve_scratch(decoder, before + behind) != KJ_OK) return KJ_NO_MEMORY;
        memcpy(decoder->scratch, text->start, (size_t)before);
    }
    memmove(decoder->scratch + before, p + 3, (size_t)behind);
    text->start = decoder->scratch;
    text->end = decoder->scratch + before + behind;
    return KJ_OK;
}

/* Return the number of the zone with a name, -1 if it is unknown, KJ_NO_MEMORY, or KJ_PYTHON_ERROR. */
static int32_t find_zone(kj_decoder *decoder, const uint8_t *name, int64_t size) {
    int32_t zone;
    if (size < 1 || size > 64) return -1;
    for (zone = 0; zone < decoder->zone_count; zone++)
        if (decoder->zone_sizes[zone] == size && memcmp(decoder->zone_names[zone], name, (size_t)size) == 0)
            return decoder->zone_is_known[zone] ? zone : -1;
    int known = decoder->zone_known(decoder->zone_context, name, size);
    if (known < 0) return KJ_PYTHON_ERROR;
    /* Unknown names use at most a quarter of the table. */
    if (zone == KJ_MAX_ZONES || (!known && zone > KJ_MAX_ZONES / 4)) return -1;
    decoder->zone_names[zone] = kc_malloc((size_t)size);
    if (decoder->zone_names[zone] == NULL) return KJ_NO_MEMORY;
    memcpy(decoder->zone_names[zone], name, (size_t)size);
    decoder->zone_sizes[zone] = (int32_t)size;
    decoder->zone_is_known[zone] = (uint8_t)known;
    decoder->zone_count++;
    return known ? zone : -1;
}

static int append_time(kj_decoder *decoder, kj_node *node, const kj_time *time) {
    int64_t us;
    int32_t zone = -1;
    if (time->has_offset || (time->zone == NULL && decoder->zone_is_fixed)) {
        int64_t offset_s = time->has_offset ? time->offset_s : decoder->zone_offset_s;
        if (__builtin_sub_overflow(time->local_us, offset_s * US_PER_SECOND, &us)) return KJ_WRONG;
        APPEND_NUMBER(node, int64_t, us);
        return KJ_OK;
    }
    if (time->zone != NULL) {
        zone = find_zone(decoder, time->zone, time->zone_end - time->zone);
        if (zone == KJ_PYTHON_ERROR || zone == KJ_NO_MEMORY) return zone;
        if (zone < 0) return KJ_WRONG;
    }
    /* Leave two days for the zone's offset, so that the instant fits 64 bits. */
    if (time->local_us > INT64_MAX - 2 * SECONDS_PER_DAY * US_PER_SECOND ||
        time->local_us < INT64_MIN + 2 * SECONDS_PER_DAY * US_PER_SECOND)
        return KJ_WRONG;
    if (decoder->pending_count == decoder->pending_capacity) {
        int64_t capacity = decoder->pending_capacity ? decoder->pending_capacity * 2 : 1024;
        if (take_memory(node, (capacity - decoder->pending_capacity) * (int64_t)sizeof(kj_pending)) != KJ_OK)
            return KJ_TOO_LARGE;
        kj_pending *pending = kc_realloc(decoder->pending, (size_t)capacity * sizeof(kj_pending));
        if (pending == NULL) return KJ_NO_MEMORY;
        decoder->pending = pending;
        decoder->pending_capacity = capacity;
    }
    APPEND_NUMBER(node, int64_t, decoder->pending_count);
    node->valid[node->rows - 1] = KJ_IS_PENDING;
    decoder->pending[decoder->pending_count].local_us = time->local_us;
    decoder->pending[decoder->pending_count++].zone = zone;
    return KJ_OK;
}

#endif
