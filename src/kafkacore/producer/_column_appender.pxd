"""ColumnAppender for Cython callers."""

from libc.stdint cimport int32_t

from kafkacore.producer._batch cimport ProducerBatch
from kafkacore.producer._batch_future cimport BatchFuture
from kafkacore.producer._partition_queue cimport PartitionQueue
from kafkacore.producer._record_appender cimport RecordAppender
from kafkacore.producer._topic_state cimport TopicState
from kafkacore.record._source cimport RecordSource


cdef class ColumnAppender:
    # Holds the topics, the memory and the settings.
    cdef RecordAppender _records

    cdef int _fail_rest(self, BatchFuture future, topic, error) except -1
    cdef int _check_rows(self, RecordSource source, bint allow_empty) except -1
    cdef int _append_to(self, PartitionQueue queue, BatchFuture future, double max_block_ms) except -1
    cdef bint _append_by_partition(self, TopicState state, BatchFuture future, double max_block_ms) except -1
    cdef int _append_sticky(self, TopicState state, BatchFuture future, double max_block_ms) except -1
    cdef Py_ssize_t _fill(self, PartitionQueue queue, BatchFuture future, const int32_t* rows,
                          Py_ssize_t at, Py_ssize_t end, double max_block_ms) except -1
    cdef Py_ssize_t _fill_open(self, PartitionQueue queue, BatchFuture future, const int32_t* rows,
                               Py_ssize_t at, Py_ssize_t end) except -1
    cdef Py_ssize_t _fill_new(self, PartitionQueue queue, BatchFuture future, const int32_t* rows,
                              Py_ssize_t at, Py_ssize_t end, double max_block_ms) except -1
    cdef Py_ssize_t _fill_alone(self, ProducerBatch batch, BatchFuture future, const int32_t* rows,
                                Py_ssize_t at, Py_ssize_t end) except -1
