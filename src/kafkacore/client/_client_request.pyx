"""A request of a client to one node (Kafka's ``ClientRequest``)."""

cimport cython

from kafkacore.protocol import ApiKey, request_class_of


@cython.final
cdef class ClientRequest:
    """A request to one node.

    Parameters
    ----------
    node_id
        The node.
    request
        The message, or a builder of the message.
    correlation_id
        Id that the response repeats.
    created_ms
        Time when the request was created, in milliseconds.
    request_timeout_ms
        Milliseconds from sending the request until it times out.
    expect_response
        Whether the node responds.
    callback
        Function that ``NetworkClient.poll`` calls with the :class:`ClientResponse`.
    max_version
        Highest version that may be used; ``None`` for the highest version of the message.
    is_internal
        Whether the network client itself sent the request and handles its response.

    Attributes
    ----------
    request_class
        Class of the message.
    version
        Version of the message; -1 until the request is sent.
    send
        The frame; ``None`` until the request is sent.
    sent_ms
        Time when the request was sent, in milliseconds.
    usual_response
        Object that reads the usual response without a message object, or ``None``. Its method ``read`` takes
        the payload and returns whether that is the usual response. In this case its method ``on_complete`` is
        called instead of ``callback``.
    """

    def __init__(self, int node_id, request, correlation_id, double created_ms, *, double request_timeout_ms,
                 bint expect_response=True, callback=None, max_version=None, bint is_internal=False):
        self.node_id = node_id
        self.request = request
        self.request_class = request_class_of(request)
        self.correlation_id = correlation_id
        self.created_ms = created_ms
        self.request_timeout_ms = request_timeout_ms
        self.expect_response = expect_response
        self.callback = callback
        self.max_version = max_version
        self.is_internal = is_internal
        self.version = -1

    cdef ClientRequest repeated(self, object correlation_id, double sent_ms, object send):
        """Return a request with another frame, which is sent on the same connection.

        It has the message of this request, but the frame may have other contents.
        """
        cdef ClientRequest request = ClientRequest.__new__(ClientRequest)
        request.node_id = self.node_id
        request.request = self.request
        request.request_class = self.request_class
        request.correlation_id = correlation_id
        request.created_ms = request.sent_ms = sent_ms
        request.request_timeout_ms = self.request_timeout_ms
        request.expect_response = self.expect_response
        request.callback = self.callback
        request.max_version = self.max_version
        request.is_internal = self.is_internal
        request.version = self.version
        request.send = send
        return request

    @property
    def api_key(self):
        return ApiKey(self.request_class.API_KEY)

    @property
    def deadline_ms(self):
        """Time at which the request times out, in milliseconds. It is valid after the request was sent."""
        return self.sent_ms + self.request_timeout_ms

    def __repr__(self):
        return (
            f"ClientRequest({self.request_class.NAME} to node {self.node_id}, "
            f"correlation id {self.correlation_id})"
        )
