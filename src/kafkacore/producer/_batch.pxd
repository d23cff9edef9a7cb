"""ProducerBatch for Cython callers."""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t

from kafkacore.producer._future cimport FutureRecordMetadata, ProduceResult
from kafkacore.record._builder cimport RecordBatchBuilder
from kafkacore.record._source cimport RecordSource


cdef struct SerializedRecord:
    # A size of -1 stands for null.
    const uint8_t* key
    Py_ssize_t key_size
    const uint8_t* value
    Py_ssize_t value_size
    # Headers in the record format, without their count.
    const uint8_t* headers
    Py_ssize_t headers_size
    int32_t header_count


cdef class ProducerBatch:
    cdef readonly object topic_partition
    cdef readonly ProduceResult result
    cdef readonly double created_ms
    # Bytes of the BufferPool that are reserved for this batch until its last request has ended.
    cdef public Py_ssize_t reserved_bytes
    cdef public int attempts
    cdef public double last_attempt_ms
    # Whether a request with this batch is in flight.
    cdef public bint in_flight
    # Whether the broker may have written the batch in a failed attempt. Some error responses rule this out.
    cdef public bint possibly_persisted
    cdef public int leader_epoch
    cdef public int attempts_at_leader_change
    cdef readonly object payload
    cdef readonly int record_count
    # Milliseconds between the last attempt and the next attempt.
    cdef public double backoff_ms
    # Sort key in the queue of the partition. A batch owns the keys from `place` to `place + _width`. After a
    # split, each half owns half of these keys.
    cdef public double place
    # Producer id, epoch and first sequence number. They are -1 until the batch is first drained, and always
    # without idempotence.
    cdef readonly int64_t producer_id
    cdef readonly int16_t producer_epoch
    cdef readonly int32_t base_sequence
    cdef readonly bint is_transactional
    # Whether the sealed bytes contain old sequence numbers. New numbers are written when the batch is drained
    # again.
    cdef readonly bint sequence_has_been_reset
    cdef double _width
    cdef Py_ssize_t _size_unsealed
    cdef RecordBatchBuilder _builder
    # The builder of a sealed batch, which can still change the sequence numbers in the sealed bytes.
    cdef RecordBatchBuilder _sealed
    # Maximum bytes of the batch. The builder's own limit is the memory that is reserved so far.
    cdef Py_ssize_t _full_limit
    # Whether a thread appends rows without the GIL. Then other threads must not read the builder.
    cdef bint _is_appending

    cdef bint try_append(self, FutureRecordMetadata future, const SerializedRecord* record) except -1
    cdef Py_ssize_t append_rows(self, RecordSource source, const int32_t* rows, Py_ssize_t start,
                                Py_ssize_t count, int64_t timestamp_ms) except -1
    cdef bint may_grow(self) noexcept
    cdef bint grow(self, Py_ssize_t size) noexcept
    cdef ProducerBatch _part(self, builder)
