"""Declare the conversion of messages of format 0 and 1 for Cython callers."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from kafkacore.record._header cimport BatchHeader
from kafkacore.wire._payload cimport Payload

cdef struct Message:
    int64_t offset
    # -1 in format 0, which has no timestamps.
    int64_t timestamp
    # -1 for null.
    int32_t key_size
    int32_t value_size
    const uint8_t *key
    const uint8_t *value
    uint32_t crc
    uint8_t magic
    uint8_t attributes

cdef Payload unpack(BatchHeader header, Payload payload, bint check_crcs, Py_ssize_t max_decompressed_size)
