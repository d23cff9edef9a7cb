"""Declare the functions of columns_impl.h for `_columns`."""

from libc.stdint cimport int32_t, int64_t, uint8_t

cdef extern from "columns_impl.h":
    ctypedef struct ArrowSchema "struct ArrowSchema":
        void (*release)(ArrowSchema *schema) noexcept nogil

    ctypedef struct ArrowArray "struct ArrowArray":
        void (*release)(ArrowArray *array) noexcept nogil

    cdef enum:
        KC_OFFSET
        KC_TIMESTAMP
        KC_TIMESTAMP_TYPE
        KC_KEY
        KC_VALUE
        KC_HEADERS
        KC_COLUMN_KINDS
        KC_NO_MEMORY

    ctypedef struct kc_memory:
        void *(*alloc)(size_t size) noexcept nogil
        void *(*realloc)(void *block, size_t used, size_t size) noexcept nogil
        void (*free)(void *block) noexcept nogil
        size_t (*capacity)(const void *block) noexcept nogil

    ctypedef struct kc_mark:
        int64_t rows

    ctypedef struct kc_columns:
        int32_t column_count
        int32_t *columns
        int64_t timestamp_factor
        int64_t max_column_bytes
        int32_t headers_null_when_empty
        int64_t rows

    ctypedef struct kc_run:
        const uint8_t *pos
        const uint8_t *end
        int64_t base_offset
        int64_t base_timestamp
        int64_t max_timestamp
        int32_t last_offset_delta
        int32_t record_count
        int32_t index
        int32_t timestamp_type
        int32_t has_log_append_time
        int64_t from_offset
        int64_t end_offset
        int64_t left
        int64_t next_offset

    void kc_columns_use(const kc_memory *memory) noexcept nogil
    kc_columns *kc_columns_new(const int32_t *columns, int32_t count, const char *format) noexcept nogil
    void kc_columns_release(kc_columns *columns) noexcept nogil
    int64_t kc_columns_bytes(const kc_columns *columns) noexcept nogil
    kc_mark kc_columns_mark(const kc_columns *columns) noexcept nogil
    void kc_columns_roll_back(kc_columns *columns, const kc_mark *mark) noexcept nogil
    int kc_columns_reserve(kc_columns *columns, int64_t rows, int64_t bytes) noexcept nogil
    int kc_columns_append(kc_columns *columns, kc_run *run) noexcept nogil
    int kc_export_schema(kc_columns *columns, ArrowSchema *out) noexcept nogil
    int kc_export_array(kc_columns *columns, ArrowArray *out) noexcept nogil
