"""Declare the functions that collect Python objects into columns, for use in `_source`."""

from cpython.buffer cimport Py_buffer
from libc.stdint cimport int32_t, int64_t

from kafkacore.record.column cimport Column

cdef extern from "<stdint.h>":
    # Value of a missing timestamp.
    const int64_t NO_TIMESTAMP "INT64_MIN"

cdef enum:
    NO_PARTITION = -1

cdef struct HeaderColumns:
    # Row i has the headers from index starts[i] to before starts[i + 1]. `starts` is NULL if no row has
    # headers.
    const int64_t *starts
    Column names
    Column values

cdef class Block:
    cdef void *data

cdef class HeldBuffers:
    cdef Py_buffer *views
    cdef Py_ssize_t count
    cdef Py_ssize_t capacity

    cdef Py_buffer *hold(self, object source) except NULL

cdef void *new_block(Py_ssize_t count, Py_ssize_t item_size, list owners) except NULL
cdef int gather_bytes(tuple items, str name, Column *out, list owners) except -1
cdef const int64_t *gather_timestamps(tuple items, list owners) except NULL
cdef const int32_t *gather_partitions(tuple items, list owners) except NULL
cdef int gather_headers(tuple items, HeaderColumns *out, list owners) except -1
