/* Growing columns of records, and their export by the Arrow C data interface.
 *
 * A set of columns is reference-counted. An exported array or schema, and each of their children, holds one
 * reference. A consumer may therefore move children out of their parent and release them in any order, on any
 * thread, without the GIL. */
#include "columns_append.h"
#include "columns_impl.h"
#include "kafkacore/wire/memory.h"


#define ALIGNMENT 64
#define FIRST_CAPACITY 4096

/* Data of buffers without memory, because the interface discourages NULL. The zeros also serve as a single
 * offset. */
static const uint8_t nothing[ALIGNMENT] __attribute__((aligned(ALIGNMENT)));

/* ---- Memory ---------------------------------------------------------------------------------------------- */

static kc_memory memory;

void kc_columns_use(const kc_memory *used) { memory = *used; }

int kc_buffer_grow(kc_buffer *buffer, int64_t used, int64_t more) {
    int64_t capacity = buffer->capacity * 2;
    if (capacity < used + more)
        capacity = used + more;
    if (capacity < FIRST_CAPACITY)
        capacity = FIRST_CAPACITY;
    void *grown = memory.realloc(buffer->data, (size_t)used, (size_t)capacity);
    if (grown == NULL)
        return -1;
    buffer->data = grown;
    buffer->capacity = (int64_t)memory.capacity(grown);
    return 0;
}

int kc_columns_reserve_data(kc_columns *columns, kc_variable *column, int64_t more) {
    if (kc_buffer_reserve(&column->data, column->data.size, more + STEP) < 0)
        return -1;
    column->data_limit = column->data.capacity - STEP;
    if (column->data_limit > columns->max_column_bytes)
        column->data_limit = columns->max_column_bytes;
    return 0;
}

int kc_variable_reserve_rows(kc_variable *column, int64_t rows, int64_t more) {
    int first = column->offsets.data == NULL;
    if (kc_buffer_reserve(&column->offsets, (rows + 1) * 4 * !first, (more + 1) * 4) < 0)
        return -1;
    if (first)
        memset(column->offsets.data, 0, 4);
    return kc_buffer_reserve(&column->validity, (rows + 7) / 8, more / 8 + 1);
}

static void free_variable(kc_variable *column) {
    memory.free(column->validity.data);
    memory.free(column->offsets.data);
    memory.free(column->data.data);
}

kc_columns *kc_columns_new(const int32_t *columns, int32_t column_count, const char *timestamp_format) {
    kc_columns *made = kc_calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->references = 1;
    made->column_count = column_count;
    memcpy(made->columns, columns, (size_t)column_count * sizeof *columns);
    for (int32_t index = 0; index < column_count; index++)
        made->wanted |= 1u << columns[index];
    made->timestamp_format = kc_malloc(strlen(timestamp_format) + 1);
    if (made->timestamp_format == NULL) {
        kc_free(made);
        return NULL;
    }
    strcpy(made->timestamp_format, timestamp_format);
    return made;
}

void kc_columns_retain(kc_columns *columns) { __atomic_add_fetch(&columns->references, 1, __ATOMIC_RELAXED); }

