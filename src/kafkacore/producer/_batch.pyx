"""Records of one partition on their way together: records in, one sealed batch and their outcome out.

Owns its bytes from the first record until its last request has ended. Does not know: the queue it stands
in, the network.
"""

cimport cython
from libc.stdint cimport int16_t, int32_t, int64_t

from kafkacore.producer._future cimport FutureRecordMetadata, ProduceResult, new_future
from kafkacore.record._builder cimport RecordBatchBuilder
from kafkacore.record._source cimport RecordSource

from kafkacore.errors import IllegalStateError
from kafkacore.record._batch import read_batches

cdef enum:
    # Sequence numbers count up to here, and on from 0.
    MAX_SEQUENCE = 0x7FFFFFFF


@cython.final
cdef class ProducerBatch:
    """One batch: open for appends, then sealed, then done.

    Parameters
    ----------
    topic_partition
        Where it goes.
    builder
        A fresh ``RecordBatchBuilder``.
    clock
        For those who wait on its records.
    created_ms
        Monotonic milliseconds; the delivery time-out counts from here.
    reserved_bytes
        What the BufferPool gave for it; where that is less than the builder takes, the batch is to grow.
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
        # Makes nothing that could start the garbage collector, and with it a finaliser of the user's that
        # sends: no other append may come between.
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
        """Append rows, all that fit, without the GIL: how many. Whoever calls this keeps others out."""
        cdef RecordBatchBuilder builder = self._builder
        cdef Py_ssize_t appended
        if builder is None:
            return 0
        with nogil:
            appended = builder.append_rows(source, rows, start, count, timestamp_ms)
        self.record_count += <int>appended
        return appended

    cdef bint may_grow(self) noexcept:
        """Whether it is smaller than it may be, for want of memory that has been asked for."""
        return self._builder is not None and self._builder.limit < self._full_limit

    cdef bint grow(self, Py_ssize_t size) noexcept:
        """Take ``size`` more bytes, which the BufferPool gave; ``False`` if there is no use for them."""
        if self._builder is None or size > self._full_limit - self._builder.limit:
            return False
        self.reserved_bytes += size
        self._builder.limit += size
        return True

    def append(self, long long timestamp_ms, key, value, headers=()):
        """The future of the record; ``None`` if it does not fit. The first one always fits."""
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
        """Whether no further record is taken."""
        return self._builder is None or (self._builder.is_full and not self.may_grow())

    @property
    def size_in_bytes(self):
        """Bytes of the sealed batch; before, of what its records take uncompressed."""
        if self.payload is not None:
            return len(self.payload)
        # One that failed before it was sealed has no bytes any more.
        return 0 if self._builder is None else self._builder.size_in_bytes

    @property
    def max_record_size(self):
        """Bytes of the largest record of the sealed batch."""
        return self._sealed.max_record_size

    @property
    def done(self):
        """Whether the outcome has been stated."""
        return self.result.done

    def seal(self):
        """Compress, set the CRC (both without the GIL), and take no more records. The bytes to send.

        Sealed again after it has been numbered anew, the same bytes get the new numbers: then no request may
        hold them.
        """
        if self.payload is None:
            if self._builder is None:
                raise IllegalStateError("the batch has failed already")
            self._size_unsealed = self._builder.size_in_bytes
            self.payload = self._builder.close(
                self.producer_id, self.producer_epoch, self.base_sequence, self.is_transactional
            )
            self._sealed = self._builder
            self._builder = None
        elif self.sequence_has_been_reset:
            self._sealed.restamp(self.producer_id, self.producer_epoch, self.base_sequence)
        self.sequence_has_been_reset = False
        return self.payload

    @property
    def has_sequence(self):
        """Whether it has been numbered: it has been taken to be sent before."""
        return self.base_sequence >= 0

    @property
    def last_sequence(self):
        """Number of its last record; -1 while it has none."""
        if self.base_sequence < 0:
            return -1
        return (<int64_t>self.base_sequence + self.record_count - 1) & MAX_SEQUENCE

    def set_producer_state(self, int64_t producer_id, int16_t producer_epoch, int32_t base_sequence,
                           bint is_transactional=False):
        """Number it. Bytes that are sealed already change when it is next taken to be sent, not before: the
        socket may still hold them.

        Parameters
        ----------
        producer_id, producer_epoch
            Who the broker takes it from.
        base_sequence
            Number of its first record.
        is_transactional
            Whether it belongs to a transaction.
        """
        self.sequence_has_been_reset = self.base_sequence >= 0
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.is_transactional = is_transactional

    def has_leader_changed(self, int leader_epoch):
        """Whether this retry is the first to a new leader, which has no need to be spared by a back-off.

        Source: KIP-951, Apache Kafka's ``ProducerBatch.maybeUpdateLeaderEpoch``.
        """
        if leader_epoch > self.leader_epoch >= 0:
            self.attempts_at_leader_change = self.attempts
        self.leader_epoch = max(self.leader_epoch, leader_epoch)
        return self.attempts > 0 and self.attempts == self.attempts_at_leader_change

    def complete(self, long long base_offset=-1, long long log_append_time_ms=-1):
        """All records are acknowledged; futures and callbacks follow."""
        self.result.complete(base_offset, log_append_time_ms)

    def fail(self, error, record_errors=None):
        """All records have failed: with ``error``, but those in ``record_errors`` (index → error) with
        their own.
        """
        if self.payload is None:
            self._builder = None
        self.result.complete(error=error, record_errors=record_errors)

    def split(self, make_builder):
        """Two batches with the records of this one in order, each half of them; futures go with their
        records.

        Parameters
        ----------
        make_builder
            ``(size in bytes) → RecordBatchBuilder``.
        """
        cdef ProducerBatch half = None
        cdef list halves = []
        cdef list parts = []
        cdef int index = 0
        cdef int first_of_second = (self.record_count + 1) // 2
        # No limit but its own size: whatever it takes was in memory here before.
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
                assert future is not None, "half of a batch fits where the whole did"
                index += 1
        assert index == self.record_count, "a batch that was sealed here reads as it was written"
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
