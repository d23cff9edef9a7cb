"""One connection and its state, as in Kafka's ``KafkaChannel``.

    connecting --writable, no error--> connected --handshake, authentication--> ready --close--> closed

A plaintext channel without authentication is ready once it is connected. A ready channel may be
reauthenticated (KIP-368). A queued frame is written after the reauthentication. The poller watches a channel
for writability only while the channel connects or has a partly written frame. The poller watches a channel
for readability unless the channel is muted or waits for memory.
"""

cimport cython
from libc.errno cimport EPIPE

cimport kafkacore.network._poller as poller
from kafkacore.network._native_heartbeat cimport NativeHeartbeat
from kafkacore.network._memory cimport MemoryPool
from kafkacore.network._poller cimport KC_READ, KC_WRITE
from kafkacore.network._receive cimport DRAINED, ENDED, MORE, STARVED, FrameReader, ReadBuffer
from kafkacore.network._send cimport NetworkSend
from kafkacore.network._transport cimport PlaintextTransportLayer
from kafkacore.wire._gil_handoff cimport gil_handoff_received, gil_handoff_request

from kafkacore.errors import IllegalStateError, KafkaProtocolError
from kafkacore.logs import logger_of

logger = logger_of("kafkacore.network._selector")

cdef enum:
    # Writes of up to this many bytes do not release the GIL: they take 10 to 20 microseconds, but reacquiring
    # the GIL from a busy thread takes milliseconds. A produce request with a batch of the default size is
    # below this limit.
    WRITE_WITH_GIL = 64 * 1024


