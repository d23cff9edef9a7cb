"""Create batches with reserved memory, let them grow, and release their memory.

The pool and the batch each count the reserved bytes. No other thread and no signal handler can run between
the changes of the two counts.
"""

cimport cython
from libc.math cimport ceil

from threading import get_ident

from kafkacore.producer._batch cimport ProducerBatch
from kafkacore.producer._buffer_pool cimport BufferPool
from kafkacore.record._builder cimport RecordBatchBuilder

from kafkacore.structs import Compression

# Minimum number of bytes that a new batch reserves. A batch doubles its reservation when it is full. A
# thousand partitions with a few records each therefore do not need a thousand times ``batch_size``.
cdef Py_ssize_t FIRST_RESERVATION = 16_384


@cython.final
cdef class BatchMemory:
    """Creates the batches of a producer and manages their memory.

    Parameters
    ----------
    pool
        Pool that limits the memory of all batches.
    clock
        Clock that the batches use.
    compression, compression_level
        Codec of the batches, and the codec's compression level.
    """

    def __init__(self, BufferPool pool not None, clock, compression, compression_level):
        self.pool = pool
        self.ratios = {}
        self._clock = clock
        self._compression = Compression(compression)
        self._compression_level = compression_level

    cdef ProducerBatch new_batch(self, topic_partition, Py_ssize_t size, Py_ssize_t first_size,
                                 double max_block_ms):
        """Return a batch for ``size`` bytes after compression, with at least ``first_size`` bytes reserved.

        Wait up to ``max_block_ms`` until this memory is free.
        """
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
        """Return a builder for a batch with the configured compression."""
        return RecordBatchBuilder(size, self._compression, self._compression_level)

    cdef bint grow(self, ProducerBatch batch, Py_ssize_t size) except -1:
        """Reserve ``size`` more bytes for ``batch`` if they are free; return whether they were free."""
        if not self.pool.take_if_free(size):
            return False
        if not batch.grow(size):
            self.pool.give_back(size)
            return False
        return True

    cdef int give_back(self, ProducerBatch batch) except -1:
        """Release all memory of ``batch``. Further calls have no effect."""
        cdef Py_ssize_t reserved = batch.reserved_bytes
        batch.reserved_bytes = 0
        if reserved:
            self.pool.give_back(reserved)
        return 0
