"""The allocator of all compiled modules: Python's raw allocator.

It needs no GIL, and tests can make it fail. The functions have the names of the C library. Memory allocated
here must be freed here, also by C code (``memory.h``).
"""

cdef extern from "Python.h" nogil:
    void *malloc "PyMem_RawMalloc"(size_t size)
    void *calloc "PyMem_RawCalloc"(size_t count, size_t size)
    void *realloc "PyMem_RawRealloc"(void *block, size_t size)
    void free "PyMem_RawFree"(void *block)
