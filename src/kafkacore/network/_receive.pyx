"""Frames out of a stream of bytes: a size of 4 bytes, then that many.

Small frames are parts of a read buffer that all channels of a selector share; a large one is read straight
into memory of its own. The view of a frame is made when it is asked for. Does not know: what a frame says,
channels. Source of the behaviour: Kafka's ``NetworkReceive``.
"""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo, PyObject_GetBuffer
from libc.errno cimport EAGAIN
from libc.string cimport memcpy

from kafkacore.network._memory cimport Chunk, MemoryPool, new_chunk
from kafkacore.network._transport cimport TransportLayer
from kafkacore.wire.primitives cimport load_int32

from kafkacore.errors import InvalidReceiveError

cdef enum:
    HEADER_SIZE = 4
    MAX_FRAME_SIZE = 0x7FFFFFFF
    # The shared read buffer. A small payload pins this much at most, for as long as somebody holds it.
    READ_BUFFER_SIZE = 64 * 1024
    # Up to here a read keeps the GIL: it takes a few microseconds, and getting the lock back from a busy
    # thread milliseconds.
    READ_WITH_GIL = READ_BUFFER_SIZE
    # With less room than this left behind views that are out, a new buffer is begun.
    MIN_READ = 16 * 1024
    # After a frame above this the next one is expected to be large too: only its size is read before its
    # memory is there, so that not a byte of it is copied.
    LARGE_FRAME = 32 * 1024
    # What one channel may read in one poll, in bytes; a smaller frame counts as so many more. To handle a
    # request of 20 bytes takes as long as one of thousands: a megabyte of such made others wait for seconds.
    READ_SHARE = 1024 * 1024
    FRAME_SHARE = 1024
    # Memory for a larger frame grows as its bytes arrive. Below, all of it is taken at once: the kernel gives
    # pages only to what has been written, so that a claimed size costs address space alone.
    FIRST_CHUNK = 32 * 1024 * 1024


# Without the garbage collector: neither memory nor views of it lead back here.
@cython.no_gc
@cython.freelist(256)
@cython.final
cdef class NetworkReceive:
    """One frame.

    Parameters
    ----------
    source_id:
        Of the channel it came by.
    payload:
        Its bytes without the size: a writable memoryview that owns its memory. The receive is a buffer of the
        same bytes itself.
    """

    def __init__(self, str source_id, payload):
        self.source_id = source_id
        self.view = payload

    def __dealloc__(self):
        if self.chunk is not None:
            self.chunk.exports -= 1

    def __getbuffer__(self, Py_buffer *view, int flags):
        # Cheaper than a view where the bytes are only to be copied or parsed.
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
    return receive


