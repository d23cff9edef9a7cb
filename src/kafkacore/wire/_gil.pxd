"""Making way for a thread that waits for the interpreter's lock, for Cython callers; see the module."""

cdef void gil_wanted() noexcept nogil
cdef void gil_had() noexcept
cdef int make_way() except -1
