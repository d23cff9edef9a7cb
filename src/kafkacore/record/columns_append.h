/* The loop that appends the records of a batch to columns; part of columns_impl.c. */
#ifndef KAFKACORE_COLUMNS_APPEND_H
#define KAFKACORE_COLUMNS_APPEND_H

#include "columns_impl.h"
#include "parse_impl.h"

#define HAS(wanted, kind) (((wanted) >> (kind)) & 1u)

/* Values are copied in steps of this size, so that a short value needs no call. Columns have STEP more bytes
 * allocated than their limit. */
enum { STEP = 16, LONGEST_STEPPED = 512 };

/* Copy `size` bytes in steps. Up to STEP - 1 bytes after them are read and written too; the caller has
 * checked that they exist. */
static inline void copy_in_steps(uint8_t *to, const uint8_t *from, int64_t size) {
    int64_t at = 0;
    do {
        memcpy(to + at, from + at, STEP);
        at += STEP;
        __asm__("" : "+r"(at)); /* keeps the compiler from replacing the loop by a call of memcpy */
    } while (at < size);
}

static inline void append_data(kc_variable *column, int64_t row, const uint8_t *data, int64_t size,
                               const uint8_t *readable_end) {
    uint8_t *to = column->data.data + column->data.size;
    if (size > 0) {
        if (size <= LONGEST_STEPPED && size <= readable_end - data - STEP)
            copy_in_steps(to, data, size);
        else
            memcpy(to, data, (size_t)size);
        column->data.size += size;
    }
    kc_variable_end_row(column, row, size >= 0);
}

/* Make sure that the column can hold `size` more bytes, and grow it if it may. Returns 1; 0 if the column is
 * full; or -1 without memory. */
static __attribute__((noinline)) int grow_data(kc_columns *columns, kc_variable *column, int64_t size) {
    /* A record always fits into empty columns. */
    if (columns->rows > 0 && size > columns->max_column_bytes - column->data.size) return 0;
    return kc_columns_reserve_data(columns, column, size) < 0 ? -1 : 1;
}

static inline int ensure_data(kc_columns *columns, kc_variable *column, int64_t size) {
    return size <= column->data_limit - column->data.size ? 1 : grow_data(columns, column, size);
}

static inline int reserve_rows(kc_variable *column, int64_t rows, int64_t more) {
    if ((rows + more + 1) * 4 <= column->offsets.capacity && (rows + more) / 8 + 1 <= column->validity.capacity)
        return 0;
    return kc_variable_reserve_rows(column, rows, more);
}

static int ensure_headers(kc_columns *columns, const kc_record *record, const uint8_t *end) {
    /* An invalid UTF-8 byte becomes U+FFFD, which takes three bytes. */
    int64_t bytes = 3 * (end - record->headers);
    if (record->header_count == 0) return 1;
    if (columns->rows > 0 && (bytes > columns->max_column_bytes - columns->header_key.data.size ||
                              bytes > columns->max_column_bytes - columns->header_value.data.size ||
                              record->header_count > INT32_MAX - columns->header_rows))
        return 0;
    if (reserve_rows(&columns->header_key, columns->header_rows, record->header_count) < 0 ||
        reserve_rows(&columns->header_value, columns->header_rows, record->header_count) < 0 ||
        kc_columns_reserve_data(columns, &columns->header_key, bytes) < 0 ||
        kc_columns_reserve_data(columns, &columns->header_value, bytes) < 0)
        return -1;
    return 1;
}

static void append_headers(kc_columns *columns, const kc_record *record, const uint8_t *end,
                           const uint8_t *readable_end) {
    const uint8_t *pos = record->headers, *key = NULL, *value = NULL;
    int32_t key_size = 0, value_size = 0;
    for (int32_t index = 0; index < record->header_count; index++) {
        /* The headers were parsed before, but the bytes may be in a bytearray that another thread changes
         * now. Whatever it contains, only the reserved memory is written. */
        if (kc_read_header(&pos, end, &key, &key_size, &value, &value_size) < 0) key_size = value_size = 0;
        kc_variable_append_text(&columns->header_key, columns->header_rows, key, key_size);
        append_data(&columns->header_value, columns->header_rows, value, value_size, readable_end);
        columns->header_rows++;
    }
    ((int32_t *)columns->headers.offsets.data)[columns->rows + 1] = (int32_t)columns->header_rows;
    kc_variable_set_validity(&columns->headers, columns->rows,
                             record->header_count > 0 || !columns->headers_null_when_empty);
}

