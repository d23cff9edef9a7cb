"""IdleExpiry for Cython callers."""

cdef class IdleExpiry:
    cdef readonly double max_idle_ms
    # Ids in the order of their last activity, with its time.
    cdef dict last_active

    cdef int touch(self, str connection_id, double now_ms) except -1
    cdef int forget(self, str connection_id) except -1
    cdef str oldest_expired(self, double now_ms)
    cdef double idle_ms(self, str connection_id, double now_ms) except *
