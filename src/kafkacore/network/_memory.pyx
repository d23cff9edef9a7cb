"""Memory for received bytes, and the pool that limits this memory (``queued.max.request.bytes``).

The pool follows Kafka's ``MemoryPool`` and ``SimpleMemoryPool``.
"""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.memoryview cimport PyMemoryView_FromObject

from kafkacore.wire._blocks cimport block_alloc, block_free
from kafkacore.wire.memory cimport free, malloc, realloc

cdef enum:
    # Freed blocks from SMALLEST_BLOCK to LARGEST_BLOCK bytes are kept for reuse. malloc itself reuses smaller
    # blocks well, and can grow larger blocks without a copy.
    SMALLEST_BLOCK = 16 * 1024
    LARGEST_BLOCK = 32 * 1024 * 1024
    # A frame is small if its size is at most the pool's limit divided by SMALL_PART.
    SMALL_PART = 1024


@cython.final
cdef class MemoryPool:
    """A limit on the memory of frames that are being received or are still referenced.

    Parameters
    ----------
    limit:
        Maximum bytes. While no memory is in use, the pool accepts a frame of any size, so that a frame above
        the limit does not wait forever. Small frames may use another eighth of the limit, so that peers that
        announce large frames cannot block small frames.
    """

    def __cinit__(self, Py_ssize_t limit):
        if limit <= 0:
            raise ValueError(f"limit of a MemoryPool must be above 0, not {limit}")
        self.limit = limit

    cdef bint fits(self, Py_ssize_t size, Py_ssize_t promised=0) noexcept:
        """Return whether ``size`` bytes are available after other frames get ``promised`` bytes."""
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


# The class needs no support for garbage collection, because a chunk cannot be part of a reference cycle.
@cython.no_gc
@cython.final
cdef class Chunk:
    """A block of memory. A view of any part keeps the whole block alive."""

    def __dealloc__(self):
        if self.is_block:
            block_free(self.data)
        else:
            free(self.data)
        if self.pool is not None:
            self.pool.release(self.charged)

    def __getbuffer__(self, Py_buffer *view, int flags):
        # The view is writable, because the broker sets the base offset and the leader epoch in received
        # batches.
        PyBuffer_FillInfo(view, self, self.data + self.window_at, self.window_size, False, flags)
        self.exports += 1

    def __releasebuffer__(self, Py_buffer *view):
        self.exports -= 1

    cdef int open(self, Py_ssize_t capacity) except -1:
        """Allocate ``capacity`` bytes for a new chunk.

        The memory is not initialized, so that the kernel assigns pages only where bytes are written.
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
        """Change the capacity and keep the contents. No view of the chunk may exist."""
        cdef void *grown
        assert self.exports == 0 and not self.is_block
        grown = realloc(self.data, capacity if capacity > 0 else 1)
        if grown == NULL:
            raise MemoryError(f"no memory for a frame of {capacity} bytes")
        self.data = <uint8_t *> grown
        self.capacity = capacity
        return 0

    cdef object view(self, Py_ssize_t at, Py_ssize_t size):
        """Return a memoryview of ``size`` bytes from offset ``at``.

        The method creates a single object. A slice of a view of the whole chunk would create two objects, and
        ``exports`` would not count the slice.
        """
        # Save and restore the window: creating a view may run the garbage collector, and thus a finalizer
        # that also calls this method.
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
