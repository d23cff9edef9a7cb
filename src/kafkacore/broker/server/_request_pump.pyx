"""The turns of the network thread: handle the requests of each connection in order, and send the responses.

The behaviour follows Kafka's ``Processor``.
"""

cimport cython

from kafkacore.broker.purgatory._timer cimport Timer
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
    replica_manager:
        Replica manager whose delayed operations are completed after the requests of a turn.
    timer:
        Timer that is advanced at the end of each turn.
    clock:
        Source of the monotonic time.
    owner:
        The server. It accepts connections, identifies clients, checks the frames of authenticated clients
        (``is_held_back``), throttles, closes and removes connections, and is notified of failed requests.
    """

    cdef readonly dict connections
    cdef object selector
    cdef object apis, metrics, replica_manager, clock, changed, keys, tasks
    cdef Timer timer
    cdef readonly object owner

    def __init__(
        self, dict connections not None, selector, apis, replica_manager, Timer timer not None, clock, owner
    ):
        self.connections = connections
        self.selector = selector
        self.apis = apis
        self.metrics = apis.metrics
        self.replica_manager = replica_manager
        self.changed, self.keys, self.tasks = replica_manager.events
        self.timer = timer
        self.clock = clock
        self.owner = owner

    def poll(self, double timeout_ms):
        """Wait up to ``timeout_ms`` for the sockets, then handle everything that is ready."""
        self.selector.poll(self.wait_ms(timeout_ms))
        self.metrics.turn_began_ms = self.clock.monotonic_ms()
        for listener_id, accepted, address in self.selector.accepted:
            self.owner.on_accepted(listener_id, accepted, address)
        cdef dict disconnected = self.selector.disconnected
        for connection_id in disconnected:
            if connection_id in self.connections:
                self.connections[connection_id].is_disconnected = True
        self.on_frames()
        for connection_id, state in disconnected.items():
            self.owner.on_disconnected(connection_id, state)
        if self.has_events():
            self.replica_manager.complete_delayed()
        try:
            self.timer.advance(self.clock.monotonic_ms())
        except Exception:
            # An error in one request or group must not stop the broker. The other tasks run in the next turn.
            logger.exception("unexpected error in a timed task")

    cdef double wait_ms(self, double timeout_ms) except -1:
        if self.has_events():
            return 0.0
        deadline = self.timer.time_to_next_ms(self.clock.monotonic_ms())
        return timeout_ms if deadline is None else min(timeout_ms, <double> deadline)

    cdef bint has_events(self) except -1:
        return bool(self.changed) or bool(self.keys) or bool(self.tasks)

    cdef int on_frames(self) except -1:
        """Handle the frames received by the last poll, and continue connections whose sends are complete."""
        cdef Connection connection
        for receive in self.selector.completed_receives:
            connection = self.connections.get(receive.source_id)
            if connection is not None and (connection.is_known or self.owner.identify(connection)):
                self.on_frame(connection, receive)
        for send in self.selector.completed_sends:
            connection = self.connections.get(send.destination_id)
            if connection is not None:
                connection.is_busy = False
                self.pump(connection)
        return 0

    cdef int on_frame(self, Connection connection, frame) except -1:
        """Handle a frame, or keep it until the connection's earlier requests are done."""
        if connection.is_busy or connection.is_pumping or connection.pause is not None or connection.pending:
            connection.pending.append(frame)
            return self.mute_if_ahead(connection)
        connection.is_busy = connection.is_pumping = True
        self.handle(connection, frame)
        connection.is_pumping = False
        return 0

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
        if connection.is_muted == is_ahead or connection.is_disconnected:
            return 0
        if connection.id not in self.connections:
            return 0
        connection.is_muted = is_ahead
        if is_ahead:
            self.selector.mute(connection.id)
        else:
            self.selector.unmute(connection.id)
        return 0

    cdef int handle(self, Connection connection, frame) except -1:
        cdef Request request
        if connection.authenticator is not None and self.owner.is_held_back(connection, frame.payload):
            connection.is_busy = False
            return 0
        try:
            request = self.apis.handle(connection.context, frame, connection)
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
