"""RecordSender for Cython callers."""

from kafkacore.producer._record_appender cimport RecordAppender


cdef class RecordSender:
    cdef RecordAppender _appender
    # Neither serializers nor a partitioner of the user's: nothing to do here but to append.
    cdef readonly bint _is_plain
