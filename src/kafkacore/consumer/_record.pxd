"""ConsumerRecord for Cython callers."""

from kafkacore.record.batch cimport Record


cdef class ConsumerRecord:
    cdef readonly object topic
    cdef readonly int partition
    cdef readonly int leader_epoch
    cdef readonly int timestamp_type
    cdef readonly long long offset
    cdef readonly long long timestamp
    # The lazy record while anything of it is unread.
    cdef Record _record
    cdef object _key
    cdef object _value
    cdef object _headers
    cdef object _key_size
    cdef object _value_size
    cdef object _header_size


cdef class RecordReader:
    cdef object _records
    cdef Record _pending
    cdef object _topic
    cdef object _key_deserializer
    cdef object _value_deserializer
    cdef int _partition
    cdef int _leader_epoch
    cdef int _timestamp_type
    cdef readonly bint failed_in_deserializer

    cdef ConsumerRecord _make(self, Record record)
