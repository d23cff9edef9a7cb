"""The boundary between a channel and the way its bytes travel: as they are (here), or by TLS (``tls``)."""

from libc.stdint cimport int64_t

from kafkacore.network._poller cimport iovec

cdef class TransportLayer:
    # What lies behind a negative errno, if there is more to say than the errno has: an exception, or None.
    cdef object error

    # Go on with what comes before the first byte of a frame: 0 when that is done, else KC_READ | KC_WRITE to
    # wait for. Raises, or returns the negative errno of the socket; -EPIPE: the peer has closed its side.
    cdef int handshake(self) except? -1
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
    # Say that nothing more will come, if that is not said by closing the socket, which comes next.
    cdef int close(self) except -1

cdef class PlaintextTransportLayer(TransportLayer):
    cdef int fd
