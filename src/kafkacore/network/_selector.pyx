"""Serve many connections on one thread, as Kafka's ``Selector`` does.

Only the wait for events blocks, and this wait releases the GIL. Only one thread may use a selector, but any
thread may call ``wakeup()``.

Reads and writes of up to 64 KiB do not release the GIL, because reacquiring the GIL would take as long. If
the socket accepts only part of a frame, the remaining bytes are written during the wait, without the GIL. A
request of 1 MB needs five to ten such writes. If a poll is interrupted (Ctrl-C), the next poll also reports
the events of the interrupted poll.
"""

cimport cython

from cpython.ref cimport PyObject
from libc.math cimport INFINITY

from kafkacore.network._channel cimport KafkaChannel, new_channel
from kafkacore.network._channel_set cimport ChannelSet, continue_write
from kafkacore.network._delayed_close cimport DelayedCloses
from kafkacore.network._native_heartbeat cimport NativeHeartbeat
from kafkacore.network._idle cimport IdleExpiry
from kafkacore.network._memory cimport MemoryPool
from kafkacore.network._poller cimport KC_BROKEN, KC_READ, KC_WRITE, Poller, monotonic_ms
from kafkacore.network._receive cimport ENDED, MORE, ReadBuffer
from kafkacore.network._send cimport NetworkSend
from kafkacore.network._setup_deadlines cimport SetupDeadlines
from kafkacore.network._transport cimport PlaintextTransportLayer
from kafkacore.wire._trace cimport Stage, stamp

import os

from kafkacore.errors import (
    AuthenticationFailedError,
    IllegalStateError,
    InvalidReceiveError,
    KafkaConnectionError,
    KafkaProtocolError,
)
from kafkacore.logs import logger_of
from kafkacore.network._sockets import ListenerSet, open_connection
from kafkacore.network.channel_state import ChannelState, ConnectionPhase

logger = logger_of("kafkacore.network._selector")


