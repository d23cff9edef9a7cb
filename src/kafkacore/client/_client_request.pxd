"""ClientRequest for Cython callers."""


cdef class ClientRequest:
    cdef public int node_id
    cdef public object request
    cdef public object request_class
    cdef public object correlation_id
    cdef public double created_ms
    cdef public double request_timeout_ms
    cdef public bint expect_response
    cdef public bint is_internal
    cdef public object callback
    cdef public object max_version
    cdef public int version
    cdef public double sent_ms
    cdef public object send
    cdef public object usual_response

    cdef ClientRequest repeated(self, object correlation_id, double sent_ms, object send)
