"""Declare RecordBatch and Record for Cython callers."""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkacore.record._header cimport BatchHeader
from kafkacore.record.parse cimport RecordFields
from kafkacore.wire._payload cimport Payload

cdef class RecordBatch(BatchHeader):
    # `source` contains the batch as received, and `records` the decompressed records. For an uncompressed
    # batch, both are the same object. `records_at` is NULL until the records are first used.
    cdef Payload source
    cdef Payload records
    cdef const uint8_t *records_at
    cdef const uint8_t *records_end
    cdef Py_ssize_t max_decompressed_size
    # Position, offset and index of the record at which the last read into columns stopped.
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
    # End of the record's bytes. `own` contains the bytes if it is set; otherwise the batch contains them.
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
    # The last two records that were returned. When a loop requests the next record, it still holds the newer
    # record and has released the older record, which can then be reused.
    cdef PyObject *newer
    cdef PyObject *older

    cdef Record _make(self)


cdef class BatchIterator:
    cdef Payload payload
    cdef Py_ssize_t at
    cdef Py_ssize_t max_decompressed_size
    cdef bint check_crcs
