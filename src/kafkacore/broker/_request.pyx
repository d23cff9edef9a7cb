"""One request on its way through the broker, and the connection that it came from.

Does not know: sockets, what any API does.
"""

cimport cython
from libc.stdint cimport int32_t


# Instead of an answer: close the connection.
HANG_UP = object()


class CloseConnectionError(Exception):
    """The only answer left is to hang up: an error on acks=0, or a request that cannot be answered."""


@cython.final
cdef class RequestContext:
    """Where requests come from: one connection, as the handlers see it.

    Parameters
    ----------
    connection_id:
        Unique as long as the broker runs.
    node_id:
        The node on whose listener it was accepted.
    host:
        The client's address.
    """

    cdef readonly str connection_id, host
    cdef readonly int node_id
    # What the client calls itself in ApiVersions (KIP-511).
    cdef public str software_name, software_version
    # What it called itself in its last request.
    cdef public str client_id

    def __init__(self, str connection_id not None, int node_id, str host=""):
        self.connection_id = connection_id
        self.node_id = node_id
        self.host = host
        self.software_name = self.software_version = ""


@cython.freelist(64)
@cython.final
cdef class Request:
    """A decoded request that waits for its answer.

    Parameters
    ----------
    context:
        Where it came from.
    api_key, version, correlation_id, client_id:
        Its header.
    message:
        Its body: the message object of that API.
    encode:
        ``(response, version, correlation_id)`` → pieces of the response's frame.
    on_response:
        Called once with the request and those pieces; ``None`` when there is nothing to send (acks=0),
        :data:`HANG_UP` when there is nothing more to say.
    """

    cdef readonly RequestContext context
    cdef readonly int api_key, version
    cdef readonly int32_t correlation_id
    cdef readonly str client_id
    cdef readonly object message
    # What it waits for in a purgatory, so that a closed connection can call it off.
    cdef public object operation
    # When its handling began, when it began to wait (0: it has not), and whom its answer is told.
    cdef public double began_ms, waits_since_ms
    cdef public object stats
    # Bytes of its frame; who counts it until that has been done, or nobody; the pause after its answer.
    cdef public Py_ssize_t size
    cdef public object quotas
    cdef public double throttle_ms
    # An interceptor may put its own in their place.
    cdef public object encode, on_response

    def __init__(
        self, RequestContext context not None, int api_key, int version, int32_t correlation_id,
        str client_id, message, encode, on_response,
    ):
        self.context = context
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.message = message
        self.encode = encode
        self.on_response = on_response

    @property
    def node_id(self):
        """The node that was asked."""
        return self.context.node_id

    def respond(self, response):
        """Answer. ``None``: there is nothing to send, go on with the connection's next request."""
        self.operation = None
        if self.quotas is not None:
            self.quotas.on_response(self, response)
        if self.stats is not None:
            self.stats.answered(self.began_ms, self.waits_since_ms, response)
        if response is not None:
            response = self.encode(response, self.version, self.correlation_id)
        self.on_response(self, response)
