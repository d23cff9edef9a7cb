"""NetworkSend for Cython callers."""

from cpython.buffer cimport Py_buffer
from libc.stdint cimport int64_t, uint8_t

from kafkacore.network._poller cimport iovec
from kafkacore.network._transport cimport TransportLayer
from kafkacore.wire._file_slice cimport FileSlice

cdef struct file_piece:
    int fd
    int64_t position

cdef class NetworkSend:
    cdef readonly str destination_id
    cdef readonly Py_ssize_t size_in_bytes
    cdef readonly Py_ssize_t remaining
    cdef uint8_t header[4]
    # Most frames have few pieces. For these frames, the two pointers refer to the two arrays below.
    cdef Py_buffer *views
    cdef iovec *vector
    cdef Py_buffer few_views[3]
    cdef iovec few_vectors[4]
    cdef int view_count
    cdef int vector_count
    # Index of the first piece that is not completely written. Its iovec starts at the first unwritten byte.
    cdef int vector_at
    # The pieces that are parts of files, and the next position in each file. The iovec of such a piece has no
    # base.
    cdef list slices
    cdef file_piece *files
    cdef int file_count
    cdef int file_at

    # Whether a channel owns the frame. Only that channel may write it.
    cdef bint is_taken

    cdef int64_t first_bytes(self) noexcept
    cdef int begin(self) except -1
    cdef int add_file(self, FileSlice piece, int count) except -1
    cdef bytes read_file(self, size_t size)
    cdef Py_ssize_t write_some(self, TransportLayer transport) noexcept nogil
    cdef Py_ssize_t write_file(self, TransportLayer transport) noexcept nogil
    cdef size_t join(self, uint8_t *to, int end) noexcept nogil
    cdef int write_to(self, TransportLayer transport) noexcept nogil
    cdef int release(self) except -1
