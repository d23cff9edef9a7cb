"""Cython declarations of ``_produce_call``."""

from libc.stdint cimport int64_t

from kafkacore.wire._cursor cimport Cursor
from kafkacore.wire._uuid cimport Uuid
from kafkacore.wire._writer cimport Writer

cdef int skip_tags(Cursor cursor, bint compact) except -1

cdef class ProducePartition:
    cdef readonly int index
    cdef public object records
    cdef public int error_code
    cdef public int64_t base_offset
    cdef public int64_t log_append_time_ms
    cdef public int64_t log_start_offset
    cdef public str error_message
    cdef public object record_errors
    cdef public object current_leader

    cdef int write(self, Writer writer, int version) except -1

cdef class ProduceTopic:
    cdef readonly str name
    cdef readonly Uuid topic_id
    cdef readonly list partitions

cdef class ProduceCall:
    cdef readonly str transactional_id
    cdef readonly int acks
    cdef readonly int timeout_ms
    cdef readonly list topics
    cdef public int throttle_time_ms
    cdef public object node_endpoints
