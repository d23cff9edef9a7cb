"""Write a frame that consists of several buffers and parts of files, without copying them together.

See also Kafka's ``NetworkSend`` and ``ByteBufferSend``.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.errno cimport EAGAIN, EPIPE
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from kafkacore.network._poller cimport iovec
from kafkacore.network._transport cimport TransportLayer
from kafkacore.wire._file_slice cimport FileSlice
from kafkacore.wire.primitives cimport load_int64, store_int32

import os

from kafkacore.errors import IllegalStateError

cdef enum:
    HEADER_SIZE = 4
    MAX_FRAME_SIZE = 0x7FFFFFFF
    # Maximum number of pieces in one system call, which is IOV_MAX on Linux and the BSDs.
    MAX_VECTOR = 1024
    # Number of items in NetworkSend.few_views, the array for the buffers of a frame with few pieces.
    FEW_PIECES = 3
    # If several pieces have at most this many bytes in total, they are copied into one buffer, which is
    # cheaper than passing them to the kernel separately.
    JOINED_SIZE = 512


@cython.freelist(64)
@cython.final
cdef class NetworkSend:
    """A frame to send. Its size field of 4 bytes is added before the pieces.

    Parameters
    ----------
    destination_id:
        Id of the channel.
    pieces:
        Buffers and :class:`~kafkacore.wire.FileSlice` objects, in order. The frame references these objects
        until it is completely written or the channel is closed. They must not change until then.

    Raises
    ------
    ValueError
        If the pieces exceed 2 GiB - 1, the maximum size of a frame.
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
                raise ValueError("the number of pieces changed during iteration")
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
            raise ValueError(f"a frame of {size} bytes exceeds the maximum of {MAX_FRAME_SIZE}")
        store_int32(self.header, <int> size)
        self.vector[0].iov_base = self.header
        self.vector[0].iov_len = HEADER_SIZE
        self.size_in_bytes = self.remaining = HEADER_SIZE + size

    cdef int64_t first_bytes(self) noexcept:
        """Return the first 8 bytes of the pieces, or -1 if the first piece is shorter or was released."""
        if self.view_count == 0 or self.views[0].len < 8:
            return -1
        return load_int64(<const uint8_t *> self.views[0].buf)

    cdef int begin(self) except -1:
        """Assign the frame to a channel. This can be done only once."""
        if self.is_taken:
            raise IllegalStateError(
                f"this frame to {self.destination_id} has already been sent; create a new NetworkSend"
            )
        self.is_taken = True
        return 0

    cdef int add_file(self, FileSlice piece, int count) except -1:
        if self.files == NULL:
            self.slices = []
            self.files = <file_piece *> PyMem_Calloc(count, sizeof(file_piece))
            if self.files == NULL:
                raise MemoryError()
        if piece.fd < 0:
            raise ValueError("the FileSlice has already been released")
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
        """Whether the frame has been completely written to the transport."""
        return self.remaining == 0

    @property
    def holds_pieces(self):
        """Whether the pieces are still referenced.

        The pieces are released when the frame is completely written or the channel is closed.
        """
        return self.view_count > 0 or self.file_count > 0

    def drain(self):
        """Return the unwritten bytes, and mark the frame as written; for mocks of :class:`Selector`."""
        cdef list left = []
        cdef int at
        if self.is_taken:
            raise IllegalStateError(f"cannot drain a frame that was already sent to {self.destination_id}")
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
        """Return the unwritten bytes of the next file piece."""
        cdef file_piece *file = &self.files[self.file_at]
        self.file_at += 1
        return os.pread(file.fd, size, file.position)

    @cython.nonecheck(False)
    cdef int write_to(self, TransportLayer transport) noexcept nogil:
        """Write as much as the transport accepts.

        Return 1 if the frame is completely written, 0 if bytes of it are left, or the negative errno.
        """
        cdef Py_ssize_t sent, left
        cdef iovec *moved
        while self.remaining > 0:
            if self.vector_at >= self.vector_count:
                # The pieces were released before the frame was completely written.
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
        """Write as much of the memory pieces before the next file piece as the socket accepts."""
        cdef int end = self.vector_at
        cdef int last = min(self.vector_count, self.vector_at + <int> MAX_VECTOR)
        cdef uint8_t joined[JOINED_SIZE]
        cdef iovec one
        cdef size_t size = 0
        while end < last and self.vector[end].iov_base != NULL:
            size += self.vector[end].iov_len
            end += 1
        # The last argument of write() is true if more pieces follow. If so, bytes before a file piece are
        # sent in the same packet as that piece.
        if end > self.vector_at + 1 and size <= JOINED_SIZE:
            one.iov_base = joined
            one.iov_len = self.join(joined, end)
            return transport.write(&one, 1, end < self.vector_count)
        return transport.write(&self.vector[self.vector_at], end - self.vector_at, end < self.vector_count)

    cdef Py_ssize_t write_file(self, TransportLayer transport) noexcept nogil:
        """Write as much of the next piece, which is part of a file, as the socket accepts."""
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
        """Copy the unwritten pieces before ``end`` to ``to``; return their size. ``to`` is large enough."""
        cdef size_t size = 0
        cdef int at
        for at in range(self.vector_at, end):
            memcpy(to + size, self.vector[at].iov_base, self.vector[at].iov_len)
            size += self.vector[at].iov_len
        return size

    cdef int release(self) except -1:
        """Release the pieces. Afterwards the frame cannot be written."""
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
