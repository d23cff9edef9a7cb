"""Interface between a channel and its socket, with the plaintext implementation; see ``_tls`` for TLS."""

from libc.stdint cimport int64_t

from kafkacore.network._poller cimport iovec

cdef class TransportLayer:
    # The exception that explains a negative errno, if the transport has a more specific one; else None.
    cdef object error

    # Continue the handshake: return 0 when it is complete, the KC_READ or KC_WRITE event to wait for, or the
    # negative errno of the socket (-EPIPE: the peer closed the connection). Raises if the handshake fails.
    cdef int handshake(self) except? -1
    # Return the bytes received into `to`, 0 at the end of the stream, or the negative errno (-EAGAIN: no data
    # now).
    cdef Py_ssize_t read(self, void *to, Py_ssize_t size) noexcept nogil
    # Return the bytes sent of `count` pieces, or the negative errno (-EAGAIN: the socket's buffer is full).
    # `more`: another write follows immediately.
    cdef Py_ssize_t write(self, const iovec *vector, int count, bint more) noexcept nogil
    # Return the bytes sent of a file from `position`, or the negative errno (-ENODATA: the file ends at or
    # before `position`). A transport that encrypts reads the file itself.
    cdef Py_ssize_t write_file(self, int file, int64_t position, Py_ssize_t size) noexcept nogil
    # Return whether received bytes are unread, in the socket or in this transport.
    cdef bint has_unread(self) noexcept nogil
    # Return whether more can be read although the poller reports no event, because TLS has buffered it.
    cdef bint has_buffered(self) noexcept nogil
    # Return the socket's descriptor if frames are written to it unchanged; else -1.
    cdef int bare_fd(self) noexcept nogil
    # Send the end-of-stream message of the transport, if it has one. The caller closes the socket afterwards.
    cdef int close(self) except -1

cdef class PlaintextTransportLayer(TransportLayer):
    cdef int fd
