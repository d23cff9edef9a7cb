"""Make one memory allocation of the calling thread fail, for tests of what follows.

Replaces Python's allocators while it is in use, so it costs nothing otherwise.
"""

from libc.stdint cimport int64_t

cdef extern from "failing_memory_impl.h":
    int KC_DOMAINS
    void kc_fail_allocation(int64_t number, int domains) noexcept
    int64_t kc_allocate_again(int domains) noexcept


cdef bint _in_use = False


def call_with_failure(function, int64_t number, *, bint objects=False):
    """Call ``function`` while its allocation number ``number`` fails; the first is 1.

    Parameters
    ----------
    function:
        Called without arguments. Its exceptions propagate. Allocations of other threads are not counted.
    objects:
        Whether Python's objects are counted too. Otherwise only the memory of compiled modules is, and the
        little that Python takes in the same way.

    Returns
    -------
    bool
        Whether that allocation took place, and so failed, although ``function`` has returned.

    Raises
    ------
    RuntimeError
        Another call is in progress. It would take the failing allocators for the real ones.
    """
    global _in_use
    cdef int domains = KC_DOMAINS if objects else 1
    cdef int64_t left
    if number < 1:
        raise ValueError(f"allocations are counted from 1, not from {number}")
    if _in_use:
        raise RuntimeError("call_with_failure is in use by another call; wait until it has returned")
    _in_use = True
    kc_fail_allocation(number, domains)
    try:
        function()
    finally:
        left = kc_allocate_again(domains)
        _in_use = False
    return left <= 0
