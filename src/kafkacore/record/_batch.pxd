"""Declare RecordBatch and Record for Cython callers."""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkacore.record._header cimport BatchHeader
from kafkacore.record.parse cimport RecordFields
from kafkacore.record._payload cimport Payload

cdef class RecordBatch(BatchHeader):
    # The batch as received, and its decompressed records. They are the same for an uncompressed batch. Before
    # the first use `records_at` is NULL.
    cdef Payload source
    cdef Payload records
    cdef const uint8_t *records_at
    cdef const uint8_t *records_end
    cdef Py_ssize_t max_decompressed_size
    # The record at which the last read into columns stopped, and its offset.
    cdef const uint8_t *stopped_at
    cdef int64_t stopped_offset
    cdef int32_t stopped_index

    cdef int open(self) except -1
    cdef int close(self) except -1
    cdef int _set_records(self, Payload payload, const uint8_t *at, Py_ssize_t size) except -1
    cdef int fail(self, int error, int32_t index) except -1
    cdef int64_t timestamp_of(self, RecordFields *fields) noexcept nogil
    cdef int32_t timestamp_type_id(self) noexcept nogil


cdef class Record:
    cdef RecordFields fields
    cdef readonly int64_t offset
    cdef readonly int64_t timestamp
    # End of the record's bytes, which belong to the batch, or to `own` if it is set.
    cdef const uint8_t *end
    cdef RecordBatch batch
    cdef bytes own
    cdef int32_t timestamp_type_id


cdef class _SmallRecord(Record):
    cdef PyObject *filled_value
    cdef Py_ssize_t capacity


cdef class RecordIterator:
    cdef RecordBatch batch
    cdef const uint8_t *pos
    cdef int32_t index
    cdef bint are_small
    # The last two returned records. A loop has released the older one when it requests the next.
    cdef PyObject *newer
    cdef PyObject *older

    cdef Record _make(self)


cdef class BatchIterator:
    cdef Payload payload
    cdef Py_ssize_t at
    cdef Py_ssize_t max_decompressed_size
    cdef bint check_crcs
