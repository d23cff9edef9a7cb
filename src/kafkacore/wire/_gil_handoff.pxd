"""Making way for a thread that waits for the interpreter's lock, for Cython callers; see the module."""

cdef void gil_handoff_request() noexcept nogil
cdef void gil_handoff_received() noexcept
cdef int gil_handoff_yield() except -1
