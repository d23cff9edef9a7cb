# cython: boundscheck=False, wraparound=False, cdivision=True
"""The part of the RecordAccumulator that ``send()`` calls for each record.

It checks the record, chooses its partition, appends it to the open batch, and wakes the sender if needed.
"""

cimport cython
from cpython.buffer cimport Py_buffer, PyBuffer_Release
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memset
from posix.time cimport CLOCK_REALTIME, clock_gettime, timespec

from kafkacore.producer._arguments cimport checked_partition, checked_timestamp, encode_headers, open_bytes
from kafkacore.producer._batch cimport ProducerBatch, SerializedRecord
from kafkacore.producer._batch_memory cimport BatchMemory
from kafkacore.producer._future cimport FutureRecordMetadata, new_future
from kafkacore.producer._murmur2 cimport murmur2_of
from kafkacore.producer._partition_queue cimport PartitionQueue
from kafkacore.producer._sender_wakeup cimport SenderWakeup
from kafkacore.producer._topic_state cimport TopicState
from kafkacore.record.layout cimport MAX_RECORD_OVERHEAD, RECORDS_AT
from kafkacore.record.store cimport batch_size_bound
from kafkacore.wire._gil_handoff cimport gil_handoff_yield

import os

from kafkacore.clock import Clock
from kafkacore.errors import IllegalStateError, MessageSizeTooLargeError, TransactionAbortedError

# Number of bytes of MAX_RECORD_OVERHEAD that the second and later records of a batch usually do not need.
cdef Py_ssize_t RECORD_OVERHEAD_SPARED = MAX_RECORD_OVERHEAD - 5

# Number of forks that led to this process. A producer with another number belongs to a parent process. The
# thread of such a producer does not run in this process, and this process must not use the producer's
# sockets.
cdef int fork_generation = 0


def _after_fork():
    global fork_generation
    fork_generation += 1


os.register_at_fork(after_in_child=_after_fork)


