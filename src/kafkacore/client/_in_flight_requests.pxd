"""InFlightRequests for Cython callers."""


cdef class InFlightRequests:
    cdef readonly int total
    cdef readonly int unanswered_count
    cdef int _max_in_flight
    # Node id → deque of ClientRequest.
    cdef dict _by_node
    # Lower bound of the deadlines of all requests. Responses do not update the bound. It is computed again
    # only when this time is reached, which is rare.
    cdef double _no_expiry_before_ms
    # Number of nodes that have requests in flight and are below the limit.
    cdef int _open_count

    cpdef int add(self, request) except -1
    cdef object _removed(self, queue, request)
