"""Declare the owner of memory that compiled code reads."""

from cpython.buffer cimport Py_buffer
from libc.stdint cimport uint8_t

cdef class Payload:
    cdef object owner
    cdef Py_buffer view
    cdef const uint8_t *data
    cdef Py_ssize_t size

    cdef object slice(self, Py_ssize_t start, Py_ssize_t end)