@cython.final
cdef class ReadBuffer:
    """Memory that reads go to before their size is known. Used from its start again when no view of it is
    out.
    """

    cdef Py_ssize_t room(self, MemoryPool pool) except -1:
        """Bytes that fit behind ``fill``. New memory is counted in ``pool``, which has it."""
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
    """Cuts one channel's stream into frames.

    Parameters
    ----------
    source_id:
        Of the channel.
    max_size:
        Bytes of a frame, without its size; -1 for no limit but the format's.
    pool:
        Bounds the memory of all frames together.
    """

    def __cinit__(self, str source_id, Py_ssize_t max_size=-1, MemoryPool pool=None):
        self.source_id = source_id
        self.max_size = max_size
        self.pool = pool
        self.fill_then = -1

    @property
    def is_within_frame(self):
        """Whether the stream would end in the middle of a frame if it ended now."""
        return self.is_amid_frame()

    cdef bint is_amid_frame(self) noexcept nogil:
        return self.header_fill > 0 or self.frame is not None

    def feed(self, data):
        """The frames that are complete with ``data``; for streams that are no sockets.

        Raises
        ------
        InvalidReceiveError
            For a size that is negative or above the limit, before memory is taken for it.
        """
        cdef const uint8_t[::1] view = data
        cdef Py_ssize_t size = view.shape[0]
        cdef Chunk chunk = new_chunk(size)
        cdef list frames = []
        assert self.pool is None, "what has been fed cannot wait for memory"
        if size > 0:
            memcpy(chunk.data, &view[0], size)
        self.parse(chunk, 0, size, frames)
        return frames

    cdef int read_from(self, TransportLayer transport, ReadBuffer buffer, list frames) except? -1:
        """Read until the socket is drained or this turn's share is used up; complete frames go to ``frames``.

        Returns DRAINED, MORE, ENDED, STARVED, or the negative errno of what the transport reported.
        """
        cdef Py_ssize_t share = READ_SHARE
        cdef Py_ssize_t known = len(frames)
        cdef Py_ssize_t asked, got
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
                asked = self.frame.capacity - self.frame_fill
                to = self.frame.data + self.frame_fill
            elif self.expects_large or not self.has_memory():
                # The size alone: what follows may have to wait, or is worth memory of its own.
                is_exact = True
                asked = HEADER_SIZE - self.header_fill
                to = self.header + self.header_fill
            else:
                is_exact = False
                asked = buffer.room(self.pool)
                to = buffer.chunk.data + buffer.fill
            if asked <= READ_WITH_GIL:
                got = transport.read(to, asked)
            else:
                with nogil:
                    got = transport.read(to, asked)
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
                # Bytes that no view was given of have been copied out; their room is free again.
                if buffer.chunk.exports > 0:
                    buffer.fill += got
            if got < asked and not transport.has_buffered():
                return DRAINED
            share -= FRAME_SHARE * (len(frames) - known)
            known = len(frames)
        return MORE

    cdef bint has_memory(self) noexcept:
        """Whether the pool has room for whatever may come with the next read, the largest frame included."""
        return self.pool is None or (
            self.max_size >= 0 and self.pool.limit - self.pool.used >= self.max_size + 2 * READ_BUFFER_SIZE
        )

    cdef int parse(self, Chunk chunk, Py_ssize_t at, Py_ssize_t size, list frames) except -1:
        """Take ``size`` bytes of ``chunk`` in: whole frames as parts of it, the rest as a copy."""
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
                assert self.frame is not None, "the pool had room for it"
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

    cdef int refuse(self) except -1:
        limit = f"; the limit is {self.max_size}" if self.frame_size >= 0 else ""
        error = InvalidReceiveError(f"{self.source_id}: a frame of {self.frame_size} bytes{limit}")
        error.frame_size = self.frame_size
        raise error

    cdef int begin(self) except -1:
        """The header is whole: take the size out of it, and refuse it before anything is allocated for it."""
        self.frame_size = load_int32(self.header)
        if self.frame_size < 0 or 0 <= self.max_size < self.frame_size:
            self.refuse()
        self.frame_fill = 0
        self.open_frame()
        return 0

    cdef int open_frame(self) except -1:
        """Memory for the frame; 0 if it has to wait for the pool."""
        if self.pool is not None and not self.pool.reserve(self.frame_size):
            self.is_waiting_for_memory = True
            return 0
        self.is_waiting_for_memory = False
        self.fill_then = -1
        self.frame = Chunk.__new__(Chunk)
        if self.pool is not None:
            self.frame.charged = self.frame_size
            self.frame.pool = self.pool
        # What will have to grow is not of wire.blocks, but of malloc, which can move pages instead of bytes.
        self.frame.open(self.frame_size if self.frame_size <= FIRST_CHUNK else <Py_ssize_t> FIRST_CHUNK + 1)
        return 1

    cdef int complete(self, list frames) except -1:
        frames.append(new_receive(self.source_id, self.frame, 0, self.frame_size))
        self.frame = None
        self.header_fill = 0
        self.has_frames = True
        self.expects_large = self.frame_size > LARGE_FRAME
        return 0
