/* Growing columns of records, and their export by the Arrow C data interface. */
#ifndef KAFKACORE_COLUMNS_IMPL_H
#define KAFKACORE_COLUMNS_IMPL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The structures of the data and stream interfaces, declared as their specification requires. */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

#endif

/* Kinds of columns. */
enum { KC_OFFSET, KC_TIMESTAMP, KC_TIMESTAMP_TYPE, KC_KEY, KC_VALUE, KC_HEADERS, KC_COLUMN_KINDS };

/* Allocator of the columns' memory: kafkacore.wire._blocks. */
typedef struct {
    void *(*alloc)(size_t size);
    void *(*realloc)(void *block, size_t used, size_t size);
    void (*free)(void *block);
    size_t (*capacity)(const void *block);
} kc_memory;

/* Set the allocator. Call this once, before any other function. */
void kc_columns_use(const kc_memory *memory);

typedef struct {
    uint8_t *data; /* aligned to 64 bytes, or NULL */
    int64_t size;  /* bytes in use; 0 if the rows are counted elsewhere */
    int64_t capacity;
} kc_buffer;

/* Rows of variable length. Row i is data[offsets[i] .. offsets[i + 1]]. */
typedef struct {
    kc_buffer validity; /* one bit per row, 0 is null; written from the first null on */
    kc_buffer offsets;  /* int32, one more than there are rows */
    kc_buffer data;
    int64_t data_limit; /* size up to which data can be appended without further checks */
    int64_t null_count;
} kc_variable;

/* State to which the columns are rolled back if a batch is corrupt. */
typedef struct {
    int64_t rows, header_rows;
    int64_t sizes[4], null_counts[5];
} kc_mark;

typedef struct {
    int32_t references;
    int32_t column_count;
    int32_t columns[KC_COLUMN_KINDS]; /* the kinds, in the order of the columns */
    char *timestamp_format;
    uint32_t wanted; /* one bit for each of these kinds */
    int64_t timestamp_factor;
    int64_t max_column_bytes;
    int32_t headers_null_when_empty;
    int64_t rows;
    int64_t header_rows;
    kc_buffer offset, timestamp, timestamp_type;
    kc_variable key, value;
    kc_variable headers; /* its offsets are rows of the next two */
    kc_variable header_key, header_value;
} kc_columns;

/* The records of a batch to append, and the position in them. */
typedef struct {
    const uint8_t *pos; /* the next record */
    const uint8_t *end; /* end of the records and of the readable memory */
    int64_t base_offset, base_timestamp, max_timestamp;
    int32_t last_offset_delta, record_count;
    int32_t index; /* index of the next record */
    int32_t timestamp_type, has_log_append_time;
    int64_t from_offset, end_offset; /* range of offsets to append */
    int64_t left;                    /* maximum number of records to append */
    int64_t next_offset;             /* offset at which to continue */
} kc_run;

/* In addition to the codes of parse_impl.h. */
enum { KC_NO_MEMORY = -100 };

/* Create an empty set of columns with one reference. Returns NULL without memory. */
kc_columns *kc_columns_new(const int32_t *columns, int32_t column_count, const char *timestamp_format);

/* Reserve memory for `rows` rows with about `bytes` bytes of values. Returns 0, or -1 without memory. */
int kc_columns_reserve(kc_columns *columns, int64_t rows, int64_t bytes);

/* Append records for which rows have been reserved. Returns 0, also if it stopped before the end of the
 * batch, or the error in record `run->index`; then the caller rolls back. */
int kc_columns_append(kc_columns *columns, kc_run *run);
void kc_columns_retain(kc_columns *columns);
/* Release one reference. Any thread may call this, without the GIL. */
void kc_columns_release(kc_columns *columns);
int64_t kc_columns_bytes(const kc_columns *columns);

kc_mark kc_columns_mark(const kc_columns *columns);
void kc_columns_roll_back(kc_columns *columns, const kc_mark *mark);

int kc_buffer_grow(kc_buffer *buffer, int64_t used, int64_t more);

/* Reserve `more` bytes after the first `used`. Returns 0, or -1 without memory. */
static inline int kc_buffer_reserve(kc_buffer *buffer, int64_t used, int64_t more) {
    return more <= buffer->capacity - used ? 0 : kc_buffer_grow(buffer, used, more);
}

/* Reserve `more` rows after the first `rows`, without their data. */
int kc_variable_reserve_rows(kc_variable *column, int64_t rows, int64_t more);

/* Reserve `more` bytes of data, plus the bytes that copy_in_steps may write after them. Returns 0, or -1
 * without memory. */
int kc_columns_reserve_data(kc_columns *columns, kc_variable *column, int64_t more);

/* Set whether a row is valid (not null). The caller sets the end of the row. */
static inline void kc_variable_set_validity(kc_variable *column, int64_t row, int valid) {
    if (valid && column->null_count == 0)
        return;
    uint8_t bit = (uint8_t)(1u << (row & 7));
    if (column->null_count == 0)
        memset(column->validity.data, 0xFF, (size_t)(row >> 3) + 1); /* all rows before are valid */
    uint8_t *byte = column->validity.data + (row >> 3);
    *byte = valid ? (uint8_t)(*byte | bit) : (uint8_t)(*byte & ~bit);
    column->null_count += !valid;
}

static inline void kc_variable_end_row(kc_variable *column, int64_t row, int valid) {
    ((int32_t *)column->offsets.data)[row + 1] = (int32_t)column->data.size;
    kc_variable_set_validity(column, row, valid);
}

/* Append text as a row; three times its size must be reserved. Each longest invalid part of the UTF-8 becomes
 * one U+FFFD, as in Java and Python. */
void kc_variable_append_text(kc_variable *column, int64_t row, const uint8_t *data, int64_t size);

/* Fill an exported structure. Returns 0, or -1 without memory. Its release callback needs no GIL. */
int kc_export_schema(kc_columns *columns, struct ArrowSchema *out);
int kc_export_array(kc_columns *columns, struct ArrowArray *out);

#endif
