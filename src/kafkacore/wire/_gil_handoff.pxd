"""Let a busy thread hand the GIL to a waiting thread without the interpreter's switch interval."""

cdef void gil_handoff_request() noexcept nogil
cdef void gil_handoff_received() noexcept
cdef int gil_handoff_yield() except -1
