"""Make one memory allocation of the process fail, for tests of what follows.

Replaces Python's allocators while it is in use, so it costs nothing otherwise.
"""

from libc.stdint cimport int64_t

cdef extern from *:
    """
    #include <stdint.h>

    enum { KC_DOMAINS = 3 };
    static PyMemAllocatorEx kc_real[KC_DOMAINS];
    static int64_t kc_until_failure;

    static int kc_fails(void) { return __atomic_sub_fetch(&kc_until_failure, 1, __ATOMIC_RELAXED) == 0; }

    static void *kc_failing_malloc(void *real, size_t size) {
        PyMemAllocatorEx *to = real;
        return kc_fails() ? NULL : to->malloc(to->ctx, size);
    }

    static void *kc_failing_calloc(void *real, size_t count, size_t size) {
        PyMemAllocatorEx *to = real;
        return kc_fails() ? NULL : to->calloc(to->ctx, count, size);
    }

    static void *kc_failing_realloc(void *real, void *block, size_t size) {
        PyMemAllocatorEx *to = real;
        return kc_fails() ? NULL : to->realloc(to->ctx, block, size);
    }

    static void kc_failing_free(void *real, void *block) {
        PyMemAllocatorEx *to = real;
        to->free(to->ctx, block);
    }

    static void kc_fail_allocation(int64_t number, int domains) {
        __atomic_store_n(&kc_until_failure, number, __ATOMIC_RELAXED);
        for (int domain = 0; domain < domains; domain++) {
            PyMemAllocatorEx failing = {&kc_real[domain], kc_failing_malloc, kc_failing_calloc,
                                        kc_failing_realloc, kc_failing_free};
            PyMem_GetAllocator((PyMemAllocatorDomain)domain, &kc_real[domain]);
            PyMem_SetAllocator((PyMemAllocatorDomain)domain, &failing);
        }
    }

    static int64_t kc_allocate_again(int domains) {
        for (int domain = 0; domain < domains; domain++)
            PyMem_SetAllocator((PyMemAllocatorDomain)domain, &kc_real[domain]);
        return __atomic_load_n(&kc_until_failure, __ATOMIC_RELAXED);
    }
    """
    int KC_DOMAINS
    void kc_fail_allocation(int64_t number, int domains) noexcept
    int64_t kc_allocate_again(int domains) noexcept


def call_with_failure(function, int64_t number, *, bint objects=False):
    """Call ``function`` while its allocation number ``number`` fails; the first is 1.

    Parameters
    ----------
    function:
        Called without arguments; what it raises is raised from here.
    objects:
        Whether Python's objects are counted too. Otherwise only the memory of compiled modules is, and the
        little that Python takes in the same way.

    Returns
    -------
    bool
        Whether that allocation took place, and so failed, although ``function`` has returned.
    """
    cdef int domains = KC_DOMAINS if objects else 1
    cdef int64_t left
    if number < 1:
        raise ValueError(f"allocations are counted from 1, not from {number}")
    kc_fail_allocation(number, domains)
    try:
        function()
    finally:
        left = kc_allocate_again(domains)
    return left <= 0
