"""Declare the structures of the Arrow C data and stream interfaces, as specified."""

from libc.stdint cimport int64_t

cdef extern from "columns_impl.h":
    ctypedef struct ArrowSchema "struct ArrowSchema":
        const char *format
        const char *name
        int64_t n_children
        ArrowSchema **children
        ArrowSchema *dictionary
        void (*release)(ArrowSchema *schema) noexcept nogil

    ctypedef struct ArrowArray "struct ArrowArray":
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_buffers
        int64_t n_children
        const void **buffers
        ArrowArray **children
        ArrowArray *dictionary
        void (*release)(ArrowArray *array) noexcept nogil

    ctypedef struct ArrowArrayStream "struct ArrowArrayStream":
        int (*get_schema)(ArrowArrayStream *stream, ArrowSchema *out) noexcept nogil
        int (*get_next)(ArrowArrayStream *stream, ArrowArray *out) noexcept nogil
        const char *(*get_last_error)(ArrowArrayStream *stream) noexcept nogil
        void (*release)(ArrowArrayStream *stream) noexcept nogil
