"""RecordAppender for Cython callers."""

from kafkacore.producer._batch cimport ProducerBatch, SerializedRecord
from kafkacore.producer._batch_memory cimport BatchMemory
from kafkacore.producer._direct_sender cimport DirectSender
from kafkacore.producer._future cimport FutureRecordMetadata
from kafkacore.producer._partition_queue cimport PartitionQueue
from kafkacore.producer._sender_wakeup cimport SenderWakeup
from kafkacore.producer._topic_state cimport TopicState


cdef class RecordAppender:
    # Topic name → state, which send() looks up for each record.
    cdef dict _topics
    # Last topic that was looked up; None after any change.
    cdef object _last_topic
    cdef TopicState _last_state
    # PartitionQueue → None: the queues with batches. Queues that have waited longest come first.
    cdef readonly dict active
    # ProducerBatch → None: the batches that are neither acknowledged nor failed.
    cdef readonly dict incomplete
    cdef readonly BatchMemory memory
    # Adds the partition of each new batch to the transaction, or rejects the batch. None without
    # transactions.
    cdef public object transactions
    # Sends a new batch at once if possible. None if linger_ms or another setting does not allow it.
    cdef public DirectSender direct
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
    # The error that rejects all records, or None.
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
    cdef int _activate(self, PartitionQueue queue, ProducerBatch batch) except -1
    cdef int _choose(self, TopicState state, const SerializedRecord* record) except -1
    cdef int _append_to_new_batch(self, PartitionQueue queue, FutureRecordMetadata future,
                                  const SerializedRecord* record, Py_ssize_t size,
                                  double max_block_ms) except -1
    cdef int _abandon(self, ProducerBatch batch) except -1
