"""TlsTransportLayer for Cython callers."""

from libc.stdint cimport int64_t

from kafkacore.network._poller cimport iovec
from kafkacore.network._transport cimport TransportLayer

cdef class TlsTransportLayer(TransportLayer):
    # None on a server until a complete TLS record has arrived.
    cdef readonly object engine
    cdef object context
    # Encrypted bytes for the engine and from it.
    cdef object incoming
    cdef object outgoing
    cdef object engine_read
    cdef object engine_write
    cdef int fd
    cdef int fork_generation
    cdef bint is_server
    cdef bint is_ready
    cdef bint has_received
    # A byte of a frame has been read, so the peer is authenticated.
    cdef bint has_read
    # The peer has sent close_notify.
    cdef bint has_ended
    # The engine may have data that can be read without the socket.
    cdef bint has_pending_data
    # Bytes received of the incomplete record, and its size including the header.
    cdef Py_ssize_t record_have
    cdef Py_ssize_t record_size
    # Bytes in `incoming` that the engine cannot use until more arrive; -1 if it can use them all.
    cdef Py_ssize_t unusable_bytes
    # Encrypted bytes of which the socket has accepted only the first `sent`, or None.
    cdef bytes unsent
    cdef Py_ssize_t sent
    # Bytes of the frame that `unsent` was encrypted from. They count as written once all of it is sent.
    cdef Py_ssize_t unreported

    cdef int start_engine(self, context, name) except -1
    cdef int receive_some(self) except? -1
    cdef int check_first(self, const unsigned char *first, Py_ssize_t size) except -1
    cdef int flush(self) except? -1
    cdef int send_responses(self) except -1
    cdef int fail(self, error) except? -1
    cdef int send_close_notify(self) except -1
    cdef Py_ssize_t read_some(self, char *to, Py_ssize_t size) except? -1
    cdef bint can_read(self) except? -1
    cdef void walk_records(self, const unsigned char *data, Py_ssize_t size) noexcept
    cdef Py_ssize_t write_some(self, const iovec *vector, int count) except? -1
    cdef Py_ssize_t encrypt(self, const char *data, Py_ssize_t size) except? -1
    cdef Py_ssize_t encrypt_file(self, int file, int64_t position, Py_ssize_t size) except? -1
    cdef Py_ssize_t report_earlier(self) except? -1
    cdef Py_ssize_t report_written(self) except? -1
