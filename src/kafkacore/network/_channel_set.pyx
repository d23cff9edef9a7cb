"""The open channels of a Selector, by id and by file descriptor, and the events to watch each channel for."""

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.ref cimport PyObject
from posix.unistd cimport getpid

cimport kafkacore.network._poller as poller_functions
from kafkacore.network._channel cimport KafkaChannel
from kafkacore.network._native_heartbeat cimport NativeHeartbeat
from kafkacore.network._idle cimport IdleExpiry
from kafkacore.network._memory cimport MemoryPool
from kafkacore.network._poller cimport KC_WRITE, Poller
from kafkacore.network._receive cimport FrameReader

from kafkacore.errors import IllegalStateError, InvalidReceiveError

cdef enum:
    # While channels wait for memory, a channel whose frame is incomplete must receive at least
    # MIN_PROGRESS_BYTES in MAX_STARVED_MS. Otherwise the channel is closed.
    MAX_STARVED_MS = 5000
    MIN_PROGRESS_BYTES = 64 * 1024


@cython.final
cdef class ChannelSet:
    """The channels of one Selector.

    Parameters
    ----------
    poller:
        Watches the channels. The set closes the poller with the channels.
    idle:
        Tracks idle channels; ``None`` if channels do not expire.
    """

    def __cinit__(self, Poller poller not None, IdleExpiry idle=None):
        self.poller = poller
        self.idle = idle
        self.by_id = {}
        self.starved = []
        self.starved_since_ms = -1
        self.pid = getpid()
        self.fork_generation = poller_functions.fork_generation()

    def __dealloc__(self):
        PyMem_Free(self.borrowed)

    def __len__(self):
        return len(self.by_id)

    cdef int check_usable(self) except -1:
        """Raise an error if the set is closed, or in a forked child, which shares the parent's sockets."""
        if poller_functions.fork_generation() != self.fork_generation:
            raise IllegalStateError(
                f"the connections of process {self.pid} cannot be used in its forked child {getpid()}; "
                "create a new client after the fork"
            )
        if self.poller.handle == NULL:
            raise IllegalStateError("the Selector is closed")
        # Reject the call while another thread waits in the poller, because the wait uses the same state
        # without the GIL.
        return self.poller.check_not_waiting()

    cdef int check_unused(self, str channel_id) except -1:
        if channel_id in self.by_id:
            raise IllegalStateError(f"connection {channel_id} already exists")
        return 0

    cdef KafkaChannel release_heartbeat(self, NativeHeartbeat heartbeat, KafkaChannel keeper):
        """Detach a heartbeat from all channels except ``keeper``.

        Return the channel that must be closed because it has a partly written heartbeat, or ``None``.
        """
        cdef KafkaChannel channel
        for channel in self.by_id.values():
            if channel.heartbeat is heartbeat and channel is not keeper:
                channel.heartbeat = None
                return channel if heartbeat.detach() else None
        return None

    cdef KafkaChannel get(self, str channel_id):
        return self.by_id.get(channel_id)

    cdef KafkaChannel at_fd(self, int fd):
        cdef PyObject *found = self.borrowed[fd] if 0 <= fd < self.borrowed_size else NULL
        return <KafkaChannel> found if found != NULL else None

    cdef int add(self, KafkaChannel channel, double now_ms) except -1:
        self.reserve_slot(channel.fd)
        poller_functions.disable_sigpipe(channel.fd)
        self.update_interest(channel)
        self.by_id[channel.id] = channel
        self.borrowed[channel.fd] = <PyObject *> channel
        return self.touch(channel, now_ms)

    cdef int reserve_slot(self, int fd) except -1:
        cdef Py_ssize_t size = <Py_ssize_t> fd + 64
        cdef PyObject **borrowed
        if fd < 0:
            raise ValueError(f"invalid file descriptor {fd}: the socket is closed")
        if fd < self.borrowed_size:
            return 0
        borrowed = <PyObject **> PyMem_Realloc(self.borrowed, size * sizeof(PyObject *))
        if borrowed == NULL:
            raise MemoryError()
        self.borrowed = borrowed
        while self.borrowed_size < size:
            self.borrowed[self.borrowed_size] = NULL
            self.borrowed_size += 1
        return 0

    cdef int drop(self, KafkaChannel channel) except -1:
        """Close a channel."""
        # Unregister the descriptor before it is closed, because another file may get the same descriptor
        # afterwards.
        self.poller.set_interest(channel.fd, channel.interest, 0)
        channel.interest = 0
        self.borrowed[channel.fd] = NULL
        del self.by_id[channel.id]
        if channel.waits_for_memory:
            channel.waits_for_memory = False
            self.starved.remove(channel)
        if self.idle is not None:
            self.idle.forget(channel)
        return channel.close()

    cdef int wait_for_memory(self, KafkaChannel channel) except -1:
        """Stop reading from a channel until :meth:`resume_starved`."""
        if not channel.waits_for_memory:
            channel.waits_for_memory = True
            self.starved.append(channel)
        return self.update_interest(channel)

    cdef int resume_starved(self, MemoryPool pool, list buffered) except -1:
        """Resume those waiting channels whose frames fit into the memory released since the last call.

        Resumed channels with buffered data are appended to ``buffered``, because the poller reports no event
        for such data. Channels whose frames do not fit continue to wait.
        """
        cdef KafkaChannel channel
        cdef Py_ssize_t promised = 0
        if not self.starved or pool.is_starved:
            return 0
        pool.is_starved = True
        waiting, self.starved = self.starved, []
        for channel in waiting:
            if pool.fits(channel.reader.frame_size, promised):
                promised += channel.reader.frame_size
                channel.is_starved = channel.waits_for_memory = False
                self.update_interest(channel)
                if channel.wants_buffered():
                    buffered.append(channel)
            else:
                self.starved.append(channel)
        return 0

    cdef int update_interest(self, KafkaChannel channel) except -1:
        cdef int wanted = channel.wanted_interest()
        if wanted == channel.interest:
            return 0
        self.poller.set_interest(channel.fd, channel.interest, wanted)
        channel.interest = wanted
        return 0

    cdef int touch(self, KafkaChannel channel, double now_ms) except -1:
        """Record activity on a channel."""
        channel.has_written_in_wait = False
        if self.idle is not None:
            self.idle.touch(channel, now_ms)
        return 0

    cdef KafkaChannel next_expired(self, double now_ms):
        """Return a channel that must be closed, or ``None``.

        If a channel is returned, ``expiry_reason`` and ``expiry_error`` are set.
        """
        cdef KafkaChannel channel = None
        if self.starved or self.starved_since_ms >= 0:
            channel = self.next_stalled(now_ms)
        if channel is None and self.idle is not None:
            channel = self.next_idle(now_ms)
        return channel

    cdef KafkaChannel next_stalled(self, double now_ms):
        """Return a channel whose frame arrives too slowly while channels wait for memory, or ``None``.

        Without this limit, a peer that announces frames and does not send them could block all other peers.
        """
        cdef KafkaChannel channel
        cdef FrameReader reader
        if not self.starved:
            self.starved_since_ms = -1
        elif self.starved_since_ms < 0:
            self.record_progress(now_ms)
        elif now_ms - self.starved_since_ms >= MAX_STARVED_MS:
            for channel in self.by_id.values():
                reader = channel.reader
                if (
                    reader.frame is not None
                    and 0 <= reader.checked_fill > reader.frame_fill - MIN_PROGRESS_BYTES
                ):
                    self.expiry_reason = (
                        f"{channel.id}: received only {reader.frame_fill} of {reader.frame_size} bytes of a "
                        f"frame while other connections waited {now_ms - self.starved_since_ms:.0f} ms for "
                        "memory"
                    )
                    self.expiry_error = InvalidReceiveError(self.expiry_reason)
                    self.expiry_error.frame_size = reader.frame_size
                    return channel
            self.record_progress(now_ms)
        return None

    cdef int record_progress(self, double now_ms) except -1:
        """Record how much of each frame has arrived, for the check that follows after MAX_STARVED_MS."""
        cdef KafkaChannel channel
        self.starved_since_ms = now_ms
        for channel in self.by_id.values():
            channel.reader.checked_fill = -1 if channel.reader.frame is None else channel.reader.frame_fill
        return 0

    cdef KafkaChannel next_idle(self, double now_ms):
        """Return the channel that has been idle for longest if it has expired, otherwise ``None``."""
        cdef KafkaChannel channel
        while True:
            channel = self.idle.oldest_expired(now_ms)
            if channel is None:
                return None
            if not (
                channel.is_connected and (channel.has_written_in_wait or channel.transport.has_unread())
            ):
                self.expiry_reason = f"no activity for {now_ms - channel.last_active_ms:.0f} ms"
                self.expiry_error = None
                return channel
            # Record activity, because a muted channel with unread bytes is not idle.
            self.touch(channel, now_ms)

    cdef int close_all(self) except -1:
        """Close every channel, and the poller."""
        cdef KafkaChannel channel
        self.poller.check_not_waiting()
        interrupt = None
        for channel in self.by_id.values():
            # Do not unregister the channels from the poller: a forked child shares its parent's epoll
            # instance, and does not have its parent's kqueue.
            try:
                channel.close()
            except BaseException as error:
                # A Ctrl-C has interrupted a TLS shutdown. Close the other channels before raising the
                # exception, because the caller may not call this method again.
                interrupt = error
            if self.idle is not None:
                self.idle.forget(channel)
        self.borrowed_size = 0
        self.by_id.clear()
        self.starved.clear()
        self.poller.close()
        if interrupt is not None:
            raise interrupt
        return 0


@cython.nonecheck(False)
cdef bint continue_write(void *channels, int fd, int ready) noexcept nogil:
    """Write more of a partly written frame to a writable socket. Return whether bytes remain unwritten.

    ``channels`` is a ChannelSet, which the caller keeps alive.
    """
    cdef PyObject *found
    if ready != KC_WRITE or fd < 0 or fd >= (<ChannelSet> channels).borrowed_size:
        return False
    found = (<ChannelSet> channels).borrowed[fd]
    return found != NULL and (<KafkaChannel> found).continue_write()
