"""TlsTransportLayer for Cython callers."""

from libc.stdint cimport int64_t

from kafkacore.network._poller cimport iovec
from kafkacore.network._transport cimport TransportLayer

cdef class TlsTransportLayer(TransportLayer):
    # None on a server until a complete TLS record has arrived.
    cdef readonly object engine
    cdef object context
    # Encrypted bytes that the engine reads (`incoming`) and writes (`outgoing`).
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
    # Received bytes of the incomplete record, and the size of the whole record with its header.
    cdef Py_ssize_t record_have
    cdef Py_ssize_t record_size
    # Number of bytes in `incoming` that the engine cannot use before more bytes arrive; -1 if the engine can
    # use all bytes.
    cdef Py_ssize_t unusable_bytes
    # Encrypted bytes that are not completely sent, or None. The socket has accepted the first `sent` bytes.
    cdef bytes unsent
    cdef Py_ssize_t sent
    # Number of bytes of the frame that `unsent` contains. They count as written once `unsent` is completely
    # sent.
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
