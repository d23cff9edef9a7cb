"""RecordAppender for Cython callers."""

from kafkacore.producer._batch cimport ProducerBatch, SerializedRecord
from kafkacore.producer._batch_memory cimport BatchMemory
from kafkacore.producer._future cimport FutureRecordMetadata
from kafkacore.producer._partition_queue cimport PartitionQueue
from kafkacore.producer._sender_wakeup cimport SenderWakeup
from kafkacore.producer._topic_state cimport TopicState


cdef class RecordAppender:
    # What send() has to look up once per record, by topic name.
    cdef dict _topics
    # What was looked up last; None after any change.
    cdef object _last_topic
    cdef TopicState _last_state
    # PartitionQueue → None: those that have batches, in the order in which they got their first.
    cdef readonly dict active
    # ProducerBatch → None: those whose outcome is open.
    cdef readonly dict incomplete
    cdef readonly BatchMemory memory
    # Asked once per batch whether it may come in, and to make it part of the transaction; None without.
    cdef public object transactions
    cdef object _clock
    cdef object _wall_ms
    cdef bint _is_machine_clock
    cdef object _random
    cdef readonly SenderWakeup sender_wakeup
    cdef Py_ssize_t _batch_size
    cdef Py_ssize_t _max_request_size
    cdef Py_ssize_t _buffer_memory
    cdef double _linger_ms
    cdef double _max_block_ms
    cdef bint _is_adaptive
    cdef bint _ignores_keys
    cdef int _fork_generation
    cdef readonly bint closed
    # Why no record is taken any more; None as long as there is no error.
    cdef object _failure

    cdef FutureRecordMetadata append_record(self, topic, value, key, headers, partition, timestamp_ms,
                                            double max_block_ms)
    cdef FutureRecordMetadata _append_views(self, TopicState state, value, key, headers, int partition,
                                            timestamp_ms, double max_block_ms)
    cdef TopicState _look_up(self, topic)
    cdef long long _timestamp(self, timestamp_ms) except? -1
    cdef int _refuse_size(self, Py_ssize_t size) except -1
    cdef FutureRecordMetadata _append(self, TopicState state, FutureRecordMetadata future,
                                      const SerializedRecord* record, int partition,
                                      double max_block_ms)
    cdef PartitionQueue _append_elsewhere(self, TopicState state, PartitionQueue queue,
                                          FutureRecordMetadata future, const SerializedRecord* record,
                                          Py_ssize_t size, bint sticky, double max_block_ms)
    cdef bint _grow(self, PartitionQueue queue, Py_ssize_t size) except -1
    cdef int _admit(self, PartitionQueue queue, ProducerBatch batch) except -1
    cdef int _has_begun(self, PartitionQueue queue, ProducerBatch batch) except -1
    cdef int _choose(self, TopicState state, const SerializedRecord* record) except -1
    cdef int _append_to_new_batch(self, PartitionQueue queue, FutureRecordMetadata future,
                                  const SerializedRecord* record, Py_ssize_t size,
                                  double max_block_ms) except -1
    cdef int _abandon(self, ProducerBatch batch) except -1
