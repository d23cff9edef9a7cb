"""The indexes of a segment for Cython callers."""

from libc.stdint cimport int64_t, uint8_t

cdef class IndexFile:
    cdef readonly int64_t count
    cdef readonly int64_t max_count
    cdef object _file
    cdef object _entry
    cdef int64_t _entry_size
    # Encoded entries that are not yet in the file. There is space for 64 entries of the larger kind.
    cdef uint8_t _waiting[64 * 12]
    cdef int64_t _waiting_size
    # Whether the file exists.
    cdef bint _is_made
    # Whether the file ends after its entries. A failed write may leave further bytes.
    cdef bint _is_exact

    cdef int64_t written_size(self) noexcept
    cdef uint8_t *add(self) except NULL

cdef class OffsetIndex:
    cdef readonly IndexFile file
    cdef int64_t _base
    cdef int64_t _last_offset
    cdef int64_t _last_position
    # Index of the entry that the last search by position found. The next search usually finds an entry
    # shortly after it.
    cdef int64_t _window

    cdef object _at(self, int64_t index)
    cdef int find_last(self) except -1
    cdef bint full(self) noexcept
    cdef int add(self, int64_t last_offset, int64_t position) except -1

cdef class TimeIndex:
    cdef readonly IndexFile file
    cdef int64_t _base
    cdef int64_t _last_timestamp
    cdef int64_t _last_offset

    cdef object _at(self, int64_t index)
    cdef int find_last(self) except -1
    cdef bint full(self) noexcept
    cdef int add(self, int64_t timestamp, int64_t offset, bint closing) except -1
