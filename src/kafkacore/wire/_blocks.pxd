"""Memory blocks that are kept for reuse, for Cython callers; see the module."""

cdef void *block_alloc(size_t size) noexcept nogil
cdef void *block_realloc(void *block, size_t used, size_t size) noexcept nogil
cdef void block_free(void *block) noexcept nogil
cdef size_t block_capacity(const void *block) noexcept nogil
