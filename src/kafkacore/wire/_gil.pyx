"""Making way for a thread that waits for the interpreter's lock: who waits says so, who is busy looks.

A thread that wants the lock of a busy one has it after 5 ms (``sys.getswitchinterval``), in which a loop of
``send()`` appends megabytes; the producer's network thread wants it for some microseconds, hundreds of times
a second. So it says that it waits, and ``send()`` lets it go first. Does not know: what either does.
"""

cdef extern from "gil_impl.h" nogil:
    int kc_gil_watch_forks()
    void kc_gil_wanted()
    void kc_gil_had()
    int kc_gil_is_wanted()
    void kc_gil_wait_for_taker()


if kc_gil_watch_forks() < 0:
    raise MemoryError


cdef void gil_wanted() noexcept nogil:
    """The last word of a block without the lock: the thread is about to wait for it."""
    kc_gil_wanted()


cdef void gil_had() noexcept:
    """The first word after such a block."""
    kc_gil_had()


cdef int make_way() except -1:
    """Let a thread that waits go first; called where any other thread may run."""
    if kc_gil_is_wanted():
        with nogil:
            kc_gil_wait_for_taker()
    return 0


def waiting():
    """Whether a thread has said that it waits."""
    return bool(kc_gil_is_wanted())
