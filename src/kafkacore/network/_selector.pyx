"""Run many connections on one thread: frames to send in, whole frames out.

Only the wait blocks, and it runs without the GIL. One thread uses a selector; any thread may call
``wakeup()``. The source of the behaviour is Kafka's ``Selector``.

Reads and writes of up to 64 KiB keep the GIL, because they take microseconds and so does getting it back. A
frame that the socket took only in part continues inside the wait, without the GIL: a request of 1 MB passes
through a socket's buffer in five to ten pieces. A selector that is interrupted in a poll (Ctrl-C) keeps
what it has found for the next poll.
"""

cimport cython

from cpython.ref cimport PyObject
from libc.math cimport INFINITY

from kafkacore.network._channel cimport KafkaChannel, new_channel
from kafkacore.network._channel_set cimport ChannelSet, write_on
from kafkacore.network._delayed_close cimport DelayedCloses
from kafkacore.network._native_heartbeat cimport NativeHeartbeat
from kafkacore.network._idle cimport IdleExpiry
from kafkacore.network._memory cimport MemoryPool
from kafkacore.network._poller cimport KC_BROKEN, KC_READ, KC_WRITE, Poller
from kafkacore.network._receive cimport ENDED, MORE, ReadBuffer
from kafkacore.network._send cimport NetworkSend
from kafkacore.network._setup_deadlines cimport SetupDeadlines
from kafkacore.network._transport cimport PlaintextTransportLayer

import logging
import os

from kafkacore.errors import (
    AuthenticationFailedError,
    IllegalStateError,
    InvalidReceiveError,
    KafkaProtocolError,
)
from kafkacore.network._sockets import ListenerSet, open_connection
from kafkacore.network.channel_state import ChannelState, ConnectionPhase

logger = logging.getLogger("kafkacore.network._selector")


