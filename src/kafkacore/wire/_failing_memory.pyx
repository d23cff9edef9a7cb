"""Make one memory allocation of the calling thread fail, to test how the code handles it.

Python's allocators are replaced only during the call, so all other code runs at full speed.
"""

from libc.stdint cimport int64_t

cdef extern from "failing_memory_impl.h":
    int KC_DOMAINS
    void kc_fail_allocation(int64_t number, int domains) noexcept
    int64_t kc_allocate_again(int domains) noexcept


cdef bint _in_use = False


def call_with_failure(function, int64_t number, *, bint objects=False):
    """Call ``function`` and make one of its allocations fail. ``number`` 1 is the first allocation.

    Parameters
    ----------
    function:
        Called without arguments. Its exceptions propagate. Allocations of other threads are not counted.
    objects:
        Whether to count the allocations of Python objects too. Otherwise only the raw memory of compiled
        modules is counted, and the little raw memory that Python itself allocates.

    Returns
    -------
    bool
        Whether allocation ``number`` was reached. True means that the allocation failed but ``function``
        returned without an exception.

    Raises
    ------
    RuntimeError
        Another call is in progress. A second call would save the failing allocators as the real ones.
    """
    global _in_use
    cdef int domains = KC_DOMAINS if objects else 1
    cdef int64_t left
    if number < 1:
        raise ValueError(f"the allocation number must be at least 1, not {number}")
    if _in_use:
        raise RuntimeError("another call_with_failure is in progress; wait until it has returned")
    _in_use = True
    kc_fail_allocation(number, domains)
    try:
        function()
    finally:
        left = kc_allocate_again(domains)
        _in_use = False
    return left <= 0
