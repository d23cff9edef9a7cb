"""One connection: a frame at a time out, frames in, interest derived from the two.

    connecting --writable, no error--> connected --handshake, authentication--> ready --the end--> closed

A channel in the clear on which nobody asks who the other is, is ready once it is connected. One that is ready
may be authenticated anew (KIP-368); then its owner's frame waits. Interest in writing exists only while
connecting or while a frame has not gone out whole, interest in reading only while neither muted nor short of
memory. Does not know: polls, other channels, what is said to authenticate. Source of the behaviour: Kafka's
``KafkaChannel``.
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

import logging

from kafkacore.errors import IllegalStateError, KafkaProtocolError

logger = logging.getLogger("kafkacore.network._selector")

cdef enum:
    # Up to here a write keeps the GIL: it takes ten microseconds or two, and getting the lock back from a
    # busy thread milliseconds. The producer's default batches lie below, with the request around them.
    WRITE_WITH_GIL = 64 * 1024


@cython.final
cdef class KafkaChannel:
    """Made by a Selector only."""

    def __repr__(self):
        state = (
            "closed" if self.is_closed else "ready" if self.is_ready
            else "connected" if self.is_connected else "connecting"
        )
        return f"KafkaChannel({self.id!r}, {state})"

    @property
    def has_send(self):
        """Whether a frame has not yet been written whole."""
        return self.pending_send is not None

    cdef int wanted_interest(self) noexcept:
        if self.is_closed:
            return 0
        if not self.is_connected:
            return KC_WRITE
        if not self.is_ready:
            return 0 if self.is_close_delayed else self.setup_interest & ~(KC_READ if self.is_starved else 0)
        return (0 if self.is_muted or self.is_starved else KC_READ) | (KC_WRITE if self.waits_for_room else 0)

    cdef int set_send(self, NetworkSend send) except -1:
        if self.pending_send is not None:
            raise IllegalStateError(
                f"a frame to {self.id} is still being written; wait for it in completed_sends"
            )
        send.begin()
        self.pending_send = send
        return 0

    cdef int write(self) except? -1:
        """1 when the frame is out, 0 when some of it is left, or the negative errno."""
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
        self.waits_for_room = result == 0
        return result

    cdef int write_some(self) noexcept nogil:
        """As ``NetworkSend.write_to``, and never into the middle of a heartbeat."""
        cdef int result
        if self.heartbeat is None:
            return self.pending_send.write_to(self.transport)
        result = self.heartbeat.begin_write()
        if result == 1:
            result = self.pending_send.write_to(self.transport)
        self.heartbeat.end_write(self.is_mid_frame())
        return result

    cdef bint is_mid_frame(self) noexcept nogil:
        """Whether a frame has been written in part."""
        return (
            self.pending_send is not None
            and 0 < self.pending_send.remaining < self.pending_send.size_in_bytes
        )

    cdef bint write_on(self) noexcept nogil:
        """Write more of a frame that has not gone out whole: whether nobody need hear of it yet."""
        cdef int result
        if not self.waits_for_room:
            return False
        result = self.write_some()
        if result < 0:
            self.failed_write = result
        self.has_written_on = True
        return result == 0

    cdef int read(self, ReadBuffer buffer, list frames) except? -1:
        """As ``FrameReader.read_from``."""
        cdef int result
        # Reading makes objects, and that may run anything.
        cdef NativeHeartbeat heartbeat = self.heartbeat
        if heartbeat is not None:
            heartbeat.begin_read()
        result = self.reader.read_from(self.transport, buffer, frames)
        if heartbeat is not None:
            heartbeat.end_read(self.reader.is_amid_frame())
        self.is_starved = result == STARVED
        return result

    cdef bint attach_heartbeat(self, NativeHeartbeat heartbeat) except -1:
        """Have ``line`` write here too; whether it can."""
        cdef int fd = self.transport.bare_fd()
        # It would go on while the channel is authenticated anew.
        if fd < 0 or self.is_closed or not self.is_ready or self.authenticator is not None:
            return False
        if self.heartbeat is not heartbeat:
            if self.heartbeat is not None:
                raise IllegalStateError(f"{self.id} has a native heartbeat already")
            heartbeat.attach(self.sock, fd, self.is_mid_frame(), self.reader.is_amid_frame())
            self.heartbeat = heartbeat
        return True

    cdef int finish_connect(self) noexcept:
        """0, or the errno for which there is no connection."""
        cdef int error = poller.socket_error(self.fd)
        self.is_connected = error == 0
        return error

    # ---- Handshake and authentication ---------------------------------------------------------------------

    cdef int prepare(self, ReadBuffer buffer, list frames) except? -1:
        """Go on with what comes before frames may flow: 1 when it is over, 0 when there is more to wait for,
        ENDED or the negative errno. Frames that came right behind go to ``frames``. Raises what is wrong.
        """
        cdef int result
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
        """As ``prepare``, once the transport has done its part."""
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
        """Let the authenticator have what is meant for it."""
        for frame in received:
            if self.authenticator.is_complete or not self.authenticator.expects(frame.payload):
                frames.append(frame)
            elif self.auth_send is not None:
                raise KafkaProtocolError(f"{self.id}: it does not wait for the answer that it has asked for")
            else:
                self.send_token(self.authenticator.receive(frame.payload))
        return 0

    cdef int send_token(self, pieces) except? -1:
        """Have a frame of the authenticator written, if there is one."""
        if pieces is not None:
            self.auth_send = NetworkSend(self.id, pieces)
        return 0

    cdef bint must_reauthenticate(self, double now_ms) except -1:
        """Whether we have to show anew who we are before the next frame."""
        return self.authenticator is not None and now_ms >= <double> self.authenticator.reauthenticate_at_ms

    cdef int reauthenticate(self, payload) except? -1:
        """Begin anew: with the peer's request for it, or of our own accord (``None``)."""
        self.send_token(self.authenticator.begin_reauthentication(payload))
        self.is_ready = False
        self.setup_interest = KC_READ | KC_WRITE
        return 0

    cdef bint wants_buffered(self) noexcept:
        """Whether there is something to read that the socket will not tell of."""
        return (
            not self.is_closed and not self.is_muted and not self.is_starved and not self.is_close_delayed
            and self.transport.has_buffered()
        )

    # ---- The end ------------------------------------------------------------------------------------------

    cdef int close(self) except -1:
        """Let go of the socket and of the frame that is being written."""
        if self.is_closed:
            return 0
        self.is_closed = True
        # Somebody may hold the channel for a while; what it has not received whole is of no use to anybody.
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
            # A mechanism may be its user's own code. One connection is not all of them.
            logger.error("the authenticator of %s could not be closed", self.id, exc_info=error)
        finally:
            try:
                self.transport.close()
            finally:
                # Ctrl-C in the engine's last word.
                self.sock.close()
        return 0


cdef KafkaChannel new_channel(
    str channel_id, object sock, bint is_connected, Py_ssize_t max_size, MemoryPool pool, builder, str host
):
    """A channel in the clear, or with the transport and the authenticator that ``builder`` makes."""
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
