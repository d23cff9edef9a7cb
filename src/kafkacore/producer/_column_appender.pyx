# cython: boundscheck=False, wraparound=False, cdivision=True
"""The part of the RecordAccumulator that ``send_batch()`` and ``send_arrow()`` call.

It checks all rows, chooses a partition for each row, and appends the rows, without the GIL. Rows of the same
partition keep their order. They are appended after the records that ``send()`` has already appended.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from kafkacore.producer._arguments cimport checked_partition
from kafkacore.producer._batch cimport ProducerBatch
from kafkacore.producer._batch_future cimport BatchFuture, new_batch_future
from kafkacore.producer._future cimport ProduceResult
from kafkacore.producer._murmur2 cimport murmur2_of
from kafkacore.producer._partition_queue cimport PartitionQueue
from kafkacore.producer._record_appender cimport RecordAppender
from kafkacore.producer._topic_state cimport TopicState, weighted_index
from kafkacore.record._source cimport RecordSource
from kafkacore.record.store cimport batch_size_bound
from kafkacore.wire.memory cimport calloc, free, malloc

from kafkacore.errors import KafkaError, MessageSizeTooLargeError
from kafkacore.producer.produce_outcome import produce_error
from kafkacore.structs import TopicPartition

# Upper bound of the size of a batch with a single record that has no key, value or headers.
cdef Py_ssize_t EMPTY_RECORD_BOUND = batch_size_bound(-1, -1, 0, 0)


@cython.nonecheck(False)
cdef Py_ssize_t _first_wrong_row(RecordSource source, Py_ssize_t max_size, bint allow_empty) noexcept nogil:
    """Return the first row that cannot be sent, or -1 if all rows can be sent."""
    cdef Py_ssize_t row, size
    cdef const uint8_t* data
    for row in range(source.row_count):
        size = source.size_upper_bound(row)
        if size > max_size:
            return row
        if allow_empty or (size > EMPTY_RECORD_BOUND and source.headers.starts == NULL):
            continue
        if source.key(row, &data) < 0 and source.value(row, &data) < 0:
            return row
    if source.has_timestamps:
        for row in range(source.row_count):
            if source.timestamp(row, 0) < 0:
                return row
    return -1


cdef struct Sticky:
    # The current partition for rows without a key, the number of bytes appended to this partition so far, and
    # the number of bytes after which another partition is chosen.
    int32_t partition
    Py_ssize_t size
    Py_ssize_t limit
    # Candidate partitions, the cumulative sums of their weights, and the state of the random number generator
    # (xorshift, seeded by the clock's generator).
    const int32_t* candidates
    const int64_t* sums
    Py_ssize_t candidate_count
    uint64_t random_state


cdef int32_t _sticky_partition(Sticky* sticky, Py_ssize_t size) noexcept nogil:
    if sticky.partition < 0 or sticky.size >= sticky.limit:
        sticky.random_state ^= sticky.random_state << 13
        sticky.random_state ^= sticky.random_state >> 7
        sticky.random_state ^= sticky.random_state << 17
        sticky.partition = sticky.candidates[weighted_index(
            sticky.sums, sticky.candidate_count,
            <int64_t>((sticky.random_state >> 8) % <uint64_t>sticky.sums[sticky.candidate_count - 1]),
        )]
        sticky.size = 0
    sticky.size += size
    return sticky.partition


@cython.nonecheck(False)
cdef Py_ssize_t _group_rows(RecordSource source, bint has_keys, int32_t partition_count, Sticky* sticky,
                            int32_t* partition_of, Py_ssize_t* starts, int32_t* rows) noexcept nogil:
    """Sort the rows by partition. Rows of the same partition keep their order.

    The caller passes ``starts`` with ``partition_count + 1`` zeros. This function stores the first position
    of each partition in ``starts``. Return the first row whose partition does not exist, or -1.
    """
    cdef Py_ssize_t row, key_size, at
    cdef const uint8_t* key
    cdef int32_t partition
    for row in range(source.row_count):
        partition = source.partition(row)
        if partition >= partition_count or partition < -1:
            return row
        if partition < 0:
            key_size = source.key(row, &key) if has_keys else -1
            if key_size < 0:
                partition = _sticky_partition(sticky, source.size_upper_bound(row) - EMPTY_RECORD_BOUND)
            else:
                partition = <int32_t>((murmur2_of(key, key_size) & 0x7FFFFFFF) % <uint32_t>partition_count)
        partition_of[row] = partition
        starts[partition + 1] += 1
    for partition in range(partition_count):
        starts[partition + 1] += starts[partition]
    for row in range(source.row_count):
        at = starts[partition_of[row]]
        rows[at] = <int32_t>row
        starts[partition_of[row]] = at + 1
    # Each entry of ``starts`` is now the end of its partition, which is the start of the next partition.
    for partition in range(partition_count, 0, -1):
        starts[partition] = starts[partition - 1]
    starts[0] = 0
    return -1


def partition_range(RecordSource source not None):
    """Return the lowest and the highest partition of the rows; -1 stands for a row without a partition."""
    cdef Py_ssize_t row
    cdef int32_t lowest = 0x7FFFFFFF
    cdef int32_t highest = -1
    if not source.has_partitions:
        return -1, -1
    for row in range(source.row_count):
        lowest = min(lowest, source.partition(row))
        highest = max(highest, source.partition(row))
    return lowest, highest


@cython.final
cdef class ColumnAppender:
    """Appends the rows of columns to the open batches of their partitions.

    Parameters
    ----------
    records
        RecordAppender, which appends single records to the same batches.
    """

    def __init__(self, RecordAppender records not None):
        self._records = records

    def append_source(self, topic, RecordSource source not None, partition, max_block_ms=None,
                      bint allow_empty=False):
        """Append all rows of ``source`` to batches.

        Parameters
        ----------
        topic
            Name of the topic.
        source
            The rows. Rows without a timestamp get the time of this call.
        partition
            Partition of all rows. With ``None``, each row is appended to the partition that it contains. A
            row without a partition is appended to the partition of its key. A row that also has no key is
            appended to the current partition of such rows.
        max_block_ms
            How long to wait for the memory of each batch. The default is the configured time.
        allow_empty
            Whether a row may have neither key nor value.

        Returns
        -------
        BatchFuture | None
            ``None`` if the topic or a partition is unknown. In this case no row is appended.

        Raises
        ------
        MessageSizeTooLargeError, ValueError
            A row is too large, has neither key nor value, or has a negative timestamp. No row is appended.
        KafkaTimeoutError, IllegalStateError
            No memory became free, or the producer was closed. If some rows were already appended,
            ``error.future`` is the future of all rows. In this future, the other rows have failed.
        """
        cdef TopicState state
        cdef BatchFuture future
        cdef double block_ms = self._records._max_block_ms if max_block_ms is None else max_block_ms
        self._records.check_usable()
        state = self._records._look_up(topic)
        if state is None:
            return None
        if len(state._queues) == 0 or (
            partition is not None and checked_partition(partition) >= <Py_ssize_t>len(state._queues)
        ):
            return None
        self._check_rows(source, allow_empty)
        future = new_batch_future(source, self._records._timestamp(None), self._records._clock)
        try:
            if partition is None and len(state._queues) == 1 and not source.has_partitions:
                partition = 0
            if partition is not None:
                self._append_to(state._queues[partition], future, block_ms)
            elif not source.has_partitions and (self._records._ignores_keys or not source.has_keys):
                self._append_sticky(state, future, block_ms)
            elif not self._append_by_partition(state, future, block_ms):
                return None
        except KafkaError as error:
            if future._placed == 0:
                raise
            self._fail_rest(future, topic, produce_error(error, possibly_persisted=False))
            error.future = future
            raise
        return future

    def failed_source(self, topic, RecordSource source not None, error):
        """Return a future whose rows have all failed with ``error``."""
        cdef RecordAppender records = self._records
        cdef BatchFuture future = new_batch_future(source, records._timestamp(None), records._clock)
        self._fail_rest(future, topic, error)
        return future

    cdef int _fail_rest(self, BatchFuture future, topic, error) except -1:
        rest = ProduceResult(TopicPartition(topic, -1), self._records._clock)
        rest.complete(error=error)
        future.place(rest, 0, future._source.row_count - future._placed)
        return 0

    cdef int _check_rows(self, RecordSource source, bint allow_empty) except -1:
        cdef Py_ssize_t max_size = min(self._records._max_request_size, self._records._buffer_memory)
        cdef Py_ssize_t row
        with nogil:
            row = _first_wrong_row(source, max_size, allow_empty)
        if row < 0:
            return 0
        error = self._row_error(source, row, max_size)
        error.row = row
        raise error

    def _row_error(self, RecordSource source not None, Py_ssize_t row, Py_ssize_t max_size):
        if source.size_upper_bound(row) > max_size:
            name = "max_request_size" if max_size == self._records._max_request_size else "buffer_memory"
            return MessageSizeTooLargeError(
                f"row {row} has {source.size_upper_bound(row)} bytes when serialized, more than {name} "
                f"({max_size}); no row was sent"
            )
        if not source.has_timestamps or source.timestamp(row, 0) >= 0:
            return ValueError(f"row {row} has neither a key nor a value; no row was sent")
        return ValueError(
            f"the timestamp of row {row} must be milliseconds since the epoch, not "
            f"{source.timestamp(row, 0)}; no row was sent"
        )

    cdef int _append_to(self, PartitionQueue queue, BatchFuture future, double max_block_ms) except -1:
        cdef Py_ssize_t at = 0
        while at < future._source.row_count:
            at = self._fill(queue, future, NULL, at, future._source.row_count, max_block_ms)
        return 0

    cdef bint _append_by_partition(self, TopicState state, BatchFuture future, double max_block_ms) except -1:
        """Append each row to its partition. Return ``False`` if a partition is unknown."""
        cdef RecordSource source = future._source
        cdef int32_t partition_count = <int32_t>len(state._queues)
        cdef int32_t* rows = future.order()
        cdef int32_t* partition_of = <int32_t*>malloc(max(source.row_count, 1) * sizeof(int32_t))
        cdef Py_ssize_t* starts = <Py_ssize_t*>calloc(partition_count + 1, sizeof(Py_ssize_t))
        cdef int32_t* candidates = <int32_t*>malloc(partition_count * sizeof(int32_t))
        cdef int64_t* sums = <int64_t*>malloc(partition_count * sizeof(int64_t))
        cdef bint has_keys = source.has_keys and not self._records._ignores_keys
        cdef Sticky sticky
        cdef Py_ssize_t unknown, at
        cdef int32_t partition
        try:
            if partition_of is NULL or starts is NULL or candidates is NULL or sums is NULL:
                raise MemoryError()
            sticky.partition = state._sticky_partition
            sticky.size = state._sticky_bytes
            sticky.limit = max(self._records._batch_size, 1)
            sticky.candidates = candidates
            sticky.random_state = self._records._random.getrandbits(63) + 1
            sticky.candidate_count = 0
            for partition in state._candidates:
                candidates[sticky.candidate_count] = partition
                sticky.candidate_count += 1
            state.weigh()
            # Use a copy of the sums, because another thread may recompute the weights.
            memcpy(sums, state._sums, sticky.candidate_count * sizeof(int64_t))
            sticky.sums = sums
            with nogil:
                unknown = _group_rows(source, has_keys, partition_count, &sticky, partition_of, starts, rows)
            if unknown >= 0:
                return False
            state._sticky_partition = sticky.partition
            state._sticky_bytes = sticky.size
            for partition in range(partition_count):
                at = starts[partition]
                while at < starts[partition + 1]:
                    at = self._fill(
                        state._queues[partition], future, rows, at, starts[partition + 1], max_block_ms
                    )
        finally:
            free(partition_of)
            free(starts)
            free(candidates)
            free(sums)
        return True

    cdef int _append_sticky(self, TopicState state, BatchFuture future, double max_block_ms) except -1:
        """Append rows without a key: fill a batch, then choose another partition (KIP-480)."""
        cdef Py_ssize_t end = future._source.row_count
        cdef Py_ssize_t at = 0
        if state._sticky_partition < 0 and end > 0:
            state.rotate(self._records._random)
        while at < end:
            at = self._fill(state._queues[state._sticky_partition], future, NULL, at, end, max_block_ms)
            # Count at least 1 byte, because 0 would mean that the partition has just been chosen.
            state._sticky_bytes = max(state._sticky_bytes, 1)
            if at < end:
                state.rotate(self._records._random)
        return 0

    # ---- Batches -------------------------------------------------------------------------------------------

    cdef Py_ssize_t _fill(self, PartitionQueue queue, BatchFuture future, const int32_t* rows,
                          Py_ssize_t at, Py_ssize_t end, double max_block_ms) except -1:
        """Append the rows from ``at`` to ``end`` to one batch; return the first position that did not fit."""
        cdef Py_ssize_t reached = self._fill_open(queue, future, rows, at, end)
        if reached > at:
            return reached
        return self._fill_new(queue, future, rows, at, end, max_block_ms)

    cdef Py_ssize_t _fill_open(self, PartitionQueue queue, BatchFuture future, const int32_t* rows,
                               Py_ssize_t at, Py_ssize_t end) except -1:
        cdef ProducerBatch batch
        cdef Py_ssize_t appended
        cdef int first
        cdef bint was_open = False
        while at < end:
            queue.begin_filling()
            try:
                batch = queue._open
                if batch is None:
                    break
                was_open = True
                first = batch.record_count
                appended = batch.append_rows(future._source, rows, at, end - at, future._default_timestamp_ms)
                if at + appended < end and not batch.may_grow():
                    queue._open = None
            finally:
                queue.end_filling()
            # Call place() after end_filling(), because place() creates an object, which may run a finalizer
            # that sends to the same partition.
            future.place(batch.result, first, appended)
            at += appended
            if at == end:
                break
            if not self._records._grow(queue, future._source.size_upper_bound(future._row_at(at))):
                break
        if was_open and at < end:
            self._records.sender_wakeup.batch_is_full(queue)
        return at

    cdef Py_ssize_t _fill_new(self, PartitionQueue queue, BatchFuture future, const int32_t* rows,
                              Py_ssize_t at, Py_ssize_t end, double max_block_ms) except -1:
        cdef ProducerBatch batch
        cdef Py_ssize_t appended
        cdef Py_ssize_t size = future._source.size_upper_bound(future._row_at(at))
        cdef Py_ssize_t limit = max(self._records._batch_size, size)
        # Estimated bytes of all rows, if every row is as large as the first row. The estimate is at most the
        # limit.
        cdef Py_ssize_t wanted = limit if end - at > limit // size else size * (end - at)
        if self._records.transactions is not None:
            self._records.transactions.add_partition(queue.topic_partition)
        batch = self._records.memory.new_batch(queue.topic_partition, limit, wanted, max_block_ms)
        try:
            # Check again that the producer is open. If it was closed during the wait for memory, the batch
            # would never be sent.
            self._records.check_usable()
            # Register the batch before rows are appended, so that a flush waits for the batch.
            self._records.incomplete[batch] = None
            # No other thread has a reference to the batch yet.
            appended = self._fill_alone(batch, future, rows, at, end)
            self._records._admit(queue, batch)
        except BaseException:
            self._records._abandon(batch)
            raise
        if queue._is_filling:
            queue._await_filling()
        future.place(batch.result, 0, appended)
        queue.add(batch)
        if at + appended < end:
            queue._open = None
        self._records._activate(queue, batch)
        return at + appended

    cdef Py_ssize_t _fill_alone(self, ProducerBatch batch, BatchFuture future, const int32_t* rows,
                                Py_ssize_t at, Py_ssize_t end) except -1:
        """Append rows to a batch that no other thread can access; return how many rows were appended."""
        cdef Py_ssize_t start = at
        cdef Py_ssize_t more
        while True:
            at += batch.append_rows(future._source, rows, at, end - at, future._default_timestamp_ms)
            if at == end or not batch.may_grow():
                return at - start
            more = max(batch._builder.limit, future._source.size_upper_bound(future._row_at(at)))
            more = min(more, batch._full_limit - batch._builder.limit)
            if not self._records.memory.grow(batch, more):
                return at - start
