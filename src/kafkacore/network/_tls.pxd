"""TlsTransportLayer for Cython callers."""

from libc.stdint cimport int64_t

from kafkacore.network._poller cimport iovec
from kafkacore.network._transport cimport TransportLayer

cdef class TlsTransportLayer(TransportLayer):
    # None before a client's first bytes.
    cdef readonly object engine
    cdef object context
    # The engine's memory on the side of the network.
    cdef object incoming
    cdef object outgoing
    cdef object engine_read
    cdef object engine_write
    cdef int fd
    cdef int fork_generation
    cdef bint is_server
    cdef bint is_ready
    cdef bint has_heard
    # A byte of a frame has been read: who the peers are is settled.
    cdef bint has_read
    # The peer has said that nothing will follow.
    cdef bint has_ended
    # The engine may have more to give without the socket.
    cdef bint is_holding
    # Of the record that is not yet whole: how much of it has come, and how long it is with its header.
    cdef Py_ssize_t record_have
    cdef Py_ssize_t record_size
    # So much has come that the engine does not take before there is more; negative if it takes all.
    cdef Py_ssize_t refused
    # Encrypted, and not yet taken by the socket: what is left of it from `sent` on.
    cdef bytes unsent
    cdef Py_ssize_t sent
    # Bytes of the frame that `unsent` was encrypted from. They count as written once all of it is sent.
    cdef Py_ssize_t unreported

    cdef int start_engine(self, context, name) except -1
    cdef int receive_some(self) except? -1
    cdef int check_first(self, const unsigned char *first, Py_ssize_t size) except -1
    cdef int flush(self) except? -1
    cdef int answer(self) except -1
    cdef int fail(self, error) except? -1
    cdef int say_goodbye(self) except -1
    cdef Py_ssize_t read_some(self, char *to, Py_ssize_t size) except? -1
    cdef bint can_read(self) except? -1
    cdef void walk_records(self, const unsigned char *data, Py_ssize_t size) noexcept
    cdef Py_ssize_t write_some(self, const iovec *vector, int count) except? -1
    cdef Py_ssize_t encrypt(self, const char *data, Py_ssize_t size) except? -1
    cdef Py_ssize_t encrypt_file(self, int file, int64_t position, Py_ssize_t size) except? -1
    cdef Py_ssize_t report_earlier(self) except? -1
    cdef Py_ssize_t report_written(self) except? -1
