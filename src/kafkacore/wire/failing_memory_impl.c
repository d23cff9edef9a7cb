#include "kafkacore/wire/failing_memory_impl.h"

#include <Python.h>

static PyMemAllocatorEx kc_real[KC_DOMAINS];
static __thread int64_t kc_until_failure; /* 0 in a thread that does not count */

static int kc_fails(void) { return kc_until_failure > 0 && --kc_until_failure == 0; }

/* Each domain has its own functions and keeps the context of the allocator it replaces. A thread without the
 * GIL may read the table while it changes: the function and the context still match. */
#define KC_FAILING(domain)                                                        \
    static void *kc_malloc_##domain(void *context, size_t size) {                 \
        return kc_fails() ? NULL : kc_real[domain].malloc(context, size);         \
    }                                                                             \
    static void *kc_calloc_##domain(void *context, size_t count, size_t size) {   \
        return kc_fails() ? NULL : kc_real[domain].calloc(context, count, size);  \
    }                                                                             \
    static void *kc_realloc_##domain(void *context, void *block, size_t size) {   \
        return kc_fails() ? NULL : kc_real[domain].realloc(context, block, size); \
    }
KC_FAILING(0)
KC_FAILING(1)
KC_FAILING(2)

void kc_fail_allocation(int64_t number, int domains) {
    static const PyMemAllocatorEx failing[KC_DOMAINS] = {
        {NULL, kc_malloc_0, kc_calloc_0, kc_realloc_0, NULL},
        {NULL, kc_malloc_1, kc_calloc_1, kc_realloc_1, NULL},
        {NULL, kc_malloc_2, kc_calloc_2, kc_realloc_2, NULL},
    };
    for (int domain = 0; domain < domains; domain++) {
        PyMemAllocatorEx replaced = failing[domain];
        PyMem_GetAllocator((PyMemAllocatorDomain)domain, &kc_real[domain]);
        replaced.ctx = kc_real[domain].ctx;
        replaced.free = kc_real[domain].free;
        PyMem_SetAllocator((PyMemAllocatorDomain)domain, &replaced);
    }
    kc_until_failure = number;
}

int64_t kc_allocate_again(int domains) {
    int64_t left = kc_until_failure;
    kc_until_failure = 0;
    for (int domain = 0; domain < domains; domain++)
        PyMem_SetAllocator((PyMemAllocatorDomain)domain, &kc_real[domain]);
    return left;
}
