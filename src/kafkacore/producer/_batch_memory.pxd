"""BatchMemory for Cython callers."""

from kafkacore.producer._batch cimport ProducerBatch
from kafkacore.producer._buffer_pool cimport BufferPool


cdef class BatchMemory:
    cdef readonly BufferPool pool
    # Id of the sender's thread. This thread releases memory, so a send() in a callback on this thread must
    # not wait for memory.
    cdef public object network_thread_id
    # Topic → estimated compression ratio (compressed size divided by uncompressed size).
    cdef readonly dict ratios
    cdef object _clock
    cdef object _compression
    cdef object _compression_level

    cdef ProducerBatch new_batch(self, topic_partition, Py_ssize_t size, Py_ssize_t first_size,
                                 double max_block_ms)
    cdef bint grow(self, ProducerBatch batch, Py_ssize_t size) except -1
    cdef int give_back(self, ProducerBatch batch) except -1
