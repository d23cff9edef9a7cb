"""Memory that received bytes live in, for Cython callers."""

from libc.stdint cimport uint8_t

cdef class MemoryPool:
    cdef readonly Py_ssize_t limit
    cdef readonly Py_ssize_t used
    # Somebody was refused; `on_release` is called as soon as memory comes back.
    cdef bint is_starved
    cdef object on_release

    cdef bint fits(self, Py_ssize_t size, Py_ssize_t promised=*) noexcept
    cdef bint reserve(self, Py_ssize_t size) noexcept
    cdef int release(self, Py_ssize_t size) except -1

cdef class Chunk:
    cdef uint8_t *data
    cdef Py_ssize_t capacity
    # Of wire.blocks, not of malloc.
    cdef bint is_block
    # Views and receives that are out. Memory is moved or used again only while there is none.
    cdef Py_ssize_t exports
    cdef Py_ssize_t window_at
    cdef Py_ssize_t window_size
    cdef MemoryPool pool
    cdef Py_ssize_t charged

    cdef int open(self, Py_ssize_t capacity) except -1
    cdef int resize(self, Py_ssize_t capacity) except -1
    cdef object view(self, Py_ssize_t at, Py_ssize_t size)

cdef Chunk new_chunk(Py_ssize_t capacity)
