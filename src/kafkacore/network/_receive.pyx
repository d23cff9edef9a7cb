"""Split a stream of bytes into frames: a size of 4 bytes, followed by that many bytes.

Small frames are stored in a read buffer that all channels of a selector share. A large frame is read directly
into its own memory. See also Kafka's ``NetworkReceive``.
"""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo, PyObject_GetBuffer
from libc.errno cimport EAGAIN
from libc.string cimport memcpy

from kafkacore.network._memory cimport Chunk, MemoryPool, new_chunk
from kafkacore.network._transport cimport TransportLayer
from kafkacore.wire._payload cimport Payload
from kafkacore.wire._trace cimport Stage, stamp
from kafkacore.wire.primitives cimport load_int32

from kafkacore.errors import InvalidReceiveError

cdef enum:
    HEADER_SIZE = 4
    MAX_FRAME_SIZE = 0x7FFFFFFF
    # Size of the shared read buffer. A reference to the payload of a small frame keeps at most this much
    # memory alive.
    READ_BUFFER_SIZE = 64 * 1024
    # Reads of up to this many bytes do not release the GIL: they take a few microseconds, but reacquiring the
    # GIL from a busy thread takes milliseconds.
    READ_WITH_GIL = READ_BUFFER_SIZE
    # If the current read buffer has views and less free space than this, a new buffer is allocated.
    MIN_READ = 16 * 1024
    # After a frame larger than this, the next frame is expected to be large, too. In this case, the next read
    # gets only the size field. The rest of the frame is read directly into its own memory, without a copy.
    LARGE_FRAME = 32 * 1024
    # Maximum bytes that one channel may read in one poll. Each frame counts as FRAME_SHARE bytes in addition,
    # because a tiny request takes as long to handle as a request of thousands of bytes. Without this limit, a
    # megabyte of tiny requests would make other channels wait for seconds.
    READ_SHARE = 1024 * 1024
    FRAME_SHARE = 1024
    # A frame of up to this size gets all of its memory at once. The kernel assigns pages only where bytes are
    # written, so a large size field costs only address space until the bytes arrive. The memory of a larger
    # frame grows as its bytes arrive.
    FIRST_CHUNK = 32 * 1024 * 1024


# The class needs no support for garbage collection, because a receive cannot be part of a reference cycle.
@cython.no_gc
@cython.freelist(256)
@cython.final
cdef class NetworkReceive:
    """A received frame, which also supports the buffer protocol.

    Parameters
    ----------
    source_id:
        Id of the channel that received the frame.
    payload:
        Bytes of the frame without its size field: a writable memoryview that keeps the bytes alive.
    """

    def __init__(self, str source_id, payload):
        self.source_id = source_id
        self.view = payload

    def __dealloc__(self):
        if self.chunk is not None:
            self.chunk.exports -= 1

    def __getbuffer__(self, Py_buffer *view, int flags):
        # Support the buffer protocol directly. If the bytes are only copied or parsed, direct access is
        # cheaper than a memoryview.
        if self.chunk is None:
            PyObject_GetBuffer(self.view, view, flags)
        else:
            PyBuffer_FillInfo(view, self, self.chunk.data + self.at, self.size, False, flags)

    @property
    def payload(self):
        if self.view is None:
            self.view = self.chunk.view(self.at, self.size)
        return self.view

    def __repr__(self):
        return f"NetworkReceive({self.source_id!r}, {len(self.payload)} bytes)"


cdef inline NetworkReceive new_receive(str source_id, Chunk chunk, Py_ssize_t at, Py_ssize_t size):
    cdef NetworkReceive receive = NetworkReceive.__new__(NetworkReceive)
    assert 0 <= at <= chunk.capacity and size <= chunk.capacity - at
    receive.source_id = source_id
    receive.chunk = chunk
    receive.at = at
    receive.size = size
    chunk.exports += 1
    stamp(Stage.RESPONSE_READ, load_int32(chunk.data + at) if size >= 4 else -1)
    return receive


