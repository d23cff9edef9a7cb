"""Checks of the arguments of send(), for Cython callers."""

from cpython.buffer cimport Py_buffer
from libc.stdint cimport uint8_t

cdef Py_ssize_t open_bytes(object data, const uint8_t** at, Py_buffer* view, str what) except -2
cdef bytes encode_headers(object headers, Py_ssize_t* size)
cdef int checked_partition(object partition) except -1
cdef long long checked_timestamp(object timestamp_ms) except -1
