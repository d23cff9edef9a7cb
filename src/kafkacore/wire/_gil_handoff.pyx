"""Let a busy thread hand the GIL to a waiting thread before the interpreter's switch interval is over.

By default, a waiting thread gets the GIL from a busy thread after 5 ms (``sys.getswitchinterval``). In that
time a loop of ``send()`` appends megabytes. The producer's network thread needs the GIL for some
microseconds, hundreds of times a second. So the network thread announces that it is waiting, and ``send()``
yields to the network thread.
"""

cdef extern from "gil_handoff_impl.h" nogil:
    int kc_gil_handoff_watch_forks()
    void kc_gil_handoff_request()
    void kc_gil_handoff_received()
    int kc_gil_handoff_is_requested()
    int kc_gil_handoff_is_due()
    void kc_gil_handoff_wait()


if kc_gil_handoff_watch_forks() < 0:
    raise MemoryError


cdef void gil_handoff_request() noexcept nogil:
    """Announce that the thread is about to wait for the GIL. Call this at the end of a ``nogil`` block."""
    kc_gil_handoff_request()


cdef void gil_handoff_received() noexcept:
    """Withdraw the announcement of the thread, because the thread has the GIL now.

    Call this as the first statement after the ``nogil`` block.
    """
    kc_gil_handoff_received()


cdef int gil_handoff_yield() except -1:
    """Yield to a waiting thread that many calls have found waiting, so in a loop of calls.

    A thread that sends only a few records releases the GIL soon in any case. If it yielded, a third thread
    that computes could get the GIL and keep it for the whole switch interval.

    Call this only where any other thread may run.
    """
    if kc_gil_handoff_is_due():
        with nogil:
            kc_gil_handoff_wait()
    return 0


def waiting():
    """Return whether a thread has announced that it is waiting."""
    return bool(kc_gil_handoff_is_requested())
