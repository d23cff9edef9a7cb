"""The encoder of produce requests for Cython callers."""

from kafkacore.wire._writer cimport Writer

cdef enum:
    # First version with compact encodings and tagged fields.
    FLEXIBLE_FROM = 9


cdef int write_produce_body(Writer writer, int version, int acks, int timeout_ms, list topics,
                            transactional_id) except -1
