#include "blocks_impl.h"

#include "kafkacore/wire/memory.h"

#include <stdint.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

enum {
    ALIGNMENT = 64,
    /* The allocator itself keeps smaller blocks for reuse. */
    SMALLEST_KEPT = 32 * 1024,
    SMALLEST_KEPT_LOG2 = 15,
    /* Four size classes per power of two: a block is at most a quarter larger than requested, and that part
     * stays untouched. */
    STEPS = 4,
    CLASS_COUNT = 10 * STEPS + 1,
    NOT_KEPT = -1,
    HUGE_PAGE = 2 * 1024 * 1024,
    /* For smaller blocks, rounding to whole huge pages would leave out a large part. */
    SMALLEST_HUGE = 8 * HUGE_PAGE,
};
/* Maximum bytes of idle blocks in the process. */
static const size_t MAX_IDLE_BYTES = (size_t)32 << 20;

/* Precedes each block. It is as long as the alignment, so that the block is aligned too. */
typedef struct header {
    size_t capacity;
    struct header *next;
    void *raw; /* what the allocator returned, up to ALIGNMENT - 1 bytes before the header */
    int size_class;
    char padding[ALIGNMENT - 3 * sizeof(void *) - sizeof(int)];
} header;

_Static_assert(sizeof(header) == ALIGNMENT, "a block begins on its alignment");

static header *idle[CLASS_COUNT];
static char taken;
/* The thread that has the lock changes the first two, and kc_block_state reads all four without the lock. */
static size_t idle_blocks, idle_bytes;
static size_t used_blocks, used_bytes;

/* No thread waits for the lock. A thread that finds it taken, for example a fork in which it stays taken
 * forever, uses the allocator instead. */
static int try_lock(void) { return !__atomic_test_and_set(&taken, __ATOMIC_ACQUIRE); }

static void unlock(void) { __atomic_clear(&taken, __ATOMIC_RELEASE); }

/* Only the owner of the lock stores these counters. Therefore it needs no atomic addition, which is slower. */
static void set_idle(size_t blocks, size_t bytes) {
    __atomic_store_n(&idle_blocks, blocks, __ATOMIC_RELAXED);
    __atomic_store_n(&idle_bytes, bytes, __ATOMIC_RELAXED);
}

static size_t size_of_class(int size_class) {
    size_t base = (size_t)1 << (SMALLEST_KEPT_LOG2 + size_class / STEPS);
    return base + base / STEPS * (size_class % STEPS);
}

/* Return the smallest class that holds `size`, or NOT_KEPT if the size is too small or too large. */
static int class_of(size_t size) {
#ifdef KAFKACORE_NO_BLOCK_REUSE
    (void)size;
    return NOT_KEPT;
#else
    if (size < SMALLEST_KEPT || size > MAX_IDLE_BYTES) return NOT_KEPT;
    int log2 = 8 * (int)sizeof(unsigned long) - 1 - __builtin_clzl((unsigned long)size);
    size_t step = ((size_t)1 << log2) / STEPS;
    int above = (int)((size - ((size_t)1 << log2) + step - 1) / step);
    return (log2 - SMALLEST_KEPT_LOG2) * STEPS + above;
#endif
}

/* Blocks that are too large to be kept are allocated again and again. With huge pages the kernel has one page
 * fault per 2 MiB instead of one per 4 KiB. */
static void ask_for_huge_pages(void *raw, size_t size) {
#ifdef MADV_HUGEPAGE
    uintptr_t begin = ((uintptr_t)raw + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1);
    uintptr_t end = ((uintptr_t)raw + size) & ~(uintptr_t)(HUGE_PAGE - 1);
    if (end > begin) madvise((void *)begin, end - begin, MADV_HUGEPAGE);
#else
    (void)raw;
    (void)size;
#endif
}

static header *take_idle(int size_class) {
    header *found;
    if (!try_lock()) return NULL;
    found = idle[size_class];
    if (found != NULL) {
        idle[size_class] = found->next;
        set_idle(idle_blocks - 1, idle_bytes - found->capacity);
    }
    unlock();
    return found;
}

void *kc_block_alloc(size_t size) {
    int size_class = class_of(size);
    header *block = NULL;
    void *raw = NULL;
    if (size > SIZE_MAX / 2) return NULL;
    if (size_class != NOT_KEPT) {
        size = size_of_class(size_class);
        block = take_idle(size_class);
    }
    if (block == NULL) {
        raw = kc_malloc(ALIGNMENT - 1 + sizeof(header) + size);
        if (raw == NULL) return NULL;
        if (size >= SMALLEST_HUGE) ask_for_huge_pages(raw, sizeof(header) + size);
        block = (header *)(((uintptr_t)raw + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1));
        block->raw = raw;
        block->capacity = size;
        block->size_class = size_class;
    }
    __atomic_fetch_add(&used_blocks, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&used_bytes, block->capacity, __ATOMIC_RELAXED);
    return block + 1;
}

void kc_block_free(void *pointer) {
    header *block;
    if (pointer == NULL) return;
    block = (header *)pointer - 1;
    __atomic_fetch_sub(&used_blocks, 1, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&used_bytes, block->capacity, __ATOMIC_RELAXED);
    if (block->size_class != NOT_KEPT && try_lock()) {
        int keep = block->capacity <= MAX_IDLE_BYTES - idle_bytes;
        if (keep) {
            /* Last in, first out: the most recent block is still in the processor's cache. */
            block->next = idle[block->size_class];
            idle[block->size_class] = block;
            set_idle(idle_blocks + 1, idle_bytes + block->capacity);
        }
        unlock();
        if (keep) return;
    }
    kc_free(block->raw);
}

void *kc_block_realloc(void *block, size_t used, size_t size) {
    void *grown;
    if (block != NULL && kc_block_capacity(block) >= size) return block;
    grown = kc_block_alloc(size);
    if (grown == NULL) return NULL;
    if (used > 0) memcpy(grown, block, used);
    kc_block_free(block);
    return grown;
}

size_t kc_block_capacity(const void *block) { return ((const header *)block - 1)->capacity; }

void kc_block_trim(void) {
    header *all = NULL;
    if (!try_lock()) return;
    for (int size_class = 0; size_class < CLASS_COUNT; size_class++) {
        while (idle[size_class] != NULL) {
            header *block = idle[size_class];
            idle[size_class] = block->next;
            block->next = all;
            all = block;
        }
    }
    set_idle(0, 0);
    unlock();
    while (all != NULL) {
        header *block = all;
        all = block->next;
        kc_free(block->raw);
    }
}

kc_block_statistics kc_block_state(void) {
    kc_block_statistics state = {
        __atomic_load_n(&used_blocks, __ATOMIC_RELAXED), __atomic_load_n(&used_bytes, __ATOMIC_RELAXED),
        __atomic_load_n(&idle_blocks, __ATOMIC_RELAXED), __atomic_load_n(&idle_bytes, __ATOMIC_RELAXED),
    };
    return state;
}
