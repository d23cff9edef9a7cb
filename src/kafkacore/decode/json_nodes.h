/* Columns: append rows and remove them. Part of json_columns_impl.c.
 *
 * While a column grows, its validity is one byte per row. A repeated field removes rows from the middle, which is a
 * memmove of bytes and would be slow with bits. A field of a record has been seen if its column is longer than its
 * struct's column, so there are no flags to clear for each record. */
#ifndef KAFKACORE_JSON_NODES_H
#define KAFKACORE_JSON_NODES_H

#include <string.h>

#include "json_types.h"
#include "kafkacore/wire/memory.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

static inline int has_offsets(const kj_node *node) { return node->kind >= KJ_STRING && node->kind <= KJ_MAP; }

static inline int32_t *offsets_of(const kj_node *node) { return (int32_t *)node->data; }

static inline int take_memory(kj_node *node, int64_t size) {
    if (size > *node->memory_left) return KJ_TOO_LARGE;
    *node->memory_left -= size;
    return KJ_OK;
}

/* Grow the capacity to at least `rows` rows. */
static __attribute__((noinline)) int grow_rows(kj_node *node, int64_t rows) {
    int64_t capacity = node->capacity < 32 ? 64 : node->capacity * 2;
    if (capacity < rows) capacity = rows;
    if (capacity > INT32_MAX || take_memory(node, (capacity - node->capacity) * (1 + node->width)) != KJ_OK)
        return KJ_TOO_LARGE;
    uint8_t *valid = kc_realloc(node->valid, (size_t)capacity);
    if (valid == NULL) return KJ_NO_MEMORY;
    node->valid = valid;
    if (node->width) {
        int first = node->data == NULL;
        uint8_t *data = kc_realloc(node->data, (size_t)(capacity + 1) * (size_t)node->width);
        if (data == NULL) return KJ_NO_MEMORY;
        node->data = data;
        if (first && has_offsets(node)) offsets_of(node)[0] = 0;
    }
    node->capacity = capacity;
    return KJ_OK;
}

static inline int reserve_row(kj_node *node) {
    return LIKELY(node->rows < node->capacity) ? KJ_OK : grow_rows(node, node->rows + 1);
}

static __attribute__((noinline)) int grow_bytes(kj_node *node, int64_t more) {
    int64_t size = node->bytes_size + more;
    int64_t capacity = node->bytes_capacity < 512 ? 1024 : node->bytes_capacity * 2;
    /* Offsets limit the size to 31 bits. */
    if (more > INT32_MAX || size > INT32_MAX) return KJ_TOO_LARGE;
    if (capacity < size) capacity = size;
    if (take_memory(node, capacity - node->bytes_capacity) != KJ_OK) return KJ_TOO_LARGE;
    uint8_t *bytes = kc_realloc(node->bytes, (size_t)capacity + KJ_SLACK);
    if (bytes == NULL) return KJ_NO_MEMORY;
    node->bytes = bytes;
    node->bytes_capacity = capacity;
    return KJ_OK;
}

static inline int reserve_bytes(kj_node *node, int64_t more) {
    return LIKELY(more <= node->bytes_capacity - node->bytes_size) ? KJ_OK : grow_bytes(node, more);
}

static inline void end_bytes_row(kj_node *node) {
    offsets_of(node)[node->rows + 1] = (int32_t)node->bytes_size;
    node->valid[node->rows++] = KJ_IS_VALID;
}

static int append_null(kj_node *node) {
    int result = reserve_row(node);
    if (result != KJ_OK) return result;
    if (has_offsets(node))
        offsets_of(node)[node->rows + 1] = offsets_of(node)[node->rows];
    else if (node->kind == KJ_STRUCT)
        for (int32_t field = 0; field < node->child_count && result == KJ_OK; field++)
            result = append_null(&node->children[field]);
    else if (node->width)
        memset(node->data + node->rows * node->width, 0, (size_t)node->width);
    if (result != KJ_OK) return result;
    node->valid[node->rows++] = KJ_IS_NULL;
    return KJ_OK;
}

/* Remove all rows starting at `rows`. */
static void truncate_rows(kj_node *node, int64_t rows) {
    if (node->kind == KJ_STRUCT) {
        for (int32_t field = 0; field < node->child_count; field++) truncate_rows(&node->children[field], rows);
    } else if (has_offsets(node) && node->data != NULL && rows <= node->rows) {
        int32_t end = offsets_of(node)[rows];
        if (node->kind < KJ_LIST)
            node->bytes_size = end;
        else
            for (int32_t child = 0; child < node->child_count; child++) truncate_rows(&node->children[child], end);
    }
    if (rows < node->rows) node->rows = rows;
}

/* Remove `count` rows starting at `from`. */
static void erase_rows(kj_node *node, int64_t from, int64_t count) {
    int64_t behind = node->rows - from - count;
    if (count == 0) return;
    if (node->kind == KJ_STRUCT) {
        for (int32_t field = 0; field < node->child_count; field++) erase_rows(&node->children[field], from, count);
    } else if (has_offsets(node)) {
        int32_t *offsets = offsets_of(node);
        int32_t start = offsets[from], end = offsets[from + count];
        if (node->kind < KJ_LIST) {
            memmove(node->bytes + start, node->bytes + end, (size_t)(node->bytes_size - end));
            node->bytes_size -= end - start;
        } else {
            for (int32_t child = 0; child < node->child_count; child++)
                erase_rows(&node->children[child], start, end - start);
        }
        for (int64_t row = from; row <= from + behind; row++) offsets[row] = offsets[row + count] - (end - start);
    } else if (node->width) {
        memmove(node->data + from * node->width, node->data + (from + count) * node->width,
                (size_t)(behind * node->width));
    }
    memmove(node->valid + from, node->valid + from + count, (size_t)behind);
    node->rows -= count;
}

static void free_column(kj_node *node) {
    kc_free(node->valid);
    kc_free(node->data);
    kc_free(node->bytes);
    node->valid = node->data = node->bytes = NULL;
    node->rows = node->capacity = node->bytes_size = node->bytes_capacity = 0;
    for (int32_t child = 0; child < node->child_count; child++) free_column(&node->children[child]);
}

/* Append a number as one row. */
#define APPEND_NUMBER(node, type, value)                            \
    do {                                                            \
        int reserved = reserve_row(node);                           \
        if (UNLIKELY(reserved != KJ_OK)) return reserved;           \
        ((type *)(node)->data)[(node)->rows] = (type)(value);       \
        (node)->valid[(node)->rows++] = KJ_IS_VALID;                \
    } while (0)

#endif