@cython.final
cdef class KafkaChannel:
    """A connection of a :class:`Selector`. Only the selector creates channels."""

    def __repr__(self):
        state = (
            "closed" if self.is_closed else "ready" if self.is_ready
            else "connected" if self.is_connected else "connecting"
        )
        return f"KafkaChannel({self.id!r}, {state})"

    @property
    def has_send(self):
        """Whether there is a frame that has not been written completely."""
        return self.pending_send is not None

    cdef int wanted_interest(self) noexcept:
        if self.is_closed:
            return 0
        if not self.is_connected:
            return KC_WRITE
        if not self.is_ready:
            return 0 if self.is_close_delayed else self.setup_interest & ~(KC_READ if self.is_starved else 0)
        return (
            (0 if self.is_muted or self.is_starved else KC_READ) | (KC_WRITE if self.is_write_blocked else 0)
        )

    cdef int set_send(self, NetworkSend send) except -1:
        if self.pending_send is not None:
            raise IllegalStateError(
                f"a frame to {self.id} is still being written; wait for it in completed_sends"
            )
        send.begin()
        self.pending_send = send
        return 0

    cdef int write(self) except? -1:
        """Write the frame; return 1 if it is complete, 0 if bytes are left, or the negative errno."""
        cdef int result
        if self.failed_write < 0:
            return self.failed_write
        if self.pending_send.remaining <= WRITE_WITH_GIL:
            result = self.write_some()
        else:
            with nogil:
                result = self.write_some()
                gil_handoff_request()
            gil_handoff_received()
        self.is_write_blocked = result == 0
        return result

    cdef int write_some(self) noexcept nogil:
        """Write the frame like ``NetworkSend.write_to``, but first finish a partly written heartbeat."""
        cdef int result
        if self.heartbeat is None:
            return self.pending_send.write_to(self.transport)
        result = self.heartbeat.begin_write()
        if result == 1:
            result = self.pending_send.write_to(self.transport)
        self.heartbeat.end_write(self.is_mid_frame())
        return result

    cdef bint is_mid_frame(self) noexcept nogil:
        """Return whether a frame is partly written."""
        return (
            self.pending_send is not None
            and 0 < self.pending_send.remaining < self.pending_send.size_in_bytes
        )

    cdef bint continue_write(self) noexcept nogil:
        """Write more of a partly written frame. Return whether bytes of the frame remain unwritten."""
        cdef int result
        if not self.is_write_blocked:
            return False
        result = self.write_some()
        if result < 0:
            self.failed_write = result
        self.has_written_in_wait = True
        return result == 0

    cdef int read(self, ReadBuffer buffer, list frames) except? -1:
        """Read frames, and return the same values as ``FrameReader.read_from``."""
        cdef int result
        # Keep a reference: creating objects may run the garbage collector, and with it code that detaches the
        # heartbeat.
        cdef NativeHeartbeat heartbeat = self.heartbeat
        if heartbeat is not None:
            heartbeat.begin_read()
        result = self.reader.read_from(self.transport, buffer, frames)
        if heartbeat is not None:
            heartbeat.end_read(self.reader.has_partial_frame())
        self.is_starved = result == STARVED
        return result

    cdef bint attach_heartbeat(self, NativeHeartbeat heartbeat) except -1:
        """Let ``heartbeat`` also write on this channel; return ``False`` if this is not possible."""
        cdef int fd = self.transport.bare_fd()
        # Exclude a channel with an authenticator, because heartbeats would continue during a
        # reauthentication.
        if fd < 0 or self.is_closed or not self.is_ready or self.authenticator is not None:
            return False
        if self.heartbeat is not heartbeat:
            if self.heartbeat is not None:
                raise IllegalStateError(f"connection {self.id} already has a native heartbeat")
            heartbeat.attach(self.sock, fd, self.is_mid_frame(), self.reader.has_partial_frame())
            self.heartbeat = heartbeat
        return True

    cdef int finish_connect(self) noexcept:
        """Return 0 if the connection is established, otherwise the errno of the failure."""
        cdef int error = poller.socket_error(self.fd)
        self.is_connected = error == 0
        return error

    # ---- Handshake and authentication ---------------------------------------------------------------------

    cdef int prepare(self, ReadBuffer buffer, list frames) except? -1:
        """Continue handshake and authentication, and raise an error if either step fails.

        Return 1 when both are complete, 0 if either step waits for the socket, ENDED if the peer closed the
        connection, or the negative errno. Frames that arrived after the authentication are appended to
        ``frames``.
        """
        cdef int result
        if self.tunnel is not None:
            self.setup_interest = self.tunnel.proceed(self.sock)
            if self.setup_interest != 0:
                return 0
            self.tunnel = None
        if not self.is_handshaken:
            result = self.transport.handshake()
            if result != 0:
                self.setup_interest = result
                return 0 if result > 0 else ENDED if result == -EPIPE else result
            self.is_handshaken = True
            if self.authenticator is not None:
                self.send_token(self.authenticator.begin())
        if self.authenticator is not None:
            return self.authenticate(buffer, frames)
        self.is_ready = True
        return 1

    cdef int authenticate(self, ReadBuffer buffer, list frames) except? -1:
        """Continue the authentication after the handshake. Return the same values as ``prepare``."""
        cdef int result
        cdef list received
        while True:
            if self.auth_send is not None:
                result = self.auth_send.write_to(self.transport)
                if result <= 0:
                    self.setup_interest = KC_WRITE
                    return result
                self.auth_send.release()
                self.auth_send = None
            if self.authenticator.is_complete:
                self.reader.max_size = self.max_size
                self.is_ready = True
                return 1
            self.setup_interest = KC_READ
            received = []
            result = self.read(buffer, received)
            self.receive_tokens(received, frames)
            if self.auth_send is None and not self.authenticator.is_complete and result != MORE:
                return 0 if result == DRAINED or result == STARVED else result

    cdef int receive_tokens(self, list received, list frames) except -1:
        """Pass the authenticator its frames, and append all other frames to ``frames``."""
        for frame in received:
            if self.authenticator.is_complete or not self.authenticator.expects(frame.payload):
                frames.append(frame)
            elif self.auth_send is not None:
                raise KafkaProtocolError(
                    f"{self.id}: the peer sent an authentication frame before it received the last response"
                )
            else:
                self.send_token(self.authenticator.receive(frame.payload))
        return 0

    cdef int send_token(self, pieces) except? -1:
        """Queue a frame of the authenticator that consists of ``pieces``. ``None`` means no frame."""
        if pieces is not None:
            self.auth_send = NetworkSend(self.id, pieces)
        return 0

    cdef bint must_reauthenticate(self, double now_ms) except -1:
        """Return whether the client must reauthenticate before it sends the next frame."""
        return self.authenticator is not None and now_ms >= <double> self.authenticator.reauthenticate_at_ms

    cdef int reauthenticate(self, payload) except? -1:
        """Start a reauthentication; ``payload`` is the peer's request, or ``None`` if this side starts it."""
        self.send_token(self.authenticator.begin_reauthentication(payload))
        self.is_ready = False
        self.setup_interest = KC_READ | KC_WRITE
        return 0

    cdef bint wants_buffered(self) noexcept:
        """Return whether the channel must read buffered data, which the poller does not report."""
        return (
            not self.is_closed and not self.is_muted and not self.is_starved and not self.is_close_delayed
            and self.transport.has_buffered()
        )

    # ---- Closing ------------------------------------------------------------------------------------------

    cdef int close(self) except -1:
        """Close the socket, and release the frames that are being written or read."""
        if self.is_closed:
            return 0
        self.is_closed = True
        # Free the memory of an incomplete frame now, because a caller may still reference the channel.
        self.reader.frame = None
        if self.pending_send is not None:
            self.pending_send.release()
            self.pending_send = None
        if self.auth_send is not None:
            self.auth_send.release()
            self.auth_send = None
        if self.heartbeat is not None:
            self.heartbeat.detach()
            self.heartbeat = None
        try:
            if self.authenticator is not None:
                self.authenticator.close()
        except Exception as error:
            # The authenticator may be user code, whose errors must not affect other connections.
            logger.error("failed to close the authenticator of %s", self.id, exc_info=error)
        finally:
            try:
                self.transport.close()
            finally:
                # Close the socket even if Ctrl-C has interrupted the TLS shutdown.
                self.sock.close()
        return 0


cdef KafkaChannel new_channel(
    str channel_id, object sock, bint is_connected, Py_ssize_t max_size, MemoryPool pool, builder, str host
):
    """Return a channel with the transport and authenticator of ``builder``.

    If ``builder`` is ``None``, the channel is plaintext without authentication.
    """
    cdef KafkaChannel channel = KafkaChannel.__new__(KafkaChannel)
    channel.id = channel_id
    channel.sock = sock
    channel.fd = sock.fileno()
    channel.max_size = max_size
    if builder is None:
        channel.transport = PlaintextTransportLayer(channel.fd)
    else:
        channel.transport, channel.authenticator = builder.build(sock, host)
    if channel.authenticator is not None:
        max_size = channel.authenticator.max_receive_size
    channel.reader = FrameReader(channel_id, max_size, pool)
    channel.is_connected = is_connected
    channel.is_ready = channel.has_been_ready = is_connected and builder is None
    channel.setup_interest = KC_READ | KC_WRITE
    return channel
