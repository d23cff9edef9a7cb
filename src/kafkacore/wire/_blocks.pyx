"""Memory blocks that are kept for reuse: a size in, a block out, and back when it is done with.

What is large goes back to the system when it is freed, and the kernel zeroes the next one page by page: for
records of a hundred bytes that costs more than copying them. So received frames, batches on their way and
columns have their memory from here. At most 32 MiB of the process lie idle; larger ones are never
kept, but come in huge pages where the kernel has them (a third of what reading frames of 48 MiB cost was page
faults). Blocks are aligned to 64 bytes, as Arrow asks for. Does not know what a block is for.
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
    """At least ``size`` bytes, or NULL when there is no memory."""
    return kc_block_alloc(size)


cdef void *block_realloc(void *block, size_t used, size_t size) noexcept nogil:
    """A block of at least ``size`` bytes that begins with the first ``used`` of ``block``, which may be NULL.

    When there is no memory NULL, and ``block`` is as it was.
    """
    return kc_block_realloc(block, used, size)


cdef void block_free(void *block) noexcept nogil:
    """Give a block back. NULL is allowed."""
    kc_block_free(block)


cdef size_t block_capacity(const void *block) noexcept nogil:
    """Bytes of the block: what was asked for, or more."""
    return kc_block_capacity(block)


def statistics() -> dict:
    """What there is of blocks in this process.

    Returns
    -------
    dict
        ``used_blocks``, ``used_bytes`` (handed out), ``idle_blocks``, ``idle_bytes`` (kept for reuse).
    """
    return kc_block_state()


def trim() -> None:
    """Give all idle blocks back to the system."""
    with nogil:
        kc_block_trim()
