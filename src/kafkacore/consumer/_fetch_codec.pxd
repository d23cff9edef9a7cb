"""Partitions of a fetch session, for Cython callers."""

from libc.stdint cimport int64_t

from kafkacore.consumer._reader cimport RecordReader
from kafkacore.wire._cursor cimport Cursor
from kafkacore.wire._uuid cimport Uuid
from kafkacore.wire._writer cimport Writer


cdef class SessionPart:
    cdef readonly object partition
    # The TopicPartitionState of the partition.
    cdef readonly object state
    cdef Uuid topic_id
    cdef int leader_epoch
    cdef int max_bytes
    # Offset of the fetch in flight, and of the fetch after it.
    cdef int64_t offset
    cdef int64_t next_offset
    # Number of the last response that contained the partition, and the contents of that response.
    cdef Py_ssize_t response_number
    cdef readonly int64_t high_watermark
    cdef readonly int64_t last_stable_offset
    cdef readonly int64_t log_start_offset
    cdef readonly object records
    # Offset of the fetch that returned these records, and their reader.
    cdef int64_t fetched_offset
    cdef RecordReader reader
    # Whether all of these records have been read.
    cdef bint is_read


cdef class FetchSettings:
    cdef int max_wait_ms
    cdef int min_bytes
    cdef int max_bytes
    cdef int isolation_level
    cdef str rack_id

    cdef int write_request(self, Writer writer, int version, int session_id, int epoch, list parts) except -1


cdef list read_usual_response(Cursor cursor, dict parts, int session_id, Py_ssize_t number)
