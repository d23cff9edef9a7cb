"""Many connections, one thread: sends in, whole frames out; nothing blocks but the wait, without the GIL.

Used by one thread; ``wakeup`` alone may be called by any. Does not know: what a frame says, DNS, retries.
Source of the behaviour: Kafka's ``Selector``.
"""

cimport cython

from kafkacore.network.channel cimport KafkaChannel
from kafkacore.network.channel_life cimport ChannelLife
from kafkacore.network.heartbeat_line cimport HeartbeatLine
from kafkacore.network.poller cimport KC_BROKEN, KC_READ, KC_WRITE
from kafkacore.network.receive cimport ENDED, MORE
from kafkacore.network.send cimport NetworkSend

import os

from kafkacore.errors import IllegalStateError, InvalidReceiveError
from kafkacore.network._sockets import ListenerSet, open_connection
from kafkacore.network.channel_state import ConnectionPhase


@cython.final
cdef class Selector(ChannelLife):
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

    cdef readonly list completed_sends, accepted
    cdef readonly dict disconnected
    cdef readonly double waited_ms
    cdef object listeners, socket_options
    cdef readonly bint is_interrupted
    cdef list immediately_connected

    def __cinit__(self, clock, *, Py_ssize_t max_receive_size=-1, connections_max_idle_ms=None,
                  memory_pool=None, str backend=None, socket_options=None, setup_timeout_ms=None):
        self.socket_options = socket_options
        self.immediately_connected = []
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
        self.begin_again(self.channels.get(connection_id), payload)

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

    def attach_line(self, str connection_id, HeartbeatLine line not None):
        """Have ``line`` write on this connection, and on no other, until it ends; ``False`` if there is none,
        or its bytes do not travel as they are."""
        cdef KafkaChannel channel = self.channels.get(connection_id)
        self.channels.check_usable()
        cut = self.channels.release_line(line, channel)
        if cut is not None:
            self.end(cut, ConnectionPhase.LOCAL_CLOSE, "a heartbeat was cut short on it", None)
        return channel is not None and channel.attach_line(line)

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
            self.channels,
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
        self.look_after(now_ms)
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
                if channel.waits_for_room or not channel.is_to_begin_again(now_ms):
                    self.write(channel)
                else:
                    self.begin_again(channel, None)
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
            self.set_deadline(channel, now_ms)
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
