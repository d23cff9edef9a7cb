"""Cython declarations of json_columns_impl.c."""

from libc.stdint cimport int32_t, int64_t, uint8_t

cdef extern from "json_types.h":
    enum:
        KJ_NULL
        KJ_BOOLEAN
        KJ_BYTE
        KJ_SHORT
        KJ_INT
        KJ_LONG
        KJ_FLOAT
        KJ_DOUBLE
        KJ_DECIMAL
        KJ_DATE
        KJ_TIMESTAMP
        KJ_TIMESTAMP_NTZ
        KJ_STRING
        KJ_BINARY
        KJ_LIST
        KJ_MAP
        KJ_STRUCT
        KJ_BROKEN
        KJ_NO_MEMORY
        KJ_TOO_LARGE
        KJ_PYTHON_ERROR
        KJ_BAD_OFFSETS
        KJ_IS_VALID
        KJ_IS_PENDING

    ctypedef struct kj_node:
        int32_t kind
        int32_t width
        int32_t precision
        int32_t scale
        int32_t child_count
        kj_node *children
        int64_t rows
        int64_t capacity
        uint8_t *valid
        uint8_t *data
        uint8_t *bytes
        int64_t bytes_size

    ctypedef struct kj_pending:
        int64_t local_us
        int32_t zone

    ctypedef struct kj_reason:
        int64_t row
        int32_t code
        const kj_node *owner
        int32_t field
        int64_t at

    ctypedef int (*kj_zone_known)(void *context, const uint8_t *name, int64_t size) except -1 nogil

    ctypedef struct kj_decoder:
        kj_node root
        int64_t memory_limit
        int32_t allow_non_numeric
        int32_t allow_single_quotes
        int32_t date_fallback
        int32_t time_fallback
        int32_t zone_is_fixed
        int64_t zone_offset_s
        kj_zone_known zone_known
        void *zone_context
        uint8_t **zone_names
        int32_t *zone_sizes
        int32_t zone_count
        kj_pending *pending
        int64_t pending_count
        uint8_t *malformed
        int64_t malformed_count
        kj_reason *reasons
        int32_t reason_count

    kj_decoder *kj_new() nogil
    void kj_free(kj_decoder *decoder) nogil
    int kj_node_setup(kj_node *node, int32_t kind, int32_t width, int32_t child_count) nogil
    int kj_node_name(kj_node *node, int32_t field, const uint8_t *name, int64_t size) nogil
    int kj_node_index(kj_node *node) nogil
    int kj_node_pattern(kj_node *node, const uint8_t *program, int64_t size) nogil
    int kj_decode(kj_decoder *decoder, const uint8_t *data, int64_t data_size, const int32_t *offsets,
                  const uint8_t *validity, int64_t first_bit, int64_t count) except? -10 nogil
    void kj_reset(kj_decoder *decoder) nogil
    int64_t kj_pack(const uint8_t *bytes, int64_t count, uint8_t *bits) nogil
