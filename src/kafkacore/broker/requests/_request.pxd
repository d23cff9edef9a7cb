"""Cython declarations of ``Request`` and ``RequestContext``."""

from libc.stdint cimport int32_t

cdef class RequestContext:
    cdef readonly str connection_id
    cdef readonly str host
    cdef readonly str client_host
    cdef readonly str listener_name
    cdef readonly str security_protocol
    cdef readonly int node_id
    # The authenticated KafkaPrincipal.
    cdef public object principal
    # Name and version of the client software, from ApiVersions (KIP-511).
    cdef public str software_name
    cdef public str software_version
    # Client id of the last request.
    cdef public str client_id

cdef class Request:
    cdef readonly RequestContext context
    cdef readonly int api_key
    cdef readonly int version
    cdef readonly int32_t correlation_id
    cdef readonly str client_id
    cdef readonly object message
    # The delayed operation in which the request waits. A closed connection cancels the operation.
    cdef public object operation
    # Start time of the handling, start time of the wait (0 if the request did not wait), and statistics of
    # the API.
    cdef public double began_ms
    cdef public double waits_since_ms
    cdef public object stats
    # Size of the request's frame in bytes, quotas that have not counted the request yet (or None), and
    # throttle time after the response.
    cdef public Py_ssize_t size
    cdef public object quotas
    cdef public double throttle_ms
    # Monotonic time until which a quota of partition changes throttles the client, or 0 if the client is not
    # throttled.
    cdef public double throttled_until_ms
    # An interceptor may replace these functions.
    cdef public object encode
    cdef public object on_response
