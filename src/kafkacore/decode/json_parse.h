/* Skip the values of a record, or read them into columns. Part of json_columns_impl.c.
 *
 * Zeros follow the record in its buffer. A zero is invalid in JSON, so every loop stops there without an end pointer. */
#ifndef KAFKACORE_JSON_PARSE_H
#define KAFKACORE_JSON_PARSE_H

#include "json_numbers.h"
#include "json_text.h"
#include "json_patterns.h"
#include "json_write.h"

static inline const uint8_t *skip_space(const uint8_t *p) {
    while (UNLIKELY(*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) p++;
    return p;
}

static inline int is_quote(const kj_decoder *decoder, uint8_t byte) {
    return byte == '"' || (byte == '\'' && decoder->allow_single_quotes);
}

/* Scan a number, true, false or null. Set `number`, or its kind to -1 if the value is not a number. Return the position
 * after the value, or NULL if it is invalid. */
static const uint8_t *scan_scalar(const kj_decoder *decoder, const uint8_t *p, kj_number *number) {
    number->kind = -1;
    switch (*p) {
    case 't': return scan_word(p, "true");
    case 'f': return scan_word(p, "false");
    case 'n': return scan_word(p, "null");
    default: return scan_number(decoder, p, number);
    }
}

/* Scan the name of a field at `p`. Return the position of the value after the colon, or NULL. */
static const uint8_t *scan_name(const kj_decoder *decoder, const uint8_t *p, kj_text *name) {
    if (!is_quote(decoder, *p)) return NULL;
    p = scan_text(decoder, p + 1, *p, name);
    if (p == NULL || name->end - name->start > KJ_MAX_NAME) return NULL;
    p = skip_space(p);
    return *p == ':' ? skip_space(p + 1) : NULL;
}

/* Skip the value at `p`, and also write it to `out` unless that is NULL. Return the position after the value, or NULL
 * with the error in *error. There is no recursion: a bit for each level tells objects from arrays. */
static const uint8_t *walk(const kj_decoder *decoder, const uint8_t *p, kj_node *out, int *error) {
    uint64_t is_object[KJ_MAX_DEPTH / 64 + 1];
    int32_t depth = 0;
    int result = KJ_OK;
    kj_number number;
    kj_text text;
    *error = KJ_BROKEN;
    for (;;) {
        /* A value. */
        if (*p == '{' || *p == '[') {
            uint8_t opened = *p;
            if (depth + decoder->depth >= KJ_MAX_DEPTH) return NULL;
            uint64_t bit = 1ull << (depth & 63);
            is_object[depth >> 6] = opened == '{' ? is_object[depth >> 6] | bit : is_object[depth >> 6] & ~bit;
            depth++;
            if (out) result = put_bytes(out, &opened, 1);
            p = skip_space(p + 1);
            if (*p != opened + 2) {
                if (opened == '{') goto name;
                if (UNLIKELY(result != KJ_OK)) goto failed;
                continue;
            }
        } else {
            const uint8_t *start = p;
            if (is_quote(decoder, *p)) {
                p = scan_text(decoder, p + 1, *p, &text);
                if (p != NULL && out) result = put_text(out, &text);
            } else {
                p = scan_scalar(decoder, p, &number);
                if (p != NULL && out)
                    result = number.kind < 0 ? put_bytes(out, start, p - start) : put_number(out, &number);
            }
            if (UNLIKELY(p == NULL)) return NULL;
            if (depth == 0) goto done;
            p = skip_space(p);
        }
        /* Any number of closing brackets, or a comma before the next value. */
        for (;;) {
            int in_object = (is_object[(depth - 1) >> 6] >> ((depth - 1) & 63)) & 1;
            if (UNLIKELY(result != KJ_OK)) goto failed;
            if (*p == ',') {
                if (out) result = put_bytes(out, ",", 1);
                p = skip_space(p + 1);
                if (in_object) goto name;
                break;
            }
            if (*p != (in_object ? '}' : ']')) return NULL;
            if (out) result = put_bytes(out, p, 1);
            p++;
            if (--depth == 0) goto done;
            p = skip_space(p);
        }
        continue;
    name:
        p = scan_name(decoder, p, &text);
        if (p == NULL) return NULL;
        if (out && result == KJ_OK) result = put_text(out, &text);
        if (out && result == KJ_OK) result = put_bytes(out, ":", 1);
        if (UNLIKELY(result != KJ_OK)) goto failed;
    }
done:
    if (LIKELY(result == KJ_OK)) return p;
failed:
    *error = result;
    return NULL;
}

/* Skip a value of the wrong type. Return KJ_WRONG or a more serious error. */
static int skip_wrong(kj_decoder *decoder, const uint8_t **at) {
    int error;
    const uint8_t *p = walk(decoder, *at, NULL, &error);
    if (p == NULL) return error;
    *at = p;
    return KJ_WRONG;
}

static int parse_value(kj_decoder *decoder, const uint8_t **at, kj_node *node);

/* ---- Numbers ---- */

static int integer_of(const kj_number *number, int32_t kind, int64_t *out) {
    if (number->kind != KJ_NUMBER_INT || !int_value(number, out)) return 0;
    switch (kind) {
    case KJ_BYTE: return *out >= INT8_MIN && *out <= UINT8_MAX; /* the range of Jackson */
    case KJ_SHORT: return *out >= INT16_MIN && *out <= INT16_MAX;
    case KJ_INT: return fits_int32(*out);
    default: return 1;
    }
}

static int append_number(kj_node *node, const kj_number *number) {
    int64_t integer;
    kj_int128 decimal;
    switch (node->kind) {
    case KJ_BYTE:
    case KJ_SHORT:
    case KJ_INT:
    case KJ_LONG:
        if (!integer_of(number, node->kind, &integer)) return KJ_WRONG;
        if (node->kind == KJ_BYTE)
            APPEND_NUMBER(node, int8_t, integer);
        else if (node->kind == KJ_SHORT)
            APPEND_NUMBER(node, int16_t, integer);
        else if (node->kind == KJ_INT)
            APPEND_NUMBER(node, int32_t, integer);
        else
            APPEND_NUMBER(node, int64_t, integer);
        return KJ_OK;
    case KJ_TIMESTAMP:
        if (!integer_of(number, KJ_LONG, &integer)) return KJ_WRONG;
        /* The number is in seconds. The product wraps around in Spark too. */
        APPEND_NUMBER(node, int64_t, (uint64_t)integer * 1000000u);
        return KJ_OK;
    case KJ_FLOAT: APPEND_NUMBER(node, float, float_value(number)); return KJ_OK;
    case KJ_DOUBLE: APPEND_NUMBER(node, double, double_value(number)); return KJ_OK;
    case KJ_DECIMAL: {
        if (!number_decimal(node, number, &decimal)) return KJ_WRONG;
        int reserved = reserve_row(node);
        if (reserved != KJ_OK) return reserved;
        memcpy(node->data + node->rows * 16, &decimal, 16);
        node->valid[node->rows++] = KJ_IS_VALID;
        return KJ_OK;
    }
    default: return KJ_WRONG;
    }
}

/* Fast path for integers of at most 9 digits. Return 0 if the value is not one. */
static inline int append_small_integer(kj_node *node, const uint8_t **at) {
    const uint8_t *p = *at;
    int negative = *p == '-';
    p += negative;
    uint32_t value = (uint32_t)*p - '0';
    if (value > 9) return 0;
    if (value == 0) {
        p++;
    } else {
        const uint8_t *start = p++;
        for (; is_digit(*p); p++) value = value * 10 + (uint32_t)(*p - '0');
        if (p - start > 9) return 0;
    }
    if (is_digit(*p) || *p == '.' || (*p | 0x20) == 'e') return 0;
    if (node->rows >= node->capacity) return 0;
    int64_t integer = negative ? -(int64_t)value : (int64_t)value;
    if (node->kind == KJ_INT)
        ((int32_t *)node->data)[node->rows] = (int32_t)integer;
    else
        ((int64_t *)node->data)[node->rows] = integer;
    node->valid[node->rows++] = KJ_IS_VALID;
    *at = p;
    return 1;
}

/* ---- Text ---- */

static int special_text(const kj_decoder *decoder, const kj_text *text, double *out) {
    static const struct {
        const char *text;
        double value;
    } words[] = {{"NaN", (double)NAN},        {"+INF", HUGE_VAL},  {"+Infinity", HUGE_VAL},
                 {"Infinity", HUGE_VAL},      {"-INF", -HUGE_VAL}, {"-Infinity", -HUGE_VAL}};
    if (!decoder->allow_non_numeric) return 0;
    for (size_t index = 0; index < sizeof words / sizeof *words; index++)
        if ((size_t)(text->end - text->start) == strlen(words[index].text) &&
            memcmp(text->start, words[index].text, strlen(words[index].text)) == 0) {
            *out = words[index].value;
            return 1;
        }
    return 0;
}

static inline int base64_digit(uint32_t byte) {
    if (byte >= 'A' && byte <= 'Z') return (int)byte - 'A';
    if (byte >= 'a' && byte <= 'z') return (int)byte - 'a' + 26;
    if (byte >= '0' && byte <= '9') return (int)byte - '0' + 52;
    return byte == '+' ? 62 : byte == '/' ? 63 : -1;
}

/* Decode base64 as Jackson does: white space is allowed between groups of four, and padding is required. Return
 * KJ_BROKEN where Jackson would continue reading after the closing quote. */
static int append_base64(kj_node *node, const kj_text *text) {
    const uint8_t *p = text->start;
    int result = reserve_row(node);
    if (result == KJ_OK) result = reserve_bytes(node, text->end - text->start + 3);
    if (result != KJ_OK) return result;
    uint8_t *out = node->bytes + node->bytes_size;
    for (;;) {
        uint32_t group = 0, padding = 0;
        for (const uint8_t *space = p; space < text->end && next_point(&space, text->end) <= ' ';) p = space;
        if (p == text->end) break;
        for (int index = 0; index < 4; index++) {
            if (p == text->end) return index == 1 || padding ? KJ_BROKEN : KJ_WRONG;
            uint32_t point = next_point(&p, text->end);
            int digit = base64_digit(point);
            if (point == '=' && index >= 2)
                padding++;
            else if (digit < 0 || padding)
                return KJ_WRONG;
            group = group << 6 | (uint32_t)(digit < 0 ? 0 : digit);
        }
        *out++ = (uint8_t)(group >> 16);
        if (padding < 2) *out++ = (uint8_t)(group >> 8);
        if (padding < 1) *out++ = (uint8_t)group;
    }
    node->bytes_size = out - node->bytes;
    end_bytes_row(node);
    return KJ_OK;
}

static int append_from_text(kj_decoder *decoder, kj_node *node, kj_text *text) {
    double special;
    kj_int128 decimal;
    if (node->kind == KJ_BINARY) return append_base64(node, text);
    if (node->kind == KJ_NULL) return append_null(node);
    if (plain_text(decoder, text, '?') != KJ_OK) return KJ_NO_MEMORY;
    if (text->start == text->end) return KJ_WRONG;
    switch (node->kind) {
    case KJ_FLOAT:
        if (!special_text(decoder, text, &special)) return KJ_WRONG;
        APPEND_NUMBER(node, float, special);
        return KJ_OK;
    case KJ_DOUBLE:
        if (!special_text(decoder, text, &special)) return KJ_WRONG;
        APPEND_NUMBER(node, double, special);
        return KJ_OK;
    case KJ_DECIMAL: {
        if (!text_decimal(node, text->start, text->end, &decimal)) return KJ_WRONG;
        int reserved = reserve_row(node);
        if (reserved != KJ_OK) return reserved;
        memcpy(node->data + node->rows * 16, &decimal, 16);
        node->valid[node->rows++] = KJ_IS_VALID;
        return KJ_OK;
    }
    case KJ_DATE: return append_date_text(decoder, node, text);
    case KJ_TIMESTAMP:
    case KJ_TIMESTAMP_NTZ: return append_time_text(decoder, node, text);
    default: return KJ_WRONG;
    }
}

/* Like scan_text, but allow control characters in the text, including zeros. */
static const uint8_t *scan_lines(const kj_decoder *decoder, const uint8_t *p, kj_text *text) {
    const uint8_t *end = decoder->record + decoder->record_size;
    text->start = p;
    while (p != NULL && p < end) {
        if (*p == '"') {
            text->end = p;
            return p + 1;
        }
        p = *p == '\\' ? skip_escape(decoder, p) : p + 1;
    }
    return NULL;
}

/* Read base64 with control characters. This is not valid JSON, but Jackson decodes base64 directly from its input and
 * skips control characters between groups of four. */
static int parse_lines_of_base64(kj_decoder *decoder, const uint8_t **at, kj_node *node) {
    kj_text text;
    const uint8_t *p = scan_lines(decoder, *at + 1, &text);
    if (p == NULL) return KJ_BROKEN;
    *at = p;
    int result = append_base64(node, &text);
    return result == KJ_WRONG ? KJ_BROKEN : result;
}

static int parse_text(kj_decoder *decoder, const uint8_t **at, kj_node *node) {
    kj_text text;
    const uint8_t *p = scan_text(decoder, *at + 1, **at, &text);
    if (UNLIKELY(p == NULL && node->kind == KJ_BINARY && **at == '"')) return parse_lines_of_base64(decoder, at, node);
    if (UNLIKELY(p == NULL || text.end - text.start > KJ_MAX_TEXT)) return KJ_BROKEN;
    *at = p;
    return LIKELY(node->kind == KJ_STRING) ? append_text(node, &text) : append_from_text(decoder, node, &text);
}

/* Read a value of any type as a string. */
static int parse_as_text(kj_decoder *decoder, const uint8_t **at, kj_node *node) {
    int64_t size = node->bytes_size;
    int error = reserve_row(node);
    if (error != KJ_OK) return error;
    const uint8_t *p = walk(decoder, *at, node, &error);
    if (p == NULL) {
        node->bytes_size = size;
        return error;
    }
    *at = p;
    end_bytes_row(node);
    return KJ_OK;
}

/* ---- Structs, lists, maps ---- */

static inline uint32_t hash_name(const uint8_t *name, int64_t size) {
    uint32_t hash = 2166136261u;
    for (int64_t at = 0; at < size; at++) hash = (hash ^ name[at]) * 16777619u;
    return hash ^ hash >> 15;
}

static int32_t find_field(const kj_node *node, const uint8_t *name, int64_t size) {
    if (node->child_count == 0) return -1;
    for (uint32_t at = hash_name(name, size);; at++) {
        int32_t field = node->table[at & node->table_mask];
        if (field < 0) return -1;
        if (node->name_sizes[field] == size + 1 && memcmp(node->names[field], name, (size_t)size) == 0) return field;
    }
}

/* Return whether the bytes at `p` are the name with its closing quote. Both can be read 8 bytes at a time. */
static inline int is_name(const uint8_t *p, const uint8_t *name, int32_t size) {
    uint64_t left, right;
    for (; size > 8; size -= 8, p += 8, name += 8) {
        memcpy(&left, p, 8);
        memcpy(&right, name, 8);
        if (left != right) return 0;
    }
    memcpy(&left, p, 8);
    memcpy(&right, name, 8);
    left ^= right;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return left << (64 - 8 * size) == 0;
#else
    return left >> (64 - 8 * size) == 0;
#endif
}

/* Return the field of the name at *at, or -1. Try the expected field first. Set *at to the value after the colon, or to
 * NULL. */
static inline int32_t parse_name(kj_decoder *decoder, const uint8_t **at, const kj_node *node, int32_t expected) {
    const uint8_t *p = *at;
    kj_text name;
    if (LIKELY(expected < node->expected_count && *p == '"' &&
               is_name(p + 1, node->names[expected], node->name_sizes[expected]))) {
        p = skip_space(p + 1 + node->name_sizes[expected]);
        *at = LIKELY(*p == ':') ? skip_space(p + 1) : NULL;
        return expected;
    }
    *at = scan_name(decoder, p, &name);
    if (*at == NULL) return -1;
    /* An unpaired surrogate becomes 0xFF, which no name of a schema contains. */
    if (plain_text(decoder, &name, 0xFF) != KJ_OK) {
        *at = NULL;
        return -1;
    }
    return find_field(node, name.start, name.end - name.start);
}

static void note_wrong(kj_decoder *decoder, const kj_node *owner, int32_t field, const uint8_t *at) {
    if (decoder->wrong_node != NULL) return;
    decoder->wrong_node = &owner->children[field];
    decoder->wrong_owner = owner;
    decoder->wrong_field = field;
    decoder->wrong_at = at - decoder->record;
}

/* Read a repeated field of an object. The last valid value replaces the previous one. */
static __attribute__((noinline)) int parse_again(kj_decoder *decoder, const uint8_t **at, kj_node *node, int64_t row) {
    int result = parse_value(decoder, at, node);
    if (result == KJ_OK || result == KJ_PARTIAL) erase_rows(node, row, 1);
    return result;
}

/* Read the object at *at. Append a row even if fields are wrong. Return KJ_OK, KJ_PARTIAL, or a negative error. */
static int parse_object(kj_decoder *decoder, const uint8_t **at, kj_node *node) {
    const uint8_t *p = skip_space(*at + 1);
    int64_t row = node->rows;
    int32_t expected = 0;
    int outcome = reserve_row(node), result, error;
    if (UNLIKELY(outcome != KJ_OK)) return outcome;
    if (UNLIKELY(++decoder->depth > KJ_MAX_DEPTH)) return KJ_BROKEN;
    if (*p == '}') goto done;
    for (;;) {
        int32_t field = parse_name(decoder, &p, node, expected);
        if (UNLIKELY(p == NULL)) return KJ_BROKEN;
        if (field < 0) {
            p = walk(decoder, p, NULL, &error);
            if (UNLIKELY(p == NULL)) return error;
        } else {
            kj_node *child = &node->children[field];
            const uint8_t *start = p;
            expected = field + 1;
            result = LIKELY(child->rows == row) ? parse_value(decoder, &p, child) : parse_again(decoder, &p, child, row);
            if (UNLIKELY(result != KJ_OK)) {
                if (result < 0) {
                    note_wrong(decoder, node, field, start);
                    return result;
                }
                note_wrong(decoder, node, field, start);
                outcome = KJ_PARTIAL;
            }
        }
        p = skip_space(p);
        if (*p == ',') {
            p = skip_space(p + 1);
            continue;
        }
        if (UNLIKELY(*p != '}')) return KJ_BROKEN;
        break;
    }
done:
    *at = p + 1;
    decoder->depth--;
    for (int32_t field = 0; field < node->child_count; field++)
        if (node->children[field].rows == row) {
            result = append_null(&node->children[field]);
            if (UNLIKELY(result != KJ_OK)) return result;
        }
    node->valid[node->rows++] = KJ_IS_VALID;
    return outcome;
}

/* Skip the remaining elements of a list; `p` is after an element. Return the position after the list, or NULL. */
static const uint8_t *skip_elements(kj_decoder *decoder, const uint8_t *p, int *error) {
    for (;;) {
        p = skip_space(p);
        *error = KJ_BROKEN;
        if (*p == ']') return p + 1;
        if (*p != ',') return NULL;
        p = walk(decoder, skip_space(p + 1), NULL, error);
        if (p == NULL) return NULL;
    }
}

static int parse_list(kj_decoder *decoder, const uint8_t **at, kj_node *node) {
    const uint8_t *p = skip_space(*at + 1);
    kj_node *element = &node->children[0];
    int64_t first = element->rows;
    int outcome = reserve_row(node), error;
    if (outcome != KJ_OK) return outcome;
    if (++decoder->depth > KJ_MAX_DEPTH) return KJ_BROKEN;
    for (int more = *p != ']'; more;) {
        int result = parse_value(decoder, &p, element);
        if (result < 0) return result;
        if (result == KJ_WRONG) {
            /* One element of the wrong type makes the whole list wrong. */
            truncate_rows(element, first);
            *at = skip_elements(decoder, p, &error);
            decoder->depth--;
            return *at == NULL ? error : KJ_WRONG;
        }
        if (result == KJ_PARTIAL) outcome = KJ_PARTIAL;
        p = skip_space(p);
        more = *p == ',';
        if (more)
            p = skip_space(p + 1);
        else if (*p != ']')
            return KJ_BROKEN;
    }
    *at = p + 1;
    decoder->depth--;
    offsets_of(node)[node->rows + 1] = (int32_t)element->rows;
    node->valid[node->rows++] = KJ_IS_VALID;
    return outcome;
}

static int parse_map(kj_decoder *decoder, const uint8_t **at, kj_node *node) {
    const uint8_t *p = skip_space(*at + 1);
    kj_node *key = &node->children[0], *value = &node->children[1];
    int64_t first = value->rows;
    int outcome = reserve_row(node);
    kj_text name;
    if (outcome != KJ_OK) return outcome;
    if (++decoder->depth > KJ_MAX_DEPTH) return KJ_BROKEN;
    for (int more = *p != '}'; more;) {
        p = scan_name(decoder, p, &name);
        if (p == NULL) return KJ_BROKEN;
        int result = parse_value(decoder, &p, value);
        if (result < 0) return result;
        /* A value of the wrong type makes the whole map wrong, but the map is still read to its end. */
        if (result == KJ_WRONG)
            outcome = KJ_WRONG;
        else if (result == KJ_PARTIAL && outcome == KJ_OK)
            outcome = KJ_PARTIAL;
        if (result != KJ_WRONG) {
            result = append_text(key, &name);
            if (result != KJ_OK) return result;
        }
        p = skip_space(p);
        more = *p == ',';
        if (more)
            p = skip_space(p + 1);
        else if (*p != '}')
            return KJ_BROKEN;
    }
    *at = p + 1;
    decoder->depth--;
    if (outcome == KJ_WRONG) {
        truncate_rows(key, first);
        truncate_rows(value, first);
        return KJ_WRONG;
    }
    offsets_of(node)[node->rows + 1] = (int32_t)value->rows;
    node->valid[node->rows++] = KJ_IS_VALID;
    return outcome;
}

/* ---- Any value ---- */

static __attribute__((noinline)) int parse_other(kj_decoder *decoder, const uint8_t **at, kj_node *node) {
    const uint8_t *start = *at;
    kj_number number;
    if (node->kind == KJ_STRING) return parse_as_text(decoder, at, node);
    if (node->kind == KJ_NULL) {
        int result = skip_wrong(decoder, at);
        return result == KJ_WRONG ? append_null(node) : result;
    }
    if (*start == '{' || *start == '[') return skip_wrong(decoder, at);
    const uint8_t *p = scan_scalar(decoder, start, &number);
    if (p == NULL) return KJ_BROKEN;
    *at = p;
    if (number.kind >= 0) return append_number(node, &number);
    if (node->kind != KJ_BOOLEAN) return KJ_WRONG;
    APPEND_NUMBER(node, uint8_t, *start == 't');
    return KJ_OK;
}

static int parse_value(kj_decoder *decoder, const uint8_t **at, kj_node *node) {
    const uint8_t *p = *at;
    if ((node->kind == KJ_INT || node->kind == KJ_LONG) && LIKELY(append_small_integer(node, at))) return KJ_OK;
    if (*p == '"' || (*p == '\'' && decoder->allow_single_quotes)) return parse_text(decoder, at, node);
    if (*p == 'n') {
        if (memcmp(p, "null", 4) != 0) return KJ_BROKEN;
        *at = p + 4;
        return append_null(node);
    }
    if (*p == '{') {
        if (node->kind == KJ_STRUCT) return parse_object(decoder, at, node);
        if (node->kind == KJ_MAP) return parse_map(decoder, at, node);
    }
    if (*p == '[' && node->kind == KJ_LIST) return parse_list(decoder, at, node);
    return parse_other(decoder, at, node);
}

#endif
