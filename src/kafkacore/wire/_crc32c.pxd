"""Declare CRC-32C for Cython callers, as a C function that needs no GIL."""

from libc.stdint cimport uint8_t, uint32_t

cdef uint32_t crc32c_of(uint32_t value, const uint8_t *data, size_t length) noexcept nogil
