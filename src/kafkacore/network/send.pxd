"""NetworkSend for Cython callers."""

from cpython.buffer cimport Py_buffer
from libc.stdint cimport uint8_t

from kafkacore.network.poller cimport iovec
from kafkacore.network.transport cimport TransportLayer

cdef class NetworkSend:
    cdef readonly str destination_id
    cdef readonly Py_ssize_t size_in_bytes
    cdef readonly Py_ssize_t remaining
    cdef uint8_t header[4]
    # Of a frame of a few pieces, which is most, they are the two arrays below.
    cdef Py_buffer *views
    cdef iovec *vector
    cdef Py_buffer few_views[3]
    cdef iovec few_vectors[4]
    cdef int view_count
    cdef int vector_count
    # The first piece that is not wholly written; its iovec has been moved past what is.
    cdef int vector_at

    cdef size_t join(self, uint8_t *to) noexcept nogil
    cdef int write_to(self, TransportLayer transport) noexcept nogil
    cdef int release(self) except -1
