/* Python's allocators, replaced by ones of which a chosen call fails; see _failing_memory.pyx. */
#ifndef KAFKACORE_FAILING_MEMORY_IMPL_H
#define KAFKACORE_FAILING_MEMORY_IMPL_H

#include <stdint.h>

enum { KC_DOMAINS = 3 };

/* Make the calling thread's allocation `number` from now on fail; the first is 1. The allocators of the first `domains` of
 * Python's domains (PyMemAllocatorDomain) are replaced. Needs the GIL. */
void kc_fail_allocation(int64_t number, int domains);
/* Put Python's allocators back. Returns how many allocations were left until the failure, 0 or less if it took place. */
int64_t kc_allocate_again(int domains);

#endif