static inline int64_t scaled(int64_t timestamp_ms, int64_t factor) {
    int64_t product;
    if (factor == 1) return timestamp_ms;
    if (__builtin_mul_overflow(timestamp_ms, factor, &product)) return timestamp_ms < 0 ? INT64_MIN : INT64_MAX;
    return product;
}

static inline int64_t timestamp_of(const kc_run *run, const kc_record *record) {
    if (run->has_log_append_time) return run->max_timestamp;
    /* Unsigned, because the delta is untrusted and the sum may overflow. */
    return (int64_t)((uint64_t)run->base_timestamp + (uint64_t)record->timestamp_delta);
}

/* Append a row. Returns 1, 0 if a column is full, or -1 without memory. `wanted` is a constant in the common
 * cases. */
static inline __attribute__((always_inline)) int append_row(kc_columns *columns, const kc_run *run,
                                                            const kc_record *record, int64_t offset,
                                                            const uint8_t *end, uint32_t wanted) {
    int64_t row = columns->rows;
    int fits = 1;
    if (HAS(wanted, KC_KEY)) fits = ensure_data(columns, &columns->key, record->key_size);
    if (HAS(wanted, KC_VALUE) && fits > 0) fits = ensure_data(columns, &columns->value, record->value_size);
    if (HAS(wanted, KC_HEADERS) && fits > 0) fits = ensure_headers(columns, record, end);
    if (__builtin_expect(fits <= 0, 0)) return fits;
    if (HAS(wanted, KC_OFFSET)) ((int64_t *)columns->offset.data)[row] = offset;
    if (HAS(wanted, KC_TIMESTAMP))
        ((int64_t *)columns->timestamp.data)[row] = scaled(timestamp_of(run, record), columns->timestamp_factor);
    if (HAS(wanted, KC_TIMESTAMP_TYPE)) ((int32_t *)columns->timestamp_type.data)[row] = run->timestamp_type;
    if (HAS(wanted, KC_KEY)) append_data(&columns->key, row, record->key, record->key_size, run->end);
    if (HAS(wanted, KC_VALUE)) append_data(&columns->value, row, record->value, record->value_size, run->end);
    if (HAS(wanted, KC_HEADERS)) append_headers(columns, record, end, run->end);
    columns->rows = row + 1;
    return 1;
}

static inline __attribute__((always_inline)) int append_run(kc_columns *columns, kc_run *run, uint32_t wanted) {
    const uint8_t *pos = run->pos, *record_at = pos;
    int32_t index = run->index;
    int64_t left = run->left, offset;
    int result = KC_PARSE_OK, appended = 1;
    kc_record record;
    for (; index < run->record_count; index++) {
        record_at = pos;
        result = kc_parse_record(&pos, run->end, run->last_offset_delta, &record);
        if (__builtin_expect(result != KC_PARSE_OK, 0)) goto stop;
        offset = run->base_offset + record.offset_delta;
        if (offset < run->from_offset) continue;
        if (left == 0 || offset >= run->end_offset) goto stop_before;
        appended = append_row(columns, run, &record, offset, pos, wanted);
        if (__builtin_expect(appended <= 0, 0)) goto stop_before;
        left--;
    }
    record_at = pos;
    run->next_offset = run->base_offset + run->last_offset_delta + 1;
    if (pos != run->end) result = KC_RECORDS_LEFT;
    goto stop;
stop_before:
    run->next_offset = offset;
    if (appended < 0) result = KC_NO_MEMORY;
stop:
    run->pos = record_at;
    run->index = index;
    run->left = left;
    return result;
}

#endif
