"""Declare FileSlice for Cython callers."""

from libc.stdint cimport int64_t

cdef class FileSlice:
    cdef readonly int fd
    cdef readonly int64_t position
    cdef readonly Py_ssize_t size
    cdef object holder
