"""One frame on its way out: pieces in, bytes handed to a transport, no joined copy.

Does not know: channels, messages. Source of the behaviour: Kafka's ``NetworkSend`` and ``ByteBufferSend``.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.errno cimport EAGAIN, EPIPE
from libc.stdint cimport uint8_t
from libc.string cimport memcpy

from kafkacore.network._poller cimport iovec
from kafkacore.network._transport cimport TransportLayer
from kafkacore.wire._file_slice cimport FileSlice
from kafkacore.wire.primitives cimport store_int32

import os

from kafkacore.errors import IllegalStateError

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
        Buffers and :class:`~kafkacore.wire.FileSlice`, in order. They are held, and must not change, until
        all is written or the channel has closed.

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
            if self.view_count + self.file_count == count:
                raise ValueError("the pieces have changed while they were read")
            if isinstance(piece, FileSlice):
                self.add_file(<FileSlice> piece, count)
                size += (<FileSlice> piece).size
                continue
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

    cdef int begin(self) except -1:
        """Belong to a channel, for good."""
        if self.is_taken:
            raise IllegalStateError(f"a frame to {self.destination_id} is sent once; make another one")
        self.is_taken = True
        return 0

    cdef int add_file(self, FileSlice piece, int count) except -1:
        if self.files == NULL:
            self.slices = []
            self.files = <file_piece *> PyMem_Calloc(count, sizeof(file_piece))
            if self.files == NULL:
                raise MemoryError()
        if piece.fd < 0:
            raise ValueError("part of a file that has been released")
        self.slices.append(piece)
        self.files[self.file_count].fd = piece.fd
        self.files[self.file_count].position = piece.position
        self.file_count += 1
        self.vector[self.vector_count].iov_len = piece.size
        self.vector_count += 1
        return 0

    def __dealloc__(self):
        self.release()
        PyMem_Free(self.files)
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
        return self.view_count > 0 or self.file_count > 0

    def drain(self):
        """All that has not been written, as bytes; nothing is left. For stand-ins of a :class:`Selector`."""
        cdef list left = []
        cdef int at
        if self.is_taken:
            raise IllegalStateError(f"the frame to {self.destination_id} is its connection's")
        for at in range(self.vector_at, self.vector_count):
            if self.vector[at].iov_base == NULL:
                piece = self.read_file(self.vector[at].iov_len)
            else:
                piece = PyBytes_FromStringAndSize(<char *> self.vector[at].iov_base, self.vector[at].iov_len)
            left.append(piece)
        self.vector_at = self.vector_count
        self.remaining = 0
        self.release()
        return b"".join(left)

    cdef bytes read_file(self, size_t size):
        """What is left of the next piece that lies in a file."""
        cdef file_piece *file = &self.files[self.file_at]
        self.file_at += 1
        return os.pread(file.fd, size, file.position)

    @cython.nonecheck(False)
    cdef int write_to(self, TransportLayer transport) noexcept nogil:
        """Write what the transport takes: 1 when all is written, 0 when not, or the negative errno."""
        cdef Py_ssize_t sent, left
        cdef iovec *moved
        while self.remaining > 0:
            if self.vector_at >= self.vector_count:
                # Its pieces have been let go of.
                return -EPIPE
            if self.vector[self.vector_at].iov_base == NULL:
                sent = self.write_file(transport)
            else:
                sent = self.write_some(transport)
            if sent < 0:
                return 0 if sent == -EAGAIN else <int> sent
            self.remaining = self.remaining - sent
            left = sent
            while left > 0 and left >= <Py_ssize_t> self.vector[self.vector_at].iov_len:
                left -= <Py_ssize_t> self.vector[self.vector_at].iov_len
                self.vector_at = self.vector_at + 1
            if left > 0:
                moved = &self.vector[self.vector_at]
                if moved.iov_base != NULL:
                    moved.iov_base = <char *> moved.iov_base + left
                moved.iov_len -= left
        return 1

    @cython.nonecheck(False)
    cdef Py_ssize_t write_some(self, TransportLayer transport) noexcept nogil:
        """Write of the pieces in memory before the next one in a file."""
        cdef int end = self.vector_at
        cdef int last = min(self.vector_count, self.vector_at + <int> MAX_VECTOR)
        cdef uint8_t joined[JOINED_SIZE]
        cdef iovec one
        cdef size_t size = 0
        while end < last and self.vector[end].iov_base != NULL:
            size += self.vector[end].iov_len
            end += 1
        # What stands before a part of a file waits for it, and goes in one packet with it.
        if end > self.vector_at + 1 and size <= JOINED_SIZE:
            one.iov_base = joined
            one.iov_len = self.join(joined, end)
            return transport.write(&one, 1, end < self.vector_count)
        return transport.write(&self.vector[self.vector_at], end - self.vector_at, end < self.vector_count)

    cdef Py_ssize_t write_file(self, TransportLayer transport) noexcept nogil:
        """Write of the next piece, which lies in a file."""
        cdef file_piece *file = &self.files[self.file_at]
        cdef size_t size = self.vector[self.vector_at].iov_len
        cdef Py_ssize_t sent = transport.write_file(file.fd, file.position, size)
        if sent > 0:
            file.position += sent
            if <size_t> sent == size:
                self.file_at = self.file_at + 1
        return sent

    @cython.nonecheck(False)
    cdef size_t join(self, uint8_t *to, int end) noexcept nogil:
        """Copy the pieces before ``end``, which fit; their size."""
        cdef size_t size = 0
        cdef int at
        for at in range(self.vector_at, end):
            memcpy(to + size, self.vector[at].iov_base, self.vector[at].iov_len)
            size += self.vector[at].iov_len
        return size

    cdef int release(self) except -1:
        """Let go of the pieces; nothing more can be written of them."""
        self.vector_at = self.vector_count
        while self.view_count > 0:
            self.view_count -= 1
            PyBuffer_Release(&self.views[self.view_count])
        if self.file_count > 0:
            self.file_count = 0
            slices, self.slices = self.slices, None
            for piece in slices:
                (<FileSlice> piece).release()
        return 0
