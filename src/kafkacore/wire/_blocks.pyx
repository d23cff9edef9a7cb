"""Memory blocks that are reused instead of returned to the system.

The C library returns large blocks to the system when they are freed, and the kernel zeroes the pages of the
next block. For records of a hundred bytes, this zeroing costs more than copying the records. Received frames,
batches being built and columns therefore use these blocks.

The process keeps at most 32 MiB of idle blocks. A block larger than that is never kept. Blocks of 16 MiB or
more use huge pages where the kernel has them. Without huge pages, page faults took a third of the time to
read frames of 48 MiB.
Blocks are aligned to 64 bytes, as Arrow recommends.
"""

cdef extern from "blocks_impl.h":
    ctypedef struct kc_block_statistics:
        size_t used_blocks
        size_t used_bytes
        size_t idle_blocks
        size_t idle_bytes

    void *kc_block_alloc(size_t size) noexcept nogil
    void *kc_block_realloc(void *block, size_t used, size_t size) noexcept nogil
    void kc_block_free(void *block) noexcept nogil
    size_t kc_block_capacity(const void *block) noexcept nogil
    void kc_block_trim() noexcept nogil
    kc_block_statistics kc_block_state() noexcept nogil


cdef void *block_alloc(size_t size) noexcept nogil:
    """Allocate at least ``size`` bytes. Returns NULL when out of memory."""
    return kc_block_alloc(size)


cdef void *block_realloc(void *block, size_t used, size_t size) noexcept nogil:
    """Return a block of at least ``size`` bytes that starts with the first ``used`` bytes of ``block``.

    ``block`` may be NULL. When out of memory, return NULL and leave ``block`` unchanged.
    """
    return kc_block_realloc(block, used, size)


cdef void block_free(void *block) noexcept nogil:
    """Free a block. NULL is allowed."""
    kc_block_free(block)


cdef size_t block_capacity(const void *block) noexcept nogil:
    """Return the size of the block in bytes, which is at least the requested size."""
    return kc_block_capacity(block)


def statistics() -> dict:
    """Return the number and size of the blocks in this process.

    Returns
    -------
    dict
        ``used_blocks`` and ``used_bytes`` (allocated), ``idle_blocks`` and ``idle_bytes`` (kept for reuse).
    """
    return kc_block_state()


def trim() -> None:
    """Return all idle blocks to the system."""
    with nogil:
        kc_block_trim()
