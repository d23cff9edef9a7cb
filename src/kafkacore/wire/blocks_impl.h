/* Reusable memory blocks; see _blocks.pyx. Any thread may call these functions; none needs the GIL or waits. */
#ifndef KAFKACORE_BLOCKS_IMPL_H
#define KAFKACORE_BLOCKS_IMPL_H

#include <stddef.h>

/* Allocate at least `size` bytes, aligned to 64. Returns NULL when out of memory. */
void *kc_block_alloc(size_t size);

/* Return a block of at least `size` bytes that starts with the first `used` bytes of `block`, which may be
 * NULL. When out of memory, return NULL and leave `block` unchanged. */
void *kc_block_realloc(void *block, size_t used, size_t size);

/* Free a block. NULL is allowed. */
void kc_block_free(void *block);

/* Return the size of the block in bytes, which is at least the requested size. */
size_t kc_block_capacity(const void *block);

/* Return all idle blocks to the system. */
void kc_block_trim(void);

typedef struct {
    size_t used_blocks, used_bytes;
    size_t idle_blocks, idle_bytes;
} kc_block_statistics;

/* The result is exact only while no other thread uses these functions. */
kc_block_statistics kc_block_state(void);

#endif
