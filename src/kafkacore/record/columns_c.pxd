"""What columns_impl.h declares, for `columns`."""

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

    ctypedef struct kc_buffer:
        uint8_t *data
        int64_t size

    ctypedef struct kc_variable:
        kc_buffer offsets
        kc_buffer data

    ctypedef struct kc_mark:
        int64_t rows

    ctypedef struct kc_columns:
        int32_t column_count
        int32_t *columns
        int64_t rows
        int64_t header_rows
        kc_buffer offset
        kc_buffer timestamp
        kc_buffer timestamp_type
        kc_variable key
        kc_variable value
        kc_variable headers
        kc_variable header_key
        kc_variable header_value

    kc_columns *kc_columns_new(const int32_t *columns, int32_t count, const char *format) noexcept nogil
    void kc_columns_release(kc_columns *columns) noexcept nogil
    int64_t kc_columns_bytes(const kc_columns *columns) noexcept nogil
    kc_mark kc_columns_mark(const kc_columns *columns) noexcept nogil
    void kc_columns_roll_back(kc_columns *columns, const kc_mark *mark) noexcept nogil
    int kc_buffer_reserve(kc_buffer *buffer, int64_t used, int64_t more) noexcept nogil
    int kc_variable_reserve_rows(kc_variable *column, int64_t rows, int64_t more) noexcept nogil
    int kc_variable_append(kc_variable *column, int64_t row, const uint8_t *data,
                           int64_t size) noexcept nogil
    int kc_variable_append_text(kc_variable *column, int64_t row, const uint8_t *data,
                                int64_t size) noexcept nogil
    void kc_variable_set_validity(kc_variable *column, int64_t row, int valid) noexcept nogil
    int kc_export_schema(kc_columns *columns, ArrowSchema *out) noexcept nogil
    int kc_export_array(kc_columns *columns, ArrowArray *out) noexcept nogil
