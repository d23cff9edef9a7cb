"""Batches with the memory that they hold: new ones out, more for one that fills, and back when it is done.

Between the BufferPool's count and a batch's note of what it has, nothing can come: no other thread, no
signal's handler. Does not know: queues, when a batch is sent.
"""

cimport cython
from libc.math cimport ceil

from threading import get_ident

from kafkacore.producer._batch cimport ProducerBatch
from kafkacore.producer._buffer_pool cimport BufferPool
from kafkacore.record._builder cimport RecordBatchBuilder

from kafkacore.structs import Compression

# Bytes of `buffer_memory` that a new batch has at the least; it gets more, by doubling, as it fills, so that
# a thousand partitions with a few records each do not need a thousand times `batch_size`.
cdef Py_ssize_t FIRST_RESERVATION = 16_384


@cython.final
cdef class BatchMemory:
    """Where the batches of a producer come from.

    Parameters
    ----------
    pool
        What all of them together may hold.
    clock
        When they were made.
    compression, compression_level
        Of the batches.
    """

    def __init__(self, BufferPool pool not None, clock, compression, compression_level):
        self.pool = pool
        self.ratios = {}
        self._clock = clock
        self._compression = Compression(compression)
        self._compression_level = compression_level

    cdef ProducerBatch new_batch(self, topic_partition, Py_ssize_t size, Py_ssize_t first_size,
                                 double max_block_ms):
        """A batch of ``size`` bytes on the wire, with memory for ``first_size`` at least; waits for that."""
        cdef Py_ssize_t limit = size
        cdef Py_ssize_t reserved
        if self._compression:
            limit = <Py_ssize_t>ceil(size / <double>self.ratios.get(topic_partition.topic, 1.0))
        limit = min(limit, self.pool.total_bytes)
        reserved = min(limit, max(FIRST_RESERVATION, first_size))
        self.pool.take(reserved, 0.0 if get_ident() == self.network_thread_id else max_block_ms)
        try:
            return ProducerBatch(
                topic_partition, self.new_builder(limit), self._clock, self._clock.monotonic_ms(), reserved
            )
        except BaseException:
            self.pool.give_back(reserved)
            raise

    def new_builder(self, Py_ssize_t size):
        """A builder for a batch with the configured compression."""
        return RecordBatchBuilder(size, self._compression, self._compression_level)

    cdef bint grow(self, ProducerBatch batch, Py_ssize_t size) except -1:
        """Give ``batch`` so much more if it is free; whether it has got it."""
        if not self.pool.take_if_free(size):
            return False
        if not batch.grow(size):
            self.pool.give_back(size)
            return False
        return True

    cdef int give_back(self, ProducerBatch batch) except -1:
        """Take all memory of ``batch`` back; once, however often it is called."""
        cdef Py_ssize_t reserved = batch.reserved_bytes
        batch.reserved_bytes = 0
        if reserved:
            self.pool.give_back(reserved)
        return 0
