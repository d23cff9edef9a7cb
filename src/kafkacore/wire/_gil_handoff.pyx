"""Making way for a thread that waits for the interpreter's lock: who waits says so, who is busy looks.

A thread that wants the lock of a busy one has it after 5 ms (``sys.getswitchinterval``), in which a loop of
``send()`` appends megabytes; the producer's network thread wants it for some microseconds, hundreds of times
a second. So it says that it waits, and ``send()`` lets it go first. Does not know: what either does.
"""

cdef extern from "gil_handoff_impl.h" nogil:
    int kc_gil_handoff_watch_forks()
    void kc_gil_handoff_request()
    void kc_gil_handoff_received()
    int kc_gil_handoff_is_requested()
    void kc_gil_handoff_wait()


if kc_gil_handoff_watch_forks() < 0:
    raise MemoryError


cdef void gil_handoff_request() noexcept nogil:
    """The last word of a block without the lock: the thread is about to wait for it."""
    kc_gil_handoff_request()


cdef void gil_handoff_received() noexcept:
    """The first word after such a block."""
    kc_gil_handoff_received()


cdef int gil_handoff_yield() except -1:
    """Let a thread that waits go first; called where any other thread may run."""
    if kc_gil_handoff_is_requested():
        with nogil:
            kc_gil_handoff_wait()
    return 0


def waiting():
    """Whether a thread has said that it waits."""
    return bool(kc_gil_handoff_is_requested())
