"""The boundary between a channel and the way its bytes travel: plain sockets now, TLS behind the same
methods.
"""

from libc.stdint cimport int64_t

from kafkacore.network.poller cimport iovec

cdef class TransportLayer:
    # Bytes received into `to`, 0 at the end of the stream, or the negative errno (-EAGAIN: nothing now).
    cdef Py_ssize_t read(self, void *to, Py_ssize_t size) noexcept nogil
    # Bytes sent of `count` pieces, or the negative errno (-EAGAIN: no room now). `more`: another write
    # follows at once.
    cdef Py_ssize_t write(self, const iovec *vector, int count, bint more) noexcept nogil
    # Bytes sent of a file from `position` on, or the negative errno (-ENODATA: it ends before). A transport
    # that changes bytes on their way reads the file itself.
    cdef Py_ssize_t write_file(self, int file, int64_t position, Py_ssize_t size) noexcept nogil
    # Whether bytes lie here that the peer has sent and nobody has read.
    cdef bint has_unread(self) noexcept nogil
    # Whether more can be read though the socket is quiet (bytes held in an engine).
    cdef bint has_buffered(self) noexcept nogil
    # The socket, if the bytes of a frame go to it as they are; else -1.
    cdef int bare_fd(self) noexcept nogil

cdef class PlaintextTransportLayer(TransportLayer):
    cdef int fd