void kc_columns_release(kc_columns *columns) {
    if (__atomic_sub_fetch(&columns->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    memory.free(columns->offset.data);
    memory.free(columns->timestamp.data);
    memory.free(columns->timestamp_type.data);
    free_variable(&columns->key);
    free_variable(&columns->value);
    free_variable(&columns->headers);
    free_variable(&columns->header_key);
    free_variable(&columns->header_value);
    kc_free(columns->timestamp_format);
    kc_free(columns);
}

static int64_t variable_bytes(const kc_variable *column) {
    return column->validity.capacity + column->offsets.capacity + column->data.capacity;
}

int64_t kc_columns_bytes(const kc_columns *columns) {
    return columns->offset.capacity + columns->timestamp.capacity + columns->timestamp_type.capacity +
           variable_bytes(&columns->key) + variable_bytes(&columns->value) + variable_bytes(&columns->headers) +
           variable_bytes(&columns->header_key) + variable_bytes(&columns->header_value);
}

kc_mark kc_columns_mark(const kc_columns *columns) {
    kc_mark mark = {
        columns->rows,
        columns->header_rows,
        {columns->key.data.size, columns->value.data.size, columns->header_key.data.size,
         columns->header_value.data.size},
        {columns->key.null_count, columns->value.null_count, columns->header_key.null_count,
         columns->header_value.null_count, columns->headers.null_count},
    };
    return mark;
}

void kc_columns_roll_back(kc_columns *columns, const kc_mark *mark) {
    kc_variable *with_data[] = {&columns->key, &columns->value, &columns->header_key, &columns->header_value};
    columns->rows = mark->rows;
    columns->header_rows = mark->header_rows;
    for (int index = 0; index < 4; index++) {
        with_data[index]->data.size = mark->sizes[index];
        with_data[index]->null_count = mark->null_counts[index];
    }
    columns->headers.null_count = mark->null_counts[4];
}

/* ---- Rows ------------------------------------------------------------------------------------------------ */

/* Return the length of the character at `at`, or minus the length of the longest prefix that could start one. */
static int64_t utf8_step(const uint8_t *at, int64_t left) {
    uint8_t lead = at[0], low = 0x80, high = 0xBF;
    int64_t length;
    if (lead < 0x80)
        return 1;
    if (lead >= 0xC2 && lead <= 0xDF)
        length = 2;
    else if (lead >= 0xE0 && lead <= 0xEF)
        length = 3;
    else if (lead >= 0xF0 && lead <= 0xF4)
        length = 4;
    else
        return -1;
    /* The second byte excludes overlong forms, surrogates and values above U+10FFFF. */
    if (lead == 0xE0)
        low = 0xA0;
    else if (lead == 0xED)
        high = 0x9F;
    else if (lead == 0xF0)
        low = 0x90;
    else if (lead == 0xF4)
        high = 0x8F;
    for (int64_t index = 1; index < length; index++, low = 0x80, high = 0xBF)
        if (index == left || at[index] < low || at[index] > high)
            return -index;
    return length;
}

static int is_utf8(const uint8_t *data, int64_t size) {
    int64_t at = 0, step;
    uint64_t eight;
    for (; size - at >= 8; at += 8) {
        memcpy(&eight, data + at, 8);
        if (eight & 0x8080808080808080u)
            break;
    }
    for (; at < size; at += step)
        if ((step = utf8_step(data + at, size - at)) < 0)
            return 0;
    return 1;
}

void kc_variable_append_text(kc_variable *column, int64_t row, const uint8_t *data, int64_t size) {
    uint8_t *out = column->data.data + column->data.size;
    if (is_utf8(data, size)) {
        memcpy(out, data, (size_t)size);
        out += size;
        size = 0;
    }
    while (size > 0) {
        int64_t step = utf8_step(data, size);
        if (step > 0) {
            memcpy(out, data, (size_t)step);
            out += step;
        } else {
            memcpy(out, "\xEF\xBF\xBD", 3);
            out += 3;
            step = -step;
        }
        data += step;
        size -= step;
    }
    column->data.size = out - column->data.data;
    kc_variable_end_row(column, row, 1);
}

int kc_columns_reserve(kc_columns *columns, int64_t more, int64_t bytes) {
    uint32_t wanted = columns->wanted;
    int64_t rows = columns->rows;
    if (HAS(wanted, KC_OFFSET) && kc_buffer_reserve(&columns->offset, rows * 8, more * 8) < 0)
        return -1;
    if (HAS(wanted, KC_TIMESTAMP) && kc_buffer_reserve(&columns->timestamp, rows * 8, more * 8) < 0)
        return -1;
    if (HAS(wanted, KC_TIMESTAMP_TYPE) && kc_buffer_reserve(&columns->timestamp_type, rows * 4, more * 4) < 0)
        return -1;
    if (HAS(wanted, KC_KEY) && kc_variable_reserve_rows(&columns->key, rows, more) < 0)
        return -1;
    if (HAS(wanted, KC_HEADERS) && kc_variable_reserve_rows(&columns->headers, rows, more) < 0)
        return -1;
    if (!HAS(wanted, KC_VALUE))
        return 0;
    if (bytes > columns->max_column_bytes - columns->value.data.size)
        bytes = columns->max_column_bytes - columns->value.data.size;
    if (bytes < 0)
        bytes = 0;
    return kc_variable_reserve_rows(&columns->value, rows, more) < 0 ||
                   kc_columns_reserve_data(columns, &columns->value, bytes) < 0
               ? -1
               : 0;
}

/* The most common sets of columns have a specialized loop. */
int kc_columns_append(kc_columns *columns, kc_run *run) {
    const uint32_t value = 1u << KC_VALUE;
    const uint32_t common = 1u << KC_OFFSET | 1u << KC_TIMESTAMP | 1u << KC_KEY | value;
    if (columns->wanted == value)
        return append_run(columns, run, value);
    if (columns->wanted == common)
        return append_run(columns, run, common);
    return append_run(columns, run, columns->wanted);
}

/* ---- Export ---------------------------------------------------------------------------------------------- */

typedef struct {
    kc_columns *columns;
    const void *buffers[3];
    struct ArrowArray *children[KC_COLUMN_KINDS];
    struct ArrowArray storage[KC_COLUMN_KINDS];
} array_private;

static void release_array(struct ArrowArray *array) {
    array_private *private = array->private_data;
    for (int64_t index = 0; index < array->n_children; index++)
        if (array->children[index]->release != NULL)
            array->children[index]->release(array->children[index]);
    kc_columns_release(private->columns);
    kc_free(private);
    array->release = NULL;
}

static array_private *begin_array(kc_columns *columns, struct ArrowArray *out, int64_t length, int64_t null_count,
                                  int64_t buffer_count) {
    array_private *private = kc_calloc(1, sizeof *private);
    if (private == NULL)
        return NULL;
    memset(out, 0, sizeof *out);
    private->columns = columns;
    kc_columns_retain(columns);
    for (int index = 0; index < KC_COLUMN_KINDS; index++)
        private->children[index] = &private->storage[index];
    out->length = length;
    out->null_count = null_count;
    out->n_buffers = buffer_count;
    out->buffers = private->buffers;
    out->children = private->children;
    out->release = release_array;
    out->private_data = private;
    return private;
}

static const void *memory_of(const kc_buffer *buffer) { return buffer->data != NULL ? buffer->data : nothing; }

static int export_fixed(kc_columns *columns, struct ArrowArray *out, const kc_buffer *values) {
    array_private *private = begin_array(columns, out, columns->rows, 0, 2);
    if (private == NULL)
        return -1;
    private->buffers[1] = memory_of(values);
    return 0;
}

static int export_variable(kc_columns *columns, struct ArrowArray *out, const kc_variable *column, int64_t rows) {
    array_private *private = begin_array(columns, out, rows, column->null_count, 3);
    if (private == NULL)
        return -1;
    private->buffers[0] = column->null_count > 0 ? column->validity.data : NULL;
    private->buffers[1] = memory_of(&column->offsets);
    private->buffers[2] = memory_of(&column->data);
    return 0;
}

/* A child is counted in n_children once it is complete, so that releasing the parent releases all existing
 * children. */
static int export_headers(kc_columns *columns, struct ArrowArray *out) {
    array_private *list = begin_array(columns, out, columns->rows, columns->headers.null_count, 2);
    if (list == NULL)
        return -1;
    list->buffers[0] = columns->headers.null_count > 0 ? columns->headers.validity.data : NULL;
    list->buffers[1] = memory_of(&columns->headers.offsets);
    struct ArrowArray *header = out->children[0];
    if (begin_array(columns, header, columns->header_rows, 0, 1) == NULL)
        return -1;
    out->n_children = 1;
    if (export_variable(columns, header->children[0], &columns->header_key, columns->header_rows) < 0)
        return -1;
    header->n_children = 1;
    if (export_variable(columns, header->children[1], &columns->header_value, columns->header_rows) < 0)
        return -1;
    header->n_children = 2;
    return 0;
}

static int export_column(kc_columns *columns, struct ArrowArray *out, int32_t kind) {
    switch (kind) {
    case KC_OFFSET:
        return export_fixed(columns, out, &columns->offset);
    case KC_TIMESTAMP:
        return export_fixed(columns, out, &columns->timestamp);
    case KC_TIMESTAMP_TYPE:
        return export_fixed(columns, out, &columns->timestamp_type);
    case KC_KEY:
        return export_variable(columns, out, &columns->key, columns->rows);
    case KC_VALUE:
        return export_variable(columns, out, &columns->value, columns->rows);
    default:
        return export_headers(columns, out);
    }
}

int kc_export_array(kc_columns *columns, struct ArrowArray *out) {
    if (begin_array(columns, out, columns->rows, 0, 1) == NULL)
        return -1;
    for (int32_t index = 0; index < columns->column_count; index++) {
        struct ArrowArray *child = out->children[index];
        int failed = export_column(columns, child, columns->columns[index]);
        if (child->release != NULL)
            out->n_children = index + 1;
        if (failed) {
            out->release(out);
            return -1;
        }
    }
    return 0;
}

typedef struct {
    kc_columns *columns;
    struct ArrowSchema *children[KC_COLUMN_KINDS];
    struct ArrowSchema storage[KC_COLUMN_KINDS];
} schema_private;

static void release_schema(struct ArrowSchema *schema) {
    schema_private *private = schema->private_data;
    for (int64_t index = 0; index < schema->n_children; index++)
        if (schema->children[index]->release != NULL)
            schema->children[index]->release(schema->children[index]);
    kc_columns_release(private->columns);
    kc_free(private);
    schema->release = NULL;
}

static int begin_schema(kc_columns *columns, struct ArrowSchema *out, const char *format, const char *name) {
    schema_private *private = kc_calloc(1, sizeof *private);
    if (private == NULL)
        return -1;
    memset(out, 0, sizeof *out);
    private->columns = columns; /* the owner of the timestamp format */
    kc_columns_retain(columns);
    for (int index = 0; index < KC_COLUMN_KINDS; index++)
        private->children[index] = &private->storage[index];
    out->format = format;
    out->name = name;
    out->flags = ARROW_FLAG_NULLABLE;
    out->children = private->children;
    out->release = release_schema;
    out->private_data = private;
    return 0;
}

/* The element has the name that Spark uses; Arrow does not require one. */
static int describe_headers(kc_columns *columns, struct ArrowSchema *out) {
    struct ArrowSchema *header = out->children[0];
    if (begin_schema(columns, header, "+s", "element") < 0)
        return -1;
    out->n_children = 1;
    if (begin_schema(columns, header->children[0], "u", "key") < 0)
        return -1;
    header->n_children = 1;
    if (begin_schema(columns, header->children[1], "z", "value") < 0)
        return -1;
    header->n_children = 2;
    return 0;
}

int kc_export_schema(kc_columns *columns, struct ArrowSchema *out) {
    static const char *const names[] = {"offset", "timestamp", "timestamp_type", "key", "value", "headers"};
    const char *const formats[] = {"l", columns->timestamp_format, "i", "z", "z", "+l"};
    if (begin_schema(columns, out, "+s", "") < 0)
        return -1;
    for (int32_t index = 0; index < columns->column_count; index++) {
        int32_t kind = columns->columns[index];
        struct ArrowSchema *child = out->children[index];
        int failed = begin_schema(columns, child, formats[kind], names[kind]) < 0;
        if (!failed) {
            out->n_children = index + 1;
            failed = kind == KC_HEADERS && describe_headers(columns, child) < 0;
        }
        if (failed) {
            out->release(out);
            return -1;
        }
    }
    return 0;
}
