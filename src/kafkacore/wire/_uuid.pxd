"""Declare Uuid for Cython callers."""

from libc.stdint cimport uint64_t

cdef class Uuid:
    cdef uint64_t high
    cdef uint64_t low


cdef Uuid new_uuid(uint64_t high, uint64_t low)
cpdef Uuid as_uuid(value)
