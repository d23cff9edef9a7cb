"""Handle the requests of each connection one after the other, and send the responses.

The behaviour follows Kafka's ``Processor``.
"""

cimport cython

from kafkacore.broker.requests._request cimport Request, RequestContext

from collections import deque

from kafkacore.broker.requests._request import HANG_UP, CloseConnectionError
from kafkacore.errors import KafkaProtocolError
from kafkacore.logs import logger_of
from kafkacore.network import NetworkSend

logger = logger_of("kafkacore.broker.server.socket_server")


@cython.final
cdef class Connection:
    """A client connection: the request in progress, and the requests read ahead.

    Attributes
    ----------
    request:
        The request that waits in a purgatory, or ``None``.
    is_disconnected:
        Whether the peer has disconnected. Its earlier requests are still handled, but not answered.
    pause:
        The timer task that ends the throttling by a quota, or ``None`` if the connection is not throttled.
    is_draining:
        Whether the peer has disconnected while another thread works on its request. The connection is removed
        when all its requests are handled.
    is_known:
        Whether the context has the client's principal. If not, the principal is determined at the next frame.
    authenticator:
        The SASL authenticator of the connection, or ``None`` without SASL. With SASL, each frame is checked
        before it is handled, because a frame may start a re-authentication or arrive after the session has
        expired.
    """

    cdef readonly RequestContext context
    cdef readonly str id
    cdef readonly object pending
    cdef public Request request
    cdef public bint is_disconnected
    cdef public bint is_draining
    cdef public bint is_known
    cdef public object authenticator
    cdef public object pause
    # Whether a request is being handled or waits, or its response is not yet written.
    cdef bint is_busy
    cdef bint is_muted
    cdef bint is_pumping
    cdef RequestPump pump

    def __init__(self, RequestContext context not None, RequestPump pump not None, bint is_known=True):
        self.context = context
        self.is_known = is_known
        self.id = context.connection_id
        self.pending = deque()
        self.pump = pump

    def __call__(self, Request request not None, pieces):
        """Send the response to a request of this connection."""
        if request.throttle_ms > 0:
            self.pump.owner.throttle(self, request.throttle_ms)
        self.pump.on_response(self, pieces)


cdef class RequestPump:
    """Handles the requests of a :class:`~kafkacore.broker.server.socket_server.SocketServer`.

    Parameters
    ----------
    connections:
        The connections by ID; the owner adds and removes them.
    selector:
        The selector of the connections' sockets.
    apis:
        Object that passes the requests to their handlers.
    owner:
        The server. It identifies clients, checks the frames of authenticated clients (``is_held_back``),
        throttles, closes and removes connections, and is notified of failed requests.
    """

    cdef readonly dict connections
    cdef object selector
    cdef object apis
    cdef readonly object owner

    def __init__(self, dict connections not None, selector, apis, owner):
        self.connections = connections
        self.selector = selector
        self.apis = apis
        self.owner = owner

    def on_frames(self):
        """Handle the frames received by the last poll, and continue connections whose sends are complete."""
        cdef Connection connection
        for receive in self.selector.completed_receives:
            connection = self.connections.get(receive.source_id)
            if connection is not None and (connection.is_known or self.owner.identify(connection)):
                connection.pending.append(receive.payload)
                self.pump(connection)
        for send in self.selector.completed_sends:
            connection = self.connections.get(send.destination_id)
            if connection is not None:
                connection.is_busy = False
                self.pump(connection)

    cpdef int pump(self, Connection connection) except -1:
        """Handle pending requests one after the other until a request has to wait."""
        if connection.is_pumping:
            return 0
        connection.is_pumping = True
        while (
            connection.pending
            and not connection.is_busy
            and connection.pause is None
            and connection.id in self.connections
        ):
            connection.is_busy = True
            self.handle(connection, connection.pending.popleft())
        connection.is_pumping = False
        return self.mute_if_ahead(connection)

    cdef int mute_if_ahead(self, Connection connection) except -1:
        cdef bint is_ahead = bool(connection.pending)
        cdef bint is_gone = connection.is_disconnected or connection.id not in self.connections
        if is_gone or connection.is_muted == is_ahead:
            return 0
        connection.is_muted = is_ahead
        if is_ahead:
            self.selector.mute(connection.id)
        else:
            self.selector.unmute(connection.id)
        return 0

    cdef int handle(self, Connection connection, payload) except -1:
        cdef Request request
        if connection.authenticator is not None and self.owner.is_held_back(connection, payload):
            connection.is_busy = False
            return 0
        try:
            request = self.apis.handle(connection.context, payload, connection)
            if request.operation is not None and not request.operation.is_completed:
                connection.request = request
                request.operation.on_failure = lambda error: self.owner.on_failure(connection, error)
        except (KafkaProtocolError, CloseConnectionError) as error:
            logger.warning("closing %s: %s", connection.id, ascii(str(error))[1:-1])
            self.owner.close_connection(connection)
        except Exception as error:
            # The error is logged with its traceback; the broker continues to serve other requests.
            self.owner.on_failure(connection, error)
        return 0

    cdef int on_response(self, Connection connection, pieces) except -1:
        connection.request = None
        if connection.id not in self.connections:
            return 0
        if pieces is HANG_UP:
            self.owner.close_connection(connection)
            return 0
        # Usually the socket accepts the whole response, and the next request is handled in the same poll.
        if (
            pieces is None
            or connection.is_disconnected
            or self.selector.send_now(NetworkSend(connection.id, pieces))
        ):
            connection.is_busy = False
            self.pump(connection)
            if connection.is_draining and not connection.is_busy and not connection.is_pumping:
                self.owner.forget(connection)
        return 0
