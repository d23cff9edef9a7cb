"""Cython declarations of ``RecordReader``."""

from libc.stdint cimport int64_t, uint8_t

from kafkacore.consumer._memory cimport FetchMemory
from kafkacore.consumer._record cimport ConsumerRecord
from kafkacore.record._batch cimport RecordBatch


cdef struct Scan:
    # Maximum number of records in the complete batches after the position, and the offset after these
    # batches.
    int64_t records
    int64_t end
    # First offset of the complete batches, offset after the last batch, and number of bytes and of batches.
    int64_t first
    int64_t last
    int64_t size
    int64_t batches


cdef class RecordReader:
    # Iterator over the remaining batches; callers may also read whole batches from it.
    cdef readonly object batches
    cdef public int64_t next_offset
    cdef public int last_epoch
    cdef readonly bint is_consumed
    cdef readonly bint failed_in_deserializer
    # Offset of the record that was last passed to a deserializer.
    cdef readonly int64_t deserialized_offset
    cdef RecordBatch batch
    cdef object _data
    cdef object _topic
    cdef int _partition
    cdef FetchMemory _memory
    cdef object _is_for_user
    cdef object _key_deserializer
    cdef object _value_deserializer
    cdef bint _has_deserializer
    cdef bint _read_committed
    cdef bint _is_reading
    # Position in the current batch, valid while the batch is open.
    cdef bint _is_open
    cdef const uint8_t *_pos
    cdef Py_ssize_t _index

    cpdef RecordBatch current_batch(self)
    cpdef finish_batch(self)
    cdef Py_ssize_t _read_batch(self, list out, Py_ssize_t limit) except -1
    cdef int _deserialize(self, ConsumerRecord record) except -1
    cdef int _scan(self, Scan *found) except -2
