"""A batch of records of one partition, from its first record until its last request has completed."""

cimport cython
from libc.stdint cimport int16_t, int32_t, int64_t

from kafkacore.producer._future cimport FutureRecordMetadata, ProduceResult, new_future
from kafkacore.record._builder cimport RecordBatchBuilder
from kafkacore.record._source cimport RecordSource
from kafkacore.wire._trace cimport Stage, stamp

from kafkacore.errors import IllegalStateError
from kafkacore.record._batch import read_batches

cdef enum:
    # Maximum sequence number. The next sequence number is 0.
    MAX_SEQUENCE = 0x7FFFFFFF


@cython.final
cdef class ProducerBatch:
    """One batch. It is first open for appends, then sealed, and finally done.

    Parameters
    ----------
    topic_partition
        Partition of the batch.
    builder
        A new ``RecordBatchBuilder``.
    clock
        Clock for waits on the futures of the batch's records.
    created_ms
        Time from which the delivery time-out counts, in monotonic milliseconds.
    reserved_bytes
        Bytes that are reserved in the BufferPool. If the builder's limit is larger, the batch can grow.
    """

    def __init__(self, topic_partition, RecordBatchBuilder builder not None, clock, double created_ms,
                 Py_ssize_t reserved_bytes=0):
        self.topic_partition = topic_partition
        self.result = ProduceResult(topic_partition, clock)
        self.created_ms = created_ms
        self.last_attempt_ms = created_ms
        self.reserved_bytes = reserved_bytes
        self.leader_epoch = -1
        self.producer_id = self.producer_epoch = self.base_sequence = -1
        self._builder = builder
        self._full_limit = builder.limit
        if 0 < reserved_bytes < builder.limit:
            builder.limit = reserved_bytes
        self._width = 1.0

    cdef bint try_append(self, FutureRecordMetadata future, const SerializedRecord* record) except -1:
        # append_bytes() creates no object that could start the garbage collector. The collector might run a
        # finalizer that sends a record, and that record must not be appended at the same time.
        if self._builder is None or self._builder.append_bytes(
            future._timestamp_ms, record.key, record.key_size, record.value, record.value_size,
            record.headers, record.headers_size, record.header_count,
        ) < 0:
            return False
        future._result = self.result
        future._index = self.record_count
        self.record_count += 1
        return True

    cdef Py_ssize_t append_rows(self, RecordSource source, const int32_t* rows, Py_ssize_t start,
                                Py_ssize_t count, int64_t timestamp_ms) except -1:
        """Append rows as long as they fit; return how many were appended.

        This method releases the GIL, so the caller must keep other threads from using the batch.
        """
        cdef RecordBatchBuilder builder = self._builder
        cdef Py_ssize_t appended
        if builder is None:
            return 0
        self._is_appending = True
        with nogil:
            appended = builder.append_rows(source, rows, start, count, timestamp_ms)
        self._is_appending = False
        self.record_count += <int>appended
        return appended

    cdef bint may_grow(self) noexcept:
        """Return whether the batch could accept more records after more memory has been reserved."""
        return self._builder is not None and self._builder.limit < self._full_limit

    cdef bint grow(self, Py_ssize_t size) noexcept:
        """Raise the size limit of the batch by ``size`` bytes, which the caller has reserved.

        Return ``False``, and change nothing, if the batch is not open or would exceed its maximum size.
        """
        if self._builder is None or size > self._full_limit - self._builder.limit:
            return False
        self.reserved_bytes += size
        self._builder.limit += size
        return True

    def append(self, long long timestamp_ms, key, value, headers=()):
        """Append a record and return its future, or ``None`` if the record does not fit.

        The first record of a batch always fits.
        """
        cdef FutureRecordMetadata future = new_future(
            timestamp_ms, -1 if key is None else len(key), -1 if value is None else len(value), -1
        )
        if self._builder is None or self._builder.append(timestamp_ms, key, value, headers) < 0:
            return None
        future._result = self.result
        future._index = self.record_count
        self.record_count += 1
        return future

    @property
    def is_full(self):
        """Whether the batch accepts no further record. False while a thread appends rows to it."""
        if self._builder is None:
            return True
        return not self._is_appending and self._builder.is_full and not self.may_grow()

    @property
    def size_in_bytes(self):
        """Size of the sealed batch in bytes; before sealing, size of the uncompressed records."""
        if self.payload is not None:
            return len(self.payload)
        # A batch that failed before it was sealed has no data.
        return 0 if self._builder is None else self._builder.size_in_bytes

    @property
    def max_record_size(self):
        """Size in bytes of the largest record in the sealed batch."""
        return self._sealed.max_record_size

    @property
    def done(self):
        """Whether the batch was acknowledged or has failed."""
        return self.result.done

    def seal(self):
        """Compress the batch and set its CRC, without holding the GIL, and return the bytes to send.

        The batch accepts no records afterwards. If its sequence numbers have changed since it was sealed,
        this method writes the new numbers into the same bytes. No request may refer to these bytes at that
        time.
        """
        if self.payload is None:
            if self._builder is None:
                raise IllegalStateError("cannot seal a batch that has failed")
            self._size_unsealed = self._builder.size_in_bytes
            self.payload = self._builder.close(
                self.producer_id, self.producer_epoch, self.base_sequence, self.is_transactional
            )
            self._sealed = self._builder
            self._builder = None
            stamp(Stage.BATCH_SEALED, self.record_count)
        elif self.sequence_has_been_reset:
            self._sealed.restamp(self.producer_id, self.producer_epoch, self.base_sequence)
        self.sequence_has_been_reset = False
        return self.payload

    @property
    def has_sequence(self):
        """Whether the batch has sequence numbers, because it has been drained before."""
        return self.base_sequence >= 0

    @property
    def last_sequence(self):
        """Sequence number of the last record, or -1 without sequence numbers."""
        if self.base_sequence < 0:
            return -1
        return (<int64_t>self.base_sequence + self.record_count - 1) & MAX_SEQUENCE

    def set_producer_state(self, int64_t producer_id, int16_t producer_epoch, int32_t base_sequence,
                           bint is_transactional=False):
        """Assign sequence numbers to the records of the batch.

        If the batch is already sealed, the sealed bytes change only when the batch is drained again, because
        the socket may still refer to these bytes.

        Parameters
        ----------
        producer_id, producer_epoch
            Producer id and epoch.
        base_sequence
            Sequence number of the first record.
        is_transactional
            Whether the batch belongs to a transaction.
        """
        self.sequence_has_been_reset = self.base_sequence >= 0
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.is_transactional = is_transactional

    def has_leader_changed(self, int leader_epoch):
        """Return whether this is the first retry since the leader changed, which needs no back-off.

        See KIP-951 and Apache Kafka's ``ProducerBatch.maybeUpdateLeaderEpoch``.
        """
        if leader_epoch > self.leader_epoch >= 0:
            self.attempts_at_leader_change = self.attempts
        self.leader_epoch = max(self.leader_epoch, leader_epoch)
        return self.attempts > 0 and self.attempts == self.attempts_at_leader_change

    def complete(self, long long base_offset=-1, long long log_append_time_ms=-1):
        """Complete the futures of all records with success, and run the callbacks."""
        self.result.complete(base_offset, log_append_time_ms)

    def fail(self, error, record_errors=None):
        """Fail all records with ``error``, or with their own error in ``record_errors`` (index → error)."""
        if self.payload is None:
            self._builder = None
        self.result.complete(error=error, record_errors=record_errors)

    def split(self, make_builder):
        """Return two batches, each with half of the records in order. Futures now refer to these batches.

        Parameters
        ----------
        make_builder
            Function that takes a size in bytes and returns a ``RecordBatchBuilder``.
        """
        cdef ProducerBatch half = None
        cdef list halves = []
        cdef list parts = []
        cdef int index = 0
        cdef int first_of_second = (self.record_count + 1) // 2
        # Limit the decompression to the size before compression. The batch cannot legitimately be larger.
        for batch in read_batches(self.payload, max_decompressed_size=self._size_unsealed):
            for record in batch:
                if index == 0 or index == first_of_second:
                    half = self._part(make_builder(self._size_unsealed))
                    half.place = self.place + (self._width / 2 if index else 0)
                    half._width = self._width / 2
                    if self.base_sequence >= 0:
                        half.base_sequence = <int32_t>((<int64_t>self.base_sequence + index) & MAX_SEQUENCE)
                    halves.append(half)
                    parts.append((index, half.result))
                future = half.append(record.timestamp, record.key, record.value, record.headers)
                assert future is not None, "a record of a split batch does not fit into the new batch"
                index += 1
        assert index == self.record_count, "the batch to be split contains a wrong number of records"
        self.result.divide(parts)
        return halves

    cdef ProducerBatch _part(self, builder):
        cdef ProducerBatch part = ProducerBatch(
            self.topic_partition, builder, self.result._clock, self.created_ms
        )
        part.possibly_persisted = self.possibly_persisted
        part.attempts = self.attempts
        part.last_attempt_ms = self.last_attempt_ms
        part.backoff_ms = self.backoff_ms
        part.leader_epoch = self.leader_epoch
        part.attempts_at_leader_change = self.attempts_at_leader_change
        part.producer_id = self.producer_id
        part.producer_epoch = self.producer_epoch
        part.is_transactional = self.is_transactional
        return part

    def __repr__(self):
        return f"<ProducerBatch {self.topic_partition} records={self.record_count} attempts={self.attempts}>"
