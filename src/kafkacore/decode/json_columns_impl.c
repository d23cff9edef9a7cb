/* Decoder of JSON records: the loop over the records, and memory management. See json_types.h. */
#define _GNU_SOURCE /* strtod_l */
#include "json_parse.h"

kj_decoder *kj_new(void) {
    if (c_locale == (locale_t)0) c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c_locale == (locale_t)0) return NULL;
    kj_decoder *decoder = kc_calloc(1, sizeof(kj_decoder));
    if (decoder != NULL) decoder->root.memory_left = &decoder->memory_left;
    return decoder;
}

static void free_node(kj_node *node) {
    kc_free(node->valid);
    kc_free(node->data);
    kc_free(node->bytes);
    for (int32_t child = 0; child < node->child_count; child++) {
        if (node->children != NULL) free_node(&node->children[child]);
        if (node->names != NULL) kc_free(node->names[child]);
    }
    kc_free(node->children);
    kc_free(node->names);
    kc_free(node->name_sizes);
    kc_free(node->table);
    kc_free(node->pattern);
}

void kj_free(kj_decoder *decoder) {
    if (decoder == NULL) return;
    free_node(&decoder->root);
    for (int32_t zone = 0; zone < decoder->zone_count; zone++) kc_free(decoder->zone_names[zone]);
    kc_free(decoder->pending);
    kc_free(decoder->record);
    kc_free(decoder->scratch);
    kc_free(decoder->malformed);
    kc_free(decoder);
}

int kj_node_setup(kj_node *node, int32_t kind, int32_t width, int32_t child_count) {
    node->kind = kind;
    node->width = width;
    if (child_count == 0) return KJ_OK;
    node->children = kc_calloc((size_t)child_count, sizeof(kj_node));
    if (node->children == NULL) return KJ_NO_MEMORY;
    node->child_count = child_count;
    for (int32_t child = 0; child < child_count; child++) node->children[child].memory_left = node->memory_left;
    if (kind != KJ_STRUCT) return KJ_OK;
    node->names = kc_calloc((size_t)child_count, sizeof(uint8_t *));
    node->name_sizes = kc_calloc((size_t)child_count, sizeof(int32_t));
    return node->names == NULL || node->name_sizes == NULL ? KJ_NO_MEMORY : KJ_OK;
}

int kj_node_name(kj_node *node, int32_t field, const uint8_t *name, int64_t size) {
    node->names[field] = kc_calloc(1, (size_t)size + 16);
    if (node->names[field] == NULL) return KJ_NO_MEMORY;
    memcpy(node->names[field], name, (size_t)size);
    node->names[field][size] = '"';
    node->name_sizes[field] = (int32_t)size + 1;
    return KJ_OK;
}

static int is_escaped_in_json(const uint8_t *name, int64_t size) {
    for (int64_t at = 0; at < size; at++)
        if (name[at] == '"' || name[at] == '\\' || name[at] < 0x20) return 1;
    return 0;
}

int kj_node_index(kj_node *node) {
    uint32_t size = 4;
    if (node->child_count == 0) return KJ_OK;
    node->expected_count = node->child_count;
    for (int32_t field = 0; field < node->child_count; field++)
        if (is_escaped_in_json(node->names[field], node->name_sizes[field] - 1)) node->expected_count = 0;
    while (size < 2u * (uint32_t)node->child_count) size *= 2;
    node->table = kc_malloc(size * sizeof(int32_t));
    if (node->table == NULL) return KJ_NO_MEMORY;
    node->table_mask = size - 1;
    memset(node->table, 0xFF, size * sizeof(int32_t));
    for (int32_t field = 0; field < node->child_count; field++) {
        uint32_t at = hash_name(node->names[field], node->name_sizes[field] - 1);
        while (node->table[at & node->table_mask] >= 0) at++;
        node->table[at & node->table_mask] = field;
    }
    return KJ_OK;
}

int kj_node_pattern(kj_node *node, const uint8_t *program, int64_t size) {
    node->pattern = kc_malloc(sizeof(kj_pattern) + (size_t)size);
    if (node->pattern == NULL) return KJ_NO_MEMORY;
    node->pattern->size = (int32_t)size;
    memcpy(node->pattern->program, program, (size_t)size);
    return KJ_OK;
}

/* Copy the record to a buffer in which zeros follow it. */
static inline int take_record(kj_decoder *decoder, const uint8_t *data, int64_t size) {
    if (UNLIKELY(size > decoder->record_capacity || decoder->record == NULL)) {
        int64_t capacity = size < 4096 ? 4096 : size + size / 4;
        uint8_t *record = kc_malloc((size_t)capacity + KJ_SLACK);
        if (record == NULL) return KJ_NO_MEMORY;
        kc_free(decoder->record);
        decoder->record = record;
        decoder->record_capacity = capacity;
    }
    memcpy(decoder->record, data, (size_t)size);
    memset(decoder->record + size, 0, KJ_SLACK);
    decoder->record_size = size;
    return KJ_OK;
}

