"""BufferPool for Cython callers."""


cdef class BufferPool:
    cdef readonly Py_ssize_t total_bytes
    # Bytes that are not allocated.
    cdef readonly Py_ssize_t available_bytes
    # Total milliseconds that threads have waited for memory.
    cdef readonly double waited_ms
    cdef object _clock
    cdef object _on_wait
    cdef object _lock
    cdef list _waiters
    cdef bint _closed

    cdef int take(self, Py_ssize_t size, double max_block_ms) except -1
    cdef bint take_if_free(self, Py_ssize_t size) noexcept
    cdef int give_back(self, Py_ssize_t size) except -1
    cdef int _await(self, Py_ssize_t size, double max_block_ms) except -1
    cdef int _serve(self) except -1
    cdef int _check_open(self) except -1
