"""The allocator of everything compiled: Python's raw one, which needs no GIL and which tests can make fail.

The names are those of the C library. Memory from here must be freed from here, in C too (``memory.h``).
"""

cdef extern from "Python.h" nogil:
    void *malloc "PyMem_RawMalloc"(size_t size)
    void *calloc "PyMem_RawCalloc"(size_t count, size_t size)
    void *realloc "PyMem_RawRealloc"(void *block, size_t size)
    void free "PyMem_RawFree"(void *block)
