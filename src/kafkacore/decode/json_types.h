/* What JSON is decoded to: a tree of growing columns, one node for each field of the wanted schema. */
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

/* What became of a value. After KJ_OK and KJ_PARTIAL the column has one row more, after KJ_WRONG none. */
enum {
    KJ_OK = 0,
    KJ_PARTIAL = 1,  /* something inside it is wrong and is left out */
    KJ_WRONG = 2,    /* it is JSON, but not of the type */
    KJ_BROKEN = -1,  /* it is not JSON */
    KJ_NO_MEMORY = -2,
    KJ_TOO_LARGE = -3, /* does not fit the 2 GiB of 32-bit offsets, or the memory that a batch may take */
    KJ_BAD_OFFSETS = -4 /* the offsets of the values fall, or pass their data */
};

/* Of a row. */
enum { KJ_IS_NULL = 0, KJ_IS_VALID = 1, KJ_IS_PENDING = 2 /* a time; data: index of a kj_pending */ };

/* Jackson's limits, by which Spark reads. */
enum { KJ_MAX_DEPTH = 1000, KJ_MAX_NUMBER_DIGITS = 1000, KJ_MAX_NAME = 50000, KJ_MAX_TEXT = 20000000 };

/* Room behind the bytes of a column and of the record, so that both can be handled in steps. */
enum { KJ_SLACK = 32 };

/* Most different time zones that one decoder gets to know. */
enum { KJ_MAX_ZONES = 1000 };

typedef struct kj_pattern kj_pattern;

typedef struct kj_node {
    int32_t kind;
    int32_t width; /* bytes of a row; 4 for what has offsets, 0 for structs and nulls */
    int32_t precision, scale;
    int32_t child_count;
    struct kj_node *children;
    /* Of a struct: the fields' names as they are in JSON, with the quote behind; found by hash. */
    uint8_t **names;
    int32_t *name_sizes; /* with that quote */
    int32_t *table;
    uint32_t table_mask;
    int32_t expected_count; /* of fields that may be known by their bytes: none if JSON has to escape a name */
    kj_pattern *pattern; /* of a date or a time; NULL: the forms taken without one */
    /* The column. */
    int64_t rows, capacity;
    uint8_t *valid; /* a byte a row */
    uint8_t *data;
    uint8_t *bytes;
    int64_t bytes_size, bytes_capacity;
    int64_t *memory_left; /* of the decoder */
} kj_node;

typedef struct {
    int64_t local_us;
    int32_t zone; /* -1: the session's */
} kj_pending;

/* One sentence's worth about a malformed row. */
typedef struct {
    int64_t row;
    int32_t code; /* KJ_WRONG or KJ_BROKEN */
    const kj_node *node; /* whose type it is not */
    const kj_node *owner; /* struct of which it is field `field`, or NULL */
    int32_t field;
    int64_t at; /* byte in the record */
} kj_reason;

enum { KJ_MAX_REASONS = 8 };

/* Whether there is a zone of that name; asked once for each. May take the GIL. 1, 0, or -1 with an error set. */
typedef int (*kj_zone_known)(void *context, const uint8_t *name, int64_t size);

typedef struct {
    kj_node root; /* a struct, whose rows are the records */
    int64_t memory_limit, memory_left; /* bytes of all columns of a batch */
    int32_t allow_non_numeric, allow_single_quotes;
    int32_t date_fallback, time_fallback; /* whether older Spark's forms are tried when all else fails */
    int32_t zone_is_fixed; /* else local times become pending */
    int64_t zone_offset_s;
    kj_zone_known zone_known;
    void *zone_context;
    /* The zones that have been asked for. */
    uint8_t *zone_names[KJ_MAX_ZONES];
    int32_t zone_sizes[KJ_MAX_ZONES];
    uint8_t zone_is_known[KJ_MAX_ZONES];
    int32_t zone_count;
    kj_pending *pending;
    int64_t pending_count, pending_capacity;
    /* The record being read, a copy with zeros behind it. */
    uint8_t *record;
    int64_t record_size, record_capacity;
    uint8_t *scratch; /* text without its escapes */
    int64_t scratch_capacity;
    int32_t depth; /* objects and arrays around the value being read */
    /* What went wrong. */
    uint8_t *malformed; /* a byte a row; NULL before the first */
    int64_t row_limit;  /* rows of this batch */
    int64_t malformed_count;
    kj_reason reasons[KJ_MAX_REASONS];
    int32_t reason_count;
    const kj_node *wrong_node; /* of the record: what was wrong first */
    const kj_node *wrong_owner;
    int32_t wrong_field;
    int64_t wrong_at;
} kj_decoder;

kj_decoder *kj_new(void);
void kj_free(kj_decoder *decoder);

/* Set up a node. `child_count` children are made, to be set up by the caller. 0 or KJ_NO_MEMORY. */
int kj_node_setup(kj_node *node, int32_t kind, int32_t width, int32_t child_count);
/* Name a struct's fields, when it has been set up: 0 or KJ_NO_MEMORY. The caller has checked the names to differ. */
int kj_node_name(kj_node *node, int32_t field, const uint8_t *name, int64_t size);
int kj_node_index(kj_node *node);
/* Have dates or times be read by a program of json_patterns.py. */
int kj_node_pattern(kj_node *node, const uint8_t *program, int64_t size);

/* Decode `count` values. Row i is data[offsets[i] .. offsets[i + 1]], or null where `validity` has no bit at
 * first_bit + i. 0, KJ_NO_MEMORY, KJ_TOO_LARGE, KJ_BAD_OFFSETS, or -10 with an error of Python set. */
int kj_decode(kj_decoder *decoder, const uint8_t *data, int64_t data_size, const int32_t *offsets,
              const uint8_t *validity, int64_t first_bit, int64_t count);

/* Drop what has been decoded and the memory for it. */
void kj_reset(kj_decoder *decoder);

/* One bit a row of a byte a row; returns how many were 0. */
int64_t kj_pack(const uint8_t *bytes, int64_t count, uint8_t *bits);

enum { KJ_PYTHON_ERROR = -10 };

#endif