@cython.final
cdef class Selector:
    """The sockets of a client or of a broker.

    Parameters
    ----------
    clock:
        For idle connections. The wait itself is the operating system's.
    max_receive_size:
        Bytes of a frame, without its size; a larger one closes its channel. -1 for no limit but the format's.
    connections_max_idle_ms:
        A connection on which nothing has happened for longer is closed; ``None`` for never.
    memory_pool:
        Bounds the frames that have been received and are still held; ``None`` for no bound.
    backend:
        ``"epoll"``, ``"poll"``, or ``None`` for the best that this system has.
    socket_options:
        Arguments of ``setsockopt`` for the connections that are opened here; ``None`` for ``TCP_NODELAY``.
    setup_timeout_ms:
        Time from :meth:`register` until the handshake and the authentication are over, and from the first
        byte of the first frame to its last; ``None`` for no limit.

    Attributes
    ----------
    connected:
        Ids of the connections that the last :meth:`poll` has seen become ready, and not end: connected, and
        where they are to be, by TLS and authenticated.
    completed_sends, completed_receives:
        Frames written whole and read whole, in order by channel.
    disconnected:
        Id → :class:`ChannelState` of what has ended, other than by :meth:`close`.
    accepted:
        ``(listener id, socket, address)``; to be registered or closed.
    waited_ms:
        How long all polls have waited, together.
    is_interrupted:
        The last poll has raised (Ctrl-C): the next one tells what it had found out, with its own.
    """

    cdef readonly list connected, completed_sends, completed_receives, accepted
    cdef readonly dict disconnected
    cdef readonly double waited_ms
    cdef readonly bint is_interrupted
    cdef readonly Poller poller
    # Called after each authentication; see OnAuthenticated. None: nobody is notified.
    cdef public object on_authenticated
    cdef object clock, listeners, socket_options
    cdef Py_ssize_t max_receive_size
    cdef MemoryPool memory_pool
    cdef ReadBuffer read_buffer
    cdef ChannelSet channels
    cdef SetupDeadlines setup_deadlines
    cdef DelayedCloses delayed_closes
    cdef list immediately_connected
    # Channels with a new frame, which the next poll tries to write before it waits.
    cdef list unwritten
    # Channels with something to read that their sockets will not tell of.
    cdef list buffered
    # Id -> ChannelState of channels that have ended and that no poll has reported yet.
    cdef dict failed
    # What is no Exception, out of an engine or a mechanism: raised at the end of the poll. Or None.
    cdef object interrupt

    def __cinit__(self, clock, *, Py_ssize_t max_receive_size=-1, connections_max_idle_ms=None,
                  MemoryPool memory_pool=None, str backend=None, socket_options=None, setup_timeout_ms=None):
        self.clock = clock
        self.max_receive_size = max_receive_size
        self.socket_options = socket_options
        self.poller = Poller(backend)
        idle = None if connections_max_idle_ms is None else IdleExpiry(connections_max_idle_ms)
        self.channels = ChannelSet(self.poller, idle)
        self.memory_pool = memory_pool
        if memory_pool is not None:
            memory_pool.on_release = self.poller.wakeup
        self.read_buffer = ReadBuffer()
        self.setup_deadlines = SetupDeadlines(INFINITY if setup_timeout_ms is None else setup_timeout_ms)
        self.delayed_closes = DelayedCloses()
        self.immediately_connected, self.unwritten, self.buffered = [], [], []
        self.failed = {}
        self.listeners = ListenerSet(clock, self.poller)
        self.clear()

    # ---- Connections --------------------------------------------------------------------------------------

    def connect(self, str connection_id, address, int send_buffer_bytes=-1, int receive_buffer_bytes=-1,
                builder=None, str host=""):
        """Begin to connect; the outcome is in ``connected`` or ``disconnected`` after a later poll.

        Parameters
        ----------
        connection_id:
            A name that no other connection has.
        address:
            ``(IP address, port)``.
        send_buffer_bytes, receive_buffer_bytes:
            Of the socket; -1 leaves them to the operating system.
        builder:
            Its ``build(sock, host)`` gives the transport and the authenticator; see
            :class:`~kafkacore.network.ChannelBuilder`. ``None``: bytes as they are, and nobody asks.
        host:
            Whom we want to talk to, for the builder.

        Raises
        ------
        IllegalStateError
            When the id is in use.
        OSError
            When the address is none, or there is no socket to be had; then nothing is registered.
        KafkaError
            What the builder raises, such as for certificates that cannot be read; nothing is registered.
        """
        self.channels.check_usable()
        self.channels.check_unused(connection_id)
        sock, error = open_connection(address, send_buffer_bytes, receive_buffer_bytes, self.socket_options)
        try:
            self.add(connection_id, sock, False, builder, host)
        except BaseException:
            sock.close()
            raise
        if error == 0:
            self.immediately_connected.append(connection_id)
        elif error > 0:
            self.fail(self.channels.get(connection_id), error)

    def register(self, str connection_id, sock, builder=None, str host=""):
        """Take over a connected socket, one that was accepted; only with a ``builder``, as of
        :meth:`connect`, is it reported in ``connected``. What that raises leaves the socket to the caller.

        Raises
        ------
        IllegalStateError
            When the id is in use; the socket stays the caller's.
        """
        self.channels.check_usable()
        self.channels.check_unused(connection_id)
        sock.setblocking(False)
        self.add(connection_id, sock, True, builder, host)

    def reauthenticate(self, str connection_id, payload):
        """Authenticate a peer anew, who has asked for it by ``payload`` (SaslHandshake). Until that is over
        its frames go to the channel's authenticator, which there must be; failure ends the connection.
        """
        self.reauthenticate_channel(self.channels.get(connection_id), payload)

    def register_listener(self, str listener_id, sock):
        """Watch a listening socket, which stays the caller's; see ``accepted``."""
        self.channels.check_usable()
        self.listeners.add(listener_id, sock)

    def unregister_listener(self, str listener_id):
        """Watch a listening socket no longer, before its owner closes it; an unknown id is nothing to do."""
        self.channels.check_usable()
        self.listeners.remove(listener_id)

    def is_channel_ready(self, str connection_id):
        """Whether frames can be sent to this connection."""
        cdef KafkaChannel channel = self.channels.get(connection_id)
        return channel is not None and channel.is_ready

    def channel(self, str connection_id):
        """The :class:`KafkaChannel`, or ``None``."""
        return self.channels.get(connection_id)

    def channel_ids(self):
        """Ids of all open connections."""
        return list(self.channels.by_id)

    def attach_heartbeat(self, str connection_id, NativeHeartbeat heartbeat not None):
        """Have ``line`` write on this connection, and on no other, until it ends; ``False`` if there is none,
        or its bytes do not travel as they are."""
        cdef KafkaChannel channel = self.channels.get(connection_id)
        self.channels.check_usable()
        cut = self.channels.release_heartbeat(heartbeat, channel)
        if cut is not None:
            self.end(cut, ConnectionPhase.LOCAL_CLOSE, "a heartbeat was cut short on it", None)
        return channel is not None and channel.attach_heartbeat(heartbeat)

    def mute(self, str connection_id):
        """Read nothing from this connection until :meth:`unmute`."""
        self.set_muted(connection_id, True)

    def unmute(self, str connection_id):
        self.set_muted(connection_id, False)

    def close(self, str connection_id):
        """Close one connection, without a report in ``disconnected``; an unknown id is nothing to do."""
        cdef KafkaChannel channel = self.channels.get(connection_id)
        self.channels.check_usable()
        self.failed.pop(connection_id, None)
        if channel is not None:
            self.channels.drop(channel)

    def close_all(self):
        """Close every connection and the Selector, once; a forked child leaves the parent's alone."""
        self.unwritten.clear()
        self.channels.close_all()

    def wakeup(self):
        """End the poll that runs, or the next one, at once. From any thread."""
        self.poller.wakeup()

    # ---- Frames -------------------------------------------------------------------------------------------

    def send(self, NetworkSend send not None):
        """Hand over a frame; it is written by later polls.

        Raises
        ------
        IllegalStateError
            When there is no such connection, or its last frame is not yet written whole.
        """
        cdef KafkaChannel channel = self.channels.get(send.destination_id)
        self.channels.check_usable()
        if channel is None:
            # It has ended, and its owner is about to read so, or has not got to it yet.
            if send.destination_id in self.failed or send.destination_id in self.disconnected:
                return
            raise IllegalStateError(f"there is no connection {send.destination_id}; connect to it first")
        channel.set_send(send)
        self.unwritten.append(channel)

    def send_now(self, NetworkSend send not None):
        """As :meth:`send`, but write at once: whether all is out, of which no poll tells; else polls do."""
        cdef KafkaChannel channel
        self.send(send)
        channel = self.channels.get(send.destination_id)
        if channel is None or not channel.is_ready or channel.write() != 1:
            return False
        channel.pending_send = None
        send.release()
        self.unwritten.pop()
        return True

    def poll(self, double timeout_ms, bint tell_sends=True):
        """Do all the I/O there is to do, and wait for some if there is none.

        Parameters
        ----------
        timeout_ms:
            The longest wait. A :meth:`wakeup` or a signal may end it early.
        tell_sends:
            Do not wait after a frame has been written whole: somebody wants to know.

        Raises
        ------
        IllegalStateError
            In a forked child, or after :meth:`close_all`. What goes wrong with a connection is never raised.
        """
        cdef int count, at
        cdef double now_ms
        self.channels.check_usable()
        if not self.is_interrupted:
            self.clear()
        self.is_interrupted = True
        self.channels.resume_starved(self.memory_pool, self.buffered)
        self.write_unwritten()
        if self.immediately_connected:
            timeout_ms = 0
        count = self.poller.wait_events(
            self.listeners.wait_ms(self.wait_ms(timeout_ms)),
            tell_sends and len(self.completed_sends) > 0,
            write_on,
            <PyObject *> self.channels,
        )
        now_ms = self.clock.monotonic_ms()
        self.waited_ms = self.poller.waited_ms
        for connection_id in self.immediately_connected:
            if connection_id in self.channels.by_id:
                self.on_connected(self.channels.get(connection_id))
        self.immediately_connected.clear()
        for at in range(count):
            self.serve(self.poller.events[at].fd, self.poller.events[at].ready, now_ms)
        if self.buffered:
            self.serve_buffered(now_ms)
        self.close_due(now_ms)
        self.disconnected.update(self.failed)
        self.failed.clear()
        if self.disconnected and self.connected:
            self.connected = [each for each in self.connected if each not in self.disconnected]
        if self.interrupt is not None:
            cause, self.interrupt = self.interrupt, None
            raise cause
        self.is_interrupted = False

    # ---- The parts of a poll ------------------------------------------------------------------------------

    cdef int clear(self) except -1:
        # New lists, not emptied ones: the caller may still hold the last poll's.
        self.connected, self.completed_sends, self.completed_receives, self.accepted = [], [], [], []
        self.disconnected = {}
        return 0

    cdef int write_unwritten(self) except -1:
        """Write at once what has come since the last poll: mostly the socket takes all, and is never watched
        for room.
        """
        cdef KafkaChannel channel
        cdef double now_ms
        if not self.unwritten:
            return 0
        now_ms = self.clock.monotonic_ms()
        unwritten, self.unwritten = self.unwritten, []
        try:
            for channel in unwritten:
                if not channel.is_ready or channel.pending_send is None:
                    continue
                self.channels.touch(channel, now_ms)
                if channel.waits_for_room or not channel.must_reauthenticate(now_ms):
                    self.write(channel)
                else:
                    self.reauthenticate_channel(channel, None)
        except BaseException:
            # Ctrl-C in what is Python's. Those behind are the next poll's.
            self.unwritten = unwritten + self.unwritten
            raise
        return 0

    cdef int serve(self, int fd, int ready, double now_ms) except -1:
        cdef KafkaChannel channel = self.channels.at_fd(fd)
        if channel is None:
            self.listeners.accept(fd, self.accepted)
            return 0
        self.channels.touch(channel, now_ms)
        if not channel.is_connected:
            return self.on_connected(channel)
        if not channel.is_ready:
            return self.prepare(channel)
        if ready & (KC_READ | KC_BROKEN) and channel.interest & KC_READ:
            self.read(channel, now_ms)
        if ready & (KC_WRITE | KC_BROKEN) and channel.pending_send is not None:
            self.write(channel)
        return 0

    cdef int serve_buffered(self, double now_ms) except -1:
        """Read on where a share or a frame ended in the middle of what had come already."""
        cdef KafkaChannel channel
        waiting, self.buffered = self.buffered, []
        try:
            # Once each, however often it was muted and unmuted: it is to have one share.
            for channel in dict.fromkeys(waiting):
                if channel.wants_buffered():
                    self.channels.touch(channel, now_ms)
                    if channel.is_ready:
                        self.read(channel, now_ms)
                    else:
                        self.prepare(channel)
        except BaseException:
            self.buffered = waiting + self.buffered
            raise
        return 0

    cdef int read(self, KafkaChannel channel, double now_ms) except -1:
        cdef int result
        try:
            result = channel.read(self.read_buffer, self.completed_receives)
        except (InvalidReceiveError, MemoryError) as error:
            self.end(channel, ConnectionPhase.READY, str(error), error)
            return 0
        if not channel.has_begun and not channel.reader.has_frames and channel.reader.is_amid_frame():
            channel.has_begun = True
            self.setup_deadlines.start(channel, now_ms)
        if result == ENDED:
            self.end(channel, ConnectionPhase.READY, "the peer has closed the connection", None)
        elif result < 0:
            self.fail(channel, -result)
        elif channel.is_starved:
            self.channels.wait_for_memory(channel)
        elif channel.wants_buffered():
            self.buffered.append(channel)
        return 0

    cdef int write(self, KafkaChannel channel) except -1:
        cdef NetworkSend send = channel.pending_send
        cdef int result = channel.write()
        if result < 0:
            self.on_failed_write(channel, -result)
            return 0
        if result == 1:
            channel.pending_send = None
            send.release()
            self.completed_sends.append(send)
        return self.channels.update_interest(channel)

    cdef int on_failed_write(self, KafkaChannel channel, int error) except -1:
        """Read what the peer had said before it went, then end the channel."""
        cdef bint is_readable = not channel.is_muted and not channel.is_starved
        try:
            while is_readable and channel.read(self.read_buffer, self.completed_receives) == MORE:
                pass
        except (InvalidReceiveError, MemoryError) as invalid:
            self.end(channel, ConnectionPhase.READY, str(invalid), invalid)
            return 0
        if channel.transport.error is not None:
            return self.fail(channel, error)
        reason = os.strerror(error)
        self.end(channel, ConnectionPhase.FAILED_SEND, f"writing failed: {reason}", OSError(error, reason))
        return 0

    # ---- Until it is ready --------------------------------------------------------------------------------

    cdef int add(self, str connection_id, sock, bint is_connected, builder, str host) except -1:
        cdef double now_ms = self.clock.monotonic_ms()
        cdef KafkaChannel channel = new_channel(
            connection_id, sock, is_connected, self.max_receive_size, self.memory_pool, builder, host
        )
        self.channels.add(channel, now_ms)
        if is_connected:
            self.setup_deadlines.start(channel, now_ms)
        return 0

    cdef int on_connected(self, KafkaChannel channel) except -1:
        cdef int error
        if channel.is_connected:
            return 0
        error = channel.finish_connect()
        if error != 0:
            return self.fail(channel, error)
        return self.prepare(channel)

    cdef int prepare(self, KafkaChannel channel) except -1:
        """Go on with handshake and authentication."""
        cdef int result
        try:
            result = channel.prepare(self.read_buffer, self.completed_receives)
        except BaseException as error:
            return self.end_failed(channel, error)
        if result == 1:
            return self.on_ready(channel)
        if result == ENDED:
            doing = "during authentication" if channel.is_handshaken else "during the TLS handshake"
            reason = f"the peer has closed the connection {doing}"
            return self.end(channel, ConnectionPhase.AUTHENTICATE, reason, None)
        if result < 0:
            return self.fail(channel, -result)
        if channel.is_starved:
            return self.channels.wait_for_memory(channel)
        return self.channels.update_interest(channel)

    cdef int on_ready(self, KafkaChannel channel) except -1:
        cdef bint is_again = channel.has_been_ready
        if not is_again:
            channel.has_been_ready = True
            self.connected.append(channel.id)
        if channel.pending_send is not None:
            self.unwritten.append(channel)
        if channel.is_starved:
            # Behind the last word of the authentication a frame has begun.
            self.channels.wait_for_memory(channel)
        else:
            self.note_buffered(channel)
            self.channels.update_interest(channel)
        if channel.authenticator is not None or type(channel.transport) is not PlaintextTransportLayer:
            self.notify_authenticated(channel, is_again, True)
        return 0

    cdef int notify_authenticated(self, KafkaChannel channel, bint is_again, bint is_success) except -1:
        """Last, when all else is done: Ctrl-C may come in what is Python's."""
        if self.on_authenticated is not None:
            now_ms = self.clock.monotonic_ms()
            is_again = is_again and channel.authenticator is not None
            self.on_authenticated(is_again, is_success, now_ms - channel.reauthentication_started_ms, now_ms)
        return 0

    cdef int reauthenticate_channel(self, KafkaChannel channel, payload) except -1:
        """Authenticate a channel anew; its frame, if it has one, is written afterwards."""
        cdef double now_ms = self.clock.monotonic_ms()
        channel.reauthentication_started_ms = now_ms
        try:
            channel.reauthenticate(payload)
        except BaseException as error:
            return self.end_failed(channel, error)
        self.setup_deadlines.start(channel, now_ms)
        return self.prepare(channel)

    # ---- Time ---------------------------------------------------------------------------------------------

    cdef double wait_ms(self, double timeout_ms) except -1:
        """How long may be waited without missing what is due."""
        cdef double due_ms
        if self.failed or self.buffered:
            return 0
        due_ms = min(self.setup_deadlines.next_due_ms(), self.delayed_closes.next_due_ms())
        if due_ms == INFINITY:
            return timeout_ms
        return max(min(timeout_ms, due_ms - <double> self.clock.monotonic_ms()), 0)

    cdef int close_due(self, double now_ms) except -1:
        """Close what is due."""
        self.close_delayed(now_ms)
        self.close_late(now_ms)
        self.close_idle(now_ms)
        return 0

    cdef int close_delayed(self, double now_ms) except -1:
        """Close channels that failed authentication a while ago, after the authenticator's last frame."""
        cdef KafkaChannel channel = self.delayed_closes.next_due(now_ms)
        while channel is not None:
            error = self.delayed_closes.error
            if error.answer is not None:
                # What the socket does not take at once is not worth a wait.
                NetworkSend(channel.id, error.answer).write_to(channel.transport)
            self.end(channel, ConnectionPhase.AUTHENTICATION_FAILED, str(error), error)
            channel = self.delayed_closes.next_due(now_ms)
        return 0

    cdef int close_late(self, double now_ms) except -1:
        """Close channels that have not become ready, or not received their first whole frame, in time."""
        cdef KafkaChannel channel = self.setup_deadlines.next_late(now_ms)
        while channel is not None:
            self.end(channel, self.setup_deadlines.phase, self.setup_deadlines.reason, None)
            channel = self.setup_deadlines.next_late(now_ms)
        return 0

    cdef int close_idle(self, double now_ms) except -1:
        """Close what has been idle for too long, the oldest first, and what keeps memory from others."""
        cdef KafkaChannel channel = self.channels.next_expired(now_ms)
        while channel is not None:
            self.end(channel, ConnectionPhase.EXPIRED, self.channels.why_expired, self.channels.expiry_error)
            channel = self.channels.next_expired(now_ms)
        return 0

    # ---- The end ------------------------------------------------------------------------------------------

    cdef int end_failed(self, KafkaChannel channel, error) except -1:
        """End a channel for what its handshake or its authenticator has raised."""
        if isinstance(error, AuthenticationFailedError):
            return self.delay_close(channel, error)
        if not isinstance(error, Exception):
            self.interrupt = error
            return self.end(channel, ConnectionPhase.LOCAL_CLOSE, "interrupted", None)
        reason = str(error)
        if not isinstance(error, (KafkaProtocolError, MemoryError)):
            # A mechanism may be its user's own code. One connection is not all of them.
            logger.error("authentication of %s failed by a bug", channel.id, exc_info=error)
            reason = f"{type(error).__name__}: {error}"
        return self.end(channel, ConnectionPhase.AUTHENTICATE, reason, error)

    cdef int delay_close(self, KafkaChannel channel, error) except -1:
        """Authentication has failed: answer and close after the authenticator's delay."""
        cdef double delay_ms = 0
        if channel.authenticator is not None and channel.is_handshaken:
            delay_ms = channel.authenticator.failure_delay_ms
        if delay_ms <= 0 and error.answer is None:
            self.end(channel, ConnectionPhase.AUTHENTICATION_FAILED, str(error), error)
        else:
            self.delayed_closes.add(channel, self.clock.monotonic_ms() + delay_ms, error)
            self.channels.update_interest(channel)
        return self.notify_authenticated(channel, channel.has_been_ready, False)

    cdef int fail(self, KafkaChannel channel, int error) except -1:
        """End a channel for an errno, or for what its transport knows better."""
        cause = channel.transport.error
        if cause is None:
            phase = (
                ConnectionPhase.READY if channel.is_ready
                else ConnectionPhase.AUTHENTICATE if channel.is_connected
                else ConnectionPhase.NOT_CONNECTED
            )
            reason = os.strerror(error)
            return self.end(channel, phase, reason, OSError(error, reason))
        if not isinstance(cause, Exception):
            # Ctrl-C inside the engine, which may have lost bytes by that.
            self.interrupt = cause
            return self.end(channel, ConnectionPhase.LOCAL_CLOSE, "interrupted", None)
        is_refused = isinstance(cause, AuthenticationFailedError)
        phase = ConnectionPhase.AUTHENTICATION_FAILED if is_refused else ConnectionPhase.READY
        self.end(channel, phase, str(cause), cause)
        return self.notify_authenticated(channel, channel.has_been_ready, False) if is_refused else 0

    cdef int end(self, KafkaChannel channel, phase, str reason, error) except -1:
        """Close a channel and report it, in this poll if one runs, else in the next."""
        # First: Ctrl-C in the engine's last word leaves nobody waiting for an answer.
        self.failed[channel.id] = ChannelState(phase, reason, error)
        self.channels.drop(channel)
        logger.debug("connection %s ended (%s): %s", channel.id, phase.value, reason)
        return 0

    # ---- Book-keeping -------------------------------------------------------------------------------------

    cdef int set_muted(self, str connection_id, bint is_muted) except -1:
        cdef KafkaChannel channel = self.channels.get(connection_id)
        self.channels.check_usable()
        if channel is None:
            if connection_id in self.failed or connection_id in self.disconnected:
                return 0
            raise IllegalStateError(f"there is no connection {connection_id}")
        channel.is_muted = is_muted
        self.note_buffered(channel)
        return self.channels.update_interest(channel)

    cdef int note_buffered(self, KafkaChannel channel) except -1:
        if channel.wants_buffered():
            self.buffered.append(channel)
        return 0
