"""The offset map of compaction, for Cython callers."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

cdef struct Slot:
    uint64_t first
    uint64_t second
    # Offset of the key's last record plus 1. The value 0 marks an empty slot.
    int64_t offset_and_one


cdef class OffsetMap:
    cdef Slot *slots
    cdef uint64_t slot_count
    cdef uint64_t seeds[2]
    cdef readonly int64_t max_entries
    cdef readonly int64_t entries
    cdef public int64_t latest_offset
    # Whether a pass of compaction is using the map without the GIL.
    cdef bint in_use

    cdef int put(self, const uint8_t *key, int32_t size, int64_t offset) noexcept nogil
    cdef int64_t get(self, const uint8_t *key, int32_t size) noexcept nogil
    cdef Slot *find(self, const uint8_t *key, int32_t size, Slot *hash) noexcept nogil
