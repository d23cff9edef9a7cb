"""Declare the reusable memory blocks for Cython callers."""

cdef void *block_alloc(size_t size) noexcept nogil
cdef void *block_realloc(void *block, size_t used, size_t size) noexcept nogil
cdef void block_free(void *block) noexcept nogil
cdef size_t block_capacity(const void *block) noexcept nogil