@cython.final
cdef class RecordAppender:
    """Appends records to the open batches of their partitions.

    Parameters
    ----------
    clock
        Source of the time of batches, and of timestamps for records without a timestamp.
    sender_wakeup
        Wakes the sender if there is work before the time at which the sender wakes by itself.
    memory
        BatchMemory, which creates the batches.
    batch_size, linger_ms, max_request_size, max_block_ms
        Settings, in bytes and milliseconds.
    is_adaptive, ignores_keys
        Settings for the choice of partitions; see RecordAccumulator.
    """

    def __init__(self, clock, SenderWakeup sender_wakeup not None, BatchMemory memory not None, *,
                 Py_ssize_t batch_size, double linger_ms, Py_ssize_t max_request_size, double max_block_ms,
                 bint is_adaptive, bint ignores_keys):
        self._topics = {}
        self.active = {}
        self.incomplete = {}
        self._clock = clock
        self._wall_ms = clock.wall_ms
        # If this is the real clock, the time is read without a Python call.
        self._is_machine_clock = type(clock).wall_ms is Clock.wall_ms
        self._random = clock.random
        self.sender_wakeup = sender_wakeup
        self.memory = memory
        self._batch_size = batch_size
        self._linger_ms = linger_ms
        self._max_request_size = max_request_size
        self._buffer_memory = memory.pool.total_bytes
        self._max_block_ms = max_block_ms
        self._is_adaptive = is_adaptive
        self._ignores_keys = ignores_keys
        self._fork_generation = fork_generation

    # ---- Per record --------------------------------------------------------------------------------------

    def append(self, topic, value, key, headers, partition, timestamp_ms, max_block_ms=None):
        """Append one record to the open batch of its partition.

        Parameters
        ----------
        topic
            Name of a topic for which :meth:`set_topic` was called.
        value, key
            Bytes-like objects, or ``None``.
        headers
            List of (str, bytes), or ``None``.
        partition
            Number of the partition. With ``None``, the key's hash determines the partition. Records without a
            key are appended to the same partition until a batch is full.
        timestamp_ms
            Milliseconds since the epoch; ``None`` for the current time.
        max_block_ms
            How long to wait for memory. The default is the configured time.

        Returns
        -------
        FutureRecordMetadata | None
            ``None`` if the topic or the partition is unknown.
        """
        cdef double block_ms = self._max_block_ms if max_block_ms is None else max_block_ms
        return self.append_record(topic, value, key, headers, partition, timestamp_ms, block_ms)

    cdef FutureRecordMetadata append_record(self, topic, value, key, headers, partition, timestamp_ms,
                                            double max_block_ms):
        cdef TopicState state
        cdef FutureRecordMetadata future
        cdef SerializedRecord record
        cdef int chosen = -1
        gil_handoff_yield()
        if self.closed or self._fork_generation != fork_generation:
            self.check_usable()
        if topic is self._last_topic:
            state = self._last_state
        else:
            state = self._look_up(topic)
        if state is None:
            return None
        if partition is not None:
            chosen = checked_partition(partition)
        if chosen >= <Py_ssize_t>len(state._queues) or len(state._queues) == 0:
            return None
        if (headers is not None or value is not None and not PyBytes_CheckExact(value)
                or key is not None and not PyBytes_CheckExact(key)):
            return self._append_views(state, value, key, headers, chosen, timestamp_ms, max_block_ms)
        record.key = record.value = record.headers = NULL
        record.key_size = record.value_size = -1
        record.headers_size = 0
        record.header_count = 0
        if key is not None:
            record.key = <const uint8_t*>PyBytes_AS_STRING(key)
            record.key_size = PyBytes_GET_SIZE(key)
        if value is not None:
            record.value = <const uint8_t*>PyBytes_AS_STRING(value)
            record.value_size = PyBytes_GET_SIZE(value)
        future = new_future(self._timestamp(timestamp_ms), <int>record.key_size, <int>record.value_size, -1)
        return self._append(state, future, &record, chosen, max_block_ms)

    cdef FutureRecordMetadata _append_views(self, TopicState state, value, key, headers, int partition,
                                            timestamp_ms, double max_block_ms):
        """Append a record that has headers, or a key or value that is not ``bytes``."""
        cdef SerializedRecord record
        cdef Py_buffer key_view, value_view
        cdef bytes encoded
        cdef long long timestamp = self._timestamp(timestamp_ms)
        cdef Py_ssize_t header_size = -1
        memset(&record, 0, sizeof(record))
        if headers is not None:
            header_size = 0
            encoded = encode_headers(headers, &header_size)
            record.headers = <const uint8_t*>PyBytes_AS_STRING(encoded)
            record.headers_size = PyBytes_GET_SIZE(encoded)
            record.header_count = <int32_t>len(headers)
        # Set the view to zeros, so that releasing an unused buffer has no effect.
        memset(&key_view, 0, sizeof(Py_buffer))
        memset(&value_view, 0, sizeof(Py_buffer))
        try:
            record.key_size = open_bytes(key, &record.key, &key_view, "key")
            record.value_size = open_bytes(value, &record.value, &value_view, "value")
            return self._append(
                state, new_future(timestamp, <int>record.key_size, <int>record.value_size, <int>header_size),
                &record, partition, max_block_ms,
            )
        finally:
            PyBuffer_Release(&key_view)
            PyBuffer_Release(&value_view)

    cdef TopicState _look_up(self, topic):
        cdef TopicState state = self._topics.get(topic) if isinstance(topic, str) else None
        if state is not None:
            self._last_topic = topic
            self._last_state = state
        return state

    cdef long long _timestamp(self, timestamp_ms) except? -1:
        cdef timespec now
        if timestamp_ms is not None:
            return checked_timestamp(timestamp_ms)
        if not self._is_machine_clock:
            return self._wall_ms()
        clock_gettime(CLOCK_REALTIME, &now)
        return <long long>now.tv_sec * 1000 + now.tv_nsec // 1000000

    cdef FutureRecordMetadata _append(self, TopicState state, FutureRecordMetadata future,
                                      const SerializedRecord* record, int partition, double max_block_ms):
        cdef Py_ssize_t size = batch_size_bound(
            record.key_size, record.value_size, record.headers_size, record.header_count
        )
        cdef PartitionQueue queue
        cdef bint sticky = partition < 0 and (record.key_size < 0 or self._ignores_keys)
        if size > self._max_request_size or size > self._buffer_memory:
            self._refuse_size(size)
        if partition < 0:
            partition = self._choose(state, record)
        queue = state._queues[partition]
        if not queue.try_append(future, record):
            queue = self._append_elsewhere(state, queue, future, record, size, sticky, max_block_ms)
        if sticky:
            # Count at most the bytes that the record needs in its batch. Otherwise another partition would be
            # chosen before the batch is full.
            state._sticky_bytes += size - RECORDS_AT - RECORD_OVERHEAD_SPARED
        return future

    cdef PartitionQueue _append_elsewhere(self, TopicState state, PartitionQueue queue,
                                          FutureRecordMetadata future, const SerializedRecord* record,
                                          Py_ssize_t size, bint sticky, double max_block_ms):
        """Append a record that does not fit into the open batch, or whose partition has no open batch."""
        while self._grow(queue, size):
            if queue.try_append(future, record):
                return queue
        if len(queue._batches):
            self.sender_wakeup.batch_is_full(queue)
            if sticky and state._sticky_bytes > 0:
                # Switch to another partition (KIP-480), unless this partition has just been chosen. A chosen
                # partition may already have waiting batches.
                state.rotate(self._random)
                queue = state._queues[state._sticky_partition]
        if not queue.try_append(future, record):
            self._append_to_new_batch(queue, future, record, size, max_block_ms)
        return queue

    cdef bint _grow(self, PartitionQueue queue, Py_ssize_t size) except -1:
        """Reserve more memory for the open batch: at least ``size`` bytes, if the batch may grow so much.

        If no memory is free, close the batch as if it were full. Return whether to try the append again.
        """
        cdef ProducerBatch batch
        cdef Py_ssize_t more
        if queue._is_filling:
            # A thread that appends rows reads the limit without the GIL.
            queue._await_filling()
        batch = queue._open
        if batch is None or not batch.may_grow():
            return False
        more = min(max(batch._builder.limit, size), batch._full_limit - batch._builder.limit)
        if not self.memory.grow(batch, more):
            if queue._open is batch:
                queue._open = None
            return False
        return queue._open is batch

    def check_usable(self):
        """Raise an error if the producer rejects records.

        The error is the one that was passed to :meth:`fail_appends`, or an ``IllegalStateError`` if the
        producer is closed or was created before ``fork()``.
        """
        if self._fork_generation != fork_generation:
            raise IllegalStateError(
                "this KafkaProducer was created before fork(): its network thread and connections belong to "
                "the parent process; create a new one in the child"
            )
        if self._failure is not None:
            raise type(self._failure)(*self._failure.args) from self._failure
        if self.closed:
            raise IllegalStateError("KafkaProducer is closed")

    @property
    def is_forked(self):
        """Whether the producer was created by the parent of this process."""
        return self._fork_generation != fork_generation

    cdef int _refuse_size(self, Py_ssize_t size) except -1:
        limit = min(self._max_request_size, self._buffer_memory)
        name = "max_request_size" if limit == self._max_request_size else "buffer_memory"
        raise MessageSizeTooLargeError(
            f"the record has {size} bytes when serialized, more than {name} ({limit})"
        )

    cdef int _choose(self, TopicState state, const SerializedRecord* record) except -1:
        if record.key_size >= 0 and not self._ignores_keys:
            return <int>(murmur2_of(record.key, record.key_size) & 0x7FFFFFFF) % <int>len(state._queues)
        if state._sticky_partition < 0 or state._sticky_bytes >= self._batch_size and (
            (<PartitionQueue>state._queues[state._sticky_partition])._open is None
        ):
            state.rotate(self._random)
        return state._sticky_partition

    cdef int _append_to_new_batch(self, PartitionQueue queue, FutureRecordMetadata future,
                                  const SerializedRecord* record, Py_ssize_t size,
                                  double max_block_ms) except -1:
        cdef ProducerBatch batch
        if self.transactions is not None:
            self.transactions.add_partition(queue.topic_partition)
        batch = self.memory.new_batch(queue.topic_partition, max(self._batch_size, size), size, max_block_ms)
        try:
            # Check again: if the producer was closed during the wait for memory, the batch would never be
            # sent.
            self.check_usable()
            # Register the batch before appending, because the sender may complete the batch at any time
            # afterwards.
            self.incomplete[batch] = None
            self._admit(queue, batch)
            if not queue.append_new(batch, future, record):
                self._abandon(batch)
                return 0
        except BaseException:
            self._abandon(batch)
            raise
        self._activate(queue, batch)
        return 0

    cdef int _admit(self, PartitionQueue queue, ProducerBatch batch) except -1:
        """Add the partition of a new batch to the transaction.

        The transaction cannot end before all batches in ``incomplete`` are done.

        Records are appended to an existing open batch without calling this method, because no batch is open
        outside of a transaction.
        """
        if self.transactions is not None:
            self.transactions.add_partition(queue.topic_partition)
        if batch.result.done:
            # The batch has failed in the meantime, because close() was called without waiting, or the
            # transaction was aborted.
            self.check_usable()
            raise TransactionAbortedError("the transaction was aborted while this record was being appended")
        return 0

    cdef int _activate(self, PartitionQueue queue, ProducerBatch batch) except -1:
        """Put a queue with a new batch into ``active``, and wake the sender if needed."""
        self.active[queue] = None
        if batch.is_full:
            return self.sender_wakeup.batch_is_full(queue)
        if self.direct is not None:
            try:
                if self.direct.send(queue, batch):
                    return 0
            except BaseException:
                self.sender_wakeup.wake()
                raise
        return self.sender_wakeup.batch_is_due(queue, batch.created_ms + self._linger_ms)

    cdef int _abandon(self, ProducerBatch batch) except -1:
        # The batch has no records, but a flush may wait until the batch is done.
        if not batch.result.done:
            batch.complete()
        self.incomplete.pop(batch, None)
        self.memory.give_back(batch)
        # Wake the sender, because the end of a transaction, or a close, may be waiting only for this batch.
        return self.sender_wakeup.wake()

    def release(self, ProducerBatch batch not None):
        """Release the memory of a batch whose last request has completed. Further calls have no effect."""
        self.memory.give_back(batch)

    # ---- Topics ------------------------------------------------------------------------------------------

    def topic_state(self, topic):
        """Return the :class:`TopicState` of a topic, or ``None`` if the topic is unknown."""
        return self._look_up(topic)

    def set_topic(self, str topic not None, list queues not None, tuple available not None):
        """Use ``queues``, one per partition, for a topic. ``available`` are the partitions with a leader."""
        cdef TopicState before = self._topics.get(topic)
        cdef TopicState state = TopicState(topic, queues, available, self._is_adaptive)
        if before is not None and before._sticky_partition in available:
            state._sticky_partition = before._sticky_partition
            state._sticky_bytes = before._sticky_bytes
        self._topics[topic] = state
        self._last_topic = self._last_state = None

    def forget_topic(self, str topic not None):
        """Remove a topic, so that the next record of this topic has to wait for metadata."""
        self._topics.pop(topic, None)
        self._last_topic = self._last_state = None

    def topic_names(self):
        """Return the names of the known topics."""
        return list(self._topics)

    # ---- Calls of the sender -----------------------------------------------------------------------------

    def forget_if_empty(self, PartitionQueue queue not None):
        """Remove a partition without batches from :attr:`active`."""
        # The GIL keeps other threads from adding a batch between the check and the removal. A batch that is
        # added in between would not be sent.
        if len(queue._batches) == 0:
            self.active.pop(queue, None)

    def close_for_appends(self):
        """Reject further records."""
        self.closed = True

    def fail_appends(self, error):
        """Reject further records with ``error``."""
        self._failure = error
        self.closed = True