static int note_malformed(kj_decoder *decoder, int64_t row, int32_t code) {
    if (decoder->malformed == NULL) {
        decoder->malformed = kc_calloc(1, (size_t)decoder->row_limit + 1);
        if (decoder->malformed == NULL) return KJ_NO_MEMORY;
    }
    decoder->malformed[row] = 1;
    decoder->malformed_count++;
    if (decoder->reason_count < KJ_MAX_REASONS) {
        kj_reason *reason = &decoder->reasons[decoder->reason_count++];
        reason->row = row;
        reason->code = code;
        reason->node = decoder->wrong_node;
        reason->owner = decoder->wrong_owner;
        reason->field = decoder->wrong_field;
        reason->at = decoder->wrong_at;
    }
    return KJ_OK;
}

/* Append one row for the record in decoder->record. */
static int decode_record(kj_decoder *decoder, int64_t row) {
    kj_node *root = &decoder->root;
    const uint8_t *p = skip_space(decoder->record);
    int result = KJ_BROKEN;
    decoder->depth = 0;
    decoder->wrong_node = decoder->wrong_owner = NULL;
    decoder->wrong_at = p - decoder->record;
    /* A record of white space alone is a missing value, not a malformed one. */
    if (p == decoder->record + decoder->record_size) return append_null(root);
    if (LIKELY(*p == '{')) result = parse_object(decoder, &p, root);
    if (LIKELY(result == KJ_OK)) return KJ_OK;
    if (result < KJ_BROKEN) return result;
    int noted = note_malformed(decoder, row, result);
    if (noted != KJ_OK || result != KJ_BROKEN) return noted;
    truncate_rows(root, row);
    return append_null(root);
}

/* Reserve space for all rows of the top-level fields. */
static int reserve_fields(kj_decoder *decoder, int64_t count) {
    kj_node *root = &decoder->root;
    int result = KJ_OK;
    if (count + 1 > root->capacity) result = grow_rows(root, count + 1);
    for (int32_t field = 0; field < root->child_count && result == KJ_OK; field++)
        /* Reserve one more row for a field that is repeated in an object. */
        if (count + 2 > root->children[field].capacity) result = grow_rows(&root->children[field], count + 2);
    return result;
}

int kj_decode(kj_decoder *decoder, const uint8_t *data, int64_t data_size, const int32_t *offsets,
              const uint8_t *validity, int64_t first_bit, int64_t count) {
    int result;
    kj_reset(decoder);
    decoder->row_limit = count;
    result = reserve_fields(decoder, count);
    for (int64_t row = 0; row < count && result == KJ_OK; row++) {
        int64_t bit = first_bit + row;
        if (validity != NULL && !(validity[bit >> 3] >> (bit & 7) & 1)) {
            result = append_null(&decoder->root);
            continue;
        }
        /* Read each offset once, because another thread may change this memory. */
        int64_t begin = __atomic_load_n(&offsets[row], __ATOMIC_RELAXED);
        int64_t end = __atomic_load_n(&offsets[row + 1], __ATOMIC_RELAXED);
        if (begin < 0 || end < begin || end > data_size) return KJ_BAD_OFFSETS;
        result = take_record(decoder, data + begin, end - begin);
        if (LIKELY(result == KJ_OK)) result = decode_record(decoder, row);
    }
    return result;
}

void kj_reset(kj_decoder *decoder) {
    free_column(&decoder->root);
    kc_free(decoder->malformed);
    decoder->malformed = NULL;
    decoder->malformed_count = decoder->pending_count = 0;
    decoder->reason_count = 0;
    decoder->memory_left = decoder->memory_limit;
}

int64_t kj_pack(const uint8_t *bytes, int64_t count, uint8_t *bits) {
    int64_t zeros = 0, at = 0;
    for (; at + 8 <= count; at += 8) {
        uint8_t packed = 0;
        for (int bit = 0; bit < 8; bit++) packed |= (uint8_t)((bytes[at + bit] & 1) << bit);
        bits[at >> 3] = packed;
        zeros += 8 - __builtin_popcount(packed);
    }
    if (at < count) {
        uint8_t packed = 0;
        for (int bit = 0; at + bit < count; bit++) packed |= (uint8_t)((bytes[at + bit] & 1) << bit);
        bits[at >> 3] = packed;
        zeros += count - at - __builtin_popcount(packed);
    }
    return zeros;
}