@cython.final
cdef class ReadBuffer:
    """Memory for reads of unknown size. The memory is reused from its start when no view of it exists."""

    cdef Py_ssize_t reserve_space(self, MemoryPool pool) except -1:
        """Return the number of free bytes after offset ``fill``; allocate a new buffer if necessary.

        If ``pool`` has enough free memory, the size of a new buffer is reserved there.
        """
        if self.chunk is not None and self.chunk.exports == 0:
            self.fill = 0
        elif self.chunk is None or self.chunk.capacity - self.fill < MIN_READ:
            self.chunk = new_chunk(READ_BUFFER_SIZE)
            self.fill = 0
            if pool is not None and pool.reserve(READ_BUFFER_SIZE):
                self.chunk.charged = READ_BUFFER_SIZE
                self.chunk.pool = pool
        return self.chunk.capacity - self.fill


@cython.final
cdef class FrameReader:
    """Splits the byte stream of one channel into frames.

    Parameters
    ----------
    source_id:
        Id of the channel.
    max_size:
        Maximum bytes of a frame, without its size field; -1 for the protocol's limit of 2 GiB - 1.
    pool:
        Pool that limits the memory of the frames of all channels; ``None`` for no limit.
    """

    def __cinit__(self, str source_id, Py_ssize_t max_size=-1, MemoryPool pool=None):
        self.source_id = source_id
        self.max_size = max_size
        self.pool = pool
        self.checked_fill = -1

    @property
    def is_within_frame(self):
        """Whether only a part of the last frame has been received."""
        return self.has_partial_frame()

    cdef bint has_partial_frame(self) noexcept nogil:
        return self.header_fill > 0 or self.frame is not None

    def feed(self, data):
        """Parse ``data`` and return the frames that are now complete, for streams that are not sockets.

        Parameters
        ----------
        data:
            The next bytes of the stream.

        Returns
        -------
        list of NetworkReceive
            The completed frames, in order.

        Raises
        ------
        InvalidReceiveError
            If a frame's size is negative or above the limit. No memory is allocated for such a frame.
        """
        cdef Payload source = Payload(data)
        cdef Py_ssize_t size = source.size
        cdef Chunk chunk = new_chunk(size)
        cdef list frames = []
        assert self.pool is None, "feed() cannot wait for memory"
        if size > 0:
            memcpy(chunk.data, source.data, size)
        self.parse(chunk, 0, size, frames)
        return frames

    cdef int read_from(self, TransportLayer transport, ReadBuffer buffer, list frames) except? -1:
        """Read until the socket is empty or READ_SHARE is used up; append complete frames to ``frames``.

        Return DRAINED, MORE, ENDED, STARVED, or the negative errno of the transport.
        """
        cdef Py_ssize_t share = READ_SHARE
        cdef Py_ssize_t known = len(frames)
        cdef Py_ssize_t requested, got
        cdef bint is_exact = False
        cdef uint8_t *to
        if self.is_waiting_for_memory:
            if not self.open_frame():
                return STARVED
            if self.frame_size == 0:
                self.complete(frames)
        while share > 0:
            if self.frame is not None:
                if self.frame_fill == self.frame.capacity:
                    self.frame.resize(min(self.frame_size, 2 * self.frame.capacity))
                # One read takes no longer than a poll may.
                requested = min(self.frame.capacity - self.frame_fill, share)
                to = self.frame.data + self.frame_fill
            elif self.expects_large or not self.has_memory():
                # Read only the size field, because the frame may have to wait for memory, or may need its own
                # memory.
                is_exact = True
                requested = HEADER_SIZE - self.header_fill
                to = self.header + self.header_fill
            else:
                is_exact = False
                requested = buffer.reserve_space(self.pool)
                to = buffer.chunk.data + buffer.fill
            if requested <= READ_WITH_GIL:
                got = transport.read(to, requested)
            else:
                with nogil:
                    got = transport.read(to, requested)
            if got <= 0:
                return ENDED if got == 0 else DRAINED if got == -EAGAIN else <int> got
            share -= got
            if self.frame is not None:
                self.frame_fill += got
                if self.frame_fill == self.frame_size:
                    self.complete(frames)
            elif is_exact:
                self.header_fill += <int> got
                if self.header_fill == HEADER_SIZE:
                    self.begin()
                    if self.is_waiting_for_memory:
                        return STARVED
                    if self.frame_size == 0:
                        self.complete(frames)
            else:
                self.parse(buffer.chunk, buffer.fill, got, frames)
                # If there are no views, all bytes have been copied from the buffer, and the buffer can be
                # reused.
                if buffer.chunk.exports > 0:
                    buffer.fill += got
            if got < requested and not transport.has_buffered():
                return DRAINED
            share -= FRAME_SHARE * (len(frames) - known)
            known = len(frames)
        return MORE

    cdef bint has_memory(self) noexcept:
        """Return whether the pool has enough memory for a next frame of any permitted size."""
        return self.pool is None or (
            self.max_size >= 0 and self.pool.limit - self.pool.used >= self.max_size + 2 * READ_BUFFER_SIZE
        )

    cdef int parse(self, Chunk chunk, Py_ssize_t at, Py_ssize_t size, list frames) except -1:
        """Parse ``size`` bytes of ``chunk``. Complete frames refer to the chunk; other bytes are copied."""
        cdef Py_ssize_t end = at + size
        cdef Py_ssize_t limit = self.max_size if self.max_size >= 0 else MAX_FRAME_SIZE
        cdef Py_ssize_t taken, frame_size
        while at < end:
            while self.frame is None and self.header_fill == 0 and end - at >= HEADER_SIZE:
                frame_size = load_int32(chunk.data + at)
                if frame_size < 0 or frame_size > limit or frame_size > end - at - HEADER_SIZE:
                    break
                at += HEADER_SIZE
                frames.append(new_receive(self.source_id, chunk, at, frame_size))
                self.has_frames = True
                at += frame_size
            if at == end:
                return 0
            if self.frame is None:
                taken = min(<Py_ssize_t> (HEADER_SIZE - self.header_fill), end - at)
                memcpy(self.header + self.header_fill, chunk.data + at, taken)
                self.header_fill += <int> taken
                at += taken
                if self.header_fill < HEADER_SIZE:
                    return 0
                self.begin()
                assert self.frame is not None, "has_memory() was true"
                if self.frame_size == 0:
                    self.complete(frames)
                    continue
            if self.frame_fill == self.frame.capacity:
                self.frame.resize(min(self.frame_size, 2 * self.frame.capacity))
            taken = min(self.frame.capacity - self.frame_fill, end - at)
            memcpy(self.frame.data + self.frame_fill, chunk.data + at, taken)
            self.frame_fill += taken
            at += taken
            if self.frame_fill == self.frame_size:
                self.complete(frames)
        return 0

    cdef int reject_size(self) except -1:
        limit = f"; the limit is {self.max_size}" if self.frame_size >= 0 else ""
        error = InvalidReceiveError(f"{self.source_id}: a frame of {self.frame_size} bytes{limit}")
        error.frame_size = self.frame_size
        raise error

    cdef int begin(self) except -1:
        """Start a frame whose size field is complete. Check the size before allocating memory."""
        self.frame_size = load_int32(self.header)
        if self.frame_size < 0 or 0 <= self.max_size < self.frame_size:
            self.reject_size()
        self.frame_fill = 0
        self.open_frame()
        return 0

    cdef int open_frame(self) except -1:
        """Allocate memory for the frame. Return 0 if the frame must wait until the pool has enough memory."""
        if self.pool is not None and not self.pool.reserve(self.frame_size):
            self.is_waiting_for_memory = True
            return 0
        self.is_waiting_for_memory = False
        self.checked_fill = -1
        self.frame = Chunk.__new__(Chunk)
        if self.pool is not None:
            self.frame.charged = self.frame_size
            self.frame.pool = self.pool
        # If the memory will grow, allocate one byte more than the limit of wire.blocks. The memory then comes
        # from malloc, and realloc can move the pages without copying.
        self.frame.open(self.frame_size if self.frame_size <= FIRST_CHUNK else <Py_ssize_t> FIRST_CHUNK + 1)
        return 1

    cdef int complete(self, list frames) except -1:
        frames.append(new_receive(self.source_id, self.frame, 0, self.frame_size))
        self.frame = None
        self.header_fill = 0
        self.has_frames = True
        self.expects_large = self.frame_size > LARGE_FRAME
        return 0
