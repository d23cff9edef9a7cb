"""Interface between a channel and its socket, with the plaintext implementation; see ``_tls`` for TLS."""

from libc.stdint cimport int64_t

from kafkacore.network._poller cimport iovec

cdef class TransportLayer:
    # The exception that explains a negative errno. None if the transport knows only the errno.
    cdef object error

    # Continue the handshake: return 0 when it is complete, the KC_READ or KC_WRITE event to wait for, or the
    # negative errno of the socket (-EPIPE: the peer closed the connection). Raises if the handshake fails.
    cdef int handshake(self) except? -1
    # Receive bytes into `to`. Return their number, 0 at the end of the stream, or the negative errno
    # (-EAGAIN: no data now).
    cdef Py_ssize_t read(self, void *to, Py_ssize_t size) noexcept nogil
    # Send `count` pieces. Return the number of bytes sent, or the negative errno (-EAGAIN: the socket's
    # buffer is full). If `more` is true, another write follows immediately.
    cdef Py_ssize_t write(self, const iovec *vector, int count, bint more) noexcept nogil
    # Send bytes of a file from `position`. Return the number of bytes sent, or the negative errno (-ENODATA:
    # the file ends at or before `position`). A transport that encrypts reads the file itself.
    cdef Py_ssize_t write_file(self, int file, int64_t position, Py_ssize_t size) noexcept nogil
    # Return whether received bytes are unread, in the socket or in this transport.
    cdef bint has_unread(self) noexcept nogil
    # Return whether TLS has buffered data that can be read. The poller reports no event for such data.
    cdef bint has_buffered(self) noexcept nogil
    # Return the socket's descriptor if the transport writes frames to the socket unchanged; else -1.
    cdef int bare_fd(self) noexcept nogil
    # Send the end-of-stream message of the transport, if it has one. The caller closes the socket afterwards.
    cdef int close(self) except -1

cdef class PlaintextTransportLayer(TransportLayer):
    cdef int fd
