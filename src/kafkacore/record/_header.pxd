"""Declare BatchHeader for Cython callers."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t

cdef class BatchHeader:
    cdef readonly Py_ssize_t position
    cdef readonly Py_ssize_t size_in_bytes
    cdef readonly int64_t base_offset
    cdef readonly int64_t base_timestamp
    cdef readonly int64_t max_timestamp
    cdef readonly int64_t producer_id
    cdef readonly uint32_t crc
    cdef readonly int32_t partition_leader_epoch
    cdef readonly int32_t base_sequence
    cdef readonly int32_t record_count
    cdef readonly int16_t producer_epoch
    cdef readonly int8_t magic
    cdef int16_t attributes
    cdef int32_t last_offset_delta

    cdef int fill(self, const uint8_t *data, Py_ssize_t position) except -1
    cdef int fill_old(self, const uint8_t *at) except -1
    cdef int64_t sequence_end(self) noexcept
    cdef int check(self) except -1
    cdef int check_crc(self, const uint8_t *batch) except -1

cdef Py_ssize_t whole_batch_size(const uint8_t *at, Py_ssize_t left) except -1
cdef uint32_t old_crc_of(const uint8_t *message, Py_ssize_t size) except? 0
