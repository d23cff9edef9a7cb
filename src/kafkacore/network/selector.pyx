"""Many connections, one thread: sends in, whole frames out; nothing blocks but the wait, without the GIL.

Used by one thread; ``wakeup`` alone may be called by any. Does not know: what a frame says, DNS, retries.
Source of the behaviour: Kafka's ``Selector``.
"""

cimport cython

from kafkacore.network.channel cimport KafkaChannel, new_channel
from kafkacore.network.channel_set cimport ChannelSet
from kafkacore.network.heartbeat_line cimport HeartbeatLine
from kafkacore.network.idle cimport IdleExpiry
from kafkacore.network.memory cimport MemoryPool
from kafkacore.network.poller cimport KC_BROKEN, KC_READ, KC_WRITE, Poller
from kafkacore.network.receive cimport ENDED, MORE, ReadBuffer
from kafkacore.network.send cimport NetworkSend

import logging
import os

from kafkacore.errors import IllegalStateError, InvalidReceiveError
from kafkacore.network._sockets import ListenerSet, open_connection
from kafkacore.network.channel_state import ChannelState, ConnectionPhase

logger = logging.getLogger(__name__)


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

    Attributes
    ----------
    connected:
        Ids of the connections that the last :meth:`poll` has seen established, and not ended.
    completed_sends, completed_receives:
        Frames written whole and read whole, in order by channel.
    disconnected:
        Id → :class:`ChannelState` of what has ended, other than by :meth:`close`.
    accepted:
        ``(listener id, socket, address)``; to be registered or closed.
    waited_ms:
        How long all polls have waited, together.
    """

    cdef readonly list connected, completed_sends, completed_receives, accepted
    cdef readonly dict disconnected
    cdef readonly Poller poller
    cdef readonly double waited_ms
    cdef object clock, listeners, socket_options
    cdef Py_ssize_t max_receive_size
    cdef MemoryPool memory_pool
    cdef ReadBuffer read_buffer
    cdef ChannelSet channels
    # Channels with a new frame, which the next poll tries to write before it waits.
    cdef list unwritten
    cdef list immediately_connected
    cdef dict failed
    # A signal handler raised in the wait: what the poll had found out before is still to be reported.
    cdef bint is_interrupted

    def __cinit__(self, clock, *, Py_ssize_t max_receive_size=-1, connections_max_idle_ms=None,
                  MemoryPool memory_pool=None, str backend=None, socket_options=None):
        self.clock = clock
        self.max_receive_size = max_receive_size
        self.poller = Poller(backend)
        idle = None if connections_max_idle_ms is None else IdleExpiry(connections_max_idle_ms)
        self.channels = ChannelSet(self.poller, idle)
        self.memory_pool = memory_pool
        if memory_pool is not None:
            memory_pool.on_release = self.poller.wakeup
        self.read_buffer = ReadBuffer()
        self.socket_options = socket_options
        self.unwritten, self.immediately_connected = [], []
        self.failed = {}
        self.listeners = ListenerSet(clock, self.poller)
        self.clear()

    # ---- Connections --------------------------------------------------------------------------------------

    def connect(self, str connection_id, address, int send_buffer_bytes=-1, int receive_buffer_bytes=-1):
        """Begin to connect; the outcome is in ``connected`` or ``disconnected`` after a later poll.

        Parameters
        ----------
        connection_id:
            A name that no other connection has.
        address:
            ``(IP address, port)``.
        send_buffer_bytes, receive_buffer_bytes:
            Of the socket; -1 leaves them to the operating system.

        Raises
        ------
        IllegalStateError
            When the id is in use.
        OSError
            When the address is none, or there is no socket to be had; then nothing is registered.
        """
        self.channels.check_usable()
        self.channels.check_unused(connection_id)
        sock, error = open_connection(address, send_buffer_bytes, receive_buffer_bytes, self.socket_options)
        self.add(connection_id, sock, False)
        if error == 0:
            self.immediately_connected.append(connection_id)
        elif error > 0:
            self.fail(self.channels.get(connection_id), error)

    def register(self, str connection_id, sock):
        """Take over a connected socket, one that was accepted; it is not reported in ``connected``.

        Raises
        ------
        IllegalStateError
            When the id is in use; the socket stays the caller's.
        """
        self.channels.check_usable()
        self.channels.check_unused(connection_id)
        sock.setblocking(False)
        self.add(connection_id, sock, True)

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
        return channel is not None and channel.is_connected

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

    def send(self, NetworkSend send):
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

    def send_now(self, NetworkSend send):
        """As :meth:`send`, but write at once: whether all is out, of which no poll tells; else polls do."""
        cdef KafkaChannel channel
        self.send(send)
        channel = self.channels.get(send.destination_id)
        if channel is None or not channel.is_connected or channel.write() != 1:
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
        self.channels.resume_starved(self.memory_pool)
        self.write_unwritten()
        if self.failed or self.immediately_connected:
            timeout_ms = 0
        count = self.poller.wait_events(
            self.listeners.wait_ms(timeout_ms), tell_sends and len(self.completed_sends) > 0, self.channels
        )
        self.is_interrupted = False
        now_ms = self.clock.monotonic_ms()
        self.waited_ms = self.poller.waited_ms
        for connection_id in self.immediately_connected:
            if connection_id in self.channels.by_id:
                self.on_connected(self.channels.get(connection_id))
        self.immediately_connected.clear()
        for at in range(count):
            self.serve(self.poller.events[at].fd, self.poller.events[at].ready, now_ms)
        if self.channels.idle is not None:
            self.expire(now_ms)
        self.disconnected.update(self.failed)
        self.failed.clear()
        if self.disconnected and self.connected:
            self.connected = [each for each in self.connected if each not in self.disconnected]

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
        for channel in unwritten:
            if not channel.is_closed and channel.is_connected:
                self.channels.touch(channel, now_ms)
                self.write(channel)
        return 0

    cdef int serve(self, int fd, int ready, double now_ms) except -1:
        cdef KafkaChannel channel = self.channels.at_fd(fd)
        if channel is None:
            self.listeners.accept(fd, self.accepted)
            return 0
        self.channels.touch(channel, now_ms)
        if not channel.is_connected:
            return self.on_connected(channel)
        if ready & (KC_READ | KC_BROKEN) and channel.interest & KC_READ:
            self.read(channel)
        if ready & (KC_WRITE | KC_BROKEN) and channel.pending_send is not None:
            self.write(channel)
        return 0

    cdef int on_connected(self, KafkaChannel channel) except -1:
        cdef int error
        if channel.is_connected:
            return 0
        error = channel.finish_connect()
        if error != 0:
            self.fail(channel, error)
            return 0
        self.connected.append(channel.id)
        if channel.pending_send is not None:
            self.unwritten.append(channel)
        return self.channels.update_interest(channel)

    cdef int read(self, KafkaChannel channel) except -1:
        cdef int result
        try:
            result = channel.read(self.read_buffer, self.completed_receives)
        except (InvalidReceiveError, MemoryError) as error:
            self.end(channel, ConnectionPhase.READY, str(error), error)
            return 0
        if result == ENDED:
            self.end(channel, ConnectionPhase.READY, "the peer has closed the connection", None)
        elif result < 0:
            self.fail(channel, -result)
        elif channel.is_starved:
            self.channels.wait_for_memory(channel)
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
        reason = os.strerror(error)
        self.end(channel, ConnectionPhase.FAILED_SEND, f"writing failed: {reason}", OSError(error, reason))
        return 0

    cdef int expire(self, double now_ms) except -1:
        """Close what has been idle for too long, the oldest first."""
        cdef KafkaChannel channel = self.channels.next_expired(now_ms)
        while channel is not None:
            reason = f"nothing happened for {now_ms - channel.last_active_ms:.0f} ms"
            self.end(channel, ConnectionPhase.EXPIRED, reason, None)
            channel = self.channels.next_expired(now_ms)
        return 0

    # ---- Book-keeping -------------------------------------------------------------------------------------

    cdef int add(self, str connection_id, sock, bint is_connected) except -1:
        cdef KafkaChannel channel = new_channel(
            connection_id, sock, is_connected, self.max_receive_size, self.memory_pool
        )
        return self.channels.add(channel, self.clock.monotonic_ms())

    cdef int set_muted(self, str connection_id, bint is_muted) except -1:
        cdef KafkaChannel channel = self.channels.get(connection_id)
        self.channels.check_usable()
        if channel is None:
            if connection_id in self.failed or connection_id in self.disconnected:
                return 0
            raise IllegalStateError(f"there is no connection {connection_id}")
        channel.is_muted = is_muted
        return self.channels.update_interest(channel)

    cdef int fail(self, KafkaChannel channel, int error) except -1:
        """End a channel for an errno."""
        reason = os.strerror(error)
        phase = ConnectionPhase.READY if channel.is_connected else ConnectionPhase.NOT_CONNECTED
        return self.end(channel, phase, reason, OSError(error, reason))

    cdef int end(self, KafkaChannel channel, phase, str reason, error) except -1:
        """Close a channel and report it, in this poll if one runs, else in the next."""
        self.channels.drop(channel)
        self.failed[channel.id] = ChannelState(phase, reason, error)
        logger.debug("connection %s ended (%s): %s", channel.id, phase.value, reason)
        return 0
