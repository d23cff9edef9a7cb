"""Read and write the bytes of a channel, as Kafka's ``TransportLayer`` and ``PlaintextTransportLayer`` do."""

cimport cython
from libc.stdint cimport int64_t

cimport kafkacore.network._poller as poller
from kafkacore.network._poller cimport iovec


cdef class TransportLayer:
    """Base class of transports. An instance of the base class behaves like a closed connection."""

    cdef int handshake(self) except? -1:
        return 0

    cdef Py_ssize_t read(self, void *to, Py_ssize_t size) noexcept nogil:
        return 0

    cdef Py_ssize_t write(self, const iovec *vector, int count, bint more) noexcept nogil:
        return 0

    cdef Py_ssize_t write_file(self, int file, int64_t position, Py_ssize_t size) noexcept nogil:
        return 0

    cdef bint has_unread(self) noexcept nogil:
        return False

    cdef bint has_buffered(self) noexcept nogil:
        return False

    cdef int bare_fd(self) noexcept nogil:
        return -1

    cdef int close(self) except -1:
        return 0


@cython.final
cdef class PlaintextTransportLayer(TransportLayer):
    """A transport without encryption.

    Parameters
    ----------
    fd:
        Descriptor of a non-blocking stream socket, which the transport does not own.
    """

    def __cinit__(self, int fd):
        self.fd = fd

    cdef Py_ssize_t read(self, void *to, Py_ssize_t size) noexcept nogil:
        return poller.receive_bytes(self.fd, to, size)

    cdef Py_ssize_t write(self, const iovec *vector, int count, bint more) noexcept nogil:
        return poller.send_vector(self.fd, vector, count, more)

    cdef Py_ssize_t write_file(self, int file, int64_t position, Py_ssize_t size) noexcept nogil:
        return poller.send_file(self.fd, file, position, size)

    cdef bint has_unread(self) noexcept nogil:
        return poller.has_unread(self.fd)

    cdef int bare_fd(self) noexcept nogil:
        return self.fd
