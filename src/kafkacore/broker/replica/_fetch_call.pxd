"""Cython declarations of ``_fetch_call``."""

from libc.stdint cimport int64_t

from kafkacore.wire._uuid cimport Uuid
from kafkacore.wire._writer cimport Writer

cdef class FetchPartition:
    cdef public Uuid topic_id
    cdef public int partition
    cdef public object topic_partition
    cdef public int64_t fetch_offset
    cdef public int max_bytes
    cdef public int current_leader_epoch
    cdef public int last_fetched_epoch

cdef class FetchTopic:
    cdef readonly str topic
    # None up to version 12.
    cdef Uuid id
    cdef readonly list partitions

    cdef object key(self)

cdef class FetchCall:
    cdef readonly int replica_id
    cdef readonly int max_wait_ms
    cdef readonly int min_bytes
    cdef readonly int max_bytes
    cdef readonly int isolation_level
    cdef readonly int session_id
    cdef readonly int session_epoch
    cdef readonly list topics
    cdef readonly list forgotten_topics_data

cdef class FetchAnswer:
    cdef public int throttle_time_ms
    cdef readonly int session_id
    cdef readonly list included
    cdef readonly bint read_committed
