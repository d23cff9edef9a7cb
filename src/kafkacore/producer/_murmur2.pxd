"""The hash function of keys, for Cython callers."""

from libc.stdint cimport uint8_t, uint32_t

cdef uint32_t murmur2_of(const uint8_t* data, Py_ssize_t length) noexcept nogil
