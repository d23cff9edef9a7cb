"""One frame on its way out: pieces in, bytes handed to a transport, no joined copy.

Does not know: channels, messages. Source of the behaviour: Kafka's ``NetworkSend`` and ``ByteBufferSend``.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.errno cimport EAGAIN
from libc.stdint cimport uint8_t
from libc.string cimport memcpy

from kafkacore.network.poller cimport iovec
from kafkacore.network.transport cimport TransportLayer
from kafkacore.wire.primitives cimport store_int32

cdef enum:
    HEADER_SIZE = 4
    MAX_FRAME_SIZE = 0x7FFFFFFF
    # Pieces of one system call; IOV_MAX is 1024 on Linux and the BSDs.
    MAX_VECTOR = 1024
    # As in the declaration.
    FEW_PIECES = 3
    # A frame of several pieces up to this size is joined: cheaper than a list of pieces for the kernel to
    # read.
    JOINED_SIZE = 512


@cython.freelist(64)
@cython.final
cdef class NetworkSend:
    """A frame to be written; the 4 bytes of its size are added.

    Parameters
    ----------
    destination_id:
        Of the channel.
    pieces:
        Buffers, in order. They are held, and must not change, until all is written or the channel has closed.

    Raises
    ------
    ValueError
        When the pieces are together more than a frame can hold, 2 GiB - 1.
    """

    def __cinit__(self, str destination_id, pieces):
        cdef Py_ssize_t count = len(pieces)
        cdef Py_ssize_t size = 0
        self.destination_id = destination_id
        if count <= FEW_PIECES:
            self.views = self.few_views
            self.vector = self.few_vectors
        else:
            self.views = <Py_buffer *> PyMem_Calloc(count + 1, sizeof(Py_buffer))
            self.vector = <iovec *> PyMem_Calloc(count + 1, sizeof(iovec))
            if self.views == NULL or self.vector == NULL:
                raise MemoryError()
        self.vector_count = 1
        for piece in pieces:
            if self.view_count == count:
                raise ValueError("the pieces have changed while they were read")
            PyObject_GetBuffer(piece, &self.views[self.view_count], PyBUF_SIMPLE)
            if self.views[self.view_count].len > 0:
                self.vector[self.vector_count].iov_base = self.views[self.view_count].buf
                self.vector[self.vector_count].iov_len = self.views[self.view_count].len
                self.vector_count += 1
            size += self.views[self.view_count].len
            self.view_count += 1
        if size > MAX_FRAME_SIZE:
            raise ValueError(f"{size} bytes do not fit one frame")
        store_int32(self.header, <int> size)
        self.vector[0].iov_base = self.header
        self.vector[0].iov_len = HEADER_SIZE
        self.size_in_bytes = self.remaining = HEADER_SIZE + size

    def __dealloc__(self):
        self.release()
        if self.views != self.few_views:
            PyMem_Free(self.views)
            PyMem_Free(self.vector)

    def __repr__(self):
        return f"NetworkSend({self.destination_id!r}, {self.remaining} of {self.size_in_bytes} bytes to go)"

    @property
    def is_completed(self):
        """Whether the transport has taken all of it."""
        return self.remaining == 0

    @property
    def holds_pieces(self):
        """Whether the buffers are still needed; ``False`` once all is written or the channel has closed."""
        return self.view_count > 0

    def drain(self):
        """All that has not been written, as bytes; nothing is left. For stand-ins of a :class:`Selector`."""
        cdef list left = []
        cdef int at
        for at in range(self.vector_at, self.vector_count):
            piece = PyBytes_FromStringAndSize(<char *> self.vector[at].iov_base, self.vector[at].iov_len)
            left.append(piece)
        self.vector_at = self.vector_count
        self.remaining = 0
        self.release()
        return b"".join(left)

    cdef int write_to(self, TransportLayer transport) noexcept nogil:
        """Write what the transport takes: 1 when all is written, 0 when not, or the negative errno."""
        cdef Py_ssize_t sent, left
        cdef int count
        cdef uint8_t joined[JOINED_SIZE]
        cdef iovec one
        while self.remaining > 0:
            count = min(self.vector_count - self.vector_at, <int> MAX_VECTOR)
            if count > 1 and self.remaining <= JOINED_SIZE:
                one.iov_base = joined
                one.iov_len = self.join(joined)
                sent = transport.write(&one, 1)
            else:
                sent = transport.write(&self.vector[self.vector_at], count)
            if sent < 0:
                return 0 if sent == -EAGAIN else <int> sent
            self.remaining -= sent
            left = sent
            while left > 0 and left >= <Py_ssize_t> self.vector[self.vector_at].iov_len:
                left -= <Py_ssize_t> self.vector[self.vector_at].iov_len
                self.vector_at += 1
            if left > 0:
                self.vector[self.vector_at].iov_base = <char *> self.vector[self.vector_at].iov_base + left
                self.vector[self.vector_at].iov_len -= left
        return 1

    cdef size_t join(self, uint8_t *to) noexcept nogil:
        """Copy what is left, which fits; its size."""
        cdef size_t size = 0
        cdef int at
        for at in range(self.vector_at, self.vector_count):
            memcpy(to + size, self.vector[at].iov_base, self.vector[at].iov_len)
            size += self.vector[at].iov_len
        return size

    cdef int release(self) except -1:
        """Let go of the pieces."""
        while self.view_count > 0:
            self.view_count -= 1
            PyBuffer_Release(&self.views[self.view_count])
        return 0
