/* Data structures of the JSON decoder: a tree of growing columns, with one node for each field of the wanted schema. */
#ifndef KAFKACORE_JSON_TYPES_H
#define KAFKACORE_JSON_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef enum {
    KJ_NULL,
    KJ_BOOLEAN,
    KJ_BYTE,
    KJ_SHORT,
    KJ_INT,
    KJ_LONG,
    KJ_FLOAT,
    KJ_DOUBLE,
    KJ_DECIMAL,
    KJ_DATE,
    KJ_TIMESTAMP,
    KJ_TIMESTAMP_NTZ,
    KJ_STRING,
    KJ_BINARY,
    KJ_LIST,
    KJ_MAP,
    KJ_STRUCT
} kj_kind;

/* Result of reading a value. KJ_OK and KJ_PARTIAL have appended one row to the column, KJ_WRONG none. */
enum {
    KJ_OK = 0,
    KJ_PARTIAL = 1,  /* a part of the value is of the wrong type and was left out */
    KJ_WRONG = 2,    /* the value is JSON, but of the wrong type */
    KJ_BROKEN = -1,  /* the value is not JSON */
    KJ_NO_MEMORY = -2,
    KJ_TOO_LARGE = -3, /* exceeds the 2 GiB of 32-bit offsets, or the memory limit of a batch */
    KJ_BAD_OFFSETS = -4 /* the offsets of the values decrease or exceed their data */
};

/* State of a row. */
enum { KJ_IS_NULL = 0, KJ_IS_VALID = 1, KJ_IS_PENDING = 2 /* data is the index of a kj_pending */ };

/* Limits of Jackson, which Spark uses. */
enum { KJ_MAX_DEPTH = 1000, KJ_MAX_NUMBER_DIGITS = 1000, KJ_MAX_NAME = 50000, KJ_MAX_TEXT = 20000000 };

/* Extra bytes after the bytes of a column and of the record, so that both can be processed several bytes at a time. */
enum { KJ_SLACK = 32 };

/* Maximum number of time zone names that one decoder remembers. */
enum { KJ_MAX_ZONES = 1000 };

typedef struct kj_pattern kj_pattern;

typedef struct kj_node {
    int32_t kind;
    int32_t width; /* bytes of a row; 4 for types with offsets, 0 for structs and nulls */
    int32_t precision, scale;
    int32_t child_count;
    struct kj_node *children;
    /* For a struct: the names of the fields, each followed by the closing quote, and a hash table of them. */
    uint8_t **names;
    int32_t *name_sizes; /* including the quote */
    int32_t *table;
    uint32_t table_mask;
    int32_t expected_count; /* fields whose names can be compared byte by byte; 0 if JSON escapes a name */
    kj_pattern *pattern; /* for dates and times; NULL: the default formats */
    /* The column. */
    int64_t rows, capacity;
    uint8_t *valid; /* one byte per row */
    uint8_t *data;
    uint8_t *bytes;
    int64_t bytes_size, bytes_capacity;
    int64_t *memory_left; /* points to the decoder's */
} kj_node;

typedef struct {
    int64_t local_us;
    int32_t zone; /* -1: the session's */
} kj_pending;

/* Reason why a row is malformed. */
typedef struct {
    int64_t row;
    int32_t code; /* KJ_WRONG or KJ_BROKEN */
    const kj_node *node; /* the node of the type that did not match */
    const kj_node *owner; /* the struct that has the node as its field `field`, or NULL */
    int32_t field;
    int64_t at; /* position in the record in bytes */
} kj_reason;

enum { KJ_MAX_REASONS = 8 };

/* Return 1 if a time zone exists, else 0, or -1 with a Python error set. Called once per name. May take the GIL. */
typedef int (*kj_zone_known)(void *context, const uint8_t *name, int64_t size);

typedef struct {
    kj_node root; /* a struct, whose rows are the records */
    int64_t memory_limit, memory_left; /* bytes of all columns of a batch */
    int32_t allow_non_numeric, allow_single_quotes;
    int32_t date_fallback, time_fallback; /* whether the formats of Spark 2 and older are also tried */
    int32_t zone_is_fixed; /* if not, local times become pending */
    int64_t zone_offset_s;
    kj_zone_known zone_known;
    void *zone_context;
    /* The zone names that have been looked up. */
    uint8_t *zone_names[KJ_MAX_ZONES];
    int32_t zone_sizes[KJ_MAX_ZONES];
    uint8_t zone_is_known[KJ_MAX_ZONES];
    int32_t zone_count;
    kj_pending *pending;
    int64_t pending_count, pending_capacity;
    /* A copy of the record being read, followed by zeros. */
    uint8_t *record;
    int64_t record_size, record_capacity;
    uint8_t *scratch; /* unescaped text */
    int64_t scratch_capacity;
    int32_t depth; /* number of objects and arrays that enclose the value being read */
    /* Malformed rows. */
    uint8_t *malformed; /* one byte per row; NULL before the first malformed row */
    int64_t row_limit;  /* number of rows of this batch */
    int64_t malformed_count;
    kj_reason reasons[KJ_MAX_REASONS];
    int32_t reason_count;
    const kj_node *wrong_node; /* the first wrong value of the record */
    const kj_node *wrong_owner;
    int32_t wrong_field;
    int64_t wrong_at;
} kj_decoder;

kj_decoder *kj_new(void);
void kj_free(kj_decoder *decoder);

/* Set up a node and allocate its children, which the caller sets up. Return 0 or KJ_NO_MEMORY. */
int kj_node_setup(kj_node *node, int32_t kind, int32_t width, int32_t child_count);
/* Name a field of a struct, and then index all names. Return 0 or KJ_NO_MEMORY. The names must be distinct. */
int kj_node_name(kj_node *node, int32_t field, const uint8_t *name, int64_t size);
int kj_node_index(kj_node *node);
/* Set the program of json_patterns.py that reads the dates or times of a node. */
int kj_node_pattern(kj_node *node, const uint8_t *program, int64_t size);

/* Decode `count` values. Row i is data[offsets[i] .. offsets[i + 1]], or null if bit first_bit + i of `validity` is 0.
 * Return 0, KJ_NO_MEMORY, KJ_TOO_LARGE, KJ_BAD_OFFSETS, or KJ_PYTHON_ERROR with a Python error set. */
int kj_decode(kj_decoder *decoder, const uint8_t *data, int64_t data_size, const int32_t *offsets,
              const uint8_t *validity, int64_t first_bit, int64_t count);

/* Remove all decoded rows and free their memory. */
void kj_reset(kj_decoder *decoder);

/* Pack one byte per row into one bit per row. Return the number of zeros. */
int64_t kj_pack(const uint8_t *bytes, int64_t count, uint8_t *bits);

enum { KJ_PYTHON_ERROR = -10 };

#endif