@cython.final
cdef class Selector:
    """The connections of a client or a broker, served by one thread.

    Parameters
    ----------
    clock:
        Clock for idle connections and setup deadlines. The wait for events uses the system's clock.
    max_receive_size:
        Maximum bytes of a frame, without its size field; -1 for the protocol's limit of 2 GiB - 1. A larger
        frame closes its connection.
    connections_max_idle_ms:
        Milliseconds without activity after which a connection is closed; ``None`` for never.
    memory_pool:
        Pool that limits the memory of frames that have been received and are still referenced; ``None`` for
        no limit.
    backend:
        System call to wait with: ``"epoll"`` (Linux), ``"kqueue"`` (macOS and BSD), or ``"poll"``. ``None``
        selects epoll or kqueue.
    socket_options:
        Arguments of ``setsockopt`` for outgoing connections; ``None`` for ``TCP_NODELAY``.
    setup_timeout_ms:
        Maximum milliseconds from :meth:`register` until TLS handshake and authentication are complete. The
        same limit applies from the first to the last byte of the first frame. ``None`` for no limit.
    busy_poll_ms:
        Milliseconds for which each wait looks for events without sleeping.

    Attributes
    ----------
    connected:
        Ids of the connections that became ready in the last :meth:`poll` and are still open. A connection is
        ready once it is connected and, if configured, has completed TLS handshake and authentication.
    completed_sends, completed_receives:
        Frames completely written and completely received in the last poll, in order per connection.
    disconnected:
        Id → :class:`ChannelState` of closed connections. Connections closed by :meth:`close` are not
        included.
    accepted:
        New connections as ``(listener id, socket, address)``. The caller must register or close each socket.
    waited_ms:
        Total milliseconds that all polls have waited.
    is_interrupted:
        Whether the results of the last poll were not reported, because an exception such as
        KeyboardInterrupt ended it, or those of :meth:`flush`. The next poll then also reports them.
    """

    cdef readonly list connected, completed_sends, completed_receives, accepted
    cdef readonly dict disconnected
    cdef readonly double waited_ms
    cdef readonly bint is_interrupted
    cdef readonly Poller poller
    # Function that is called after each authentication (see OnAuthenticated), or None.
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
    # Channels with buffered data to read. The poller reports no event for such data.
    cdef list buffered
    # Id -> ChannelState of closed channels that no poll has reported yet.
    cdef dict failed
    # A BaseException such as KeyboardInterrupt that TLS or an authenticator raised, or None. It is re-raised
    # at the end of the poll.
    cdef object interrupt

    def __cinit__(self, clock, *, Py_ssize_t max_receive_size=-1, connections_max_idle_ms=None,
                  MemoryPool memory_pool=None, str backend=None, socket_options=None, setup_timeout_ms=None,
                  double busy_poll_ms=0):
        self.clock = clock
        self.max_receive_size = max_receive_size
        self.socket_options = socket_options
        self.poller = Poller(backend)
        self.poller.busy_poll_ms = busy_poll_ms
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
                builder=None, str host="", tunnel=None):
        """Start a connection; a later poll reports the result in ``connected`` or ``disconnected``.

        Parameters
        ----------
        connection_id:
            Unique name of the connection.
        address:
            ``(IP address, port)``.
        send_buffer_bytes, receive_buffer_bytes:
            Sizes of the socket's buffers in bytes; -1 for the operating system's default.
        builder:
            A :class:`~kafkacore.network.ChannelBuilder`, whose ``build(sock, host)`` creates the transport
            and the authenticator. ``None`` for plaintext without authentication.
        host:
            Host name of the peer, for the builder.
        tunnel:
            A :class:`~kafkacore.network.Tunnel` through the proxy at ``address``. Its handshake precedes TLS.
            ``None`` without a proxy.

        Raises
        ------
        IllegalStateError
            If the id is in use.
        OSError
            If the address is invalid or no socket can be created. Nothing is registered.
        KafkaError
            If the builder fails, for example on an unreadable certificate. Nothing is registered.
        """
        self.channels.check_usable()
        self.channels.check_unused(connection_id)
        sock, error = open_connection(address, send_buffer_bytes, receive_buffer_bytes, self.socket_options)
        try:
            self.add(connection_id, sock, False, builder, host, tunnel)
        except BaseException:
            sock.close()
            raise
        if error == 0:
            self.immediately_connected.append(connection_id)
        elif error > 0:
            self.fail(self.channels.get(connection_id), error)

    def register(self, str connection_id, sock, builder=None, str host=""):
        """Take ownership of an accepted socket.

        A poll reports the connection in ``connected`` only if ``builder`` is given. If this method raises an
        exception, the caller still owns the socket.

        Parameters
        ----------
        connection_id:
            Unique name of the connection.
        sock:
            A connected socket.
        builder, host:
            See :meth:`connect`.

        Raises
        ------
        IllegalStateError
            If the id is in use.
        """
        self.channels.check_usable()
        self.channels.check_unused(connection_id)
        sock.setblocking(False)
        self.add(connection_id, sock, True, builder, host, None)

    def reauthenticate(self, str connection_id, payload):
        """Reauthenticate a peer that requested it with the SaslHandshake request in ``payload`` (KIP-368).

        The channel must have an authenticator, which receives the peer's frames until the reauthentication is
        complete. If reauthentication fails, the connection is closed.
        """
        self.reauthenticate_channel(self.channels.get(connection_id), payload)

    def register_listener(self, str listener_id, sock):
        """Accept connections from a listening socket; see ``accepted``. The caller still owns the socket."""
        self.channels.check_usable()
        self.listeners.add(listener_id, sock)

    def unregister_listener(self, str listener_id):
        """Stop watching a listening socket. Call this before closing the socket. An unknown id is ignored."""
        self.channels.check_usable()
        self.listeners.remove(listener_id)

    def is_channel_ready(self, str connection_id):
        """Whether frames can be sent on this connection."""
        cdef KafkaChannel channel = self.channels.get(connection_id)
        return channel is not None and channel.is_ready

    def channel(self, str connection_id):
        """Return the :class:`KafkaChannel` with this id, or ``None``."""
        return self.channels.get(connection_id)

    def channel_ids(self):
        """Return the ids of all open connections."""
        return list(self.channels.by_id)

    def attach_heartbeat(self, str connection_id, NativeHeartbeat heartbeat not None):
        """Let ``heartbeat`` write on this connection until the connection is closed.

        The heartbeat is detached from any other connection.

        Returns
        -------
        bool
            Whether the heartbeat was attached. ``False`` if the connection does not exist, uses TLS, or has
            an authenticator.
        """
        cdef KafkaChannel channel = self.channels.get(connection_id)
        self.channels.check_usable()
        cut = self.channels.release_heartbeat(heartbeat, channel)
        if cut is not None:
            self.end(cut, ConnectionPhase.LOCAL_CLOSE, "a heartbeat was only partly written", None)
        return channel is not None and channel.attach_heartbeat(heartbeat)

    def mute(self, str connection_id):
        """Stop reading from this connection until :meth:`unmute`."""
        self.set_muted(connection_id, True)

    def unmute(self, str connection_id):
        """Resume reading from this connection."""
        self.set_muted(connection_id, False)

    def close(self, str connection_id):
        """Close a connection without reporting it in ``disconnected``. An unknown id is ignored."""
        cdef KafkaChannel channel = self.channels.get(connection_id)
        self.channels.check_usable()
        self.failed.pop(connection_id, None)
        if channel is not None:
            self.channels.drop(channel)

    def close_all(self):
        """Close all connections and the selector. In a forked child, the parent's connections stay open."""
        self.unwritten.clear()
        self.channels.close_all()

    def wakeup(self):
        """Make the current poll, or else the next poll, return immediately. Any thread may call this."""
        self.poller.wakeup()

    # ---- Frames -------------------------------------------------------------------------------------------

    def send(self, NetworkSend send not None):
        """Queue a frame, which later polls write.

        If the connection has been closed, but no poll has reported the close yet, the frame is dropped.

        Raises
        ------
        IllegalStateError
            If the connection does not exist, or its previous frame is not yet completely written.
        """
        cdef KafkaChannel channel = self.taken_by(send)
        if channel is not None:
            self.unwritten.append(channel)

    def send_now(self, NetworkSend send not None):
        """Send a frame like :meth:`send`, but try to write it immediately.

        Returns
        -------
        bool
            Whether the frame was completely written. If so, no poll reports it in ``completed_sends``. If
            not, later polls write the remaining bytes.
        """
        cdef KafkaChannel channel = self.taken_by(send)
        cdef bint is_written = False
        if channel is None:
            return False
        try:
            if channel.is_ready:
                # This counts as activity, without a look at the clock.
                channel.has_written_in_wait = True
                is_written = channel.write() == 1
        finally:
            # A Ctrl-C may have interrupted the encryption of the frame.
            if not is_written:
                self.unwritten.append(channel)
        if is_written:
            channel.pending_send = None
            stamp(Stage.REQUEST_WRITTEN, send.first_bytes())
            send.release()
        return is_written

    cdef KafkaChannel taken_by(self, NetworkSend send):
        """Assign a frame to its channel. Return ``None`` if the channel has been closed."""
        cdef KafkaChannel channel = self.channels.get(send.destination_id)
        self.channels.check_usable()
        if channel is not None:
            channel.set_send(send)
        # The owner of a closed connection may not have processed ``disconnected`` yet.
        elif send.destination_id not in self.failed and send.destination_id not in self.disconnected:
            raise IllegalStateError(f"no connection {send.destination_id}: call connect() first")
        return channel

    def flush(self):
        """Try to write the queued frames, without waiting for events. The next poll reports the results."""
        self.channels.check_usable()
        if not self.is_interrupted:
            self.clear()
        self.is_interrupted = True
        self.write_unwritten()

    cpdef bint can_send_now(self, str connection_id) except -1:
        """Return whether :meth:`send_now` may be used for a connection.

        It may not if the connection uses TLS or SASL, or if its previous frame is not written yet.
        """
        cdef KafkaChannel channel = self.channels.get(connection_id)
        return (
            channel is not None and channel.is_ready and channel.pending_send is None
            and channel.authenticator is None and channel.transport.bare_fd() >= 0
        )

    def borrow(self, str connection_id):
        """Let the calling thread send a frame by :meth:`send_now` while another thread polls.

        The caller then calls :meth:`give_back`, and in between only compiled functions; see
        :meth:`Poller.borrow`.

        Returns
        -------
        bool
            ``False`` if no thread waits in a poll, or if :meth:`can_send_now` is false.
        """
        return self.can_send_now(connection_id) and self.poller.borrow()

    def give_back(self):
        """Let the polling thread continue after :meth:`borrow`."""
        self.poller.give_back()

    def poll(self, double timeout_ms, bint return_on_completed_sends=True):
        """Perform all possible I/O. If no I/O is possible, wait until I/O is possible.

        Errors of connections are not raised, but reported in ``disconnected``.

        Parameters
        ----------
        timeout_ms:
            Maximum milliseconds to wait. :meth:`wakeup` or a signal may end the wait early.
        return_on_completed_sends:
            Whether to return without waiting if a frame has been completely written.

        Raises
        ------
        IllegalStateError
            If the method is called in a forked child or after :meth:`close_all`.
        """
        cdef double end_ms = monotonic_ms() + timeout_ms
        self.channels.check_usable()
        if not self.is_interrupted:
            self.clear()
        self.is_interrupted = True
        self.channels.resume_starved(self.memory_pool, self.buffered)
        self.write_unwritten()
        self.serve_events(timeout_ms, return_on_completed_sends)
        # An event may bring only a part of a frame or of a handshake. Then there is nothing to report yet.
        while not self.poller.was_cut_short and not self.has_results() and monotonic_ms() < end_ms:
            # A channel may have completed a reauthentication, for which its frame had to wait.
            self.write_unwritten()
            self.serve_events(end_ms - monotonic_ms(), return_on_completed_sends)
        if self.failed:
            self.disconnected.update(self.failed)
            self.failed.clear()
        if self.disconnected and self.connected:
            self.connected = [each for each in self.connected if each not in self.disconnected]
        if self.interrupt is not None:
            cause, self.interrupt = self.interrupt, None
            raise cause
        self.is_interrupted = False

    def poll_events(self, double timeout_ms, bint return_on_completed_sends=True):
        """Do what :meth:`poll` does without waiting, for a caller that itself waits for events.

        The caller waits until ``poller.fd`` is readable, and then calls this method again. An event loop can
        watch this descriptor.

        Parameters
        ----------
        timeout_ms, return_on_completed_sends:
            See :meth:`poll`.

        Returns
        -------
        float
            Maximum milliseconds until the next call, at most ``timeout_ms``. Negative if a poll would return
            now, because it has something to report or because of :meth:`wakeup`.
        """
        self.poll(0, return_on_completed_sends)
        if self.poller.was_cut_short or self.has_results(return_on_completed_sends):
            return -1.0
        return self.wait_ms(timeout_ms)

    def has_only_received(self):
        """Return whether the last poll has received frames, and the next one would wait for events."""
        return bool(self.completed_receives) and not (
            self.connected or self.accepted or self.failed or self.disconnected or self.buffered
            or self.unwritten or self.interrupt is not None or self.poller.was_cut_short
        )

    # ---- Steps of a poll ----------------------------------------------------------------------------------

    cdef int clear(self) except -1:
        # Create new lists, because the caller may still use the lists of the last poll.
        self.connected, self.completed_sends, self.completed_receives, self.accepted = [], [], [], []
        self.disconnected = {}
        return 0

    cdef int serve_events(self, double timeout_ms, bint return_on_completed_sends) except -1:
        """Wait for events and handle them."""
        cdef int count, at
        cdef double now_ms
        if self.immediately_connected:
            timeout_ms = 0
        count = self.poller.wait_events(
            self.wait_ms(timeout_ms),
            return_on_completed_sends and len(self.completed_sends) > 0,
            continue_write,
            <PyObject *> self.channels,
        )
        stamp(Stage.WAIT_ENDED, count)
        now_ms = self.clock.monotonic_ms()
        self.waited_ms = self.poller.waited_ms
        if self.immediately_connected:
            for connection_id in self.immediately_connected:
                if connection_id in self.channels.by_id:
                    self.on_connected(self.channels.get(connection_id))
            self.immediately_connected.clear()
        for at in range(count):
            self.serve(self.poller.events[at].fd, self.poller.events[at].ready, now_ms)
        if self.buffered:
            self.serve_buffered(now_ms)
        self.close_due(now_ms)
        return 0

    cdef bint has_results(self, bint counts_sends=True) except -1:
        """Return whether a poll has anything to report, apart from completed sends if they do not count."""
        return bool(
            self.completed_receives or (counts_sends and self.completed_sends) or self.connected
            or self.accepted or self.failed or self.disconnected or self.interrupt is not None
        )

    cdef int write_unwritten(self) except -1:
        """Write the frames queued since the last poll.

        The socket usually accepts the whole frame, so the poller need not watch it for writability.
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
                if channel.is_write_blocked or not channel.must_reauthenticate(now_ms):
                    self.write(channel)
                else:
                    self.reauthenticate_channel(channel, None)
        except BaseException:
            # A Ctrl-C interrupted the Python code above. The next poll writes the remaining frames.
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
        """Continue to read from channels with received data in a buffer.

        Data remains in a buffer if a channel used up its share of a poll, or if TLS has decrypted more bytes
        than were read.
        """
        cdef KafkaChannel channel
        waiting, self.buffered = self.buffered, []
        try:
            # A channel that was muted and unmuted may be listed twice, but must get only one share.
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
        if not channel.has_begun and not channel.reader.has_frames and channel.reader.has_partial_frame():
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
            stamp(Stage.REQUEST_WRITTEN, send.first_bytes())
            send.release()
            self.completed_sends.append(send)
        return self.channels.update_interest(channel)

    cdef int on_failed_write(self, KafkaChannel channel, int error) except -1:
        """Read the bytes that the peer sent before it disconnected, then close the channel."""
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

    # ---- Connecting and authenticating --------------------------------------------------------------------

    cdef int add(self, str connection_id, sock, bint is_connected, builder, str host, tunnel) except -1:
        cdef double now_ms = self.clock.monotonic_ms()
        cdef KafkaChannel channel = new_channel(
            connection_id, sock, is_connected, self.max_receive_size, self.memory_pool, builder, host
        )
        channel.tunnel = tunnel
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
        """Continue the TLS handshake and the authentication."""
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
            # The peer sent the beginning of a frame with the last bytes of the authentication. This frame has
            # to wait for memory.
            self.channels.wait_for_memory(channel)
        else:
            self.note_buffered(channel)
            self.channels.update_interest(channel)
        if channel.authenticator is not None or type(channel.transport) is not PlaintextTransportLayer:
            self.notify_authenticated(channel, is_again, True)
        return 0

    cdef int notify_authenticated(self, KafkaChannel channel, bint is_again, bint is_success) except -1:
        """Call ``on_authenticated``.

        Callers call this method last, because Ctrl-C may interrupt the Python callback.
        """
        if self.on_authenticated is not None:
            now_ms = self.clock.monotonic_ms()
            is_again = is_again and channel.authenticator is not None
            self.on_authenticated(is_again, is_success, now_ms - channel.reauthentication_started_ms, now_ms)
        return 0

    cdef int reauthenticate_channel(self, KafkaChannel channel, payload) except -1:
        """Reauthenticate a channel. A queued frame is written afterwards."""
        cdef double now_ms = self.clock.monotonic_ms()
        channel.reauthentication_started_ms = now_ms
        try:
            channel.reauthenticate(payload)
        except BaseException as error:
            return self.end_failed(channel, error)
        self.setup_deadlines.start(channel, now_ms)
        return self.prepare(channel)

    # ---- Time-outs ----------------------------------------------------------------------------------------

    cdef double wait_ms(self, double timeout_ms) except -1:
        """Return the longest wait that misses no deadline, at most ``timeout_ms``."""
        cdef double due_ms
        if self.listeners.backing_off:
            timeout_ms = self.listeners.wait_ms(timeout_ms)
        if self.failed or self.buffered or self.unwritten:
            return 0
        due_ms = min(self.setup_deadlines.next_due_ms(), self.delayed_closes.next_due_ms())
        if due_ms == INFINITY:
            return timeout_ms
        return max(min(timeout_ms, due_ms - <double> self.clock.monotonic_ms()), 0)

    cdef int close_due(self, double now_ms) except -1:
        self.close_delayed(now_ms)
        self.close_late(now_ms)
        self.close_idle(now_ms)
        return 0

    cdef int close_delayed(self, double now_ms) except -1:
        """Send the delayed responses to failed authentications that are due, and close their channels."""
        cdef KafkaChannel channel = self.delayed_closes.next_due(now_ms)
        while channel is not None:
            error = self.delayed_closes.error
            if error.answer is not None:
                # If the socket cannot accept the whole response, the remaining bytes are dropped.
                NetworkSend(channel.id, error.answer).write_to(channel.transport)
            self.end(channel, ConnectionPhase.AUTHENTICATION_FAILED, str(error), error)
            channel = self.delayed_closes.next_due(now_ms)
        return 0

    cdef int close_late(self, double now_ms) except -1:
        """Close channels that did not become ready, or did not complete their first frame, in time."""
        cdef KafkaChannel channel = self.setup_deadlines.next_late(now_ms)
        while channel is not None:
            self.end(channel, self.setup_deadlines.phase, self.setup_deadlines.reason, None)
            channel = self.setup_deadlines.next_late(now_ms)
        return 0

    cdef int close_idle(self, double now_ms) except -1:
        """Close idle channels, and channels whose stalled frames use memory that other channels need."""
        cdef KafkaChannel channel = self.channels.next_expired(now_ms)
        while channel is not None:
            reason = self.channels.expiry_reason
            self.end(channel, ConnectionPhase.EXPIRED, reason, self.channels.expiry_error)
            channel = self.channels.next_expired(now_ms)
        return 0

    # ---- Closing ------------------------------------------------------------------------------------------

    cdef int end_failed(self, KafkaChannel channel, error) except -1:
        """Close a channel whose handshake or authenticator raised ``error``."""
        if isinstance(error, AuthenticationFailedError):
            return self.delay_close(channel, error)
        if not isinstance(error, Exception):
            self.interrupt = error
            return self.end(channel, ConnectionPhase.LOCAL_CLOSE, "interrupted", None)
        reason = str(error)
        if not isinstance(error, (KafkaProtocolError, KafkaConnectionError, MemoryError)):
            # The authenticator may be user code, whose errors must not affect other connections.
            logger.error("authentication of %s failed with an unexpected error", channel.id, exc_info=error)
            reason = f"{type(error).__name__}: {error}"
        return self.end(channel, ConnectionPhase.AUTHENTICATE, reason, error)

    cdef int delay_close(self, KafkaChannel channel, error) except -1:
        """Respond to a failed authentication and close the channel after the authenticator's delay."""
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
        """Close a channel with its transport's error. Without such an error, use the errno ``error``."""
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
            # Ctrl-C interrupted the TLS engine, which may have lost bytes, so close the channel.
            self.interrupt = cause
            return self.end(channel, ConnectionPhase.LOCAL_CLOSE, "interrupted", None)
        is_refused = isinstance(cause, AuthenticationFailedError)
        phase = ConnectionPhase.AUTHENTICATION_FAILED if is_refused else ConnectionPhase.READY
        self.end(channel, phase, str(cause), cause)
        return self.notify_authenticated(channel, channel.has_been_ready, False) if is_refused else 0

    cdef int end(self, KafkaChannel channel, phase, str reason, error) except -1:
        """Close a channel, and report it in the current poll or the next poll."""
        # Record the disconnect before closing the channel, so that the disconnect is reported even if Ctrl-C
        # interrupts the TLS shutdown.
        self.failed[channel.id] = ChannelState(phase, reason, error)
        self.channels.drop(channel)
        logger.debug("connection %s closed (%s): %s", channel.id, phase.value, reason)
        return 0

    # ---- Book-keeping -------------------------------------------------------------------------------------

    cdef int set_muted(self, str connection_id, bint is_muted) except -1:
        cdef KafkaChannel channel = self.channels.get(connection_id)
        self.channels.check_usable()
        if channel is None:
            if connection_id in self.failed or connection_id in self.disconnected:
                return 0
            raise IllegalStateError(f"no connection {connection_id}")
        channel.is_muted = is_muted
        self.note_buffered(channel)
        return self.channels.update_interest(channel)

    cdef int note_buffered(self, KafkaChannel channel) except -1:
        if channel.wants_buffered():
            self.buffered.append(channel)
        return 0
