"""MemoryPool and Chunk for Cython callers."""

from libc.stdint cimport uint8_t

cdef class MemoryPool:
    cdef readonly Py_ssize_t limit
    cdef readonly Py_ssize_t used
    # A reservation failed; `on_release` is called as soon as memory is released.
    cdef bint is_starved
    cdef object on_release

    cdef bint fits(self, Py_ssize_t size, Py_ssize_t promised=*) noexcept
    cdef bint reserve(self, Py_ssize_t size) noexcept
    cdef int release(self, Py_ssize_t size) except -1

cdef class Chunk:
    cdef uint8_t *data
    cdef Py_ssize_t capacity
    # Whether the memory is from wire.blocks instead of malloc.
    cdef bint is_block
    # Number of existing views and receives. Memory is moved or reused only while this number is 0.
    cdef Py_ssize_t exports
    cdef Py_ssize_t window_at
    cdef Py_ssize_t window_size
    cdef MemoryPool pool
    # Bytes reserved in `pool` for this chunk.
    cdef Py_ssize_t charged

    cdef int open(self, Py_ssize_t capacity) except -1
    cdef int resize(self, Py_ssize_t capacity) except -1
    cdef object view(self, Py_ssize_t at, Py_ssize_t size)

cdef Chunk new_chunk(Py_ssize_t capacity)
