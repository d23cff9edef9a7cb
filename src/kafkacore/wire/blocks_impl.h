/* Memory blocks that are kept for reuse, see blocks.pyx. Any thread; nothing here needs the GIL or waits. */
#ifndef KAFKACORE_BLOCKS_IMPL_H
#define KAFKACORE_BLOCKS_IMPL_H

#include <stddef.h>

/* At least `size` bytes, aligned to 64; NULL when out of memory. */
void *kc_block_alloc(size_t size);

/* A block of at least `size` bytes with the first `used` bytes of `block` (NULL is an empty one). When out of
 * memory NULL, and `block` is as it was. */
void *kc_block_realloc(void *block, size_t used, size_t size);

/* NULL is allowed. */
void kc_block_free(void *block);

/* How many bytes the block has; at least what was asked for. */
size_t kc_block_capacity(const void *block);

/* Give back to the system what is idle. */
void kc_block_trim(void);

typedef struct {
    size_t used_blocks, used_bytes;
    size_t idle_blocks, idle_bytes;
} kc_block_statistics;

/* Exact as long as no other thread is in here. */
kc_block_statistics kc_block_state(void);

#endif
