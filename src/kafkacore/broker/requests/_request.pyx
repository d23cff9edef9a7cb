"""A request that the broker handles, and the connection that it came from."""

cimport cython
from libc.stdint cimport int32_t

from kafkacore.security.principal import ANONYMOUS

# Value that is passed to on_response instead of a response to close the connection.
HANG_UP = object()


class AnsweredLater:
    """The type of :data:`ANSWERED_LATER`."""


# Returned by a handler that calls ``request.respond`` later.
ANSWERED_LATER = AnsweredLater()


class CloseConnectionError(Exception):
    """The connection must be closed: a Produce with acks=0 has failed, or a request cannot be answered."""


@cython.final
cdef class RequestContext:
    """The properties of a request's connection that the handlers use.

    Parameters
    ----------
    connection_id:
        Id that is unique for the lifetime of the broker.
    node_id:
        Node whose listener accepted the connection.
    host:
        Address of the client.
    listener_name, security_protocol:
        Name and security protocol (such as ``SASL_SSL``) of the listener.
    principal:
        Principal of the client.

    Attributes
    ----------
    client_host:
        Address of the client with a leading slash, as in Kafka.
    principal:
        Principal of the client; :data:`ANONYMOUS` if its listener does not authenticate clients. It is set
        before the first request.
    """

    def __init__(
        self, str connection_id not None, int node_id, str host="", str listener_name="PLAINTEXT",
        str security_protocol="PLAINTEXT", principal=ANONYMOUS,
    ):
        self.connection_id = connection_id
        self.node_id = node_id
        self.host = host
        self.client_host = "/" + host
        self.listener_name = listener_name
        self.security_protocol = security_protocol
        self.principal = principal
        self.software_name = self.software_version = ""


@cython.freelist(64)
@cython.final
cdef class Request:
    """A decoded request.

    Parameters
    ----------
    context:
        Connection from which the request was received.
    api_key, version, correlation_id, client_id:
        Fields of the request header.
    message:
        Body of the request: a message object of the API.
    encode:
        Function that encodes a response. Its arguments are the response, the version and the correlation id;
        it returns the frame as a list of buffers.
    on_response:
        Called once with the request and the frame of the response, a list of buffers. Instead of a frame,
        ``None`` means that nothing is sent (acks=0), and :data:`HANG_UP` means that the connection must be
        closed.
    """

    @classmethod
    def __class_getitem__(cls, message_class):
        """Return the class itself, so that annotations may use ``Request[FetchRequest]``."""
        return cls

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
        """Node that received the request."""
        return self.context.node_id

    def respond(self, response):
        """Send the response; ``None`` sends nothing and continues with the connection's next request.

        If the response cannot be encoded, the exception is raised and the connection is closed. If the
        connection stayed open, the client would wait for a response that never comes.
        """
        self.operation = None
        try:
            if self.quotas is not None:
                self.quotas.on_response(self, response)
            if self.stats is not None:
                self.stats.answered(self.began_ms, self.waits_since_ms, response)
            if response is not None:
                response = self.encode(response, self.version, self.correlation_id)
            self.on_response(self, response)
        except Exception:
            self.on_response(self, HANG_UP)
            raise
