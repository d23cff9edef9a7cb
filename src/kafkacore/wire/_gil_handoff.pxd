"""Let a busy thread hand the GIL to a waiting thread before the interpreter's switch interval is over."""

cdef void gil_handoff_request() noexcept nogil
cdef void gil_handoff_received() noexcept
cdef int gil_handoff_yield() except -1
