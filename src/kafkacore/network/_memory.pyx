"""Memory that received bytes live in: sizes in, views that own what they show out.

Does not know: frames, sockets. Source of the pool's behaviour: Kafka's ``MemoryPool`` and
``SimpleMemoryPool`` (``queued.max.request.bytes``).
"""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.memoryview cimport PyMemoryView_FromObject

from kafkacore.wire._blocks cimport block_alloc, block_free
from kafkacore.wire.memory cimport free, malloc, realloc

cdef enum:
    # Memory of these sizes is kept for reuse when it comes back. Below, malloc keeps it; above, to grow
    # without a copy is worth more, which malloc can do.
    SMALLEST_BLOCK = 16 * 1024
    LARGEST_BLOCK = 32 * 1024 * 1024
    # Of a pool: a frame up to one such part of it is a small one.
    SMALL_PART = 1024


@cython.final
cdef class MemoryPool:
    """A bound of the bytes of frames that are being read or are still held by somebody.

    Parameters
    ----------
    limit:
        Bytes. One frame is always let in when nothing else is, so that a frame above the limit cannot block
        for ever. Small frames have an eighth more to themselves: who only claims large ones stops nobody
        else.
    """

    def __cinit__(self, Py_ssize_t limit):
        if limit <= 0:
            raise ValueError(f"limit is {limit}; it must be above 0")
        self.limit = limit

    cdef bint fits(self, Py_ssize_t size, Py_ssize_t promised=0) noexcept:
        """Whether there is memory for so much, when so much is promised to others."""
        cdef Py_ssize_t limit = self.limit
        cdef Py_ssize_t used = self.used + promised
        if size <= self.limit // SMALL_PART:
            limit += self.limit // 8
        return used == 0 or size <= limit - used

    cdef bint reserve(self, Py_ssize_t size) noexcept:
        if not self.fits(size):
            self.is_starved = True
            return False
        self.used += size
        return True

    cdef int release(self, Py_ssize_t size) except -1:
        self.used -= size
        assert self.used >= 0
        if self.is_starved and self.on_release is not None:
            self.is_starved = False
            self.on_release()
        return 0


# Without the garbage collector, which finds no cycle here and would only walk past.
@cython.no_gc
@cython.final
cdef class Chunk:
    """Plain memory; a view of a part of it keeps all of it alive."""

    def __dealloc__(self):
        if self.is_block:
            block_free(self.data)
        else:
            free(self.data)
        if self.pool is not None:
            self.pool.release(self.charged)

    def __getbuffer__(self, Py_buffer *view, int flags):
        # Writable: the broker stamps base offset and leader epoch into the batches as they came.
        PyBuffer_FillInfo(view, self, self.data + self.window_at, self.window_size, False, flags)
        self.exports += 1

    def __releasebuffer__(self, Py_buffer *view):
        self.exports -= 1

    cdef int open(self, Py_ssize_t capacity) except -1:
        """Take memory for ``capacity`` bytes; there is none yet.

        What is large is not touched, whoever it is from: the kernel gives it pages only as bytes are written
        there.
        """
        self.is_block = SMALLEST_BLOCK <= capacity <= LARGEST_BLOCK
        if self.is_block:
            self.data = <uint8_t *> block_alloc(capacity)
        else:
            self.data = <uint8_t *> malloc(capacity if capacity > 0 else 1)
        if self.data == NULL:
            raise MemoryError(f"no memory for a frame of {capacity} bytes")
        self.capacity = capacity
        return 0

    cdef int resize(self, Py_ssize_t capacity) except -1:
        """Make room for ``capacity`` bytes, keeping those there are. Only while no view is out."""
        cdef void *grown
        assert self.exports == 0 and not self.is_block
        grown = realloc(self.data, capacity if capacity > 0 else 1)
        if grown == NULL:
            raise MemoryError(f"no memory for a frame of {capacity} bytes")
        self.data = <uint8_t *> grown
        self.capacity = capacity
        return 0

    cdef object view(self, Py_ssize_t at, Py_ssize_t size):
        """A memoryview of one part. A slice of a view of the whole would be two objects, and not be
        counted.
        """
        # Making a view may start the garbage collector, and it a finaliser that asks for another view.
        cdef Py_ssize_t at_before = self.window_at
        cdef Py_ssize_t size_before = self.window_size
        assert 0 <= at <= self.capacity and size <= self.capacity - at
        self.window_at = at
        self.window_size = size
        try:
            return PyMemoryView_FromObject(self)
        finally:
            self.window_at = at_before
            self.window_size = size_before


cdef Chunk new_chunk(Py_ssize_t capacity):
    cdef Chunk chunk = Chunk.__new__(Chunk)
    chunk.open(capacity)
    return chunk
