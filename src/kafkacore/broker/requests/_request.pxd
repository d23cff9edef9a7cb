"""Request and RequestContext for Cython callers."""

from libc.stdint cimport int32_t

cdef class RequestContext:
    cdef readonly str connection_id
    cdef readonly str host
    cdef readonly str listener_name
    cdef readonly str security_protocol
    cdef readonly int node_id
    # Whom it has shown itself to be: a KafkaPrincipal.
    cdef public object principal
    # What the client calls itself in ApiVersions (KIP-511).
    cdef public str software_name
    cdef public str software_version
    # What it called itself in its last request.
    cdef public str client_id

cdef class Request:
    cdef readonly RequestContext context
    cdef readonly int api_key
    cdef readonly int version
    cdef readonly int32_t correlation_id
    cdef readonly str client_id
    cdef readonly object message
    # What it waits for in a purgatory, so that a closed connection can call it off.
    cdef public object operation
    # When its handling began, when it began to wait (0: it has not), and whom its answer is told.
    cdef public double began_ms
    cdef public double waits_since_ms
    cdef public object stats
    # Bytes of its frame; who counts it until that has been done, or nobody; the pause after its answer.
    cdef public Py_ssize_t size
    cdef public object quotas
    cdef public double throttle_ms
    # An interceptor may put its own in their place.
    cdef public object encode
    cdef public object on_response
