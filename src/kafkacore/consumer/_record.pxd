"""Cython declarations of ``ConsumerRecord``."""

from kafkacore.consumer._memory cimport RecordOrigin
from kafkacore.record.parse cimport RecordFields


cdef class OwnFields:
    cdef object key
    cdef object value
    cdef object headers
    cdef object key_size
    cdef object value_size
    cdef object header_size


cdef class ConsumerRecord:
    cdef RecordOrigin origin
    # Fields that exist as Python objects. While `origin` has the bytes, only the headers can exist.
    cdef OwnFields own
    cdef readonly long long offset
    cdef readonly long long timestamp
    cdef RecordFields fields
    cdef Py_ssize_t index


cdef ConsumerRecord new_record(RecordOrigin origin)
cdef int own_fields(ConsumerRecord record, object key, object value, list headers) except -1
