"""One request on its way through the broker, and the connection that it came from.

Does not know: sockets, what any API does.
"""

cimport cython
from libc.stdint cimport int32_t

from kafkacore.security.principal import ANONYMOUS

# Instead of an answer: close the connection.
HANG_UP = object()


class AnsweredLater:
    """The type of :data:`ANSWERED_LATER`."""


# Returned by a handler that answers later, by ``request.respond``.
ANSWERED_LATER = AnsweredLater()


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
    listener_name, security_protocol:
        The listener that it came by, and what is spoken there (``SASL_SSL``).

    Attributes
    ----------
    principal:
        Who the client is: :data:`ANONYMOUS` unless its listener asks. It is known before its first request.
    """

    def __init__(
        self, str connection_id not None, int node_id, str host="", str listener_name="PLAINTEXT",
        str security_protocol="PLAINTEXT", principal=ANONYMOUS,
    ):
        self.connection_id = connection_id
        self.node_id = node_id
        self.host = host
        self.listener_name = listener_name
        self.security_protocol = security_protocol
        self.principal = principal
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

    @classmethod
    def __class_getitem__(cls, message_class):
        """``Request[FetchRequest]``, for annotations alone."""
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
        """The node that was asked."""
        return self.context.node_id

    def respond(self, response):
        """Answer. ``None``: there is nothing to send, go on with the connection's next request.

        An answer that cannot be written down raises, and its client is hung up on: whoever answers late
        knows of no connection, and the client would wait for nothing.
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
