/* Replace Python's allocators by allocators of which one call fails; see _failing_memory.pyx. */
#ifndef KAFKACORE_FAILING_MEMORY_IMPL_H
#define KAFKACORE_FAILING_MEMORY_IMPL_H

#include <stdint.h>

enum { KC_DOMAINS = 3 };

/* Make the calling thread's allocation `number`, counted from 1, fail. Replaces the allocators of the first
 * `domains` domains of Python (PyMemAllocatorDomain). Needs the GIL. */
void kc_fail_allocation(int64_t number, int domains);
/* Restore Python's allocators. Returns how many allocations were left until the failure; 0 or less if it
 * happened. */
int64_t kc_allocate_again(int domains);

#endif
